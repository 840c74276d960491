//! Base conversion and key switching: operations whose limbs depend on each other.

use super::{CpuBackend, each_limb, parallel};
use crate::{BaseConversion, Basis, Form, Poly, Tables, buffer::Buffer, kernels::Kernels};
use rayon::prelude::*;

/// Coefficients that a base conversion handles at a time: all source rows of a block stay in the nearest cache.
const BLOCK: usize = 512;
/// The most targets that a base conversion handles at a time.
const TARGETS: usize = 8;

/// The first half of a base conversion, shared by all its targets: for each block of coefficients one row per source limb
/// and a row of quotients.
pub(super) struct Digits {
    rows: Buffer,
    block: usize,
    sources: usize,
}

impl<K: Kernels> CpuBackend<K> {
    /// Splits `a`'s limbs in the conversion's source, which are coefficients.
    pub(super) fn digits(&self, tables: &Tables, a: &Poly, conversion: &BaseConversion) -> Digits {
        let block = BLOCK.min(a.n);
        let sources = conversion.source().len();
        let limbs: Vec<_> = conversion
            .source()
            .iter()
            .map(|i| (tables.moduli()[i], a.limb(i)))
            .collect();
        let mut rows = Buffer::stale((sources + 1) * a.n);
        let split = |(k, rows): (usize, &mut [u64])| {
            let (ys, quotient) = rows.split_at_mut(sources * block);
            quotient.fill(0);
            for (i, y) in ys.chunks_exact_mut(block).enumerate() {
                let (q, x) = (limbs[i].0, &limbs[i].1[k * block..(k + 1) * block]);
                self.0.convert_source(
                    q,
                    y,
                    quotient,
                    x,
                    conversion.inverses()[i],
                    conversion.weights()[i],
                );
            }
            self.0.convert_quotient(quotient);
        };
        let length = (sources + 1) * block;
        if parallel(rows.len()) {
            rows.par_chunks_exact_mut(length)
                .enumerate()
                .for_each(split);
        } else {
            rows.chunks_exact_mut(length).enumerate().for_each(split);
        }
        Digits {
            rows,
            block,
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

    /// The coefficients of the named limbs.
    pub(super) fn coefficients(&self, tables: &Tables, a: &Poly, basis: Basis) -> Poly {
        let mut out = Poly::stale(a.n, basis, Form::Coefficient);
        each_limb(&mut out, |i, _, out| {
            out.copy_from_slice(a.limb(i));
            if a.form == Form::Evaluation {
                self.0.intt(tables.ntt(i), out);
            }
        });
        out
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
        let n = words.len() / limbs.len();
        let rows = digits
            .rows
            .chunks_exact((digits.sources + 1) * digits.block);
        for (k, rows) in rows.enumerate() {
            for (&i, limb) in limbs.iter().zip(words.chunks_exact_mut(n)) {
                if !skip.contains(i) {
                    let out = &mut limb[k * digits.block..(k + 1) * digits.block];
                    self.0
                        .convert_target(tables.moduli()[i], out, rows, conversion.target(i));
                }
            }
        }
    }
}
