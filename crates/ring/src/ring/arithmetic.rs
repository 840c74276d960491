//! Transforms and slot-wise arithmetic.

use crate::{Basis, Form, IntegerPoly, Modulus, Poly, Ring};

impl Ring {
    /// Coefficient to evaluation form, in place. Cost: one transform per limb. Contract: `a` is in coefficient form.
    pub fn ntt(&self, a: &mut Poly) {
        self.check(a, Form::Coefficient, "ntt");
        self.backend.ntt(&self.tables, a);
    }

    /// Evaluation to coefficient form, in place. Cost: one transform per limb. Contract: `a` is in evaluation form.
    pub fn intt(&self, a: &mut Poly) {
        self.check(a, Form::Evaluation, "intt");
        self.backend.intt(&self.tables, a);
    }

    /// The coefficient form of `a`. Cost: one transform per limb. Contract: `a` is in evaluation form.
    pub fn intt_new(&self, a: &Poly) -> Poly {
        self.check(a, Form::Evaluation, "intt_new");
        let mut out = self.stale(a.basis, Form::Coefficient);
        self.backend.intt_into(&self.tables, &mut out, a);
        out
    }

    /// `a += b`. Contract: one form, and `b`'s basis contains `a`'s.
    pub fn add_assign(&self, a: &mut Poly, b: &Poly) {
        self.check_operand(a, b, "add_assign");
        self.backend.add(&self.tables, a, b);
    }

    /// `a += b` on the limbs of `b`; the others stay as they are. Contract: one form, and `a`'s basis contains `b`'s.
    pub fn add_to_limbs(&self, a: &mut Poly, b: &Poly) {
        self.check_operand(b, a, "add_to_limbs");
        self.backend.add_to_limbs(&self.tables, a, b);
    }

    /// `a -= b`. Contract: one form, and `b`'s basis contains `a`'s.
    pub fn sub_assign(&self, a: &mut Poly, b: &Poly) {
        self.check_operand(a, b, "sub_assign");
        self.backend.sub(&self.tables, a, b);
    }

    /// `a = -a`, in either form.
    pub fn neg_assign(&self, a: &mut Poly) {
        self.check(a, a.form, "neg_assign");
        self.backend.neg(&self.tables, a);
    }

    /// `a *= b`. Contract: evaluation form, and `b`'s basis contains `a`'s.
    pub fn mul_assign(&self, a: &mut Poly, b: &Poly) {
        self.check(a, Form::Evaluation, "mul_assign");
        self.check_operand(a, b, "mul_assign");
        self.backend.mul(&self.tables, a, b);
    }

    /// `acc += a·b`. Contract: evaluation form, and both bases contain `acc`'s.
    pub fn mul_add_assign(&self, acc: &mut Poly, a: &Poly, b: &Poly) {
        self.check(acc, Form::Evaluation, "mul_add_assign");
        self.check_operand(acc, a, "mul_add_assign");
        self.check_operand(acc, b, "mul_add_assign");
        self.backend.mul_add(&self.tables, acc, a, b);
    }

    /// `a·b` over the limbs that both have. Contract: evaluation form.
    pub fn mul_new(&self, a: &Poly, b: &Poly) -> Poly {
        self.check(a, Form::Evaluation, "mul_new");
        self.check(b, Form::Evaluation, "mul_new");
        let mut out = self.stale(a.basis.intersection(b.basis), Form::Evaluation);
        self.backend.mul_into(&self.tables, &mut out, a, b);
        out
    }

    /// `(sum of a_0·integers, sum of a_1·integers)` over `target`. Cost: a transform and two products per term and limb.
    ///
    /// Contract: evaluation form; at least one term; all bases contain `target`; numbers of coefficients divide `N`.
    pub fn dot_integers(
        &self,
        terms: &[([&Poly; 2], &IntegerPoly)],
        target: Basis,
    ) -> (Poly, Poly) {
        assert!(
            !terms.is_empty(),
            "dot_integers: expected at least one term"
        );
        let mut out = (
            self.stale(target, Form::Evaluation),
            self.stale(target, Form::Evaluation),
        );
        for (factors, integers) in terms {
            self.check_integers(integers, target, "dot_integers");
            for factor in factors {
                self.check_operand(&out.0, factor, "dot_integers");
            }
        }
        self.backend
            .dot_integers(&self.tables, (&mut out.0, &mut out.1), terms);
        out
    }

    /// Multiplies limb `i` by `scalar(i)`, a canonical residue modulo prime `i`. Either form.
    pub fn mul_scalar_assign(&self, a: &mut Poly, scalar: &(dyn Fn(usize) -> u64 + Sync)) {
        self.check(a, a.form, "mul_scalar_assign");
        let factors = self.per_limb(a.basis, |i, _| [scalar(i); 2]);
        self.backend.scale(&self.tables, a, &factors);
    }

    /// Multiplies by an integer. Either form.
    pub fn mul_integer_assign(&self, a: &mut Poly, integer: i128) {
        self.mul_scalar_assign(a, &|i| self.moduli()[i].from_i128(integer));
    }

    /// Adds an integer, that is a constant polynomial. Either form.
    pub fn add_integer_assign(&self, a: &mut Poly, integer: i128) {
        self.check(a, a.form, "add_integer_assign");
        match a.form {
            Form::Evaluation => {
                let terms = self.per_limb(a.basis, |_, q| [q.from_i128(integer); 2]);
                self.backend.shift(&self.tables, a, &terms);
            }
            Form::Coefficient => self.add_to_coefficient(a, 0, integer),
        }
    }

    /// Adds an integer times `X^(N/2)`, the imaginary unit in every slot. Either form.
    pub fn add_imaginary_integer_assign(&self, a: &mut Poly, integer: i128) {
        self.check(a, a.form, "add_imaginary_integer_assign");
        match a.form {
            Form::Evaluation => {
                let terms = self.per_limb(a.basis, |i, q| {
                    self.imaginary(i)
                        .map(|unit| q.mul(unit, q.from_i128(integer)))
                });
                self.backend.shift(&self.tables, a, &terms);
            }
            Form::Coefficient => self.add_to_coefficient(a, self.n() / 2, integer),
        }
    }

    /// Multiplies by `X^(N/2)`, the imaginary unit in every slot. Contract: evaluation form.
    pub fn mul_by_i_assign(&self, a: &mut Poly) {
        self.check(a, Form::Evaluation, "mul_by_i_assign");
        let factors = self.per_limb(a.basis, |i, _| self.imaginary(i));
        self.backend.scale(&self.tables, a, &factors);
    }

    /// `acc += a(X^galois)` on the limbs of `a`; the others stay as they are. Contract: evaluation form, `galois` is odd, and `acc`'s basis
    /// contains `a`'s.
    pub fn add_automorphism_assign(&self, acc: &mut Poly, a: &Poly, galois: u64) {
        self.check(acc, Form::Evaluation, "add_automorphism_assign");
        self.check_operand(a, acc, "add_automorphism_assign");
        let map = self.automorphism_table(galois);
        self.backend.add_automorphism(&self.tables, acc, a, &map);
    }

    /// `acc += a·factor(i)` on each limb `i` that both have; the others stay as they are. Contract: one form, and factors are canonical
    /// residues.
    pub fn add_scaled_to_limbs(
        &self,
        acc: &mut Poly,
        a: &Poly,
        factor: &(dyn Fn(usize) -> u64 + Sync),
    ) {
        self.check(acc, a.form, "add_scaled_to_limbs");
        let factors: Vec<u64> = a.basis.iter().map(factor).collect();
        self.backend.add_scaled(&self.tables, acc, a, &factors);
    }

    /// `a(X^galois)`, in the form of `a`. Contract: `galois` is odd.
    pub fn automorphism(&self, a: &Poly, galois: u64) -> Poly {
        self.check(a, a.form, "automorphism");
        let map = self.automorphism_table(galois);
        let mut out = self.stale(a.basis, a.form);
        self.backend.automorphism(&self.tables, &mut out, a, &map);
        out
    }

    /// The value of `X^(N/2)` in the first half of the evaluations and in the second: `psi^(N/2·e(k))` depends on the parity of
    /// `bitrev(k)` alone.
    fn imaginary(&self, i: usize) -> [u64; 2] {
        let q = self.moduli()[i];
        let unit = q.pow(self.psi(i), self.n() as u64 / 2);
        [unit, q.neg(unit)]
    }

    fn per_limb(&self, basis: Basis, value: impl Fn(usize, Modulus) -> [u64; 2]) -> Vec<[u64; 2]> {
        basis.iter().map(|i| value(i, self.moduli()[i])).collect()
    }

    fn add_to_coefficient(&self, a: &mut Poly, k: usize, integer: i128) {
        for i in a.basis.iter() {
            let q = self.moduli()[i];
            let word = &mut a.limb_mut(i)[k];
            *word = q.add(*word, q.from_i128(integer));
        }
    }

    /// Panics unless `a` is a polynomial of this ring in the given form.
    pub(super) fn check(&self, a: &Poly, form: Form, operation: &str) {
        assert!(
            a.n == self.n(),
            "{operation}: expected degree {}, got {}",
            self.n(),
            a.n
        );
        assert!(
            a.form == form,
            "{operation}: expected {form:?} form, got {:?}",
            a.form
        );
        self.check_basis(a.basis, operation);
    }

    pub(super) fn check_basis(&self, basis: Basis, operation: &str) {
        let all = self.full_basis();
        assert!(
            basis.is_subset(all),
            "{operation}: expected limbs within {all:?}, got {basis:?}"
        );
    }

    /// Panics unless `b` can be combined into `a` by the superset rule.
    pub(super) fn check_operand(&self, a: &Poly, b: &Poly, operation: &str) {
        self.check(a, b.form, operation);
        self.check(b, a.form, operation);
        assert!(
            a.basis.is_subset(b.basis),
            "{operation}: expected limbs {:?}, got {:?}",
            a.basis,
            b.basis
        );
    }
}
