//! The client's long-term secret.

use taciturn_ckks::{Parameters, SecretDistribution};
use taciturn_ring::{Basis, Poly, sample};
use zeroize::Zeroizing;

use crate::Randomness;

/// A secret polynomial over every limb, in evaluation form; wiped when dropped.
pub struct SecretKey {
    poly: Poly,
    distribution: SecretDistribution,
}

impl SecretKey {
    /// A uniform ternary secret.
    pub fn generate(params: &Parameters, randomness: &mut Randomness) -> Self {
        let coefficients = Zeroizing::new(sample::ternary(randomness.private(), params.ring().n()));
        Self::from_coefficients(params, &coefficients, SecretDistribution::DenseTernary)
    }

    /// A ternary secret of fixed Hamming weight, for use inside a bootstrap only.
    pub(crate) fn generate_sparse(params: &Parameters, randomness: &mut Randomness) -> Self {
        let weight = params.literal().sparse_weight;
        let coefficients = Zeroizing::new(sample::sparse_ternary(
            randomness.private(),
            params.ring().n(),
            weight,
        ));
        let distribution = SecretDistribution::SparseTernary { weight };
        Self::from_coefficients(params, &coefficients, distribution)
    }

    fn from_coefficients(
        params: &Parameters,
        coefficients: &[i64],
        distribution: SecretDistribution,
    ) -> Self {
        let ring = params.ring();
        let mut poly = ring.from_signed(coefficients, Basis::range(0..ring.moduli().len()));
        ring.ntt(&mut poly);
        Self { poly, distribution }
    }

    /// What its security bound depends on.
    pub(crate) fn distribution(&self) -> SecretDistribution {
        self.distribution
    }

    pub(crate) fn poly(&self) -> &Poly {
        &self.poly
    }
}

impl Drop for SecretKey {
    fn drop(&mut self) {
        wipe(&mut self.poly);
    }
}

/// Overwrites a polynomial that held or masked secret material before its memory is used again.
pub fn wipe(poly: &mut Poly) {
    poly.wipe();
}
