//! SiLU and GeLU as `x` times a composition of two polynomials, in the manner of THOR's (2025) activations, which Cachemir takes over
//! (appendix E). The polynomials are our own fits.

use crate::cost::GRID;
use crate::error::{ApproxError, check_interval};
use crate::fit::{minimax, worst_on_grid};
use crate::{Chebyshev, Gate, Point, fit_points};

/// Degrees tried for both polynomials.
const DEGREES: [usize; 3] = [7, 15, 31];
/// How much flatter than the gate the inner polynomial's target is.
const FLATTER: [f64; 5] = [2.0, 3.0, 4.0, 6.0, 8.0];
/// Points on which the outer polynomial is fitted, for each of its coefficients.
const POINTS: usize = 24;

/// `x * outer(inner(x))`. Outside the interval it grows like `x` to the product of the degrees.
#[derive(Clone, Debug, PartialEq)]
pub struct Composite {
    /// A flat step from about -1 to 1; its interval is the function's.
    pub inner: Chebyshev,
    /// From there to the gate; its interval holds all values of the inner one.
    pub outer: Chebyshev,
    /// What they stand for.
    pub gate: Gate,
}

impl Composite {
    /// The cheapest whose absolute error on `[low, high]`, which must contain 0, is below `2^-bits`: least depth, then fewest products.
    pub fn choose(gate: Gate, low: f64, high: f64, bits: f64) -> Result<Self, ApproxError> {
        let mut degrees: Vec<(usize, usize)> = DEGREES
            .iter()
            .flat_map(|&inner| DEGREES.map(|outer| (inner, outer)))
            .collect();
        let depth = |degree: usize| (degree + 1).ilog2();
        degrees.sort_by_key(|&(inner, outer)| (depth(inner) + depth(outer), inner.max(outer)));
        let mut best = f64::NEG_INFINITY;
        for degrees in degrees {
            let made = Self::of_degrees(gate, (low, high), degrees)?;
            let got = made.worst_error_bits();
            if got >= bits {
                return Ok(made);
            }
            best = best.max(got);
        }
        Err(ApproxError::TooWide {
            function: "composite activation",
            low,
            high,
            bits,
            best,
        })
    }

    /// The one of these degrees of the inner and the outer polynomial that has the least error of several flatter targets.
    pub fn of_degrees(
        gate: Gate,
        interval: (f64, f64),
        degrees: (usize, usize),
    ) -> Result<Self, ApproxError> {
        let mut best: Option<(f64, Self)> = None;
        for flatter in FLATTER {
            let made = Self::fit(gate, interval, degrees, flatter)?;
            let got = made.worst_error_bits();
            if best.as_ref().is_none_or(|(bits, _)| got > *bits) {
                best = Some((got, made));
            }
        }
        let (_, made) = best.expect("there is at least one target");
        Ok(made)
    }

    /// These degrees of the inner and the outer polynomial. The inner one's target is the logistic function of `x` divided by
    /// `flatter`, which a low degree reaches; the outer one is fitted to what the inner one really gives, weighted by `|x|`.
    pub fn fit(
        gate: Gate,
        (low, high): (f64, f64),
        (inner, outer): (usize, usize),
        flatter: f64,
    ) -> Result<Self, ApproxError> {
        check_interval(
            "composite activation",
            "around 0",
            (low, high),
            f64::NEG_INFINITY,
        )?;
        if !(low < 0.0 && high > 0.0) {
            return Err(ApproxError::Interval {
                function: "composite activation",
                domain: "around 0",
                low,
                high,
            });
        }
        let step = |x: f64| (x / flatter / 2.0).tanh();
        let inner = minimax(step, |_| 1.0, low, high, inner)?;
        let edge = worst_on_grid(low, high, GRID, |x| inner.evaluate(x)) * (1.0 + 1e-9);
        let count = POINTS * (outer + 1);
        // Denser around 0, where the gate is steep, and at both ends.
        let points: Vec<Point> = (0..=count)
            .map(|k| {
                let t = 2.0 * k as f64 / count as f64 - 1.0;
                let x = if t < 0.0 {
                    -low * t * t.abs()
                } else {
                    high * t * t.abs()
                };
                Point {
                    x: inner.evaluate(x).clamp(-edge, edge),
                    value: gate.exact(x),
                    weight: x.abs().max(1e-3 * (high - low)),
                }
            })
            .collect();
        let outer = fit_points(&points, -edge, edge, outer)?;
        Ok(Self { inner, outer, gate })
    }

    /// The approximation at `x`.
    pub fn evaluate(&self, x: f64) -> f64 {
        x * self.outer.evaluate(self.inner.evaluate(x))
    }

    /// Multiplicative depth for an argument that is already mapped for the inner polynomial, whose result comes mapped for the outer one.
    pub fn depth(&self) -> u32 {
        self.inner.depth() + self.outer.depth() + 1
    }

    /// Ciphertext products.
    pub fn products(&self) -> u32 {
        self.inner.products() + self.outer.products() + 1
    }

    /// Bits of the worst absolute error on a dense grid.
    pub fn worst_error_bits(&self) -> f64 {
        let error = |x: f64| self.evaluate(x) - self.gate.activation(x);
        -worst_on_grid(self.inner.low, self.inner.high, GRID, error).log2()
    }
}
