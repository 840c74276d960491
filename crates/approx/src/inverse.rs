//! `1/x` and `1/sqrt(x)`: a polynomial start with the least relative error, then Newton steps.
//!
//! Only the ratio of the interval's ends matters: fits are made on `[low/high, 1]` and scaled. Outside the interval the start
//! polynomial grows like `x^degree` and Newton's steps then diverge; a caller has to detect it.

use std::collections::HashMap;

use crate::Chebyshev;
use crate::cost::{Candidate, GRID, MAX_STEPS, Request, cheapest};
use crate::error::{ApproxError, check_interval};
use crate::fit::{minimax, worst_on_grid};

/// `1/sqrt(x)` on a positive interval.
#[derive(Clone, Debug, PartialEq)]
pub struct InverseSqrt {
    /// First guess; its interval is the function's.
    pub start: Chebyshev,
    /// Number of steps `y <- y (3 - x y^2) / 2`.
    pub newton: u32,
}

impl InverseSqrt {
    /// The given degree and number of steps on `[low, high]`.
    pub fn fit(low: f64, high: f64, degree: usize, newton: u32) -> Result<Self, ApproxError> {
        check_interval("1/sqrt(x)", "above 0", (low, high), 0.0)?;
        let start = scaled_fit(
            |x| 1.0 / x.sqrt(),
            |x| x.sqrt(),
            (low, high),
            degree,
            1.0 / high.sqrt(),
        )?;
        Ok(Self { start, newton })
    }

    /// The cheapest that reaches `bits` of relative error on `[low, high]`: least depth, then fewest products.
    pub fn choose(low: f64, high: f64, bits: f64) -> Result<Self, ApproxError> {
        let steps = Steps {
            function: "1/sqrt(x)",
            products: 3,
        };
        steps.choose(
            (low, high, bits),
            |degree| Ok(Self::fit(low, high, degree, 0)?.start),
            |start, newton| Self { start, newton },
            Self::worst_error_bits,
        )
    }

    /// The approximation at `x`.
    pub fn evaluate(&self, x: f64) -> f64 {
        (0..self.newton).fold(self.start.evaluate(x), |y, _| y * (3.0 - x * y * y) / 2.0)
    }

    /// Multiplicative depth for an argument that is already mapped for the start: a step is `3y/2 - (xy)(yy)/2`, whose
    /// halves are changes of scale.
    pub fn depth(&self) -> u32 {
        self.start.depth() + STEP_DEPTH * self.newton
    }

    /// Ciphertext products.
    pub fn products(&self) -> u32 {
        self.start.products() + 3 * self.newton
    }

    /// Bits of the worst relative error on a dense grid.
    pub fn worst_error_bits(&self) -> f64 {
        let error = |x: f64| self.evaluate(x) * x.sqrt() - 1.0;
        -worst_on_grid(self.start.low, self.start.high, GRID, error).log2()
    }
}

/// `1/x` on a positive interval.
#[derive(Clone, Debug, PartialEq)]
pub struct Inverse {
    /// First guess; its interval is the function's.
    pub start: Chebyshev,
    /// Number of steps `y <- y (2 - x y)`.
    pub newton: u32,
}

impl Inverse {
    /// The given degree and number of steps on `[low, high]`.
    pub fn fit(low: f64, high: f64, degree: usize, newton: u32) -> Result<Self, ApproxError> {
        check_interval("1/x", "above 0", (low, high), 0.0)?;
        let start = scaled_fit(|x| 1.0 / x, |x| x, (low, high), degree, 1.0 / high)?;
        Ok(Self { start, newton })
    }

    /// One constant for the whole interval, that of the least relative error: ConSmax (Liu et al., 2024), whose model learns it.
    pub fn constant(low: f64, high: f64) -> Result<Self, ApproxError> {
        check_interval("1/x", "above 0", (low, high), 0.0)?;
        let start = Chebyshev {
            low,
            high,
            coefficients: vec![2.0 / (low + high)],
        };
        Ok(Self { start, newton: 0 })
    }

    /// The cheapest that reaches `bits` of relative error on `[low, high]`: least depth, then fewest products.
    pub fn choose(low: f64, high: f64, bits: f64) -> Result<Self, ApproxError> {
        let steps = Steps {
            function: "1/x",
            products: 2,
        };
        steps.choose(
            (low, high, bits),
            |degree| Ok(Self::fit(low, high, degree, 0)?.start),
            |start, newton| Self { start, newton },
            Self::worst_error_bits,
        )
    }

    /// The approximation at `x`.
    pub fn evaluate(&self, x: f64) -> f64 {
        (0..self.newton).fold(self.start.evaluate(x), |y, _| y * (2.0 - x * y))
    }

    /// Multiplicative depth for an argument that is already mapped for the start.
    pub fn depth(&self) -> u32 {
        self.start.depth() + STEP_DEPTH * self.newton
    }

    /// Ciphertext products.
    pub fn products(&self) -> u32 {
        self.start.products() + 2 * self.newton
    }

    /// Bits of the worst relative error on a dense grid.
    pub fn worst_error_bits(&self) -> f64 {
        let error = |x: f64| self.evaluate(x) * x - 1.0;
        -worst_on_grid(self.start.low, self.start.high, GRID, error).log2()
    }
}

/// Fits on `[low/high, 1]` and carries the result to `[low, high]`, where its values are `factor` times as large.
fn scaled_fit(
    f: impl Fn(f64) -> f64,
    weight: impl Fn(f64) -> f64,
    (low, high): (f64, f64),
    degree: usize,
    factor: f64,
) -> Result<Chebyshev, ApproxError> {
    let unit = minimax(f, weight, low / high, 1.0, degree)?;
    Ok(Chebyshev {
        low,
        high,
        coefficients: unit.coefficients.iter().map(|c| c * factor).collect(),
    })
}

/// Depth of one Newton step of either function.
const STEP_DEPTH: u32 = 2;

/// A function computed by Newton steps from a polynomial.
struct Steps {
    function: &'static str,
    /// Ciphertext products of one step.
    products: u32,
}

impl Steps {
    /// [`cheapest`] over starts of each degree, every one fitted once.
    fn choose<A>(
        &self,
        (low, high, bits): (f64, f64, f64),
        fit: impl Fn(usize) -> Result<Chebyshev, ApproxError>,
        join: impl Fn(Chebyshev, u32) -> A,
        measure: impl Fn(&A) -> f64,
    ) -> Result<A, ApproxError> {
        let request = Request {
            function: self.function,
            low,
            high,
            bits,
            max_steps: MAX_STEPS,
            step_depth: STEP_DEPTH,
            step_products: self.products,
        };
        let mut starts: HashMap<usize, Chebyshev> = HashMap::new();
        let make = |c: Candidate| {
            let start = match starts.get(&c.degree) {
                Some(start) => start.clone(),
                None => starts.entry(c.degree).or_insert(fit(c.degree)?).clone(),
            };
            Ok(join(start, c.steps))
        };
        cheapest(&request, make, measure)
    }
}
