//! The negacyclic number-theoretic transform.
//!
//! Three stages per pass over memory. While a block exceeds the nearest cache, passes go over everything; below that, all
//! passes of one block come together. The last four stages of sixteen words stay in two registers.
//!
//! Primes of at most [`LAZY_BITS`] bits leave so much room below 2^52 that sums need no corrections between stages; larger ones take one
//! per butterfly. The functions for both are compiled from one source, with `LAZY` for the former.

mod forward;
mod inverse;

pub(super) use forward::{forward, forward_mul, forward_narrow, forward_sub_scale};
pub(super) use inverse::{inverse, inverse_into};

use super::lanes::*;
use crate::{Modulus, automorphism::LANES};
use std::arch::x86_64::*;

/// The smallest transform handled here.
pub(super) const MIN_WORDS: usize = 32;
/// Words of a block that fits the nearest cache together with its roots of unity.
const CACHED: usize = 1024;
/// Words that the last stages hold in registers.
const LAST: usize = 2 * LANES;
/// Stages of these.
const LAST_STAGES: u32 = LAST.ilog2();
/// Blocks of that size handled side by side: one alone is a chain of dependent steps too long to overlap with the next.
const TOGETHER: usize = 8;
/// Groups in a part from which on a block exceeds the nearest cache.
const FAR: usize = CACHED / LANES;
/// Groups of a part that are asked for ahead of their use, where they come from a farther cache or from memory.
const NEXT: usize = 8;
/// The largest primes whose multiples up to 128 are below 2^52.
const LAZY_BITS: u32 = 45;

/// A group of eight words.
type Group = [u64; LANES];

/// Whether a modulus leaves room for sums without corrections.
fn is_lazy(q: Modulus) -> bool {
    q.bits() <= LAZY_BITS
}

/// Reduction of any word below 2^52 by an estimate of its quotient.
#[derive(Clone, Copy)]
struct Quotient {
    q: Words,
    /// `floor(2^52 / q)`.
    reciprocal: Words,
}

impl Quotient {
    #[inline]
    #[target_feature(enable = "avx512f")]
    fn new(q: Modulus) -> Self {
        Self {
            q: splat(q.value()),
            reciprocal: splat((1 << crate::modulus::WORD) / q.value()),
        }
    }

    /// Below `2q`: the quotient is right or one too small.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn reduce(self, x: Words) -> Words {
        let zero = _mm512_setzero_si512();
        let quotient = madd_high(zero, x, self.reciprocal);
        sub(x, madd_low(zero, quotient, self.q))
    }
}

/// The factors of the stages of one pass, in the order of a heap: one of the first stage at 1, two of the next at 2 and 3. The root of the
/// first stage is at `k`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn factors<const R: usize, const BACKWARDS: bool>(
    p: Prime,
    roots: &[u64],
    k: usize,
) -> [Factor; R] {
    let mut out = [p.factor(splat(roots[k])); R];
    for node in 2..R {
        let stage = node.ilog2();
        let (first, place) = (k << stage, node - (1 << stage));
        let place = if BACKWARDS {
            (1 << stage) - 1 - place
        } else {
            place
        };
        out[node] = p.factor(splat(roots[first + place]));
    }
    out
}

/// A block's equal parts.
#[inline]
fn parts<const R: usize>(block: &mut [u64]) -> [&mut [Group]; R] {
    let part = block.len() / R;
    let mut parts = block.chunks_exact_mut(part);
    let parts: [&mut [Group]; R] =
        std::array::from_fn(|_| groups_mut(parts.next().expect("a block has R parts")));
    // What the compiler needs to leave out the checks of indices.
    assert!(parts.iter().all(|part| part.len() == parts[0].len()));
    parts
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

/// The places of the roots of all blocks of `size` words.
fn blocks_from(roots: &[u64], size: usize) -> std::ops::RangeFrom<usize> {
    roots.len() / size..
}

/// Keeps the order of what is computed before and after for several blocks: the compiler would finish one block after the other, and the
/// processor does not look far enough ahead to overlap such chains.
#[inline]
#[target_feature(enable = "avx512f")]
fn wall<const B: usize>(pairs: &mut [(Words, Words); B]) {
    for (x, y) in pairs {
        // SAFETY: no instructions; the registers stay as they are.
        unsafe {
            std::arch::asm!(
                "/* {0} {1} */",
                inout(zmm_reg) * x,
                inout(zmm_reg) * y,
                options(nomem, nostack, preserves_flags)
            );
        }
    }
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
