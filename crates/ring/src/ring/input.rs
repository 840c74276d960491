//! Polynomials from elsewhere: zero, signed coefficients, expansion of a seed, and the check of what comes from outside.

use crate::{
    Basis, Form, IntegerPoly, Modulus, Poly, Ring,
    modulus::{WORD, WORD_MASK},
};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

impl Ring {
    /// The zero polynomial.
    pub fn zero(&self, basis: Basis, form: Form) -> Poly {
        self.check_basis(basis, "zero");
        let mut out = self.stale(basis, form);
        self.backend.clear(&mut out);
        out
    }

    /// The residues of integer coefficients, in coefficient form. Contract: `N` coefficients.
    pub fn from_signed(&self, coefficients: &[i64], basis: Basis) -> Poly {
        self.check_input(coefficients.len(), basis);
        let mut out = self.stale(basis, Form::Coefficient);
        self.backend
            .reduce_signed(&self.tables, &mut out, coefficients);
        out
    }

    /// The residues of an integer polynomial, in coefficient form. Contract: its number of coefficients divides `N`.
    pub fn from_integers(&self, integers: &IntegerPoly, basis: Basis) -> Poly {
        self.check_integers(integers, basis, "from_integers");
        let mut out = self.stale(basis, Form::Coefficient);
        self.backend
            .reduce_integers(&self.tables, &mut out, integers);
        out
    }

    /// [`from_integers`](Self::from_integers), in evaluation form. Cost: a transform of as many words as there are coefficients per limb.
    pub fn transform_integers(&self, integers: &IntegerPoly, basis: Basis) -> Poly {
        self.check_integers(integers, basis, "transform_integers");
        let mut out = self.stale(basis, Form::Coefficient);
        self.backend
            .transform_integers(&self.tables, &mut out, integers);
        out
    }

    fn check_integers(&self, integers: &IntegerPoly, basis: Basis, operation: &str) {
        self.check_basis(basis, operation);
        let count = integers.coefficients().len();
        assert!(
            count.is_power_of_two() && count <= self.n(),
            "{operation}: expected a power of two up to {}, got {count} coefficients",
            self.n()
        );
    }

    /// The residues of wide integer coefficients, in coefficient form. Contract: `N` coefficients.
    pub fn from_signed_i128(&self, coefficients: &[i128], basis: Basis) -> Poly {
        self.check_input(coefficients.len(), basis);
        self.fill(basis, Form::Coefficient, |_, q, out| {
            out.iter_mut()
                .zip(coefficients)
                .for_each(|(out, &x)| *out = q.from_i128(x));
        })
    }

    /// Whether every word is below its limb's prime, which all operations take for granted. For polynomials from outside. Contract: the
    /// polynomial's limbs are of this ring.
    pub fn is_canonical(&self, poly: &Poly) -> bool {
        self.check_basis(poly.basis, "is_canonical");
        let limbs: Vec<usize> = poly.basis.iter().collect();
        limbs.into_par_iter().all(|i| {
            let q = self.moduli()[i].value();
            poly.limb(i).iter().all(|&word| word < q)
        })
    }

    fn check_input(&self, count: usize, basis: Basis) {
        self.check_basis(basis, "from_signed");
        assert!(
            count == self.n(),
            "from_signed: expected {} coefficients, got {count}",
            self.n()
        );
    }

    /// The uniform polynomial that `seed` stands for, in evaluation form.
    ///
    /// Limb `i` with prime `q` is read from ChaCha20 with key `seed` and stream number `i·2^50 + q`, as little-endian 64-bit words. A word
    /// gives `x`, its low 52 bits; those below the largest multiple of `q` up to 2^52 give, in order, the residues `x mod q`. So a
    /// limb does not depend on which others are asked for. For public randomness: the time taken depends on the values.
    pub fn uniform(&self, seed: &[u8; 32], basis: Basis) -> Poly {
        self.check_basis(basis, "uniform");
        let mut out = self.fill(basis, Form::Evaluation, |i, q, out| {
            let mut rng = ChaCha20Rng::from_seed(*seed);
            rng.set_stream((i as u64) << 50 | q.value());
            let reciprocal = (1 << WORD) / q.value();
            let limit = reciprocal * q.value();
            let mut bytes = [0; 4096];
            let mut rest = out.iter_mut();
            while rest.len() > 0 {
                rng.fill_bytes(&mut bytes);
                let words = bytes
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .map(|word| u64::from_le_bytes(*word) & WORD_MASK);
                for x in words.filter(|&x| x < limit) {
                    let Some(out) = rest.next() else { break };
                    let quotient = ((x as u128 * reciprocal as u128) >> WORD) as u64;
                    // The quotient is right or one too small.
                    *out = q.correct(x - quotient * q.value());
                }
            }
        });
        out.data.set_seed(*seed);
        out
    }

    fn fill(
        &self,
        basis: Basis,
        form: Form,
        limb: impl Fn(usize, Modulus, &mut [u64]) + Sync,
    ) -> Poly {
        let mut out = Poly::stale(self.n(), basis, form);
        let limbs: Vec<usize> = basis.iter().collect();
        let chunks = out.data.par_chunks_exact_mut(self.n()).zip(limbs);
        chunks.for_each(|(words, i)| limb(i, self.moduli()[i], words));
        out
    }
}
