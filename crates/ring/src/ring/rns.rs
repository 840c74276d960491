//! Operations between bases: the steps of key switching, rescaling and raising.

use crate::{Automorphism, Basis, Form, MAX_DIGITS, Poly, Ring};

impl Ring {
    /// A copy of the named limbs. Contract: `a` has them.
    pub fn restrict(&self, a: &Poly, basis: Basis) -> Poly {
        assert!(
            basis.is_subset(a.basis),
            "restrict: expected limbs within {:?}, got {basis:?}",
            a.basis
        );
        let mut out = self.stale(basis, a.form);
        self.backend.copy_limbs(&self.tables, &mut out, a);
        out
    }

    /// Drops all limbs but the named ones, in place. Contract: `a` has them.
    pub fn drop_limbs(&self, a: &mut Poly, keep: Basis) {
        assert!(
            keep.is_subset(a.basis),
            "drop_limbs: expected limbs within {:?}, got {keep:?}",
            a.basis
        );
        let in_front = keep
            .highest()
            .is_none_or(|i| a.basis.rank(i) + 1 == keep.len());
        if !in_front && a.is_on_device() {
            *a = self.restrict(a, keep);
            return;
        }
        for (position, i) in keep.iter().enumerate() {
            let from = a.basis.rank(i) * a.n;
            if from != position * a.n {
                a.data.copy_within(from..from + a.n, position * a.n);
            }
        }
        a.basis = keep;
        a.data.truncate(keep.len() * a.n);
    }

    /// Centred base conversion: with `Q` the product of `a`'s primes, takes each coefficient's representative in
    /// `(-Q/2, Q/2)` to its residues modulo the primes in `to`; [`BaseConversion`](crate::BaseConversion) says how exactly.
    /// Limbs that `a` has are copied. Contract: coefficient form, at least one limb.
    pub fn convert(&self, a: &Poly, to: Basis) -> Poly {
        self.check(a, Form::Coefficient, "convert");
        self.check_basis(to, "convert");
        assert!(!a.basis.is_empty(), "convert: expected at least one limb");
        let mut out = self.stale(to, Form::Coefficient);
        self.backend
            .convert(&self.tables, &mut out, a, &self.conversion(a.basis));
        out
    }

    /// ModRaise: the polynomial with `a`'s small coefficients over a larger basis. The same as [`convert`](Self::convert).
    pub fn raise(&self, a: &Poly, to: Basis) -> Poly {
        self.convert(a, to)
    }

    /// ModUp of one digit to evaluation form over `target`: limbs in `digit` are copied from `evaluation`, the others are
    /// converted from the digit's limbs of `coefficient` and transformed. Cost: `|target ∖ digit|` transforms.
    ///
    /// Contract: both hold one polynomial, in coefficient and in evaluation form, at least over `digit` and over
    /// `digit ∩ target`; the digit is not empty.
    pub fn extend_digit(
        &self,
        coefficient: &Poly,
        evaluation: &Poly,
        digit: Basis,
        target: Basis,
    ) -> Poly {
        self.check_digit(coefficient, evaluation, digit, target);
        let mut out = self.stale(target, Form::Evaluation);
        self.backend.extend_digit(
            &self.tables,
            &mut out,
            coefficient,
            evaluation,
            &self.conversion(digit),
        );
        out
    }

    /// [`extend_digit`](Self::extend_digit) for several digits of one polynomial.
    pub fn extend_digits(
        &self,
        coefficient: &Poly,
        evaluation: &Poly,
        digits: &[Basis],
        target: Basis,
    ) -> Vec<Poly> {
        for &digit in digits {
            self.check_digit(coefficient, evaluation, digit, target);
        }
        let conversions: Vec<_> = digits.iter().map(|&digit| self.conversion(digit)).collect();
        let mut out: Vec<Poly> = digits
            .iter()
            .map(|_| self.stale(target, Form::Evaluation))
            .collect();
        self.backend.extend_digits(
            &self.tables,
            &mut out,
            coefficient,
            evaluation,
            &conversions,
        );
        out
    }

    /// All digits of a polynomial: its coefficients' [`extend_digits`](Self::extend_digits). Cost: a transform per limb, and the digits'.
    ///
    /// Contract: evaluation form; the digits lie within its limbs and are not empty.
    pub fn decompose(&self, a: &Poly, digits: &[Basis], target: Basis) -> Vec<Poly> {
        self.check(a, Form::Evaluation, "decompose");
        self.check_basis(target, "decompose");
        for digit in digits {
            assert!(
                !digit.is_empty() && digit.is_subset(a.basis),
                "decompose: expected digits within {:?}, got {digit:?}",
                a.basis
            );
        }
        let conversions: Vec<_> = digits.iter().map(|&digit| self.conversion(digit)).collect();
        let mut out: Vec<Poly> = digits
            .iter()
            .map(|_| self.stale(target, Form::Evaluation))
            .collect();
        let coefficients = || self.intt_new(a);
        self.backend
            .decompose(&self.tables, &mut out, a, &conversions, &coefficients);
        out
    }

    fn check_digit(&self, coefficient: &Poly, evaluation: &Poly, digit: Basis, target: Basis) {
        self.check(coefficient, Form::Coefficient, "extend_digit");
        self.check(evaluation, Form::Evaluation, "extend_digit");
        self.check_basis(target, "extend_digit");
        assert!(
            !digit.is_empty(),
            "extend_digit: expected at least one limb in the digit"
        );
        assert!(
            digit.is_subset(coefficient.basis),
            "extend_digit: {digit:?} is not within {:?}",
            coefficient.basis
        );
        let copied = digit.intersection(target);
        assert!(
            copied.is_subset(evaluation.basis),
            "extend_digit: {copied:?} is not within {:?}",
            evaluation.basis
        );
    }

    /// `(sum of d_j·k_j.0, sum of d_j·k_j.1)` over `target`. Cost: `2·|digits|` products per limb.
    ///
    /// Contract: evaluation form, 1 to 16 digits, at least as many keys, all bases contain `target`.
    pub fn key_product(
        &self,
        digits: &[Poly],
        key: &[(Poly, Poly)],
        target: Basis,
    ) -> (Poly, Poly) {
        self.key_product_with(digits, key, None, target)
    }

    /// [`key_product`](Self::key_product) with `d_j(X^galois)` for `d_j`: one decomposition serves many rotations (hoisting).
    pub fn key_product_automorphism(
        &self,
        digits: &[Poly],
        key: &[(Poly, Poly)],
        galois: u64,
        target: Basis,
    ) -> (Poly, Poly) {
        self.key_product_with(digits, key, Some(&self.automorphism_table(galois)), target)
    }

    /// `out += ` what [`key_product_automorphism`](Self::key_product_automorphism) gives over `out`'s limbs.
    pub fn add_key_product_automorphism(
        &self,
        out: (&mut Poly, &mut Poly),
        digits: &[Poly],
        key: &[(Poly, Poly)],
        galois: u64,
    ) {
        let map = self.automorphism_table(galois);
        self.key_product_into(out, digits, key, Some(&map), true);
    }

    fn key_product_with(
        &self,
        digits: &[Poly],
        key: &[(Poly, Poly)],
        map: Option<&Automorphism>,
        target: Basis,
    ) -> (Poly, Poly) {
        let stale = || self.stale(target, Form::Evaluation);
        let mut out = (stale(), stale());
        self.key_product_into((&mut out.0, &mut out.1), digits, key, map, false);
        out
    }

    fn key_product_into(
        &self,
        out: (&mut Poly, &mut Poly),
        digits: &[Poly],
        key: &[(Poly, Poly)],
        map: Option<&Automorphism>,
        accumulate: bool,
    ) {
        let count = digits.len();
        assert!(
            (1..=MAX_DIGITS).contains(&count),
            "key_product: expected 1 to {MAX_DIGITS} digits, got {count}"
        );
        assert!(
            key.len() >= count,
            "key_product: expected {count} keys, got {}",
            key.len()
        );
        assert_eq!(
            out.0.basis, out.1.basis,
            "key_product: expected one basis for both sums"
        );
        for (digit, key) in digits.iter().zip(key) {
            for operand in [digit, &key.0, &key.1] {
                self.check_operand(out.0, operand, "key_product");
            }
        }
        self.backend
            .key_product(&self.tables, out, digits, &key[..count], map, accumulate);
    }

    /// `round(a / P)` over the limbs not in `drop`, where `P` is the product of those in `drop`: one prime to rescale, the special
    /// primes to finish a key switch, or both at once. Cost: `|drop|` inverse and `|rest|` forward transforms.
    ///
    /// Exactly `(a - r)/P` with `r` the [`convert`](Self::convert)ed residue of `a`. Contract: evaluation form; `a` has the limbs in
    /// `drop`, which is not empty.
    pub fn mod_down(&self, a: &Poly, drop: Basis) -> Poly {
        self.check(a, Form::Evaluation, "mod_down");
        self.mod_down_in_form(a, drop)
    }

    /// [`mod_down`](Self::mod_down) for several polynomials. Contract: they have one basis.
    pub fn mod_down_all(&self, a: &[Poly], drop: Basis) -> Vec<Poly> {
        for p in a {
            self.check(p, Form::Evaluation, "mod_down_all");
            self.check_drop(p, drop);
            assert_eq!(p.basis, a[0].basis, "mod_down_all: expected one basis");
        }
        let mut out: Vec<Poly> = a
            .iter()
            .map(|p| self.stale(p.basis.difference(drop), p.form))
            .collect();
        self.backend
            .mod_down_all(&self.tables, &mut out, a, &self.conversion(drop));
        out
    }

    /// [`mod_down`](Self::mod_down) from and to coefficient form, without transforms.
    pub fn mod_down_coeff(&self, a: &Poly, drop: Basis) -> Poly {
        self.check(a, Form::Coefficient, "mod_down_coeff");
        self.mod_down_in_form(a, drop)
    }

    fn mod_down_in_form(&self, a: &Poly, drop: Basis) -> Poly {
        self.check_drop(a, drop);
        let mut out = self.stale(a.basis.difference(drop), a.form);
        self.backend
            .mod_down(&self.tables, &mut out, a, &self.conversion(drop));
        out
    }

    fn check_drop(&self, a: &Poly, drop: Basis) {
        assert!(
            !drop.is_empty(),
            "mod_down: expected at least one limb to drop"
        );
        assert!(
            drop.is_subset(a.basis),
            "mod_down: expected limbs within {:?}, got {drop:?}",
            a.basis
        );
    }
}
