//! Transforms with many diagonals: baby steps are divided by P before they are multiplied.
//!
//! Products with diagonals then need no special limbs. With more diagonals than a few for every baby step that saves more than the divisions
//! take.

use rayon::prelude::*;
use taciturn_ckks::{Ciphertext, CkksError, Evaluator, Extended, GadgetName, KeyId, Scale};
use taciturn_ring::{Basis, Form, IntegerPoly, Poly, Ring, Terms, Weight};

use super::{Diagonal, LinearTransform, weights};

impl LinearTransform {
    /// Whether this is the cheaper way: it saves every product with a diagonal the special limbs, and takes about three transforms of every
    /// limb for each baby step.
    pub(super) fn divides_first(&self, limbs: usize, special: usize) -> bool {
        let integers = |(_, diagonal): &(i64, Diagonal)| matches!(diagonal, Diagonal::Integers(_));
        self.diagonals.values().flatten().all(integers)
            && self.diagonals.len() * special > 3 * (limbs + special)
    }

    /// As [`apply`](Self::apply).
    pub(super) fn apply_divided(
        &self,
        ev: &Evaluator,
        ct: &Ciphertext,
        gadget: GadgetName,
    ) -> Result<Ciphertext, CkksError> {
        let ring = ev.params().ring();
        let babies = self.baby_steps();
        let terms: Vec<Terms<'_>> = (self.diagonals.values())
            .map(|terms| weights(terms, &babies))
            .collect();
        let sums = sums_of_rotated(ev, ct, &babies, &terms)?;
        let special = ev.params().gadget(gadget).special;
        let wide = ct.basis().union(special);
        let mut polys = [(); 2].map(|()| ring.zero(wide, Form::Evaluation));
        for (&giant, [c0, c1]) in self.diagonals.keys().zip(sums) {
            let [acc0, acc1] = &mut polys;
            if giant == 0 {
                ev.add_extended(acc0, &c0, special);
                ev.add_extended(acc1, &c1, special);
                continue;
            }
            let mut lifted = ring.zero(ct.basis(), Form::Evaluation);
            ev.add_extended(&mut lifted, &c0, special);
            let galois = Evaluator::galois_of_rotation(ev.params(), giant);
            let key = ev.keys().get(KeyId { gadget, galois }, ct.basis())?;
            let decomposed = ev.decompose(&c1, gadget);
            ev.add_key_product((&mut *acc0, acc1), &decomposed, key, galois);
            ring.add_automorphism_assign(acc0, &lifted, galois);
        }
        ev.mod_down_rescale(&Extended {
            polys,
            special,
            scale: Scale(ct.scale.0 * self.scale.0),
        })
    }
}

/// For each list of terms the sum of integer weights times the ciphertext rotated by `steps`. Limb by limb, so that a transformed weight
/// stays in the cache for both of its products.
fn sums_of_rotated(
    ev: &Evaluator,
    ct: &Ciphertext,
    steps: &[i64],
    sums: &[Terms<'_>],
) -> Result<Vec<[Poly; 2]>, CkksError> {
    let ring = ev.params().ring();
    if ring.queue().is_some() {
        let rotated = ev.rotate_many(ct, steps)?;
        return Ok(sums_of_all_limbs(ring, ct.basis(), &rotated, sums));
    }
    let limbs: Vec<Basis> = ct.basis().iter().map(Basis::single).collect();
    // By step, then limb; whole values are freed on the way.
    let rotated: Vec<Vec<[Poly; 2]>> = (ev.rotate_many(ct, steps)?.into_iter())
        .map(|ct| {
            let restricted = |&limb: &Basis| [0, 1].map(|i| ring.restrict(&ct.polys[i], limb));
            limbs.iter().map(restricted).collect()
        })
        .collect();
    let places: Vec<(usize, usize)> = (0..sums.len())
        .flat_map(|sum| (0..limbs.len()).map(move |limb| (sum, limb)))
        .collect();
    let part = |(sum, limb): (usize, usize)| {
        let mut acc = [(); 2].map(|()| ring.zero(limbs[limb], Form::Evaluation));
        for &(step, weight) in &sums[sum] {
            if let Weight::Integers(integers) = weight {
                let weight = ring.transform_integers(integers, limbs[limb]);
                for (acc, value) in acc.iter_mut().zip(&rotated[step][limb]) {
                    ring.mul_add_assign(acc, &weight, value);
                }
            }
        }
        acc
    };
    let parts: Vec<[Poly; 2]> = places.into_par_iter().map(part).collect();
    let whole = |parts: &[[Poly; 2]]| {
        let mut whole = [(); 2].map(|()| ring.zero(ct.basis(), Form::Evaluation));
        for part in parts {
            for (whole, part) in whole.iter_mut().zip(part) {
                ring.add_to_limbs(whole, part);
            }
        }
        whole
    };
    Ok(parts.par_chunks(limbs.len()).map(whole).collect())
}

/// The same sums where a device computes: it takes all limbs and several terms in one call.
fn sums_of_all_limbs(
    ring: &Ring,
    basis: Basis,
    rotated: &[Ciphertext],
    sums: &[Terms<'_>],
) -> Vec<[Poly; 2]> {
    let sum = |terms: &Terms<'_>| {
        let products = terms.iter().filter_map(|&(step, weight)| match weight {
            Weight::Integers(integers) => Some(([0, 1].map(|i| &rotated[step].polys[i]), integers)),
            Weight::Sparse(_) => None,
        });
        let products: Vec<([&Poly; 2], &IntegerPoly)> = products.collect();
        ring.dot_integers(&products, basis).into()
    };
    sums.iter().map(sum).collect()
}
