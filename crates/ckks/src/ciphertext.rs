//! Plaintexts and ciphertexts.

use taciturn_ring::{Basis, IntegerPoly, Poly};

use crate::Scale;

/// An encoded slot vector: one polynomial in evaluation form, with its scale.
#[derive(Clone)]
pub struct Plaintext {
    /// The polynomial.
    pub poly: Poly,
    /// The factor between slot values and the polynomial's embedding.
    pub scale: Scale,
}

/// An encoded slot vector before it is reduced modulo any prime: integer coefficients that can be transformed to any set of
/// limbs when used.
#[derive(Clone, Debug)]
pub struct IntegerPlaintext {
    /// Coefficients at the multiples of the stride N / (2 * slots), real parts first: 2 * slots of them.
    pub coefficients: IntegerPoly,
    /// The factor between slot values and the polynomial's embedding.
    pub scale: Scale,
}

/// A ciphertext: `sum_i polys[i] * s^i` decrypts to the encoded values at `scale`. Two polynomials, or three before
/// relinearization, all in evaluation form over one set of limbs.
#[derive(Clone)]
pub struct Ciphertext {
    /// The polynomials, by power of the secret.
    pub polys: Vec<Poly>,
    /// The factor between slot values and their integer representation.
    pub scale: Scale,
}

impl Ciphertext {
    /// The set of limbs that it lives on.
    pub fn basis(&self) -> Basis {
        self.polys[0].basis()
    }

    /// The highest power of the secret in it: 1, or 2 before relinearization.
    pub fn degree(&self) -> usize {
        self.polys.len() - 1
    }
}
