//! Coefficients to evaluations.

use super::*;
use crate::tables::NttTable;

/// Cooley-Tukey; words below `4q` between stages.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(in super::super) fn forward(table: NttTable<'_>, a: &mut [u64]) {
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
pub(in super::super) fn forward_sub_scale(
    table: NttTable<'_>,
    out: &mut [u64],
    a: &[u64],
    factor: u64,
) {
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
