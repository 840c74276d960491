//! SiLU by one polynomial that is exact at zero, so that padding stays zero.

use crate::Chebyshev;
use crate::error::ApproxError;
use crate::special::silu;
use crate::through_zero::{choose, error_bits, fit};

/// As errors call it.
const NAME: &str = "silu(x)";

/// SiLU, `x / (1 + exp(-x))`, on an interval around zero. It is `x/2` plus an even function, so that on a symmetric interval all odd
/// coefficients but the first are zero. Its poles at `+- i pi` make it need higher degrees than GeLU. Outside the interval the polynomial grows
/// like `x^degree`.
#[derive(Clone, Debug, PartialEq)]
pub struct Silu {
    /// The polynomial.
    pub poly: Chebyshev,
}

impl Silu {
    /// The polynomial of that degree with the least absolute error on `[low, high]`, which must contain 0.
    pub fn fit(low: f64, high: f64, degree: usize) -> Result<Self, ApproxError> {
        let poly = fit(NAME, silu, (low, high), degree)?;
        Ok(Self { poly })
    }

    /// The smallest degree of [`DEGREES`](crate::DEGREES) whose absolute error on `[low, high]` is below `2^-bits`.
    pub fn choose(low: f64, high: f64, bits: f64) -> Result<Self, ApproxError> {
        let poly = choose(NAME, silu, (low, high), bits)?;
        Ok(Self { poly })
    }

    /// The approximation at `x`.
    pub fn evaluate(&self, x: f64) -> f64 {
        self.poly.evaluate(x)
    }

    /// Multiplicative depth for an argument that is already mapped for the polynomial.
    pub fn depth(&self) -> u32 {
        self.poly.depth()
    }

    /// Ciphertext products.
    pub fn products(&self) -> u32 {
        self.poly.products()
    }

    /// Bits of the worst absolute error on a dense grid.
    pub fn worst_error_bits(&self) -> f64 {
        error_bits(&self.poly, silu)
    }
}
