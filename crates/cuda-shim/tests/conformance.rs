//! The ring's conformance suite: the kernels under the shim, in three orders, against formulas and the portable backend.

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

use std::sync::Arc;

use support::{Random, all_largest, mul, primes};
use taciturn_cuda::CudaBackend;
use taciturn_cuda_shim::{Order, Shim};
use taciturn_ring::{BackendKind, Basis, Form, Poly, Ring, RingError, primes_near};

/// The portable ring and one for each order.
fn rings(log_n: u32, count: usize) -> Vec<Ring> {
    let moduli = primes(log_n, count);
    let mut rings = vec![Ring::with_backend(log_n, &moduli, BackendKind::Portable).unwrap()];
    for order in [Order::Ascending, Order::Descending, Order::Shuffled(7)] {
        let backend = CudaBackend::new(Arc::new(Shim::new(order)));
        rings.push(Ring::from_backend(log_n, &moduli, Arc::new(backend)).unwrap());
    }
    rings
}
