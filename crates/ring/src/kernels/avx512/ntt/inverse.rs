//! Evaluations to coefficients.

use super::*;
use crate::tables::NttTable;

/// Gentleman-Sande; words below `2q` between stages. Stages read the forward roots backwards, see [`NttTable`].
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in super::super) fn inverse(table: NttTable<'_>, a: &mut [u64]) {
    let p = Prime::new(table.modulus);
    let odd = (a.len() / LAST).trailing_zeros() % 2 == 1;
    let last_size = if odd { a.len() / 2 } else { a.len() };
    // The largest block in the nearest cache that quadrupling leads to the last stages from.
    let mut cached = last_size;
    while cached > CACHED {
        cached /= 4;
    }
    let cached = if cached == a.len() {
        cached / 4
    } else {
        cached
    };
    let total = a.len() / cached;
    for (block, k) in a.chunks_exact_mut(cached).zip((total..2 * total).rev()) {
        let mut inner = LAST;
        inverse_first(p, table.roots, (k + 1) * (cached / LAST), block);
        while inner < cached {
            inner *= 4;
            let end = (k + 1) * (cached / inner);
            for (block, k) in block.chunks_exact_mut(inner).zip((0..end).rev()) {
                inverse_four(p, table.roots, k, block);
            }
        }
    }
    let mut size = cached;
    while 4 * size < a.len() {
        size *= 4;
        let blocks = a.len() / size;
        for (block, k) in a.chunks_exact_mut(size).zip((blocks..2 * blocks).rev()) {
            inverse_four(p, table.roots, k, block);
        }
    }
    let last = table.last_inverse.map(|w| p.factor(splat(w)));
    if odd {
        inverse_last_pair(p, last, a)
    } else {
        inverse_last_four(p, table.roots, last, a)
    }
}

/// `(x + y, (y - x)·w)` below `2q`, from the same.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse_butterfly(p: Prime, x: Words, y: Words, w: Factor) -> (Words, Words) {
    (
        reduce(add(x, y), p.two_q),
        p.mul_lazy(sub(add(y, p.two_q), x), w),
    )
}

/// The last stage, with `1/N`, and canonical results.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse_last_butterfly(p: Prime, x: Words, y: Words, last: [Factor; 2]) -> (Words, Words) {
    (
        p.mul(add(x, y), last[0]),
        p.mul(sub(add(y, p.two_q), x), last[1]),
    )
}

/// The first four stages of blocks of sixteen words; the root of the first block's last stage is the one before `end`.
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse_first(p: Prime, roots: &[u64], end: usize, a: &mut [u64]) {
    let count = a.len() / LAST;
    let roots = LastRoots::new(roots, end - count, count);
    let (many, few) = blocks_mut(a).as_chunks_mut::<TOGETHER>();
    let done = TOGETHER * many.len();
    for (i, blocks) in many.iter_mut().enumerate() {
        inverse_first_blocks(p, roots, count - 1 - TOGETHER * i, blocks);
    }
    for (i, block) in few.iter_mut().enumerate() {
        inverse_first_blocks(p, roots, count - 1 - done - i, std::array::from_mut(block));
    }
}

/// `last` is the place of the first block's roots; the others' come before.
///
/// Registers hold their words in reverse, and so meet the roots in the order of the table.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse_first_blocks<const B: usize>(
    p: Prime,
    roots: LastRoots<'_>,
    last: usize,
    blocks: &mut [[Group; 2]; B],
) {
    let even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    let odd = _mm512_setr_epi64(1, 3, 5, 7, 9, 11, 13, 15);
    let even_reversed = _mm512_setr_epi64(14, 12, 10, 8, 6, 4, 2, 0);
    let odd_reversed = _mm512_setr_epi64(15, 13, 11, 9, 7, 5, 3, 1);
    let even_restored = _mm512_setr_epi64(7, 5, 3, 1, 15, 13, 11, 9);
    let odd_restored = _mm512_setr_epi64(6, 4, 2, 0, 14, 12, 10, 8);
    let mut pairs = [(_mm512_setzero_si512(), _mm512_setzero_si512()); B];
    for b in 0..B {
        let w = p.factor(load(&roots.by_eight[last - b]));
        let (x, y) = (load(&blocks[b][0]), load(&blocks[b][1]));
        let (u, v) = (
            _mm512_permutex2var_epi64(x, even_reversed, y),
            _mm512_permutex2var_epi64(x, odd_reversed, y),
        );
        pairs[b] = inverse_butterfly(p, u, v, w);
    }
    let split = |(x, y)| {
        (
            _mm512_permutex2var_epi64(y, odd, x),
            _mm512_permutex2var_epi64(y, even, x),
        )
    };
    for b in 0..B {
        let w = p.factor(splat_four(&roots.by_four[last - b]));
        let (u, v) = split(pairs[b]);
        pairs[b] = inverse_butterfly(p, u, v, w);
    }
    for b in 0..B {
        let w = p.factor(splat_two(&roots.by_two[last - b]));
        let (u, v) = split(pairs[b]);
        pairs[b] = inverse_butterfly(p, u, v, w);
    }
    for b in 0..B {
        let w = p.factor(splat(roots.by_one[last - b]));
        let (x, y) = pairs[b];
        let (u, v) = (
            _mm512_permutex2var_epi64(x, even_restored, y),
            _mm512_permutex2var_epi64(x, odd_restored, y),
        );
        let (u, v) = inverse_butterfly(p, u, v, w);
        store(&mut blocks[b][0], u);
        store(&mut blocks[b][1], v);
    }
}

/// Two stages of one block, whose last root is at `k`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse_four(p: Prime, roots: &[u64], k: usize, block: &mut [u64]) {
    let w1 = p.factor(splat(roots[k]));
    let w2 = p.factor(splat(roots[2 * k + 1]));
    let w3 = p.factor(splat(roots[2 * k]));
    for [a0, a1, a2, a3] in quarters(block) {
        let (b0, b1) = inverse_butterfly(p, load(a0), load(a1), w2);
        let (b2, b3) = inverse_butterfly(p, load(a2), load(a3), w3);
        let (c0, c2) = inverse_butterfly(p, b0, b2, w1);
        let (c1, c3) = inverse_butterfly(p, b1, b3, w1);
        store(a0, c0);
        store(a1, c1);
        store(a2, c2);
        store(a3, c3);
    }
}

/// The last two stages of the whole.
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse_last_four(p: Prime, roots: &[u64], last: [Factor; 2], a: &mut [u64]) {
    let (w2, w3) = (p.factor(splat(roots[3])), p.factor(splat(roots[2])));
    for [a0, a1, a2, a3] in quarters(a) {
        let (b0, b1) = inverse_butterfly(p, load(a0), load(a1), w2);
        let (b2, b3) = inverse_butterfly(p, load(a2), load(a3), w3);
        let (c0, c2) = inverse_last_butterfly(p, b0, b2, last);
        let (c1, c3) = inverse_last_butterfly(p, b1, b3, last);
        store(a0, c0);
        store(a1, c1);
        store(a2, c2);
        store(a3, c3);
    }
}

/// The last stage of the whole.
#[target_feature(enable = "avx512f,avx512ifma")]
fn inverse_last_pair(p: Prime, last: [Factor; 2], a: &mut [u64]) {
    let (low, high) = a.split_at_mut(a.len() / 2);
    for (x, y) in groups_mut(low).iter_mut().zip(groups_mut(high)) {
        let (u, v) = inverse_last_butterfly(p, load(x), load(y), last);
        store(x, u);
        store(y, v);
    }
}
