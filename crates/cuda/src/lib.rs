//! The CUDA backend of the ring: polynomials in device memory, kernels over all limbs of a batch.
//!
//! Results equal those of the portable backend word for word. The launch plans ([`CudaBackend`]) know nothing of drivers: a [`Device`]
//! gives memory and runs kernels. There are two: a GPU, and in the tests a shim that runs the same kernel sources on the host.
//!
//! Everything a backend launches is queued on one stream, in order; only reading words back waits. Memory comes from a pool and is
//! used again as soon as it is given back, which that order makes safe. Copies from the host go beside the queue, on a stream of their own.
//! Sequences that come again and again are recorded and replayed as one graph, whose independent kernels may run at the same time.
//!
//! Built on `taciturn-ring`; it knows no keys or levels.

mod abi;
mod backend;
mod device;
#[cfg(feature = "gpu")]
mod gpu;
mod kernel;
mod memory;
mod model;
mod params;
mod pool;
mod recorder;
mod recording;
mod sequence;
mod tables;

pub use backend::{CudaBackend, Seeded};
pub use device::{Device, DeviceError, Graph, Launch, Mark, Probe, Step};
#[cfg(feature = "gpu")]
pub use gpu::{Gpu, GpuInfo, gpus};
pub use kernel::Kernel;
pub use model::{Model, Modelled};
pub use pool::Transfers;
