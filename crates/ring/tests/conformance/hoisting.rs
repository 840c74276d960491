//! Sums over rotations against the operations that they are made of.

use super::*;
use taciturn_ring::{Hoisted, IntegerPoly, Rotation, SparsePoly, Terms, Weight};

/// A value on some limbs, its digits and keys over all.
struct Fixture {
    value: [Poly; 2],
    digits: Vec<Poly>,
    keys: Vec<(u64, Vec<(Poly, Poly)>)>,
}

impl Fixture {
    fn new(ring: &Ring, own: Basis, digits: usize) -> Self {
        let mut random = Random(90 + digits as u64);
        let all = ring.full_basis();
        let mut poly = |basis| random.poly(ring, basis, Form::Evaluation);
        let value = [poly(own), poly(own)];
        let made: Vec<Poly> = (0..digits).map(|_| poly(all)).collect();
        let keys = [5, 25, 2 * ring.n() as u64 - 1]
            .map(|g| (g, (0..digits).map(|_| (poly(all), poly(all))).collect()));
        Fixture {
            value,
            digits: made,
            keys: keys.into(),
        }
    }

    fn hoisted(&self) -> Hoisted<'_> {
        Hoisted {
            value: [&self.value[0], &self.value[1]],
            digits: &self.digits,
        }
    }

    fn rotations(&self) -> Vec<Rotation<'_>> {
        self.keys
            .iter()
            .map(|(galois, key)| Rotation {
                galois: *galois,
                key,
            })
            .collect()
    }

    /// Each step, the value itself first, from single operations.
    fn steps(&self, ring: &Ring, target: Basis) -> Vec<[Poly; 2]> {
        let own = self.value.each_ref().map(|p| {
            let mut out = ring.zero(target, Form::Evaluation);
            ring.add_to_limbs(&mut out, p);
            out
        });
        let turned = self.keys.iter().map(|(galois, key)| {
            let (mut a, b) = ring.key_product_automorphism(&self.digits, key, *galois, target);
            ring.add_automorphism_assign(&mut a, &self.value[0], *galois);
            [a, b]
        });
        [own].into_iter().chain(turned).collect()
    }
}

#[test]
fn sums_of_rotations_equal_their_parts() {
    // From 2^12 on, backends may take limbs in parts.
    for log_n in [4, 9, 12] {
        for ring in rings(log_n, 4) {
            let target = Basis::range(0..4);
            let fixture = Fixture::new(&ring, Basis::single(0).with(2), 3);
            let (a, b) = ring.sum_of_rotations(fixture.hoisted(), &fixture.rotations(), target);
            let steps = fixture.steps(&ring, target);
            for (half, got) in [a, b].iter().enumerate() {
                let mut expected = steps[0][half].clone();
                for step in &steps[1..] {
                    ring.add_assign(&mut expected, &step[half]);
                }
                assert!(*got == expected, "{}", ring.backend_name());
            }
        }
    }
}

#[test]
fn weighted_sums_of_rotations_equal_their_parts() {
    // From 2^12 on, backends may take limbs in parts.
    for log_n in [4, 9, 12] {
        for ring in rings(log_n, 4) {
            let target = Basis::single(0).with(2).with(3);
            let fixture = Fixture::new(&ring, Basis::single(0).with(2), 2);
            let rotations: Vec<_> = [None]
                .into_iter()
                .chain(fixture.rotations().into_iter().map(Some))
                .collect();
            let steps = fixture.steps(&ring, target);
            let mut random = Random(7);
            // More terms than a kernel takes at a time among them.
            for (count, stride) in [(1, 8), (16, 16), (37, 8), (3, ring.n())] {
                let mut dense = Vec::new();
                let sparse: Vec<SparsePoly> = (0..count)
                    .map(|_| {
                        let mut weight = random.poly(&ring, ring.full_basis(), Form::Evaluation);
                        let words = weight.words_mut();
                        (0..words.len()).for_each(|k| words[k] = words[k - k % stride]);
                        dense.push(ring.restrict(&weight, target));
                        ring.compress(&weight, stride)
                    })
                    .collect();
                let weights = sparse.iter().map(Weight::Sparse);
                check(
                    &ring,
                    &fixture,
                    &rotations,
                    &steps,
                    weights.collect(),
                    &dense,
                );
            }
            for stride in [1, 4] {
                let integers: Vec<IntegerPoly> = (0..5)
                    .map(|_| {
                        let coefficients = 0..ring.n() / stride;
                        IntegerPoly::new(coefficients.map(|_| random.next() as i64 >> 14).collect())
                    })
                    .collect();
                let dense: Vec<Poly> = integers
                    .iter()
                    .map(|integers| {
                        let mut poly = ring.from_integers(integers, target);
                        ring.ntt(&mut poly);
                        poly
                    })
                    .collect();
                let weights = integers.iter().map(Weight::Integers);
                check(
                    &ring,
                    &fixture,
                    &rotations,
                    &steps,
                    weights.collect(),
                    &dense,
                );
            }
        }
    }
}

/// Two sums: of all weights on the steps in turn, and of the first weight on the last step.
fn check(
    ring: &Ring,
    fixture: &Fixture,
    rotations: &[Option<Rotation<'_>>],
    steps: &[[Poly; 2]],
    weights: Vec<Weight<'_>>,
    dense: &[Poly],
) {
    let last = steps.len() - 1;
    let first = weights[0];
    let all: Terms<'_> = weights
        .into_iter()
        .enumerate()
        .map(|(i, weight)| (i % steps.len(), weight))
        .collect();
    let sums = [all, vec![(last, first)]];
    let target = dense[0].basis();
    let got = ring.hoisted_sums(fixture.hoisted(), rotations, &sums, target);
    for ((a, b), terms) in got.iter().zip(&sums) {
        for (half, got) in [a, b].into_iter().enumerate() {
            let mut expected = ring.zero(target, Form::Evaluation);
            for ((step, _), weight) in terms.iter().zip(dense) {
                ring.mul_add_assign(&mut expected, &steps[*step][half], weight);
            }
            assert!(
                *got == expected,
                "{}, {} terms",
                ring.backend_name(),
                terms.len()
            );
        }
    }
}
