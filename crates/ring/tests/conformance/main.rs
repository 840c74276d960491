//! One suite for all backends, against formulas in wide integers.

mod conversion;
mod hoisting;
mod input;
mod key_switch;
mod pointwise;
mod support;
mod transform;

use support::{Random, all_largest, mul, primes};
use taciturn_ring::{BackendKind, Basis, Form, Poly, Ring, RingError, primes_near};

/// A ring for every backend that runs here.
fn rings(log_n: u32, count: usize) -> Vec<Ring> {
    let moduli = primes(log_n, count);
    [BackendKind::Portable, BackendKind::Avx512]
        .into_iter()
        .filter_map(|kind| match Ring::with_backend(log_n, &moduli, kind) {
            Ok(ring) => Some(ring),
            Err(RingError::BackendUnavailable { .. }) => None,
            Err(error) => panic!("{error}"),
        })
        .collect()
}
