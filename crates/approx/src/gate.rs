//! Gates: what an activation multiplies its argument by.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

use crate::special::erf;
use crate::{ApproxError, Chebyshev, Gelu, GeluForm, Silu};

/// A smooth step from 0 to 1; the activation is `x` times it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Gate {
    /// Of SiLU: `1 / (1 + exp(-x))`.
    Logistic,
    /// Of GeLU by the error function.
    Normal,
    /// Of GeLU in its tanh form.
    NormalByTanh,
}

impl Gate {
    /// The gate at `x`.
    pub fn exact(self, x: f64) -> f64 {
        match self {
            Gate::Logistic => 1.0 / (1.0 + (-x).exp()),
            Gate::Normal => (1.0 + erf(x * FRAC_1_SQRT_2)) / 2.0,
            Gate::NormalByTanh => {
                (1.0 + (FRAC_2_PI.sqrt() * (x + 0.044715 * x * x * x)).tanh()) / 2.0
            }
        }
    }

    /// The activation at `x`.
    pub fn activation(self, x: f64) -> f64 {
        x * self.exact(x)
    }

    /// The polynomial of the activation of the smallest degree that reaches the bits.
    pub fn choose(self, low: f64, high: f64, bits: f64) -> Result<Chebyshev, ApproxError> {
        Ok(match self {
            Gate::Logistic => Silu::choose(low, high, bits)?.poly,
            Gate::Normal => Gelu::choose(GeluForm::Erf, low, high, bits)?.poly,
            Gate::NormalByTanh => Gelu::choose(GeluForm::Tanh, low, high, bits)?.poly,
        })
    }

    /// The polynomial of the activation of one degree.
    pub fn fit(self, low: f64, high: f64, degree: usize) -> Result<Chebyshev, ApproxError> {
        Ok(match self {
            Gate::Logistic => Silu::fit(low, high, degree)?.poly,
            Gate::Normal => Gelu::fit(GeluForm::Erf, low, high, degree)?.poly,
            Gate::NormalByTanh => Gelu::fit(GeluForm::Tanh, low, high, degree)?.poly,
        })
    }
}
