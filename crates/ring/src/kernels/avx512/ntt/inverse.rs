//! Evaluations to coefficients: Gentleman-Sande. Stages read the forward roots backwards, see [`NttTable`].

use super::*;
use crate::tables::NttTable;

/// Canonical words to canonical words.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in super::super) fn inverse(table: NttTable<'_>, a: &mut [u64]) {
    let read = |_, group: &Group| load(group);
    if is_lazy(table.modulus) {
        Stages::<true>::new(table).all(a, read);
    } else {
        Stages::<false>::new(table).all(a, read);
    }
}

/// [`inverse`] of `a`, into `out`.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in super::super) fn inverse_into(table: NttTable<'_>, out: &mut [u64], a: &[u64]) {
    let a = groups(a);
    let read = |k: usize, _: &Group| load(&a[k]);
    if is_lazy(table.modulus) {
        Stages::<true>::new(table).all(out, read);
    } else {
        Stages::<false>::new(table).all(out, read);
    }
}

/// What the stages need.
///
/// A product is below `2q`. Lazy words enter a pass below `16q`, so that sums are below `128q` after its three stages; only the first of
/// eight words is then a sum of more than four products, and it alone is reduced. Others are below `2q` between stages.
struct Stages<'a, const LAZY: bool> {
    p: Prime,
    quotient: Quotient,
    /// A multiple of the modulus above all that is subtracted.
    above: Words,
    last: [Factor; 2],
    roots: &'a [u64],
}

impl<'a, const LAZY: bool> Stages<'a, LAZY> {
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn new(table: NttTable<'a>) -> Self {
        let p = Prime::new(table.modulus);
        let [first, second] = table.last_inverse;
        let multiple = if LAZY { 64 } else { 2 };
        Self {
            p,
            quotient: Quotient::new(table.modulus),
            above: splat(multiple * table.modulus.value()),
            last: [p.factor(splat(first)), p.factor(splat(second))],
            roots: table.roots,
        }
    }

    /// All stages. The first ones see words through `read`, with the place of their group.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn all(&self, a: &mut [u64], read: impl Fn(usize, &Group) -> Words) {
        // The last pass takes what the first four stages and passes of three leave over.
        let radix = match (a.len().ilog2() - LAST_STAGES) % 3 {
            0 => 8,
            1 => 2,
            _ => 4,
        };
        let last_size = a.len() / radix;
        let mut cached = LAST;
        while 8 * cached <= last_size.min(CACHED) {
            cached *= 8;
        }
        let total = a.len() / cached;
        for (block, k) in a.chunks_exact_mut(cached).zip((total..2 * total).rev()) {
            let done = (2 * total - 1 - k) * (cached / LANES);
            self.first((k + 1) * (cached / LAST), block, |group, words| {
                read(done + group, words)
            });
            let mut inner = LAST;
            while inner < cached {
                inner *= 8;
                let end = (k + 1) * (cached / inner);
                for (block, k) in block.chunks_exact_mut(inner).zip((0..end).rev()) {
                    self.pass(k, block);
                }
            }
        }
        let mut size = cached;
        while size < last_size {
            size *= 8;
            let blocks = a.len() / size;
            for (block, k) in a.chunks_exact_mut(size).zip((blocks..2 * blocks).rev()) {
                self.pass(k, block);
            }
        }
        match radix {
            8 => self.last_pass::<8>(a),
            2 => self.last_pass::<2>(a),
            _ => self.last_pass::<4>(a),
        }
    }

    /// `(x + y, (y - x)·w)`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn butterfly(&self, x: Words, y: Words, w: Factor) -> (Words, Words) {
        let sum = add(x, y);
        let sum = if LAZY { sum } else { reduce(sum, self.p.two_q) };
        (sum, self.p.mul_lazy(sub(add(y, self.above), x), w))
    }

    /// The last stage, with `1/N`, and canonical results.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn last_butterfly(&self, x: Words, y: Words) -> (Words, Words) {
        (
            self.p.mul(add(x, y), self.last[0]),
            self.p.mul(sub(add(y, self.above), x), self.last[1]),
        )
    }

    /// The stages of a pass of radix `R` but the last.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn inner_stages<const R: usize>(&self, words: &mut [Words; R], w: &[Factor; R]) {
        let mut half = 1;
        while half < R / 2 {
            for i in 0..R / (2 * half) {
                for j in 2 * half * i..2 * half * i + half {
                    let w = w[R / (2 * half) + i];
                    (words[j], words[j + half]) = self.butterfly(words[j], words[j + half], w);
                }
            }
            half *= 2;
        }
    }

    /// Three stages of one block, whose last root is at `k`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn pass(&self, k: usize, block: &mut [u64]) {
        const R: usize = 8;
        let w = factors::<R, true>(self.p, self.roots, k);
        let parts = parts::<R>(block);
        let count = parts[0].len();
        for g in 0..count {
            let mut words = [_mm512_setzero_si512(); R];
            for j in 0..R {
                words[j] = load(&parts[j][g]);
                if count >= FAR {
                    prefetch(&parts[j][(g + NEXT).min(count - 1)]);
                }
            }
            self.inner_stages(&mut words, &w);
            for j in 0..R / 2 {
                (words[j], words[j + R / 2]) = self.butterfly(words[j], words[j + R / 2], w[1]);
            }
            if LAZY {
                words[0] = self.quotient.reduce(words[0]);
            }
            for j in 0..R {
                store(&mut parts[j][g], words[j]);
            }
        }
    }

    /// The last stages of the whole.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn last_pass<const R: usize>(&self, a: &mut [u64]) {
        let w = factors::<R, true>(self.p, self.roots, 1);
        let parts = parts::<R>(a);
        let count = parts[0].len();
        for g in 0..count {
            let mut words = [_mm512_setzero_si512(); R];
            for j in 0..R {
                words[j] = load(&parts[j][g]);
                if count >= FAR {
                    prefetch(&parts[j][(g + NEXT).min(count - 1)]);
                }
            }
            self.inner_stages(&mut words, &w);
            for j in 0..R / 2 {
                let (u, v) = self.last_butterfly(words[j], words[j + R / 2]);
                store(&mut parts[j][g], u);
                store(&mut parts[j + R / 2][g], v);
            }
        }
    }

    /// The first four stages of blocks of sixteen words; the root of the first block's last stage is the one before `end`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn first(&self, end: usize, a: &mut [u64], read: impl Fn(usize, &Group) -> Words) {
        let count = a.len() / LAST;
        let roots = LastRoots::new(self.roots, end - count, count);
        let (many, few) = blocks_mut(a).as_chunks_mut::<TOGETHER>();
        let done = TOGETHER * many.len();
        for (i, blocks) in many.iter_mut().enumerate() {
            self.first_blocks(roots, TOGETHER * i, blocks, &read);
        }
        for (i, block) in few.iter_mut().enumerate() {
            self.first_blocks(roots, done + i, std::array::from_mut(block), &read);
        }
    }

    /// Blocks from number `place` on. The roots of the first of all are the last.
    ///
    /// Registers hold their words in reverse, and so meet the roots in the order of the table.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn first_blocks<const B: usize>(
        &self,
        roots: LastRoots<'_>,
        place: usize,
        blocks: &mut [[Group; 2]; B],
        read: &impl Fn(usize, &Group) -> Words,
    ) {
        let last = roots.by_one.len() - 1 - place;
        let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
        let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
        let even_reversed = _mm512_setr_epi64(14, 12, 10, 8, 6, 4, 2, 0);
        let odd_reversed = _mm512_setr_epi64(15, 13, 11, 9, 7, 5, 3, 1);
        let even_restored = _mm512_setr_epi64(7, 5, 3, 1, 15, 13, 11, 9);
        let odd_restored = _mm512_setr_epi64(6, 4, 2, 0, 14, 12, 10, 8);
        let mut pairs = [(_mm512_setzero_si512(), _mm512_setzero_si512()); B];
        for b in 0..B {
            let w = self.p.factor(load(&roots.by_eight[last - b]));
            let group = 2 * (place + b);
            let x = read(group, &blocks[b][0]);
            let y = read(group + 1, &blocks[b][1]);
            let (u, v) = (
                _mm512_permutex2var_epi64(x, even_reversed, y),
                _mm512_permutex2var_epi64(x, odd_reversed, y),
            );
            pairs[b] = self.butterfly(u, v, w);
        }
        wall(&mut pairs);
        let split = |(x, y)| {
            (
                _mm512_permutex2var_epi64(y, odd, x),
                _mm512_permutex2var_epi64(y, even, x),
            )
        };
        for b in 0..B {
            let w = self.p.factor(splat_four(&roots.by_four[last - b]));
            let (u, v) = split(pairs[b]);
            pairs[b] = self.butterfly(u, v, w);
        }
        wall(&mut pairs);
        for b in 0..B {
            let w = self.p.factor(splat_two(&roots.by_two[last - b]));
            let (u, v) = split(pairs[b]);
            pairs[b] = self.butterfly(u, v, w);
        }
        wall(&mut pairs);
        for b in 0..B {
            let w = self.p.factor(splat(roots.by_one[last - b]));
            let (x, y) = pairs[b];
            let (u, v) = (
                _mm512_permutex2var_epi64(x, even_restored, y),
                _mm512_permutex2var_epi64(x, odd_restored, y),
            );
            let (u, v) = self.butterfly(u, v, w);
            store(&mut blocks[b][0], u);
            store(&mut blocks[b][1], v);
        }
    }
}
