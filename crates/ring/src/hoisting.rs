//! Sums over rotations of one value that was decomposed once.
//!
//! Everything between the decomposition and the division by P happens within each limb. Taken limb by limb, the digits and the rotated
//! values stay in the cache, and only keys and results pass through memory (double hoisting: Bossuat et al. 2021, section 4).

use std::sync::Arc;

use crate::{Automorphism, Basis, Form, IntegerPoly, MAX_DIGITS, Poly, Ring, SparsePoly};

/// A key and the Galois element that it is for.
#[derive(Clone, Copy)]
pub struct Rotation<'a> {
    /// The automorphism X -> X^galois.
    pub galois: u64,
    /// For each digit a pair, as in [`Ring::key_product`].
    pub key: &'a [(Poly, Poly)],
}

/// A value `(c0, c1)`, ready for rotations: `P·c0` and `P·c1` on the value's own limbs (they are zero on the special ones), and the digits
/// of `c1` over all limbs. A rotation of it is `P·c0(X^g)` plus the product of the mapped digits with its key.
#[derive(Clone, Copy)]
pub struct Hoisted<'a> {
    /// `P·(c0, c1)`.
    pub value: [&'a Poly; 2],
    /// The decomposition of `c1`.
    pub digits: &'a [Poly],
}

/// What a rotated value is multiplied by.
#[derive(Clone, Copy)]
pub enum Weight<'a> {
    /// A polynomial of a subring.
    Sparse(&'a SparsePoly),
    /// An integer polynomial, transformed when used.
    Integers(&'a IntegerPoly),
}

/// A rotation with its automorphism looked up; none for the value itself.
pub struct Step<'a> {
    pub(crate) map: Option<Arc<Automorphism>>,
    pub(crate) key: &'a [(Poly, Poly)],
}

impl Step<'_> {
    /// Whether it is the value itself, which needs no key.
    pub fn is_identity(&self) -> bool {
        self.map.is_none()
    }

    /// The automorphism; none for the value itself.
    pub fn map(&self) -> Option<&Automorphism> {
        self.map.as_deref()
    }

    /// For each digit a pair, as in [`Ring::key_product`].
    pub fn key(&self) -> &[(Poly, Poly)] {
        self.key
    }
}

/// One sum: indices of steps, and the weights of these.
pub type Terms<'a> = Vec<(usize, Weight<'a>)>;

impl Ring {
    /// For each list of terms the sum of weights times steps, where step `i` is the value rotated by `rotations[i]`, the value itself
    /// for `None`. Cost: `2·|digits|` products per step and limb, 2 per term, and a transform per term of integer weight.
    ///
    /// Contract: evaluation form; 1 to 16 digits and keys for all of them; digits, keys and sparse weights contain `target`, which contains
    /// the value's limbs; no list of terms is empty, and its weights are of one kind and one stride.
    pub fn hoisted_sums(
        &self,
        hoisted: Hoisted<'_>,
        rotations: &[Option<Rotation<'_>>],
        sums: &[Terms<'_>],
        target: Basis,
    ) -> Vec<(Poly, Poly)> {
        self.check_hoisted(hoisted, rotations.iter().flatten(), target);
        for &(step, weight) in sums.iter().flatten() {
            let fits = match weight {
                Weight::Sparse(weight) => target.is_subset(weight.basis()),
                Weight::Integers(weight) => {
                    let count = weight.coefficients().len();
                    count.is_power_of_two() && count <= self.n()
                }
            };
            assert!(
                fits && step < rotations.len(),
                "hoisted_sums: expected weights over the target and indices of steps"
            );
        }
        assert!(
            sums.iter().all(|terms| !terms.is_empty()),
            "hoisted_sums: expected at least one term in each sum"
        );
        let steps: Vec<Step<'_>> = rotations.iter().map(|r| self.step(*r)).collect();
        let stale = || self.stale(target, Form::Evaluation);
        let mut outs: Vec<(Poly, Poly)> = sums.iter().map(|_| (stale(), stale())).collect();
        self.backend
            .hoisted_sums(&self.tables, &mut outs, hoisted, &steps, sums);
        outs
    }

    /// The value plus all of its rotations, over `target`. Cost: `2·|digits|` products per rotation and limb.
    ///
    /// Contract: as for [`hoisted_sums`](Self::hoisted_sums).
    pub fn sum_of_rotations(
        &self,
        hoisted: Hoisted<'_>,
        rotations: &[Rotation<'_>],
        target: Basis,
    ) -> (Poly, Poly) {
        self.check_hoisted(hoisted, rotations.iter(), target);
        let steps: Vec<Step<'_>> = rotations.iter().map(|&r| self.step(Some(r))).collect();
        let stale = || self.stale(target, Form::Evaluation);
        let mut out = (stale(), stale());
        self.backend
            .sum_of_rotations(&self.tables, (&mut out.0, &mut out.1), hoisted, &steps);
        out
    }

    fn step<'a>(&self, rotation: Option<Rotation<'a>>) -> Step<'a> {
        Step {
            map: rotation.map(|r| self.automorphism_table(r.galois)),
            key: rotation.map_or(&[], |r| r.key),
        }
    }

    fn check_hoisted<'a>(
        &self,
        hoisted: Hoisted<'_>,
        rotations: impl Iterator<Item = &'a Rotation<'a>>,
        target: Basis,
    ) {
        let count = hoisted.digits.len();
        assert!(
            (1..=MAX_DIGITS).contains(&count),
            "hoisted sums: expected 1 to {MAX_DIGITS} digits, got {count}"
        );
        let covers = |p: &Poly| target.is_subset(p.basis()) && p.form() == Form::Evaluation;
        let value = hoisted.value.iter().all(|p| {
            p.basis().is_subset(target)
                && p.form() == Form::Evaluation
                && p.basis() == hoisted.value[0].basis()
        });
        let mut keys = rotations.map(|r| r.key);
        assert!(
            value
                && hoisted.digits.iter().all(covers)
                && keys.all(|key| key.len() >= count
                    && key[..count].iter().all(|(b, a)| covers(b) && covers(a))),
            "hoisted sums: expected digits and keys over {target}, and a value on some of these limbs"
        );
    }
}
