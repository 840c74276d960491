//! Base conversion and key switching: operations whose limbs depend on each other.

use super::{CpuBackend, parallel};
use crate::{BaseConversion, Basis, Form, Poly, Tables, buffer::Buffer, kernels::Kernels};
use rayon::prelude::*;

/// Coefficients that a base conversion handles at a time: all source rows of a block stay in the nearest cache.
const BLOCK: usize = 512;
/// The most targets that a base conversion handles at a time.
const TARGETS: usize = 8;

/// The first half of a base conversion, shared by all its targets: a row per source limb and a row of quotients.
pub(super) struct Digits {
    rows: Buffer,
    /// Words from a row to the next: a block more than a row has, or equal places of all rows would compete for few lines of the second cache.
    stride: usize,
    sources: usize,
}

impl<K: Kernels> CpuBackend<K> {
    /// Splits `a`'s limbs in the conversion's source. Of evaluations, the transform ends in the conversion's factor.
    pub(super) fn digits(&self, tables: &Tables, a: &Poly, conversion: &BaseConversion) -> Digits {
        let (n, sources) = (a.n, conversion.source().len());
        let stride = n + BLOCK;
        let limbs: Vec<usize> = conversion.source().iter().collect();
        let mut rows = Buffer::stale((sources + 1) * stride);
        let (ys, quotients) = rows.split_at_mut(sources * stride);
        let split = |(k, y): (usize, &mut [u64])| {
            let (i, inverse) = (limbs[k], conversion.inverses()[k]);
            let (q, y) = (tables.moduli()[i], &mut y[..n]);
            match a.form {
                Form::Evaluation => {
                    let table = tables.ntt(i).scaled(inverse);
                    self.0.intt_into(table, y, a.limb(i));
                }
                Form::Coefficient => {
                    y.copy_from_slice(a.limb(i));
                    self.0.scale(q, y, q.montgomery_mul(inverse, 1));
                }
            }
        };
        if parallel(sources * n) {
            ys.par_chunks_exact_mut(stride).enumerate().for_each(split);
        } else {
            ys.chunks_exact_mut(stride).enumerate().for_each(split);
        }
        let quotient = |(k, out): (usize, &mut [u64])| {
            out.fill(0);
            for (y, &weight) in ys.chunks_exact(stride).zip(conversion.weights()) {
                let y = &y[k * BLOCK..k * BLOCK + out.len()];
                self.0.add_quotient(out, y, weight);
            }
            self.0.convert_quotient(out);
        };
        let quotients = &mut quotients[..n];
        if parallel(sources * n) {
            let blocks = quotients.par_chunks_mut(BLOCK).enumerate();
            blocks.for_each(quotient);
        } else {
            quotients.chunks_mut(BLOCK).enumerate().for_each(quotient);
        }
        Digits {
            rows,
            stride,
            sources,
        }
    }

    /// The second half: fills the limbs of `out`, but those in `skip`, and calls `finish` with each limb's index and words.
    ///
    /// Several targets at a time share a reading of the rows, which exceed the second cache.
    pub(super) fn gather(
        &self,
        tables: &Tables,
        digits: &Digits,
        conversion: &BaseConversion,
        out: &mut Poly,
        skip: Basis,
        finish: impl Fn(usize, &mut [u64]) + Sync,
    ) {
        let n = out.n;
        let limbs: Vec<usize> = out.basis.iter().collect();
        // Few sources are read again at less cost than the targets of a group would have leaving the cache.
        let together = TARGETS.min(digits.sources.div_ceil(2));
        let together = together
            .min(limbs.len().div_ceil(rayon::current_num_threads()))
            .max(1);
        let fill = |(limbs, words): (&[usize], &mut [u64])| {
            self.convert_limbs(tables, digits, conversion, limbs, words, skip);
            for (&i, limb) in limbs.iter().zip(words.chunks_exact_mut(n)) {
                finish(i, limb);
            }
        };
        if parallel(out.data.len()) {
            limbs
                .par_chunks(together)
                .zip(out.data.par_chunks_mut(together * n))
                .for_each(fill);
        } else {
            limbs
                .chunks(together)
                .zip(out.data.chunks_mut(together * n))
                .for_each(fill);
        }
    }

    /// Fills the limbs of `words`, but those in `skip`.
    fn convert_limbs(
        &self,
        tables: &Tables,
        digits: &Digits,
        conversion: &BaseConversion,
        limbs: &[usize],
        words: &mut [u64],
        skip: Basis,
    ) {
        const NONE: &[u64] = &[];
        let n = words.len() / limbs.len();
        for first in (0..n).step_by(BLOCK) {
            let block = first..n.min(first + BLOCK);
            // One row per limb of a ring, and the quotients.
            let mut rows = [NONE; 65];
            for (row, all) in rows.iter_mut().zip(digits.rows.chunks_exact(digits.stride)) {
                *row = &all[block.clone()];
            }
            let rows = &rows[..digits.sources + 1];
            for (&i, limb) in limbs.iter().zip(words.chunks_exact_mut(n)) {
                if !skip.contains(i) {
                    let (out, target) = (&mut limb[block.clone()], conversion.target(i));
                    self.0.convert_target(tables.moduli()[i], out, rows, target);
                }
            }
        }
    }
}
