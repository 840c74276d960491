//! The CPU backends: per-limb kernels, spread over the limbs by rayon.

mod hoisting;
mod integers;
mod rns;

use crate::{
    Automorphism, Backend, BaseConversion, Basis, Form, IntegerPoly, MAX_DIGITS, Poly, Tables,
    hoisting::{Hoisted, Step, Terms},
    kernels::{Kernels, KeyProducts},
};
use rayon::prelude::*;
use std::sync::Arc;

/// Below this many words an operation is not worth handing to other threads.
const PARALLEL_WORDS: usize = 1 << 14;
/// A backend made of kernels.
pub(crate) struct CpuBackend<K>(pub(crate) K);

/// The two halves of one limb, or of a part of it, of a result.
type Halves<'a> = [&'a mut [u64]; 2];

fn parallel(words: usize) -> bool {
    words >= PARALLEL_WORDS && rayon::current_num_threads() > 1
}

/// Calls `f` with each limb's index, position and words.
fn each_limb(a: &mut Poly, f: impl Fn(usize, usize, &mut [u64]) + Sync) {
    let n = a.n;
    let limbs: Vec<usize> = a.basis.iter().collect();
    if parallel(a.data.len()) {
        let chunks = a.data.par_chunks_exact_mut(n).enumerate();
        chunks.for_each(|(position, words)| f(limbs[position], position, words));
    } else {
        for (position, words) in a.data.chunks_exact_mut(n).enumerate() {
            f(limbs[position], position, words);
        }
    }
}

/// Calls `f` with each limb's index and words in both polynomials, which have one basis.
fn each_limb_pair(a: &mut Poly, b: &mut Poly, f: impl Fn(usize, [&mut [u64]; 2]) + Sync) {
    let n = a.n;
    let limbs: Vec<usize> = a.basis.iter().collect();
    if parallel(a.data.len()) {
        let chunks = a
            .data
            .par_chunks_exact_mut(n)
            .zip(b.data.par_chunks_exact_mut(n));
        limbs
            .par_iter()
            .zip(chunks)
            .for_each(|(&i, (a, b))| f(i, [a, b]));
    } else {
        let chunks = a.data.chunks_exact_mut(n).zip(b.data.chunks_exact_mut(n));
        limbs
            .iter()
            .zip(chunks)
            .for_each(|(&i, (a, b))| f(i, [a, b]));
    }
}

impl<K: Kernels> Backend for CpuBackend<K> {
    fn name(&self) -> &'static str {
        K::NAME
    }

    fn clear(&self, out: &mut Poly) {
        each_limb(out, |_, _, out| out.fill(0));
    }

    fn copy_limbs(&self, _: &Tables, out: &mut Poly, a: &Poly) {
        each_limb(out, |i, _, out| out.copy_from_slice(a.limb(i)));
    }

    fn reduce_signed(&self, tables: &Tables, out: &mut Poly, coefficients: &[i64]) {
        each_limb(out, |i, _, out| {
            self.0.reduce_signed(tables.moduli()[i], out, coefficients)
        });
    }

    fn reduce_integers(&self, tables: &Tables, out: &mut Poly, integers: &IntegerPoly) {
        each_limb(out, |i, _, out| {
            self.reduce_limb(tables.moduli()[i], out, integers.coefficients());
        });
    }

    fn transform_integers(&self, tables: &Tables, out: &mut Poly, integers: &IntegerPoly) {
        each_limb(out, |i, _, out| {
            self.transform_limb(tables, i, out, integers.coefficients());
        });
        out.form = Form::Evaluation;
    }

    fn ntt(&self, tables: &Tables, a: &mut Poly) {
        each_limb(a, |i, _, a| self.0.ntt(tables.ntt(i), a));
        a.form = Form::Evaluation;
    }

    fn intt(&self, tables: &Tables, a: &mut Poly) {
        each_limb(a, |i, _, a| self.0.intt(tables.ntt(i), a));
        a.form = Form::Coefficient;
    }

    fn intt_into(&self, tables: &Tables, out: &mut Poly, a: &Poly) {
        each_limb(out, |i, _, out| {
            self.0.intt_into(tables.ntt(i), out, a.limb(i));
        });
        out.form = Form::Coefficient;
    }

    fn add(&self, tables: &Tables, a: &mut Poly, b: &Poly) {
        each_limb(a, |i, _, a| self.0.add(tables.moduli()[i], a, b.limb(i)));
    }

    fn add_to_limbs(&self, tables: &Tables, a: &mut Poly, b: &Poly) {
        each_limb(a, |i, _, a| {
            if b.basis.contains(i) {
                self.0.add(tables.moduli()[i], a, b.limb(i));
            }
        });
    }

    fn sub(&self, tables: &Tables, a: &mut Poly, b: &Poly) {
        each_limb(a, |i, _, a| self.0.sub(tables.moduli()[i], a, b.limb(i)));
    }

    fn neg(&self, tables: &Tables, a: &mut Poly) {
        each_limb(a, |i, _, a| self.0.neg(tables.moduli()[i], a));
    }

    fn mul(&self, tables: &Tables, a: &mut Poly, b: &Poly) {
        each_limb(a, |i, _, a| self.0.mul(tables.moduli()[i], a, b.limb(i)));
    }

    fn mul_add(&self, tables: &Tables, acc: &mut Poly, a: &Poly, b: &Poly) {
        each_limb(acc, |i, _, acc| {
            self.0
                .mul_add(tables.moduli()[i], acc, a.limb(i), b.limb(i))
        });
    }

    fn mul_into(&self, tables: &Tables, out: &mut Poly, a: &Poly, b: &Poly) {
        each_limb(out, |i, _, out| {
            self.0
                .mul_into(tables.moduli()[i], out, a.limb(i), b.limb(i))
        });
    }

    fn scale(&self, tables: &Tables, a: &mut Poly, factors: &[[u64; 2]]) {
        each_limb(a, |i, position, a| {
            let half = a.len() / 2;
            for (a, &factor) in a.chunks_exact_mut(half).zip(&factors[position]) {
                self.0.scale(tables.moduli()[i], a, factor);
            }
        });
    }

    fn shift(&self, tables: &Tables, a: &mut Poly, terms: &[[u64; 2]]) {
        each_limb(a, |i, position, a| {
            let half = a.len() / 2;
            for (a, &term) in a.chunks_exact_mut(half).zip(&terms[position]) {
                self.0.shift(tables.moduli()[i], a, term);
            }
        });
    }

    fn automorphism(&self, tables: &Tables, out: &mut Poly, a: &Poly, map: &Automorphism) {
        each_limb(out, |i, _, out| match a.form {
            Form::Evaluation => self.0.automorphism(out, a.limb(i), map),
            Form::Coefficient => {
                let (q, mask) = (tables.moduli()[i], 2 * a.n as u64 - 1);
                let mut to = 0;
                for &coefficient in a.limb(i) {
                    let position = to as usize % a.n;
                    // X^N = -1.
                    out[position] = if to as usize == position {
                        coefficient
                    } else {
                        q.neg(coefficient)
                    };
                    to = (to + map.galois()) & mask;
                }
            }
        });
    }

    fn convert(&self, tables: &Tables, out: &mut Poly, a: &Poly, conversion: &BaseConversion) {
        let digits = self.digits(tables, a, conversion);
        self.gather(tables, &digits, conversion, out, a.basis, |i, out| {
            if a.basis.contains(i) {
                out.copy_from_slice(a.limb(i));
            }
        });
    }

    fn extend_digit(
        &self,
        tables: &Tables,
        out: &mut Poly,
        coefficient: &Poly,
        evaluation: &Poly,
        conversion: &BaseConversion,
    ) {
        let digits = self.digits(tables, coefficient, conversion);
        self.gather(
            tables,
            &digits,
            conversion,
            out,
            conversion.source(),
            |i, out| {
                if conversion.source().contains(i) {
                    out.copy_from_slice(evaluation.limb(i));
                } else {
                    self.0.ntt(tables.ntt(i), out);
                }
            },
        );
    }

    fn decompose(
        &self,
        tables: &Tables,
        out: &mut [Poly],
        a: &Poly,
        conversions: &[Arc<BaseConversion>],
        _: &dyn Fn() -> Poly,
    ) {
        self.extend_digits(tables, out, a, a, conversions);
    }

    fn add_automorphism(&self, tables: &Tables, acc: &mut Poly, a: &Poly, map: &Automorphism) {
        each_limb(acc, |i, _, acc| {
            if a.basis.contains(i) {
                self.0
                    .automorphism_add(tables.moduli()[i], acc, a.limb(i), map.whole());
            }
        });
    }

    fn add_scaled(&self, tables: &Tables, acc: &mut Poly, a: &Poly, factors: &[u64]) {
        each_limb(acc, |i, _, acc| {
            if a.basis.contains(i) {
                let factor = factors[a.basis.rank(i)];
                self.0.scale_add(tables.moduli()[i], acc, a.limb(i), factor);
            }
        });
    }

    fn key_product(
        &self,
        tables: &Tables,
        out: (&mut Poly, &mut Poly),
        digits: &[Poly],
        keys: &[(Poly, Poly)],
        map: Option<&Automorphism>,
        accumulate: bool,
    ) {
        const NONE: &[u64] = &[];
        let count = digits.len().min(MAX_DIGITS);
        each_limb_pair(out.0, out.1, |i, out| {
            let mut digit_limbs = [NONE; MAX_DIGITS];
            let mut key_limbs = [[NONE; 2]; MAX_DIGITS];
            for (j, (digit, key)) in digits.iter().zip(keys).enumerate() {
                digit_limbs[j] = digit.limb(i);
                key_limbs[j] = [key.0.limb(i), key.1.limb(i)];
            }
            let products = KeyProducts {
                digits: &digit_limbs[..count],
                keys: &key_limbs[..count],
                value: None,
                map: map.map(Automorphism::whole),
            };
            self.0
                .key_product(tables.moduli()[i], out, products, accumulate);
        });
    }

    fn dot_integers(
        &self,
        tables: &Tables,
        out: (&mut Poly, &mut Poly),
        terms: &[([&Poly; 2], &IntegerPoly)],
    ) {
        each_limb_pair(out.0, out.1, |i, [a, b]| {
            for (k, (factors, integers)) in terms.iter().enumerate() {
                let factors = factors.map(|factor| factor.limb(i));
                let out = [&mut *a, &mut *b];
                self.multiply_limb(tables, i, out, integers.coefficients(), factors, k > 0);
            }
        });
    }

    fn hoisted_sums(
        &self,
        tables: &Tables,
        outs: &mut [(Poly, Poly)],
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
        sums: &[Terms<'_>],
    ) {
        self.hoisted_sums_by_limb(tables, outs, hoisted, steps, sums);
    }

    fn sum_of_rotations(
        &self,
        tables: &Tables,
        out: (&mut Poly, &mut Poly),
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
    ) {
        self.sum_of_rotations_by_limb(tables, out, hoisted, steps);
    }

    fn mod_down(&self, tables: &Tables, out: &mut Poly, a: &Poly, conversion: &BaseConversion) {
        let digits = self.digits(tables, a, conversion);
        self.gather(tables, &digits, conversion, out, Basis::EMPTY, |i, out| {
            let factor = conversion.target(i).inverse;
            match a.form {
                Form::Evaluation => self.0.ntt_sub_scale(tables.ntt(i), out, a.limb(i), factor),
                Form::Coefficient => self.0.sub_scale(tables.moduli()[i], out, a.limb(i), factor),
            }
        });
    }
}
