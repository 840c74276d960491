//! The CUDA backend of the ring: polynomials in device memory, kernels over all limbs of a batch.
//!
//! Results equal those of the portable backend word for word. The launch plans ([`CudaBackend`]) know nothing of drivers: a [`Device`]
//! gives memory and runs kernels. There are two: a GPU, and in the tests a shim that runs the same kernel sources on the host.
//!
//! Everything a backend launches is queued on one stream, in order; only reading words back waits. Memory comes from a pool and is
//! used again as soon as it is given back, which that order makes safe.
//!
//! Built on `taciturn-ring`; it knows no keys or levels.

mod abi;
mod backend;
mod device;
#[cfg(feature = "gpu")]
mod gpu;
mod kernel;
mod memory;
mod tables;

pub use backend::CudaBackend;
pub use device::{Device, DeviceError, Launch};
#[cfg(feature = "gpu")]
pub use gpu::{Gpu, GpuInfo, gpus};
pub use kernel::Kernel;
pub use memory::Transfers;
