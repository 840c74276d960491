//! `exp(x)`: a polynomial for `exp(x / 2^r)`, squared r times.

use crate::Chebyshev;
use crate::cost::{Candidate, GRID, Request, cheapest};
use crate::error::{ApproxError, check_interval};
use crate::fit::{minimax, worst_on_grid};

/// Most squarings tried.
const MAX_SQUARINGS: u32 = 6;

/// Widest interval accepted: beyond it the value at the lower end is nothing in double precision.
const MAX_WIDTH: f64 = 700.0;

/// `exp(x)` on an interval. Errors are measured relative to the value at the upper end, the largest one: a softmax adds the
/// values up, so a small one needs no digits of its own. Below the interval the polynomial grows again, and with at least one
/// squaring the result is never negative; a caller has to keep its arguments inside.
#[derive(Clone, Debug, PartialEq)]
pub struct Exp {
    /// Approximates `exp(x / 2^squarings)`; its interval is the function's.
    pub poly: Chebyshev,
    /// Number of squarings after the polynomial.
    pub squarings: u32,
}

impl Exp {
    /// The given degree and number of squarings on `[low, high]`, fitted for an error of about `bits` bits.
    ///
    /// An error `e` of the polynomial becomes `2^r exp(x)^((2^r - 1)/2^r) e`: small where the result is small. The weight follows
    /// it down to where the result disappears under the error asked for, and stays constant below.
    pub fn fit(
        low: f64,
        high: f64,
        degree: usize,
        squarings: u32,
        bits: f64,
    ) -> Result<Self, ApproxError> {
        check_interval(
            "exp(x)",
            "narrower than 700",
            (low, high),
            f64::NEG_INFINITY,
        )?;
        if high - low > MAX_WIDTH {
            return Err(ApproxError::Interval {
                function: "exp(x)",
                domain: "narrower than 700",
                low,
                high,
            });
        }
        let power = f64::from(1u32 << squarings.min(30));
        let floor = -(bits + 2.0) * std::f64::consts::LN_2;
        // Fitted on [low - high, 0], where the largest value is 1, and scaled by exp(high / 2^r).
        let unit = minimax(
            |x| (x / power).exp(),
            |x| (x.max(floor) * (power - 1.0) / power).exp(),
            low - high,
            0.0,
            degree,
        )?;
        let factor = (high / power).exp();
        let coefficients = unit.coefficients.iter().map(|c| c * factor).collect();
        Ok(Self {
            poly: Chebyshev {
                low,
                high,
                coefficients,
            },
            squarings,
        })
    }

    /// The cheapest that reaches `bits` on `[low, high]`: least depth, then fewest products.
    pub fn choose(low: f64, high: f64, bits: f64) -> Result<Self, ApproxError> {
        let request = Request {
            function: "exp(x)",
            low,
            high,
            bits,
            max_steps: MAX_SQUARINGS,
            step_depth: 1,
            step_products: 1,
        };
        cheapest(
            &request,
            |c: Candidate| Self::fit(low, high, c.degree, c.steps, bits),
            Self::worst_error_bits,
        )
    }

    /// Where arguments may lie.
    pub fn interval(&self) -> (f64, f64) {
        (self.poly.low, self.poly.high)
    }

    /// The approximation at `x`.
    pub fn evaluate(&self, x: f64) -> f64 {
        (0..self.squarings).fold(self.poly.evaluate(x), |y, _| y * y)
    }

    /// Multiplicative depth for an argument that is already mapped for the polynomial.
    pub fn depth(&self) -> u32 {
        self.poly.depth() + self.squarings
    }

    /// Ciphertext products.
    pub fn products(&self) -> u32 {
        self.poly.products() + self.squarings
    }

    /// Bits of the worst error on a dense grid, relative to the value at the upper end.
    pub fn worst_error_bits(&self) -> f64 {
        let Chebyshev { low, high, .. } = self.poly;
        let top = (high / f64::from(1u32 << self.squarings)).exp();
        // Divided before squaring: the value at the upper end may overflow.
        let unit = |x: f64| (0..self.squarings).fold(self.poly.evaluate(x) / top, |y, _| y * y);
        -worst_on_grid(low, high, GRID, |x| unit(x) - (x - high).exp()).log2()
    }
}
