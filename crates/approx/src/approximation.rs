//! Any of the approximations, where a caller compares them.

use crate::{
    Chebyshev, Composite, Exp, Gate, GoldschmidtInverse, GoldschmidtInverseSqrt, Inverse,
    InverseSqrt, PiecewiseGelu, Sign, Target, grid,
};

/// Differences of smaller magnitude have no sign here: the sign's approximations are continuous.
pub const LEAST_DIFFERENCE: f64 = 0.05;

/// One way to compute a function of one argument on an interval.
#[derive(Clone, Debug, PartialEq)]
pub enum Approximation {
    /// `1/x` by Newton's steps.
    Inverse(Inverse),
    /// `1/x` by Goldschmidt's iterations.
    GoldschmidtInverse(GoldschmidtInverse),
    /// `1/sqrt(x)` by Newton's steps.
    InverseSqrt(InverseSqrt),
    /// `1/sqrt(x)` by Goldschmidt's iterations.
    GoldschmidtInverseSqrt(GoldschmidtInverseSqrt),
    /// `exp(x)` by squarings.
    Exp(Exp),
    /// An activation by one polynomial.
    Activation {
        /// Which.
        gate: Gate,
        /// The polynomial; its interval is the function's.
        poly: Chebyshev,
    },
    /// An activation by two composed polynomials.
    Composite(Composite),
    /// GeLU by pieces.
    Piecewise(PiecewiseGelu),
    /// The sign on [-1, 1].
    Sign(Sign),
    /// `max(x, 0)` on [-1, 1], by which `max(a, b) = b + max(a - b, 0)`.
    Max(Sign),
}

impl Approximation {
    /// Where arguments may lie.
    pub fn interval(&self) -> (f64, f64) {
        let of = |poly: &Chebyshev| (poly.low, poly.high);
        match self {
            Self::Inverse(f) => of(&f.start),
            Self::GoldschmidtInverse(f) => of(&f.start),
            Self::InverseSqrt(f) => of(&f.start),
            Self::GoldschmidtInverseSqrt(f) => of(&f.start),
            Self::Exp(f) => of(&f.poly),
            Self::Activation { poly, .. } => of(poly),
            Self::Composite(f) => of(&f.inner),
            Self::Piecewise(f) => (-f.radius, f.radius),
            Self::Sign(_) | Self::Max(_) => (-1.0, 1.0),
        }
    }

    /// The approximation at `x`.
    pub fn evaluate(&self, x: f64) -> f64 {
        match self {
            Self::Inverse(f) => f.evaluate(x),
            Self::GoldschmidtInverse(f) => f.evaluate(x),
            Self::InverseSqrt(f) => f.evaluate(x),
            Self::GoldschmidtInverseSqrt(f) => f.evaluate(x),
            Self::Exp(f) => f.evaluate(x),
            Self::Activation { poly, .. } => poly.evaluate(x),
            Self::Composite(f) => f.evaluate(x),
            Self::Piecewise(f) => f.evaluate(x),
            Self::Sign(f) => f.evaluate(x),
            Self::Max(f) => f.max(x, 0.0),
        }
    }

    /// The function itself at `x`.
    pub fn exact(&self, x: f64) -> f64 {
        match self {
            Self::Inverse(_) | Self::GoldschmidtInverse(_) => 1.0 / x,
            Self::InverseSqrt(_) | Self::GoldschmidtInverseSqrt(_) => 1.0 / x.sqrt(),
            Self::Exp(_) => x.exp(),
            Self::Activation { gate, .. } => gate.activation(x),
            Self::Composite(f) => f.gate.activation(x),
            Self::Piecewise(_) => Gate::NormalByTanh.activation(x),
            Self::Sign(_) => x.signum(),
            Self::Max(_) => x.max(0.0),
        }
    }

    /// What an error is relative to at `x`: the value for inverses, the largest value for exponentials, 1 for all others. The sign's error
    /// counts from [`LEAST_DIFFERENCE`] on.
    fn reference(&self, x: f64) -> f64 {
        match self {
            Self::Inverse(_)
            | Self::GoldschmidtInverse(_)
            | Self::InverseSqrt(_)
            | Self::GoldschmidtInverseSqrt(_) => self.exact(x),
            Self::Exp(f) => f.poly.high.exp(),
            Self::Sign(_) if x.abs() < LEAST_DIFFERENCE => f64::INFINITY,
            _ => 1.0,
        }
    }

    /// What the error is relative to, in a word.
    pub fn error_kind(&self) -> &'static str {
        match self {
            Self::Inverse(_)
            | Self::GoldschmidtInverse(_)
            | Self::InverseSqrt(_)
            | Self::GoldschmidtInverseSqrt(_) => "relative",
            Self::Exp(_) => "of the largest",
            _ => "absolute",
        }
    }

    /// The worst error on these arguments; not a number where any value is not.
    pub fn worst_error(&self, arguments: impl IntoIterator<Item = f64>) -> f64 {
        arguments.into_iter().fold(0.0, |worst: f64, x| {
            let error = ((self.evaluate(x) - self.exact(x)) / self.reference(x)).abs();
            if error > worst || error.is_nan() {
                error
            } else {
                worst
            }
        })
    }

    /// Bits of the worst error on a dense grid of the interval.
    pub fn bits(&self) -> f64 {
        let (low, high) = self.interval();
        -self.worst_error(grid(low, high)).log2()
    }

    /// What is approximated.
    pub fn target(&self) -> Target {
        match self {
            Self::Inverse(_) | Self::GoldschmidtInverse(_) => Target::Inverse,
            Self::InverseSqrt(_) | Self::GoldschmidtInverseSqrt(_) => Target::InverseSqrt,
            Self::Exp(_) => Target::Exp,
            Self::Activation { gate, .. } => Target::Activation(*gate),
            Self::Composite(f) => Target::Activation(f.gate),
            Self::Piecewise(_) => Target::Activation(Gate::NormalByTanh),
            Self::Sign(_) => Target::Sign,
            Self::Max(_) => Target::Max,
        }
    }

    /// Ciphertext products.
    pub fn products(&self) -> u32 {
        match self {
            Self::Inverse(f) => f.products(),
            Self::GoldschmidtInverse(f) => f.products(),
            Self::InverseSqrt(f) => f.products(),
            Self::GoldschmidtInverseSqrt(f) => f.products(),
            Self::Exp(f) => f.products(),
            Self::Activation { poly, .. } => poly.products(),
            Self::Composite(f) => f.products(),
            Self::Piecewise(f) => f.products(),
            Self::Sign(f) => f.products(),
            Self::Max(f) => f.products() + 1,
        }
    }

    /// Levels from an argument that is mapped from the interval to [-1, 1].
    pub fn depth(&self) -> u32 {
        match self {
            Self::Inverse(f) => f.depth(),
            Self::GoldschmidtInverse(f) => f.depth(),
            Self::InverseSqrt(f) => f.depth(),
            Self::GoldschmidtInverseSqrt(f) => f.depth(),
            Self::Exp(f) => f.depth(),
            Self::Activation { poly, .. } => poly.depth(),
            Self::Composite(f) => f.depth(),
            // Every sign has a map of its own.
            Self::Piecewise(f) => 1 + f.depth(),
            Self::Sign(f) => f.depth(),
            Self::Max(f) => f.depth() + 1,
        }
    }
}
