//! Making polynomials: zero, signed coefficients, expansion of a seed.

use crate::{Basis, Form, Modulus, Poly, Ring, buffer::Buffer};
use rand_chacha::ChaCha20Rng;
use rand_core::{Rng, SeedableRng};
use rayon::prelude::*;

impl Ring {
    /// The zero polynomial.
    pub fn zero(&self, basis: Basis, form: Form) -> Poly {
        self.check_basis(basis, "zero");
        Poly {
            basis,
            form,
            n: self.n(),
            data: Buffer::zeroed(self.n() * basis.len()),
        }
    }

    /// The residues of integer coefficients, in coefficient form. Contract: `N` coefficients.
    pub fn from_signed(&self, coefficients: &[i64], basis: Basis) -> Poly {
        self.reduce(coefficients, basis, Modulus::from_i64)
    }

    /// The residues of wide integer coefficients, in coefficient form. Contract: `N` coefficients.
    pub fn from_signed_i128(&self, coefficients: &[i128], basis: Basis) -> Poly {
        self.reduce(coefficients, basis, Modulus::from_i128)
    }

    fn reduce<T: Copy + Sync>(
        &self,
        coefficients: &[T],
        basis: Basis,
        residue: fn(Modulus, T) -> u64,
    ) -> Poly {
        let n = coefficients.len();
        assert!(
            n == self.n(),
            "from_signed: expected {} coefficients, got {n}",
            self.n()
        );
        self.fill(basis, Form::Coefficient, |_, q, out| {
            out.iter_mut()
                .zip(coefficients)
                .for_each(|(out, &x)| *out = residue(q, x));
        })
    }

    /// The uniform polynomial that `seed` stands for, in evaluation form.
    ///
    /// Limb `i` with prime `q` is read from ChaCha20 with key `seed` and stream number `i·2^50 + q`: 64-bit words, cut to the bit length of
    /// `q`, those below `q` in order. So a limb does not depend on which others are asked for. For public randomness: the
    /// time taken depends on the values.
    pub fn uniform(&self, seed: &[u8; 32], basis: Basis) -> Poly {
        self.fill(basis, Form::Evaluation, |i, q, out| {
            let mut rng = ChaCha20Rng::from_seed(*seed);
            rng.set_stream((i as u64) << 50 | q.value());
            let mask = u64::MAX >> (64 - q.bits());
            let mut bytes = [0; 4096];
            let mut rest = out.iter_mut();
            while rest.len() > 0 {
                rng.fill_bytes(&mut bytes);
                let words = bytes
                    .as_chunks::<8>()
                    .0
                    .iter()
                    .map(|word| u64::from_le_bytes(*word) & mask);
                for word in words.filter(|&word| word < q.value()) {
                    match rest.next() {
                        Some(out) => *out = word,
                        None => break,
                    }
                }
            }
        })
    }

    fn fill(
        &self,
        basis: Basis,
        form: Form,
        limb: impl Fn(usize, Modulus, &mut [u64]) + Sync,
    ) -> Poly {
        self.check_basis(basis, "fill");
        let mut out = Poly::stale(self.n(), basis, form);
        let limbs: Vec<usize> = basis.iter().collect();
        let chunks = out.data.par_chunks_exact_mut(self.n()).zip(limbs);
        chunks.for_each(|(words, i)| limb(i, self.moduli()[i], words));
        out
    }
}
