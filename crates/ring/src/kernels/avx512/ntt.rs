//! The negacyclic number-theoretic transform.
//!
//! Two stages per pass over memory. While a block exceeds the nearest cache, passes go over everything; below that, all
//! passes of one block come together. The last four stages of sixteen words stay in two registers.

use super::lanes::*;
use crate::{automorphism::LANES, tables::NttTable};
use std::arch::x86_64::*;

/// The smallest transform handled here.
pub(super) const MIN_WORDS: usize = 32;
/// Words that fit the nearest cache, with room for roots of unity.
const CACHED: usize = 4096;
/// Words that the last stages hold in registers.
const LAST: usize = 2 * LANES;
/// Blocks of that size handled side by side: one alone is a chain of dependent steps too long to overlap with the next.
const TOGETHER: usize = 8;

/// A group of eight words.
type Group = [u64; LANES];

/// Cooley-Tukey; words below `4q` between stages.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn forward(table: NttTable<'_>, a: &mut [u64]) {
    let p = Prime::new(table.modulus);
    let cached = forward_far(p, table.roots, a);
    for (block, k) in a
        .chunks_exact_mut(cached)
        .zip(blocks_from(table.roots, cached))
    {
        forward_near(p, table.roots, k, block);
        forward_last(p, table.roots, k * (cached / LAST), block, |_, words| {
            reduce(reduce(words, p.two_q), p.q)
        });
    }
}

/// [`forward`] of `out`, then `(a - out)·factor` while its words are at hand.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn forward_sub_scale(table: NttTable<'_>, out: &mut [u64], a: &[u64], factor: u64) {
    let p = Prime::new(table.modulus);
    let factor = p.factor(splat(factor));
    let cached = forward_far(p, table.roots, out);
    let chunks = out.chunks_exact_mut(cached).zip(a.chunks_exact(cached));
    for ((block, a), k) in chunks.zip(blocks_from(table.roots, cached)) {
        forward_near(p, table.roots, k, block);
        let a = groups(a);
        forward_last(
            p,
            table.roots,
            k * (cached / LAST),
            block,
            |group, words| {
                // Between 0 and 3q, and so below 2^52.
                let difference = sub(add(load(&a[group]), p.two_q), reduce(words, p.two_q));
                p.mul(difference, factor)
            },
        );
    }
}

/// The places of the roots of all blocks of `size` words.
fn blocks_from(roots: &[u64], size: usize) -> std::ops::RangeFrom<usize> {
    roots.len() / size..
}

/// The stages whose blocks exceed the nearest cache. Returns the size of the blocks that are left.
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward_far(p: Prime, roots: &[u64], a: &mut [u64]) -> usize {
    let mut size = a.len();
    if (size / LAST).trailing_zeros() % 2 == 1 {
        forward_pair(p, roots[1], a);
        size /= 2;
    }
    while size > CACHED {
        for (block, k) in a.chunks_exact_mut(size).zip(blocks_from(roots, size)) {
            forward_four(p, roots, k, block);
        }
        size /= 4;
    }
    size
}

/// The stages of one block in the nearest cache, but the last four.
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward_near(p: Prime, roots: &[u64], mut k: usize, block: &mut [u64]) {
    let mut size = block.len();
    while size > LAST {
        for (block, k) in block.chunks_exact_mut(size).zip(k..) {
            forward_four(p, roots, k, block);
        }
        (k, size) = (4 * k, size / 4);
    }
}

/// `(x + y·w, x - y·w)` below `4q`, from the same.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward_butterfly(p: Prime, x: Words, y: Words, w: Factor) -> (Words, Words) {
    let x = reduce(x, p.two_q);
    let t = p.mul_lazy(y, w);
    (add(x, t), sub(add(x, p.two_q), t))
}

/// One stage of one block.
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward_pair(p: Prime, root: u64, block: &mut [u64]) {
    let w = p.factor(splat(root));
    let (low, high) = block.split_at_mut(block.len() / 2);
    for (x, y) in groups_mut(low).iter_mut().zip(groups_mut(high)) {
        let (u, v) = forward_butterfly(p, load(x), load(y), w);
        store(x, u);
        store(y, v);
    }
}

/// Two stages of one block, whose first root is at `k`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward_four(p: Prime, roots: &[u64], k: usize, block: &mut [u64]) {
    let w1 = p.factor(splat(roots[k]));
    let w2 = p.factor(splat(roots[2 * k]));
    let w3 = p.factor(splat(roots[2 * k + 1]));
    for [a0, a1, a2, a3] in quarters(block) {
        let (b0, b2) = forward_butterfly(p, load(a0), load(a2), w1);
        let (b1, b3) = forward_butterfly(p, load(a1), load(a3), w1);
        let (c0, c1) = forward_butterfly(p, b0, b1, w2);
        let (c2, c3) = forward_butterfly(p, b2, b3, w3);
        store(a0, c0);
        store(a1, c1);
        store(a2, c2);
        store(a3, c3);
    }
}

/// The groups at equal places of the quarters of a block.
#[inline]
fn quarters(block: &mut [u64]) -> impl Iterator<Item = [&mut Group; 4]> {
    let quarter = block.len() / 4;
    let (low, high) = block.split_at_mut(2 * quarter);
    let (a0, a1) = low.split_at_mut(quarter);
    let (a2, a3) = high.split_at_mut(quarter);
    let low = groups_mut(a0).iter_mut().zip(groups_mut(a1));
    let high = groups_mut(a2).iter_mut().zip(groups_mut(a3));
    low.zip(high).map(|((a0, a1), (a2, a3))| [a0, a1, a2, a3])
}

/// The roots of the four stages within blocks of sixteen words.
///
/// A stage has one, two, four or eight roots per block; in a register each root stands in the lanes of its butterflies.
#[derive(Copy, Clone)]
struct LastRoots<'a> {
    by_one: &'a [u64],
    by_two: &'a [[u64; 2]],
    by_four: &'a [[u64; 4]],
    by_eight: &'a [Group],
}

impl<'a> LastRoots<'a> {
    /// Of `blocks` blocks, the first of which has its first root at `k`.
    #[inline]
    fn new(roots: &'a [u64], k: usize, blocks: usize) -> Self {
        let end = k + blocks;
        Self {
            by_one: &roots[k..end],
            by_two: roots[2 * k..2 * end].as_chunks().0,
            by_four: roots[4 * k..4 * end].as_chunks().0,
            by_eight: roots[8 * k..8 * end].as_chunks().0,
        }
    }
}

/// The last four stages of blocks of sixteen words, the first of which has its root at `k`. Words below `4q` go through
/// `finish`, with the place of their group.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward_last(
    p: Prime,
    roots: &[u64],
    k: usize,
    a: &mut [u64],
    finish: impl Fn(usize, Words) -> Words,
) {
    let roots = LastRoots::new(roots, k, a.len() / LAST);
    let (many, few) = blocks_mut(a).as_chunks_mut::<TOGETHER>();
    let done = TOGETHER * many.len();
    for (i, blocks) in many.iter_mut().enumerate() {
        forward_last_blocks(p, roots, TOGETHER * i, blocks, &finish);
    }
    for (i, block) in few.iter_mut().enumerate() {
        forward_last_blocks(p, roots, done + i, std::array::from_mut(block), &finish);
    }
}

/// Before each stage but the first, interleaving two registers brings partners to equal lanes of different registers and
/// butterflies into the order of their roots.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn forward_last_blocks<const B: usize>(
    p: Prime,
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
        let w = p.factor(splat(roots.by_one[first + b]));
        pairs[b] = interleave(forward_butterfly(
            p,
            load(&blocks[b][0]),
            load(&blocks[b][1]),
            w,
        ));
    }
    for b in 0..B {
        let w = p.factor(splat_two(&roots.by_two[first + b]));
        pairs[b] = interleave(forward_butterfly(p, pairs[b].0, pairs[b].1, w));
    }
    for b in 0..B {
        let w = p.factor(splat_four(&roots.by_four[first + b]));
        pairs[b] = interleave(forward_butterfly(p, pairs[b].0, pairs[b].1, w));
    }
    for b in 0..B {
        let w = p.factor(load(&roots.by_eight[first + b]));
        pairs[b] = interleave(forward_butterfly(p, pairs[b].0, pairs[b].1, w));
    }
    for b in 0..B {
        let group = 2 * (first + b);
        store(&mut blocks[b][0], finish(group, pairs[b].0));
        store(&mut blocks[b][1], finish(group + 1, pairs[b].1));
    }
}

/// `a` as blocks of sixteen words in two registers.
#[inline]
fn blocks_mut(a: &mut [u64]) -> &mut [[Group; 2]] {
    groups_mut(a).as_chunks_mut().0
}

/// Gentleman-Sande; words below `2q` between stages. Stages read the forward roots backwards, see [`NttTable`].
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn inverse(table: NttTable<'_>, a: &mut [u64]) {
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

/// Two words, four times.
#[inline]
#[target_feature(enable = "avx512f")]
fn splat_two(words: &[u64; 2]) -> Words {
    // SAFETY: reads the 16 bytes of the array; the instruction takes any alignment.
    _mm512_broadcast_i32x4(unsafe { _mm_loadu_si128(words.as_ptr().cast()) })
}

/// Four words, twice.
#[inline]
#[target_feature(enable = "avx512f")]
fn splat_four(words: &[u64; 4]) -> Words {
    // SAFETY: reads the 32 bytes of the array; the instruction takes any alignment.
    _mm512_broadcast_i64x4(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
}
