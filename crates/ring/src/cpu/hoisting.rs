//! Sums over rotations, limb by limb: what one limb needs stays in the cache.

use super::{CpuBackend, Halves, each_limb_pair, parallel};
use crate::{
    MAX_DIGITS, Poly, Tables,
    buffer::Buffer,
    hoisting::{Hoisted, Step, Terms, Weight},
    kernels::{Kernels, KeyProducts, UNREDUCED},
};
use rayon::prelude::*;

/// Words that are handled at a time: with two halves of a dozen rotations they fit the second cache.
const PART: usize = 2048;
/// The same for sums alone, whose four parts that are not reduced fit the nearest cache.
const SUMS_PART: usize = 1024;

/// The words of a limb from `first` on of the value itself, zero on limbs that it lacks.
fn value_part(limb: usize, first: usize, out: Halves<'_>, hoisted: Hoisted<'_>) {
    for (out, value) in out.into_iter().zip(hoisted.value) {
        if value.basis().contains(limb) {
            out.copy_from_slice(&value.limb(limb)[first..first + out.len()]);
        } else {
            out.fill(0);
        }
    }
}

/// Calls `f` with the products of a step for `words` words of a limb from `first` on. Contract: the step has a map.
fn with_products(
    limb: usize,
    first: usize,
    words: usize,
    hoisted: Hoisted<'_>,
    step: &Step<'_>,
    f: impl FnOnce(KeyProducts<'_>),
) {
    const NONE: &[u64] = &[];
    let count = hoisted.digits.len().min(MAX_DIGITS);
    let mut digits = [NONE; MAX_DIGITS];
    let mut keys = [[NONE; 2]; MAX_DIGITS];
    for (j, (digit, key)) in hoisted.digits.iter().zip(step.key).enumerate() {
        digits[j] = digit.limb(limb);
        keys[j] = [&key.0, &key.1].map(|key| &key.limb(limb)[first..first + words]);
    }
    let value = hoisted.value[0];
    f(KeyProducts {
        digits: &digits[..count],
        keys: &keys[..count],
        value: value.basis().contains(limb).then(|| value.limb(limb)),
        map: step.map.as_deref().map(|map| map.from(first)),
    });
}

impl<K: Kernels> CpuBackend<K> {
    pub(super) fn hoisted_sums_by_limb(
        &self,
        tables: &Tables,
        outs: &mut [(Poly, Poly)],
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
        sums: &[Terms<'_>],
    ) {
        let Some(first) = outs.first() else { return };
        let limbs: Vec<usize> = first.0.basis.iter().collect();
        let words = first.0.data.len();
        let mut work: Vec<(usize, Vec<Halves<'_>>)> =
            limbs.into_iter().map(|limb| (limb, Vec::new())).collect();
        for out in outs {
            let n = out.0.n;
            let halves = out
                .0
                .data
                .chunks_exact_mut(n)
                .zip(out.1.data.chunks_exact_mut(n));
            for ((_, outs), (a, b)) in work.iter_mut().zip(halves) {
                outs.push([a, b]);
            }
        }
        let limb = |(limb, outs): (usize, Vec<Halves<'_>>)| {
            self.hoisted_sums_of_limb(tables, limb, outs, hoisted, steps, sums);
        };
        if parallel(words) {
            work.into_par_iter().for_each(limb);
        } else {
            work.into_iter().for_each(limb);
        }
    }

    fn hoisted_sums_of_limb(
        &self,
        tables: &Tables,
        limb: usize,
        outs: Vec<Halves<'_>>,
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
        sums: &[Terms<'_>],
    ) {
        let n = tables.n();
        // Integer weights are transformed for a whole limb; otherwise parts do that stay in the nearer caches.
        let sparse = |(_, weight): &(usize, Weight<'_>)| matches!(weight, Weight::Sparse(_));
        let part = if sums.iter().flatten().all(sparse) {
            PART.min(n)
        } else {
            n
        };
        let mut rotated = Buffer::stale(2 * part * steps.len());
        let mut scratch = Buffer::stale(2 * part);
        let mut outs: Vec<_> = outs
            .into_iter()
            .map(|[a, b]| a.chunks_exact_mut(part).zip(b.chunks_exact_mut(part)))
            .collect();
        for first in (0..n).step_by(part) {
            for (step, words) in steps.iter().zip(rotated.chunks_exact_mut(2 * part)) {
                let (a, b) = words.split_at_mut(part);
                self.rotate_part(tables, limb, first, [a, b], hoisted, step);
            }
            let rotated: Vec<[&[u64]; 2]> = rotated
                .chunks_exact(2 * part)
                .map(|words| [&words[..part], &words[part..]])
                .collect();
            for (out, terms) in outs.iter_mut().zip(sums) {
                let (a, b) = out.next().expect("limbs have n words");
                self.sum_part(tables, limb, first, [a, b], terms, &rotated, &mut scratch);
            }
        }
    }

    /// The words of a limb from `first` on of a step: the value itself without a map.
    fn rotate_part(
        &self,
        tables: &Tables,
        limb: usize,
        first: usize,
        out: Halves<'_>,
        hoisted: Hoisted<'_>,
        step: &Step<'_>,
    ) {
        if step.is_identity() {
            return value_part(limb, first, out, hoisted);
        }
        let q = tables.moduli()[limb];
        let words = out[0].len();
        with_products(limb, first, words, hoisted, step, |products| {
            self.0.key_product(q, out, products, false);
        });
    }

    /// The words of a limb from `first` on of the value plus all steps. `scratch` has twice as many words as `out`.
    #[expect(clippy::too_many_arguments, reason = "a part of a limb of a sum")]
    fn sum_of_rotations_part(
        &self,
        tables: &Tables,
        limb: usize,
        first: usize,
        [out0, out1]: Halves<'_>,
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
        scratch: &mut [u64],
    ) {
        let words = out0.len();
        let mut parts = scratch.chunks_exact_mut(words);
        let mut sums: [&mut [u64]; 4] = std::array::from_fn(|_| parts.next().expect("four parts"));
        value_part(limb, first, [&mut *out0, &mut *out1], hoisted);
        for steps in steps.chunks(UNREDUCED / hoisted.digits.len()) {
            sums[0].copy_from_slice(out0);
            sums[2].copy_from_slice(out1);
            sums[1].fill(0);
            sums[3].fill(0);
            for step in steps {
                with_products(limb, first, words, hoisted, step, |products| {
                    self.0
                        .add_products(sums.each_mut().map(|sum| &mut **sum), products);
                });
            }
            let (q, out) = (tables.moduli()[limb], [&mut *out0, &mut *out1]);
            self.0
                .reduce_sums(q, out, sums.each_ref().map(|sum| &**sum));
        }
    }

    pub(super) fn sum_of_rotations_by_limb(
        &self,
        tables: &Tables,
        (out0, out1): (&mut Poly, &mut Poly),
        hoisted: Hoisted<'_>,
        steps: &[Step<'_>],
    ) {
        each_limb_pair(out0, out1, |limb, [a, b]| {
            // In parts that stay in the cache while rotation after rotation is added.
            let part = SUMS_PART.min(a.len());
            let mut scratch = Buffer::stale(4 * part);
            let parts = a.chunks_exact_mut(part).zip(b.chunks_exact_mut(part));
            for (k, (a, b)) in parts.enumerate() {
                self.sum_of_rotations_part(
                    tables,
                    limb,
                    k * part,
                    [a, b],
                    hoisted,
                    steps,
                    &mut scratch,
                );
            }
        });
    }

    /// The words of a limb from `first` on of one sum.
    #[expect(clippy::too_many_arguments, reason = "a part of a limb of a sum")]
    fn sum_part(
        &self,
        tables: &Tables,
        limb: usize,
        first: usize,
        [out0, out1]: Halves<'_>,
        terms: &Terms<'_>,
        rotated: &[[&[u64]; 2]],
        scratch: &mut [u64],
    ) {
        let q = tables.moduli()[limb];
        let n = out0.len();
        let (half0, half1) = scratch.split_at_mut(n);
        let mut sparse = (Vec::new(), Vec::new());
        for (i, &(step, weight)) in terms.iter().enumerate() {
            match weight {
                Weight::Sparse(weight) => {
                    let from = first / weight.stride;
                    sparse.0.push((&weight.limb(limb)[from..], weight.stride));
                    sparse.1.push(rotated[step]);
                }
                Weight::Integers(coefficients) => {
                    let (out, integers) = ([&mut *out0, &mut *out1], coefficients.coefficients());
                    self.multiply_limb(tables, limb, out, integers, rotated[step], i > 0);
                }
            }
        }
        let chunks = sparse.0.chunks(MAX_DIGITS).zip(sparse.1.chunks(MAX_DIGITS));
        for (i, (weights, terms)) in chunks.enumerate() {
            let stride = weights[0].1;
            let weights: Vec<&[u64]> = weights.iter().map(|(values, _)| *values).collect();
            if i == 0 {
                let out = [&mut *out0, &mut *out1];
                self.0.weighted_sum(q, out, &weights, terms, stride);
                continue;
            }
            let more = [&mut *half0, &mut *half1];
            self.0.weighted_sum(q, more, &weights, terms, stride);
            self.0.add(q, out0, half0);
            self.0.add(q, out1, half1);
        }
    }
}
