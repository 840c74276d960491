//! The negacyclic number-theoretic transform.
//!
//! Two stages per pass over memory. While a block exceeds the nearest cache, passes go over everything; below that, all
//! passes of one block come together. The last four stages of sixteen words stay in two registers.

mod forward;
mod inverse;

pub(super) use forward::{forward, forward_sub_scale};
pub(super) use inverse::inverse;

use super::lanes::*;
use crate::automorphism::LANES;
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

/// `a` as blocks of sixteen words in two registers.
#[inline]
fn blocks_mut(a: &mut [u64]) -> &mut [[Group; 2]] {
    groups_mut(a).as_chunks_mut().0
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
