//! Linear transforms by double-hoisted baby-step giant-step (Bossuat et al. 2021, section 4).

mod divided;

use std::collections::{BTreeMap, BTreeSet};

use taciturn_ckks::{
    Ciphertext, CkksError, Encoder, Evaluator, Extended, HoistedValue, IntegerPlaintext, KeyId,
    Scale,
};
use taciturn_ring::{Basis, Form, Poly, SparsePoly, Terms, Weight};

use crate::Diagonals;

/// How the rotations of a transform are split: offset = giant + baby, both multiples of the stride.
#[derive(Clone, Debug, PartialEq)]
struct BabyGiant {
    stride: i64,
    baby_count: i64,
}

impl BabyGiant {
    /// A giant step costs about as much as this many baby steps: it needs a division by P and a decomposition of its own.
    const GIANT_COST: usize = 3;

    /// The cheapest split of these offsets, which lie in (-d/2, d/2] for the period d.
    ///
    /// Baby steps stay below d/2, so that no giant step is a whole turn.
    fn new(offsets: &[i64], period: usize) -> Self {
        let stride = offsets.iter().fold(0, |acc, &o| gcd(acc, o.abs())).max(1);
        let cost = |baby_count: i64| {
            let split = Self { stride, baby_count };
            let nonzero = |s: BTreeSet<i64>| s.iter().filter(|&&k| k != 0).count();
            nonzero(split.babies(offsets)) + Self::GIANT_COST * nonzero(split.giants(offsets))
        };
        let largest = (period as i64 / 2 / stride).max(1).ilog2();
        let baby_count = (0..=largest)
            .map(|i| 1i64 << i)
            .min_by_key(|&n| cost(n))
            .expect("the range is not empty");
        Self { stride, baby_count }
    }

    /// (giant, baby) of an offset.
    fn split(&self, offset: i64) -> (i64, i64) {
        let baby = offset.rem_euclid(self.stride * self.baby_count);
        (offset - baby, baby)
    }

    fn babies(&self, offsets: &[i64]) -> BTreeSet<i64> {
        offsets.iter().map(|&o| self.split(o).1).collect()
    }

    fn giants(&self, offsets: &[i64]) -> BTreeSet<i64> {
        offsets.iter().map(|&o| self.split(o).0).collect()
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// An encoded diagonal.
enum Diagonal {
    /// Of a subring: its few distinct values, transformed once.
    Sparse(SparsePoly),
    /// Integer coefficients, transformed to the limbs at hand when used.
    Integers(IntegerPlaintext),
}

/// A matrix encoded for products with ciphertexts.
pub struct LinearTransform {
    /// By giant step, then baby step.
    diagonals: BTreeMap<i64, Vec<(i64, Diagonal)>>,
    rotations: BTreeSet<i64>,
    scale: Scale,
}

impl LinearTransform {
    /// Encodes a matrix at a plaintext scale, for ciphertexts whose limbs are (with the special limbs) in `basis`.
    pub fn new(
        encoder: &Encoder,
        matrix: &Diagonals,
        scale: Scale,
        basis: Basis,
    ) -> Result<Self, CkksError> {
        let ring = encoder.parameters().ring();
        let offsets: Vec<i64> = matrix.iter().map(|(k, _)| k).collect();
        let split = BabyGiant::new(&offsets, matrix.period());
        let d = matrix.period();
        let stride = ring.n() / (2 * d);
        let mut steps = Vec::new();
        for (offset, diagonal) in matrix.iter() {
            let (giant, baby) = split.split(offset);
            // The giant rotation comes after the product, so the diagonal is rotated back beforehand.
            let turned: Vec<_> = (0..d as i64)
                .map(|i| diagonal[(i - giant).rem_euclid(d as i64) as usize])
                .collect();
            let integers = encoder.encode_integers(&turned, scale)?;
            steps.push((giant, baby, integers));
        }
        if stride < ring.min_stride() {
            return Ok(Self::from_steps(steps, scale));
        }
        let compressed = steps.into_iter().map(|(giant, baby, integers)| {
            let transformed = encoder.to_plaintext(&integers, basis).poly;
            (
                giant,
                baby,
                Diagonal::Sparse(ring.compress(&transformed, stride)),
            )
        });
        Ok(Self::collect(compressed, scale))
    }

    /// A transform from plaintexts by giant and baby step, each already rotated back by its giant step.
    pub fn from_steps(
        steps: impl IntoIterator<Item = (i64, i64, IntegerPlaintext)>,
        scale: Scale,
    ) -> Self {
        Self::collect(
            steps
                .into_iter()
                .map(|(giant, baby, p)| (giant, baby, Diagonal::Integers(p))),
            scale,
        )
    }

    fn collect(steps: impl Iterator<Item = (i64, i64, Diagonal)>, scale: Scale) -> Self {
        let mut diagonals: BTreeMap<i64, Vec<_>> = BTreeMap::new();
        for (giant, baby, diagonal) in steps {
            diagonals.entry(giant).or_default().push((baby, diagonal));
        }
        let babies = diagonals.values().flatten().map(|(baby, _)| *baby);
        let rotations = babies
            .chain(diagonals.keys().copied())
            .filter(|&k| k != 0)
            .collect();
        Self {
            diagonals,
            rotations,
            scale,
        }
    }

    /// All rotations that need a key, on the limbs of the operand.
    pub fn rotations(&self) -> impl Iterator<Item = i64> + '_ {
        self.rotations.iter().copied()
    }

    /// The matrix times the operand's slots, one limb lower, at scale `operand * plaintext / dropped prime`.
    pub fn apply(
        &self,
        encoder: &Encoder,
        ev: &Evaluator,
        ct: &Ciphertext,
    ) -> Result<Ciphertext, CkksError> {
        // Every rotation takes the gadget of the first: sums live over one set of special limbs.
        let gadget = match self.rotations.first() {
            Some(&k) => {
                let galois = Evaluator::galois_of_rotation(ev.params(), k);
                ev.galois_key(galois, ct.basis())?.1
            }
            None => ev.params().cheapest_gadget(ct.basis()),
        };
        let only = self
            .diagonals
            .get(&0)
            .map(Vec::as_slice)
            .filter(|_| self.rotations.is_empty());
        if let Some([(0, Diagonal::Integers(only))]) = only {
            return ev.rescale(&ev.mul_plain(ct, &encoder.to_plaintext(only, ct.basis()))?);
        }
        let special = ev.params().gadget(gadget).special.len();
        if self.divides_first(ct.basis().len(), special) {
            return self.apply_divided(ev, ct, gadget);
        }
        ev.mod_down_rescale(&self.apply_hoisted(ev, &ev.hoist(ct, gadget))?)
    }

    fn baby_steps(&self) -> Vec<i64> {
        let babies: BTreeSet<i64> = (self.diagonals.values().flatten())
            .map(|term| term.0)
            .collect();
        babies.into_iter().collect()
    }

    /// The matrix times the slots of a value that is ready for rotations, before the division by P and the rescaling that end it.
    pub(crate) fn apply_hoisted(
        &self,
        ev: &Evaluator,
        value: &HoistedValue,
    ) -> Result<Extended, CkksError> {
        let ring = ev.params().ring();
        let (gadget, basis) = (value.gadget(), value.basis());
        let galois = |k: i64| Evaluator::galois_of_rotation(ev.params(), k);
        let key = |k: i64| {
            let galois = galois(k);
            ev.keys().get(KeyId { gadget, galois }, basis)
        };
        let special = ev.params().gadget(gadget).special;
        let wide = basis.union(special);
        let babies = self.baby_steps();
        // The giant step 0, which needs no rotation, comes first: the others are added to it.
        let unturned = self.diagonals.get(&0).map(|terms| (0, terms));
        let turned = self
            .diagonals
            .iter()
            .filter(|(giant, _)| **giant != 0)
            .map(|(&giant, terms)| (giant, terms));
        let (giants, sums): (Vec<i64>, Vec<Terms<'_>>) = unturned
            .into_iter()
            .chain(turned)
            .map(|(giant, terms)| (giant, weights(terms, &babies)))
            .unzip();
        let sums = ev.hoisted_sums(value, &babies, &sums, self.scale)?;

        let mut acc: Option<[Poly; 2]> = None;
        for (giant, sum) in giants.into_iter().zip(sums) {
            if giant == 0 {
                acc = Some(sum.polys);
                continue;
            }
            let [c0, c1] = sum.polys;
            let (key, galois) = (key(giant)?, galois(giant));
            let decomposed = ev.decompose(&ring.mod_down(&c1, special), gadget);
            let [acc0, acc1] = acc.get_or_insert_with(|| {
                [
                    ring.zero(wide, Form::Evaluation),
                    ring.zero(wide, Form::Evaluation),
                ]
            });
            ev.add_key_product((&mut *acc0, acc1), &decomposed, key, galois);
            ring.add_automorphism_assign(acc0, &c0, galois);
        }
        let polys = acc.unwrap_or_else(|| {
            [
                ring.zero(wide, Form::Evaluation),
                ring.zero(wide, Form::Evaluation),
            ]
        });
        Ok(Extended {
            polys,
            special,
            scale: Scale(value.scale().0 * self.scale.0),
        })
    }
}

/// The diagonals of one giant step as weights of the baby steps.
fn weights<'a>(terms: &'a [(i64, Diagonal)], babies: &[i64]) -> Terms<'a> {
    let weight = |diagonal: &'a Diagonal| match diagonal {
        Diagonal::Sparse(weight) => Weight::Sparse(weight),
        Diagonal::Integers(integers) => Weight::Integers(&integers.coefficients),
    };
    terms
        .iter()
        .map(|(baby, diagonal)| {
            let step = babies.partition_point(|k| k < baby);
            (step, weight(diagonal))
        })
        .collect()
}
