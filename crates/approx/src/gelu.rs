//! GeLU by one polynomial that is exact at zero, so that padding stays zero.

use crate::Chebyshev;
use crate::error::ApproxError;
use crate::special::{gelu_erf, gelu_tanh};
use crate::through_zero::{choose, error_bits, fit};

/// As errors call it.
const NAME: &str = "gelu(x)";

/// Which of the two GeLUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GeluForm {
    /// By tanh, Hugging Face's `gelu_new`.
    Tanh,
    /// By the error function, Hugging Face's `gelu`.
    Erf,
}

impl GeluForm {
    /// The exact function.
    pub fn exact(self, x: f64) -> f64 {
        match self {
            Self::Tanh => gelu_tanh(x),
            Self::Erf => gelu_erf(x),
        }
    }
}

/// GeLU on an interval around zero. On a symmetric interval all odd coefficients but the first are zero, since GeLU is `x/2`
/// plus an even function. Outside the interval the polynomial grows like `x^degree`.
#[derive(Clone, Debug, PartialEq)]
pub struct Gelu {
    /// The polynomial.
    pub poly: Chebyshev,
    /// The function it stands for.
    pub form: GeluForm,
}

impl Gelu {
    /// The polynomial of that degree with the least absolute error on `[low, high]`, which must contain 0.
    pub fn fit(form: GeluForm, low: f64, high: f64, degree: usize) -> Result<Self, ApproxError> {
        let poly = fit(NAME, |x| form.exact(x), (low, high), degree)?;
        Ok(Self { poly, form })
    }

    /// The smallest degree of [`DEGREES`](crate::DEGREES) whose absolute error on `[low, high]` is below `2^-bits`.
    pub fn choose(form: GeluForm, low: f64, high: f64, bits: f64) -> Result<Self, ApproxError> {
        let poly = choose(NAME, |x| form.exact(x), (low, high), bits)?;
        Ok(Self { poly, form })
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
        error_bits(&self.poly, |x| self.form.exact(x))
    }
}
