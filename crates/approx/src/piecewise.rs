//! GeLU in four pieces, told apart by the sign's approximation: EncryptedLLM (D.2), with the pieces of Dong et al. (PUMA, 2023).

use crate::cost::GRID;
use crate::error::ApproxError;
use crate::fit::worst_on_grid;
use crate::{Chebyshev, Sign, gelu_tanh, interpolate};

/// Where one piece ends and the next begins.
const BORDERS: [f64; 3] = [-4.0, -1.95, 3.0];

/// `F_0` from the constant term on.
const F0: [f64; 4] = [
    -0.5054031199708174,
    -0.42226581151983866,
    -0.11807612951181953,
    -0.011034134030615728,
];
/// `F_1`.
const F1: [f64; 7] = [
    0.008526321541038084,
    0.5,
    0.3603292692789629,
    0.0,
    -0.037688200365904236,
    0.0,
    0.0018067462606141187,
];

/// GeLU on [-radius, radius]: 0, a cubic, a sextic and `x`, joined at -4, -1.95 and 3.
#[derive(Clone, Debug, PartialEq)]
pub struct PiecewiseGelu {
    /// Arguments are at most this far from 0.
    pub radius: f64,
    /// Tells which side of a border an argument is on, from their difference divided by [`reach`](Self::reach).
    pub sign: Sign,
    /// `F_0` and `F_1` on the interval, in the Chebyshev basis. Far from their pieces they are large; the signs there have to be as exact.
    pub pieces: [Chebyshev; 2],
}

impl PiecewiseGelu {
    /// With the paper's sign.
    pub fn new(radius: f64) -> Result<Self, ApproxError> {
        if !(radius > -BORDERS[0] && radius.is_finite()) {
            return Err(ApproxError::Interval {
                function: "gelu(x) in pieces",
                domain: "around [-4, 4]",
                low: -radius,
                high: radius,
            });
        }
        let piece = |coefficients: &[f64]| {
            let value = |x: f64| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
            interpolate(value, -radius, radius, coefficients.len() - 1)
        };
        Ok(Self {
            radius,
            sign: Sign::TWICE,
            pieces: [piece(&F0)?, piece(&F1)?],
        })
    }

    /// Bound on the differences from the borders.
    pub fn reach(&self) -> f64 {
        self.radius - BORDERS[0]
    }

    /// The borders.
    pub fn borders(&self) -> [f64; 3] {
        BORDERS
    }

    /// The approximation at `x`: with `b_i` one above border `i` and zero below, `b_0 F_0 + b_1 (F_1 - F_0) + b_2 (x - F_1)`.
    pub fn evaluate(&self, x: f64) -> f64 {
        let value =
            |coefficients: &[f64]| coefficients.iter().rev().fold(0.0, |sum, c| sum * x + c);
        let (f0, f1) = (value(&F0), value(&F1));
        let above =
            BORDERS.map(|border| (1.0 + self.sign.evaluate((x - border) / self.reach())) / 2.0);
        above[0] * f0 + above[1] * (f1 - f0) + above[2] * (x - f1)
    }

    /// Multiplicative depth for arguments that are already mapped for the signs.
    pub fn depth(&self) -> u32 {
        self.sign.depth() + 1
    }

    /// Ciphertext products: three signs, the two pieces, and three products of both.
    pub fn products(&self) -> u32 {
        let pieces: u32 = self.pieces.iter().map(Chebyshev::products).sum();
        3 * self.sign.products() + pieces + 3
    }

    /// Bits of the worst absolute error from the tanh form on a dense grid.
    pub fn worst_error_bits(&self) -> f64 {
        let error = |x: f64| self.evaluate(x) - gelu_tanh(x);
        -worst_on_grid(-self.radius, self.radius, GRID, error).log2()
    }
}
