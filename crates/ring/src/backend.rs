//! What a backend must do.

use crate::{
    Automorphism, BaseConversion, DeviceMemory, IntegerPoly, Poly, Queue, Tables,
    hoisting::{Hoisted, Step, Terms},
};
use rayon::prelude::*;
use std::sync::Arc;

/// The most products that one call of a key product adds up.
pub const MAX_DIGITS: usize = 16;

/// Which backend a ring computes with.
#[derive(Copy, Clone, PartialEq, Eq, Debug, Default)]
pub enum BackendKind {
    /// The fastest that runs here; the portable one if the environment has `TACITURN_BACKEND=portable`.
    #[default]
    Auto,
    /// Plain Rust: readable, and the oracle that others are tested against.
    Portable,
    /// AVX-512 with the 52-bit multiplier (IFMA).
    Avx512,
}

/// Operations on whole polynomials, all limbs in one call.
///
/// # Contract
/// - [`Ring`](crate::Ring) has checked forms and bases before it calls.
/// - Words come in canonical, in `[0, q)`, and must leave canonical. Inside an operation anything goes.
/// - Results are a function of the inputs alone and equal word for word on all backends; [`BaseConversion`] defines the one
///   approximate operation bit by bit.
/// - "Superset rule": an operand's basis contains that of the polynomial written, whose limbs alone take part.
/// - An `out` polynomial may hold old data; every word of it is written.
pub trait Backend: Send + Sync {
    /// For people and reports.
    fn name(&self) -> &'static str;

    /// Memory for the `words` words of a result, which may hold old data; none where results lie in host memory.
    fn allocate(&self, words: usize) -> Option<Box<dyn DeviceMemory>> {
        let _ = words;
        None
    }

    /// Writes zeros.
    fn clear(&self, out: &mut Poly) {
        out.words_mut().fill(0);
    }

    /// Copies limbs by the superset rule.
    fn copy_limbs(&self, tables: &Tables, out: &mut Poly, a: &Poly) {
        let _ = tables;
        for i in out.basis().iter() {
            out.limb_mut(i).copy_from_slice(a.limb(i));
        }
    }

    /// The residues of `N` integers, in coefficient form.
    fn reduce_signed(&self, tables: &Tables, out: &mut Poly, coefficients: &[i64]);

    /// The residues of an integer polynomial, in coefficient form.
    fn reduce_integers(&self, tables: &Tables, out: &mut Poly, integers: &IntegerPoly);

    /// The residues of an integer polynomial, in evaluation form.
    fn transform_integers(&self, tables: &Tables, out: &mut Poly, integers: &IntegerPoly) {
        self.reduce_integers(tables, out, integers);
        self.ntt(tables, out);
    }

    /// The smallest stride of sparse polynomials: kernels handle so many words at a time. Circuits choose their way by it, so that backends
    /// whose words are to be equal have the same.
    fn min_stride(&self) -> usize {
        8
    }

    /// Every word of index `k·stride` of each limb, on a device; none where results lie in host memory.
    fn compress(&self, tables: &Tables, a: &Poly, stride: usize) -> Option<Box<dyn DeviceMemory>> {
        let _ = (tables, a, stride);
        None
    }

    /// Coefficient to evaluation form, in the order of [`exponent`](crate::exponent).
    fn ntt(&self, tables: &Tables, a: &mut Poly);

    /// Evaluation to coefficient form.
    fn intt(&self, tables: &Tables, a: &mut Poly);

    /// Evaluation to coefficient form, by the superset rule.
    fn intt_into(&self, tables: &Tables, out: &mut Poly, a: &Poly) {
        self.copy_limbs(tables, out, a);
        self.intt(tables, out);
    }

    /// `a + b` by the superset rule.
    fn add(&self, tables: &Tables, a: &mut Poly, b: &Poly);

    /// `a + b` on the limbs of `b`, all of which `a` has; the others stay as they are.
    fn add_to_limbs(&self, tables: &Tables, a: &mut Poly, b: &Poly);

    /// `a - b` by the superset rule.
    fn sub(&self, tables: &Tables, a: &mut Poly, b: &Poly);

    /// `-a`.
    fn neg(&self, tables: &Tables, a: &mut Poly);

    /// Word by word `a·b` by the superset rule.
    fn mul(&self, tables: &Tables, a: &mut Poly, b: &Poly);

    /// Word by word `acc + a·b` by the superset rule.
    fn mul_add(&self, tables: &Tables, acc: &mut Poly, a: &Poly, b: &Poly);

    /// Word by word `a·b` by the superset rule.
    fn mul_into(&self, tables: &Tables, out: &mut Poly, a: &Poly, b: &Poly);

    /// Multiplies by constants: for each limb in order, one for its first and one for its second half.
    fn scale(&self, tables: &Tables, a: &mut Poly, factors: &[[u64; 2]]);

    /// Adds constants to every word: for each limb in order, one for its first and one for its second half.
    fn shift(&self, tables: &Tables, a: &mut Poly, terms: &[[u64; 2]]);

    /// `a(X^g)`, in either form, over the same basis.
    fn automorphism(&self, tables: &Tables, out: &mut Poly, a: &Poly, map: &Automorphism);

    /// `acc + a(X^g)` on the limbs of `a`, all of which `acc` has; evaluation form.
    fn add_automorphism(&self, tables: &Tables, acc: &mut Poly, a: &Poly, map: &Automorphism);

    /// `acc + a·factor` on the limbs that both have: for each limb of `a` in order a canonical factor.
    fn add_scaled(&self, tables: &Tables, acc: &mut Poly, a: &Poly, factors: &[u64]);

    /// Coefficient form: limbs that `a` has are copied, the others converted from all of `a`'s.
    fn convert(&self, tables: &Tables, out: &mut Poly, a: &Poly, conversion: &BaseConversion);

    /// Evaluation form: limbs of the digit (the conversion's source) are copied from `evaluation`, the others converted from
    /// `coefficient`'s limbs of the digit and transformed.
    fn extend_digit(
        &self,
        tables: &Tables,
        out: &mut Poly,
        coefficient: &Poly,
        evaluation: &Poly,
        conversion: &BaseConversion,
    );

    /// [`extend_digit`](Self::extend_digit) for several digits of one polynomial.
    fn extend_digits(
        &self,
        tables: &Tables,
        out: &mut [Poly],
        coefficient: &Poly,
        evaluation: &Poly,
        conversions: &[Arc<BaseConversion>],
    ) {
        // All digits at once: limbs of one keep threads busy while another's run out.
        out.par_iter_mut()
            .zip(conversions)
            .for_each(|(out, conversion)| {
                self.extend_digit(tables, out, coefficient, evaluation, conversion);
            });
    }

    /// [`extend_digits`](Self::extend_digits) of a polynomial in evaluation form, whose coefficients the last operand computes.
    fn decompose(
        &self,
        tables: &Tables,
        out: &mut [Poly],
        a: &Poly,
        conversions: &[Arc<BaseConversion>],
        coefficients: &dyn Fn() -> Poly,
    ) {
        self.extend_digits(tables, out, &coefficients(), a, conversions);
    }

    /// `out_c = sum over j of digits_j·keys_j.c`, with the digits mapped first if a map is given; added to what `out` holds
    /// where that is asked for. At most 16 digits.
    fn key_product(
        &self,
        tables: &Tables,
        out: (&mut Poly, &mut Poly),
        digits: &[Poly],
        keys: &[(Poly, Poly)],
        map: Option<&Automorphism>,
        accumulate: bool,
    );

    /// `out_c = sum of a_c·integers`, evaluation form, by the superset rule. At least one term.
    fn dot_integers(
        &self,
        tables: &Tables,
        out: (&mut Poly, &mut Poly),
        terms: &[([&Poly; 2], &IntegerPoly)],
    );

    /// For each list of terms the sum of its weights times steps; see [`Ring::hoisted_sums`](crate::Ring::hoisted_sums).
    fn hoisted_sums(
        &self,
        tables: &Tables,
        outs: &mut [(Poly, Poly)],
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
        sums: &[Terms<'_>],
    );

    /// The value, zero on the limbs that it lacks, plus the sum of all steps; see
    /// [`Ring::sum_of_rotations`](crate::Ring::sum_of_rotations).
    fn sum_of_rotations(
        &self,
        tables: &Tables,
        out: (&mut Poly, &mut Poly),
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
    );

    /// `(a - [a]_P)/P` on the limbs of `out`, where `P` is the product of the conversion's source and `[a]_P` the converted
    /// remainder. Both forms; `out` has that of `a`.
    fn mod_down(&self, tables: &Tables, out: &mut Poly, a: &Poly, conversion: &BaseConversion);

    /// [`mod_down`](Self::mod_down) for several polynomials.
    fn mod_down_all(
        &self,
        tables: &Tables,
        out: &mut [Poly],
        a: &[Poly],
        conversion: &BaseConversion,
    ) {
        out.par_iter_mut()
            .zip(a)
            .for_each(|(out, a)| self.mod_down(tables, out, a, conversion));
    }

    /// Waits for everything that earlier calls began.
    fn synchronize(&self) {}

    /// The queue of a device; none where calls return when they are done.
    fn queue(&self) -> Option<&dyn Queue> {
        None
    }
}
