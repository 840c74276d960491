//! Polynomials with integer coefficients, not reduced modulo any prime.

use crate::Attachment;

/// A polynomial in `X^stride` by its coefficients, those of the multiples of the stride; from it follow the residues modulo
/// any set of primes.
#[derive(Clone, Debug)]
pub struct IntegerPoly {
    coefficients: Vec<i64>,
    attachment: Attachment,
}

impl IntegerPoly {
    /// The polynomial with these coefficients; a ring of degree `N` takes `N/stride` of them, for a stride that is a power of two.
    pub fn new(coefficients: Vec<i64>) -> Self {
        Self {
            coefficients,
            attachment: Attachment::default(),
        }
    }

    /// The coefficients at the multiples of the stride.
    pub fn coefficients(&self) -> &[i64] {
        &self.coefficients
    }

    /// Where a backend keeps what it derives from this polynomial.
    pub fn attachment(&self) -> &Attachment {
        &self.attachment
    }
}
