//! Projection onto the subring of sparse values: the sum of a value's automorphisms that leave the subring as it is.
//!
//! The first rotations are taken while the raised polynomial is still small against the base limb: one key each, of one digit, which changes
//! the sparse secret to the dense one as well. The rest takes a few rotations at a time, which share a decomposition and a division.

use taciturn_ckks::{CkksError, Evaluator, Extended, GadgetName, Parameters, Scale};
use taciturn_ring::{Basis, Poly};

/// The most rotations of the first step. A key of one digit is a quarter of another in bytes, a rotation with it a tenth in time; but steps of
/// four need three keys for what eight times as many rotations here need eight times as many for.
const FIRST_STEP: usize = 32;

/// The automorphisms of a projection, all but the conjugation rotations.
pub(crate) struct Trace {
    /// Galois elements of the first step, 1 included: rotations by the multiples of the largest power of two, so that all sizes share keys.
    first: Vec<u64>,
    /// Galois elements of the other steps, each without 1.
    rest: Vec<Vec<u64>>,
    /// The gadget of their keys.
    gadget: GadgetName,
    /// Galois elements that generate those of the first step, each as an automorphism of order two of what the earlier ones leave.
    generators: Vec<u64>,
}

impl Trace {
    /// The projection onto values of period `d`, real ones where `real`.
    pub(crate) fn new(params: &Parameters, d: usize, real: bool) -> Self {
        let slots = params.slots();
        let galois = |k: usize| Evaluator::galois_of_rotation(params, k as i64);
        let count = FIRST_STEP.min(slots / d);
        let stride = slots / count;
        let mut rest: Vec<Vec<u64>> = steps(stride, d)
            .into_iter()
            .map(|step| step.into_iter().map(galois).collect())
            .collect();
        if real {
            rest.push(vec![Evaluator::galois_of_conjugation(params)]);
        }
        Self {
            first: (0..count).map(|j| galois(j * stride)).collect(),
            rest,
            gadget: if real {
                GadgetName::Trace
            } else {
                GadgetName::Bootstrap
            },
            generators: (0..count.ilog2()).map(|i| galois(stride << i)).collect(),
        }
    }

    /// Galois elements whose keys are of the [`GadgetName::Decapsulate`] gadget.
    pub(crate) fn lifted(&self) -> impl Iterator<Item = u64> + '_ {
        self.first.iter().copied()
    }

    /// Galois elements of the other keys, and the gadget of each: of a single value it is one of its own.
    pub(crate) fn switched(&self) -> impl Iterator<Item = (GadgetName, u64)> + '_ {
        self.rest
            .iter()
            .flatten()
            .map(|&galois| (self.gadget, galois))
    }

    /// The projection of a value modulo the base limb, under the sparse secret, raised to other limbs: under the dense secret, and not
    /// divided by special limbs yet. Coefficients of the subring grow by the number of automorphisms, the others vanish.
    pub(crate) fn of_raised(
        &self,
        ev: &Evaluator,
        polys: [&Poly; 2],
        raised: Basis,
        scale: Scale,
    ) -> Result<Extended, CkksError> {
        let ring = ev.params().ring();
        let lift = |poly: &Poly, to: Basis| {
            let mut lifted = ring.raise(&ring.intt_new(poly), to);
            ring.ntt(&mut lifted);
            lifted
        };
        let special = ev.params().gadget(GadgetName::Decapsulate).special;
        let lifted = lift(polys[1], raised.union(special));
        let mut sum = ev.sum_of_lifted_products(lifted, &self.first, scale)?;

        // The other polynomial is projected where it has one limb: the sum of its automorphisms over their number, which is exact.
        let mut projected = polys[0].clone();
        for &galois in &self.generators {
            let turned = ring.automorphism(&projected, galois);
            ring.add_assign(&mut projected, &turned);
        }
        let count = self.first.len() as u64;
        ring.mul_scalar_assign(&mut projected, &|limb| ring.moduli()[limb].inv(count));
        let mut projected = lift(&projected, raised);
        ring.mul_integer_assign(&mut projected, count.into());
        ev.add_extended(&mut sum.polys[0], &projected, special);

        self.rest.iter().try_fold(sum, |sum, step| {
            let hoisted = ev.hoist_extended(sum, self.gadget);
            ev.add_automorphisms(&hoisted, step)
        })
    }
}

/// Rotations by multiples of `d` below `end`, step by step: k, 2k, 3k of a step of four or k alone of a step of two. Steps of four start at
/// powers of four, so that all sizes share their keys; an odd power of two takes a step of two first.
fn steps(end: usize, d: usize) -> Vec<Vec<usize>> {
    let mut steps = Vec::new();
    let mut k = d;
    while k < end {
        let four = k.trailing_zeros().is_multiple_of(2) && 4 * k <= end;
        let count = if four { 4 } else { 2 };
        steps.push((1..count).map(|j| j * k).collect());
        k *= count;
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_multiply_to_the_whole_group() {
        for log_d in 0..15 {
            let steps = steps(1 << 15, 1 << log_d);
            assert_eq!(
                steps.iter().map(|s| s.len() + 1).product::<usize>(),
                1 << (15 - log_d)
            );
        }
    }
}
