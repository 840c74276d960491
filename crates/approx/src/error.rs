//! Failures of fits and choices.

use thiserror::Error;

/// An approximation that cannot be made.
#[derive(Clone, Debug, Error, PartialEq)]
#[non_exhaustive]
pub enum ApproxError {
    /// The interval is empty, not finite or outside the function's domain.
    #[error("{function}: expected a finite interval {domain} with low < high, got [{low}, {high}]")]
    Interval {
        /// The function.
        function: &'static str,
        /// Where the interval has to lie.
        domain: &'static str,
        /// Lower end asked for.
        low: f64,
        /// Upper end asked for.
        high: f64,
    },
    /// No candidate reaches the precision on this interval.
    #[error(
        "{function} on [{low}, {high}]: expected {bits:.1} bits, got {best:.1} from the best candidate; \
         narrow the interval (calibrate, or scale the argument) or ask for fewer bits"
    )]
    TooWide {
        /// The function.
        function: &'static str,
        /// Lower end of the interval.
        low: f64,
        /// Upper end of the interval.
        high: f64,
        /// Bits asked for.
        bits: f64,
        /// Bits of the best candidate.
        best: f64,
    },
    /// A name that no approximation of the function has.
    #[error(
        "{function}: expected one of {expected}, alone or with its numbers as minimax-newton/31+1 (degree and steps); got {got}; \
         `taciturn bench approximation` shows them all"
    )]
    Unknown {
        /// The function.
        function: &'static str,
        /// The names that there are.
        expected: String,
        /// The one asked for.
        got: String,
    },
    /// Fewer points than a polynomial of the degree has coefficients.
    #[error(
        "fit: expected more than {degree} points for a polynomial of degree {degree}, got {got}; give more points or lower the degree"
    )]
    Points {
        /// Degree asked for.
        degree: usize,
        /// Points given.
        got: usize,
    },
    /// The degree is larger than the fit can handle in double precision.
    #[error(
        "fit: expected a degree of at most {limit}, got {got}; compose with a Newton step or squarings instead"
    )]
    Degree {
        /// Largest accepted degree.
        limit: usize,
        /// Degree asked for.
        got: usize,
    },
}

/// Checks that an interval is finite, not empty and above `floor`.
pub(crate) fn check_interval(
    function: &'static str,
    domain: &'static str,
    (low, high): (f64, f64),
    floor: f64,
) -> Result<(), ApproxError> {
    if low < high && low > floor && (high - low).is_finite() && (high + low).is_finite() {
        return Ok(());
    }
    Err(ApproxError::Interval {
        function,
        domain,
        low,
        high,
    })
}
