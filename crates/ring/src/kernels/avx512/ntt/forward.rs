//! Coefficients to evaluations: Cooley-Tukey.

use super::*;
use crate::tables::NttTable;

/// Canonical words to canonical words.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in super::super) fn forward(table: NttTable<'_>, a: &mut [u64]) {
    let q = table.modulus;
    if is_lazy(q) {
        let stages = Stages::<true>::new(table);
        let first = |_, group: &Group| add(load(group), stages.offset);
        stages.all(a, first, |_, words| stages.canonical(words));
    } else {
        let stages = Stages::<false>::new(table);
        let first = |_, group: &Group| load(group);
        stages.all(a, first, |_, words| stages.canonical(words));
    }
}

/// [`forward`] of small integers, which lie below every modulus.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in super::super) fn forward_narrow(table: NttTable<'_>, out: &mut [u64], x: &[i32]) {
    let x = x.as_chunks::<LANES>().0;
    if is_lazy(table.modulus) {
        let stages = Stages::<true>::new(table);
        let first = |k: usize, _: &Group| add(load_narrow(&x[k]), stages.offset);
        stages.all(out, first, |_, words| stages.canonical(words));
    } else {
        let stages = Stages::<false>::new(table);
        let first = |k: usize, _: &Group| add(load_narrow(&x[k]), stages.p.q);
        stages.all(out, first, |_, words| stages.canonical(words));
    }
}

/// [`forward`] of `out`, then `(a - out)·factor` while its words are at hand.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in super::super) fn forward_sub_scale(
    table: NttTable<'_>,
    out: &mut [u64],
    a: &[u64],
    factor: u64,
) {
    let a = groups(a);
    if is_lazy(table.modulus) {
        let stages = Stages::<true>::new(table);
        let factor = stages.p.factor(splat(factor));
        // The offset that words began with, once more: twice it exceeds them.
        let above = add(stages.offset, add(stages.offset, stages.p.two_q));
        let first = |_, group: &Group| add(load(group), stages.offset);
        stages.all(out, first, |k, words| {
            let difference = sub(add(load(&a[k]), above), words);
            stages.p.mul(difference, factor)
        });
    } else {
        let stages = Stages::<false>::new(table);
        let factor = stages.p.factor(splat(factor));
        let first = |_, group: &Group| load(group);
        stages.all(out, first, |k, words| {
            // Between 0 and 3q, and so below 2^52.
            let words = reduce(words, stages.p.two_q);
            let difference = sub(add(load(&a[k]), stages.p.two_q), words);
            stages.p.mul(difference, factor)
        });
    }
}

/// What the stages need.
///
/// A product `d` lies in `(-q, q)`. Lazy words begin in `[0, q)` plus an offset of `log N` times `q`, so that `x ± d` is never negative, and
/// end below `(2 log N + 1)·q`, at most `35q`. Others are below `4q` between stages (Harvey, "Faster arithmetic for number-theoretic
/// transforms", 2014).
struct Stages<'a, const LAZY: bool> {
    p: Prime,
    quotient: Quotient,
    offset: Words,
    roots: &'a [u64],
}

impl<'a, const LAZY: bool> Stages<'a, LAZY> {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(table: NttTable<'a>) -> Self {
        let stages = u64::from(table.roots.len().ilog2());
        Self {
            p: Prime::new(table.modulus),
            quotient: Quotient::new(table.modulus),
            offset: splat(stages * table.modulus.value()),
            roots: table.roots,
        }
    }

    /// Of words after the last stage.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn canonical(&self, words: Words) -> Words {
        let words = if LAZY {
            self.quotient.reduce(words)
        } else {
            reduce(words, self.p.two_q)
        };
        reduce(words, self.p.q)
    }

    /// `(x + y·w, x - y·w)`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn butterfly(&self, x: Words, y: Words, w: Factor) -> (Words, Words) {
        let x = if LAZY {
            x
        } else {
            add(reduce(x, self.p.two_q), self.p.q)
        };
        let d = self.p.mul_signed(y, w);
        (add(x, d), sub(x, d))
    }

    /// All stages. The first pass sees words through `first`, with the place of their group; the last stages' results go through `finish`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn all(
        &self,
        a: &mut [u64],
        first: impl Fn(usize, &Group) -> Words,
        finish: impl Fn(usize, Words) -> Words,
    ) {
        // What passes of three stages and the last four leave over comes first.
        let mut size = match (a.len().ilog2() - LAST_STAGES) % 3 {
            0 => self.pass::<8>(1, a, first),
            1 => self.pass::<2>(1, a, first),
            _ => self.pass::<4>(1, a, first),
        };
        let read = |_, group: &Group| load(group);
        while size > CACHED {
            let blocks = a.chunks_exact_mut(size);
            for (block, k) in blocks.zip(blocks_from(self.roots, size)) {
                self.pass::<8>(k, block, read);
            }
            size /= 8;
        }
        let mut done = 0;
        let blocks = a.chunks_exact_mut(size);
        for (block, k) in blocks.zip(blocks_from(self.roots, size)) {
            let (mut inner, mut from) = (size, k);
            while inner > LAST {
                for (block, k) in block.chunks_exact_mut(inner).zip(from..) {
                    self.pass::<8>(k, block, read);
                }
                (inner, from) = (inner / 8, from * 8);
            }
            self.last(from, block, |group, words| finish(done + group, words));
            done += size / LANES;
        }
    }

    /// The stages of radix `R` of one block, whose first root is at `k`. Returns the size of the blocks that are left.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn pass<const R: usize>(
        &self,
        k: usize,
        block: &mut [u64],
        read: impl Fn(usize, &Group) -> Words,
    ) -> usize {
        let left = block.len() / R;
        let w = factors::<R, false>(self.p, self.roots, k);
        let parts = parts::<R>(block);
        let count = parts[0].len();
        for g in 0..count {
            let mut words: [Words; R] = [_mm512_setzero_si512(); R];
            for j in 0..R {
                words[j] = read(j * count + g, &parts[j][g]);
                if count >= FAR {
                    prefetch(&parts[j][(g + NEXT).min(count - 1)]);
                }
            }
            let mut half = R / 2;
            while half > 0 {
                for i in 0..R / (2 * half) {
                    for j in 2 * half * i..2 * half * i + half {
                        let w = w[R / (2 * half) + i];
                        (words[j], words[j + half]) = self.butterfly(words[j], words[j + half], w);
                    }
                }
                half /= 2;
            }
            for j in 0..R {
                store(&mut parts[j][g], words[j]);
            }
        }
        left
    }

    /// The last four stages of blocks of sixteen words, the first of which has its root at `k`. Words go through `finish`, with the
    /// place of their group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn last(&self, k: usize, a: &mut [u64], finish: impl Fn(usize, Words) -> Words) {
        let roots = LastRoots::new(self.roots, k, a.len() / LAST);
        let (many, few) = blocks_mut(a).as_chunks_mut::<TOGETHER>();
        let done = TOGETHER * many.len();
        for (i, blocks) in many.iter_mut().enumerate() {
            self.last_blocks(roots, TOGETHER * i, blocks, &finish);
        }
        for (i, block) in few.iter_mut().enumerate() {
            self.last_blocks(roots, done + i, std::array::from_mut(block), &finish);
        }
    }

    /// Before each stage but the first, interleaving two registers brings partners to equal lanes of different registers and
    /// butterflies into the order of their roots.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn last_blocks<const B: usize>(
        &self,
        roots: LastRoots<'_>,
        first: usize,
        blocks: &mut [[Group; 2]; B],
        finish: &impl Fn(usize, Words) -> Words,
    ) {
        let low_half = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
        let high_half = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
        let interleave = |(x, y)| {
            (
                _mm512_permutex2var_epi64(x, low_half, y),
                _mm512_permutex2var_epi64(x, high_half, y),
            )
        };
        let mut pairs = [(_mm512_setzero_si512(), _mm512_setzero_si512()); B];
        for b in 0..B {
            let w = self.p.factor(splat(roots.by_one[first + b]));
            pairs[b] = interleave(self.butterfly(load(&blocks[b][0]), load(&blocks[b][1]), w));
        }
        wall(&mut pairs);
        for b in 0..B {
            let w = self.p.factor(splat_two(&roots.by_two[first + b]));
            pairs[b] = interleave(self.butterfly(pairs[b].0, pairs[b].1, w));
        }
        wall(&mut pairs);
        for b in 0..B {
            let w = self.p.factor(splat_four(&roots.by_four[first + b]));
            pairs[b] = interleave(self.butterfly(pairs[b].0, pairs[b].1, w));
        }
        wall(&mut pairs);
        for b in 0..B {
            let w = self.p.factor(load(&roots.by_eight[first + b]));
            pairs[b] = interleave(self.butterfly(pairs[b].0, pairs[b].1, w));
        }
        wall(&mut pairs);
        for b in 0..B {
            let group = 2 * (first + b);
            store(&mut blocks[b][0], finish(group, pairs[b].0));
            store(&mut blocks[b][1], finish(group + 1, pairs[b].1));
        }
    }
}
