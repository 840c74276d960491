//! Polynomials with their interval's map folded into the plaintexts before them.

use crate::{Function, FunctionKind, NonLinear};
use std::sync::Arc;
use taciturn_approx::Chebyshev;

/// Scale and shift that map an interval to [-1, 1].
pub(crate) fn to_unit((low, high): (f64, f64)) -> (f64, f64) {
    let width = high - low;
    (2.0 / width, -(high + low) / width)
}

/// A function whose argument comes mapped to [-1, 1]; `divisor` divides the exact one's argument.
pub(crate) fn folded(kind: FunctionKind, polynomial: &Chebyshev, divisor: f64) -> Arc<NonLinear> {
    let (low, high) = (polynomial.low / divisor, polynomial.high / divisor);
    let polynomial = Chebyshev {
        low: -1.0,
        high: 1.0,
        coefficients: polynomial.coefficients.clone(),
    };
    Arc::new(NonLinear {
        function: Function::folded(kind, low, high),
        polynomial,
    })
}
