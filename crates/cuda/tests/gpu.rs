//! The ring's conformance suite on the first GPU, against formulas and the portable backend. Without a GPU it says so and passes.

#[path = "../../ring/tests/conformance/conversion.rs"]
mod conversion;
#[path = "../../ring/tests/conformance/hoisting.rs"]
mod hoisting;
#[path = "../../ring/tests/conformance/input.rs"]
mod input;
#[path = "../../ring/tests/conformance/key_switch.rs"]
mod key_switch;
#[path = "../../ring/tests/conformance/pointwise.rs"]
mod pointwise;
#[path = "../../ring/tests/conformance/support.rs"]
mod support;
#[path = "../../ring/tests/conformance/transform.rs"]
mod transform;

use std::sync::{Arc, OnceLock};

use support::{Random, all_largest, mul, primes};
use taciturn_cuda::{CudaBackend, Gpu};
use taciturn_ring::{Backend, BackendKind, Basis, Form, Poly, Ring, RingError, primes_near};

/// One backend for all tests: its memory is the device's.
fn gpu() -> Option<Arc<dyn Backend>> {
    static GPU: OnceLock<Option<Arc<dyn Backend>>> = OnceLock::new();
    let open = || match Gpu::open(0) {
        Ok(gpu) => Some(Arc::new(CudaBackend::new(Arc::new(gpu))) as Arc<dyn Backend>),
        Err(error) => {
            eprintln!("no GPU, nothing compared: {error}");
            None
        }
    };
    GPU.get_or_init(open).clone()
}

/// The portable ring and the GPU's.
fn rings(log_n: u32, count: usize) -> Vec<Ring> {
    let moduli = primes(log_n, count);
    let portable = Ring::with_backend(log_n, &moduli, BackendKind::Portable);
    let gpu = gpu().map(|backend| Ring::from_backend(log_n, &moduli, backend));
    [Some(portable), gpu]
        .into_iter()
        .flatten()
        .collect::<Result<_, _>>()
        .unwrap()
}
