//! Activations by one polynomial that is exact at zero.

use crate::Chebyshev;
use crate::cost::{GRID, Request, cheapest};
use crate::error::{ApproxError, check_interval};
use crate::fit::{minimax_through_zero, worst_on_grid};

/// The polynomial of that degree with the least absolute error on the interval, which must contain 0.
pub(crate) fn fit(
    function: &'static str,
    exact: impl Fn(f64) -> f64,
    (low, high): (f64, f64),
    degree: usize,
) -> Result<Chebyshev, ApproxError> {
    check_interval(function, "around 0", (low, high), f64::NEG_INFINITY)?;
    if !(low < 0.0 && high > 0.0) {
        return Err(ApproxError::Interval {
            function,
            domain: "around 0",
            low,
            high,
        });
    }
    minimax_through_zero(exact, |_| 1.0, low, high, degree)
}

/// That of the smallest degree of [`DEGREES`](crate::DEGREES) whose absolute error is below `2^-bits`.
pub(crate) fn choose(
    function: &'static str,
    exact: impl Fn(f64) -> f64,
    (low, high): (f64, f64),
    bits: f64,
) -> Result<Chebyshev, ApproxError> {
    let request = Request {
        function,
        low,
        high,
        bits,
        max_steps: 0,
        step_depth: 0,
        step_products: 0,
    };
    cheapest(
        &request,
        |candidate| fit(function, &exact, (low, high), candidate.degree),
        |poly| error_bits(poly, &exact),
    )
}

/// Bits of the worst absolute error on a dense grid.
pub(crate) fn error_bits(poly: &Chebyshev, exact: impl Fn(f64) -> f64) -> f64 {
    -worst_on_grid(poly.low, poly.high, GRID, |x| poly.evaluate(x) - exact(x)).log2()
}
