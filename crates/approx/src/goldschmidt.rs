//! `1/x` and `1/sqrt(x)` by Goldschmidt's iteration: the same values as Newton's, with the error kept beside them.
//!
//! An iteration for `1/x` then takes one level in place of two. Outside the interval the start's error exceeds one and every iteration squares
//! it; a caller has to detect it. Sources: Even, Seidel and Ferguson, "A parametric error analysis of Goldschmidt's division algorithm"
//! (2005), as used by Cachemir (appendix E) and EncryptedLLM (D.4).

use crate::cost::GRID;
use crate::error::{ApproxError, check_interval};
use crate::fit::worst_on_grid;
use crate::{Chebyshev, Inverse, InverseSqrt};

/// `1/x` on a positive interval: with `e = 1 - x y`, `y <- y (1 + e)` and `e <- e^2`.
#[derive(Clone, Debug, PartialEq)]
pub struct GoldschmidtInverse {
    /// First guess; its interval is the function's. A constant where its degree is 0.
    pub start: Chebyshev,
    /// Number of iterations.
    pub iterations: u32,
}

impl GoldschmidtInverse {
    /// From the polynomial of that degree with the least relative error.
    pub fn fit(low: f64, high: f64, degree: usize, iterations: u32) -> Result<Self, ApproxError> {
        let start = Inverse::fit(low, high, degree, 0)?.start;
        Ok(Self { start, iterations })
    }

    /// From the constant in the middle of the inverses' range as the iteration sees it, `2 / (low + high)`.
    pub fn from_constant(low: f64, high: f64, iterations: u32) -> Result<Self, ApproxError> {
        check_interval("1/x", "above 0", (low, high), 0.0)?;
        let start = constant(low, high, 2.0 / (low + high));
        Ok(Self { start, iterations })
    }

    /// The approximation at `x`.
    pub fn evaluate(&self, x: f64) -> f64 {
        let y = self.start.evaluate(x);
        let step = |(y, e): (f64, f64), _| (y * (1.0 + e), e * e);
        (0..self.iterations).fold((y, 1.0 - x * y), step).0
    }

    /// Multiplicative depth for an argument that is already mapped for the start: one level for the first error, one for each iteration.
    pub fn depth(&self) -> u32 {
        self.start.depth()
            + if self.iterations == 0 {
                0
            } else {
                1 + self.iterations
            }
    }

    /// Ciphertext products. With a constant start the first error and the first iteration take none.
    pub fn products(&self) -> u32 {
        let steps = match self.iterations {
            0 => 0,
            iterations => 2 * iterations,
        };
        let plain = if self.start.degree() == 0 { 2 } else { 0 };
        self.start.products() + steps.saturating_sub(plain)
    }

    /// Bits of the worst relative error on a dense grid.
    pub fn worst_error_bits(&self) -> f64 {
        let error = |x: f64| self.evaluate(x) * x - 1.0;
        -worst_on_grid(self.start.low, self.start.high, GRID, error).log2()
    }
}

/// `1/sqrt(x)` on a positive interval: with `e = 1 - x y^2`, `y <- y (1 + e/2)` and `e <- e^2 (3 + e) / 4`.
#[derive(Clone, Debug, PartialEq)]
pub struct GoldschmidtInverseSqrt {
    /// First guess; its interval is the function's. A constant where its degree is 0.
    pub start: Chebyshev,
    /// Number of iterations.
    pub iterations: u32,
}

impl GoldschmidtInverseSqrt {
    /// From the polynomial of that degree with the least relative error.
    pub fn fit(low: f64, high: f64, degree: usize, iterations: u32) -> Result<Self, ApproxError> {
        let start = InverseSqrt::fit(low, high, degree, 0)?.start;
        Ok(Self { start, iterations })
    }

    /// From the constant `1 / sqrt(high)`, which is 1 where the argument is scaled to end at 1.
    pub fn from_constant(low: f64, high: f64, iterations: u32) -> Result<Self, ApproxError> {
        check_interval("1/sqrt(x)", "above 0", (low, high), 0.0)?;
        let start = constant(low, high, 1.0 / high.sqrt());
        Ok(Self { start, iterations })
    }

    /// The approximation at `x`.
    pub fn evaluate(&self, x: f64) -> f64 {
        let y = self.start.evaluate(x);
        let step = |(y, e): (f64, f64), _| (y * (1.0 + e / 2.0), e * e * (3.0 + e) / 4.0);
        (0..self.iterations).fold((y, 1.0 - x * y * y), step).0
    }

    /// Multiplicative depth for an argument that is already mapped for the start: an error takes two levels, the last value one more. A
    /// constant start's error takes one.
    pub fn depth(&self) -> u32 {
        let plain = u32::from(self.start.degree() == 0);
        self.start.depth()
            + if self.iterations == 0 {
                0
            } else {
                2 * self.iterations + 1 - plain
            }
    }

    /// Ciphertext products: two for the first error, then one for a value and two for the next error. With a constant start the first error
    /// and the first value take none.
    pub fn products(&self) -> u32 {
        let steps = match self.iterations {
            0 => 0,
            iterations => 3 * iterations,
        };
        let plain = if self.start.degree() == 0 { 3 } else { 0 };
        self.start.products() + steps.saturating_sub(plain)
    }

    /// Bits of the worst relative error on a dense grid.
    pub fn worst_error_bits(&self) -> f64 {
        let error = |x: f64| self.evaluate(x) * x.sqrt() - 1.0;
        -worst_on_grid(self.start.low, self.start.high, GRID, error).log2()
    }
}

fn constant(low: f64, high: f64, value: f64) -> Chebyshev {
    Chebyshev {
        low,
        high,
        coefficients: vec![value],
    }
}
