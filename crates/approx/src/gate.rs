//! Gates: what an activation multiplies its argument by.

use std::f64::consts::{FRAC_1_SQRT_2, FRAC_2_PI};

use crate::special::erf;

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
}
