//! Eight words in a register, and modular arithmetic on them.
//!
//! The multiplier sees the low 52 bits of its factors and adds the low or the high 52 bits of the product to 64-bit
//! accumulators.

use crate::{
    Modulus,
    automorphism::LANES,
    modulus::{WORD, WORD_MASK},
};
use std::arch::x86_64::*;

/// Eight words.
pub(super) type Words = __m512i;

/// `words` as groups of eight. Contract of all kernels: nothing is left over.
#[inline]
pub(super) fn groups(words: &[u64]) -> &[[u64; LANES]] {
    words.as_chunks().0
}

/// `words` as groups of eight, to write.
#[inline]
pub(super) fn groups_mut(words: &mut [u64]) -> &mut [[u64; LANES]] {
    words.as_chunks_mut().0
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load(words: &[u64; LANES]) -> Words {
    // SAFETY: reads the 64 bytes of the array; the instruction takes any alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_signed(words: &[i64; LANES]) -> Words {
    // SAFETY: reads the 64 bytes of the array; the instruction takes any alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn load_narrow(words: &[i32; LANES]) -> Words {
    // SAFETY: reads the 32 bytes of the array; the instruction takes any alignment.
    _mm512_cvtepi32_epi64(unsafe { _mm256_loadu_si256(words.as_ptr().cast()) })
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn store(to: &mut [u64; LANES], words: Words) {
    // SAFETY: writes the 64 bytes of the array; the instruction takes any alignment.
    unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), words) }
}

/// Groups that are asked for ahead of their use, where the order of access hides them from the processor.
pub(super) const AHEAD: usize = 32;

/// Asks for a group that will be read soon.
#[inline]
pub(super) fn prefetch(words: &[u64; LANES]) {
    // SAFETY: a hint about memory that is ours; SSE is part of x86-64.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(words.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn splat(word: u64) -> Words {
    _mm512_set1_epi64(word as i64)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn add(a: Words, b: Words) -> Words {
    _mm512_add_epi64(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn sub(a: Words, b: Words) -> Words {
    _mm512_sub_epi64(a, b)
}

/// `a - bound` where that is not negative, else `a`.
#[inline]
#[target_feature(enable = "avx512f")]
pub(super) fn reduce(a: Words, bound: Words) -> Words {
    _mm512_min_epu64(a, sub(a, bound))
}

/// `acc` plus the low 52 bits of `a·b`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn madd_low(acc: Words, a: Words, b: Words) -> Words {
    _mm512_madd52lo_epu64(acc, a, b)
}

/// `acc` plus the high 52 bits of `a·b`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn madd_high(acc: Words, a: Words, b: Words) -> Words {
    _mm512_madd52hi_epu64(acc, a, b)
}

/// A modulus in all lanes.
#[derive(Copy, Clone)]
pub(super) struct Prime {
    pub(super) q: Words,
    pub(super) two_q: Words,
    q_inverse: Words,
}

/// A factor `w` in Montgomery form, and `w·q^-1 mod 2^52`, which saves a step of each reduction.
#[derive(Copy, Clone)]
pub(super) struct Factor {
    w: Words,
    w_q_inverse: Words,
}

impl Prime {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn new(q: Modulus) -> Self {
        Self {
            q: splat(q.value()),
            two_q: splat(2 * q.value()),
            q_inverse: splat(q.q_inverse()),
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn factor(self, w: Words) -> Factor {
        Factor {
            w,
            w_q_inverse: madd_low(_mm512_setzero_si512(), w, self.q_inverse),
        }
    }

    /// `a·w·2^-52` in `(0, 2q)`, for `a < 2^52`.
    ///
    /// With `m = a·w·q^-1 mod 2^52`, the low words of `a·w` and `m·q` are equal, and the high words differ by the result.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn mul_lazy(self, a: Words, factor: Factor) -> Words {
        let m = madd_low(_mm512_setzero_si512(), a, factor.w_q_inverse);
        sub(
            madd_high(self.q, a, factor.w),
            madd_high(_mm512_setzero_si512(), m, self.q),
        )
    }

    /// `a·w·2^-52` in `(-q, q)`, for `a < 2^52`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn mul_signed(self, a: Words, factor: Factor) -> Words {
        let zero = _mm512_setzero_si512();
        let m = madd_low(zero, a, factor.w_q_inverse);
        sub(madd_high(zero, a, factor.w), madd_high(zero, m, self.q))
    }

    /// `a·w·2^-52` in `[0, q)`, for `a < 2^52`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn mul(self, a: Words, factor: Factor) -> Words {
        reduce(self.mul_lazy(a, factor), self.q)
    }

    /// `(low + 2^52·high)·2^-52` in `(0, q + high + low·2^-52]`, for sums of low and high words of products.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn reduce_wide(self, low: Words, high: Words) -> Words {
        let m = madd_low(_mm512_setzero_si512(), low, self.q_inverse);
        let carried = add(high, _mm512_srli_epi64::<WORD>(low));
        sub(
            add(carried, self.q),
            madd_high(_mm512_setzero_si512(), m, self.q),
        )
    }
}

/// Constants for products of two variable factors, by Barrett reduction.
///
/// For `n`-bit `q`, `c = floor(a·b / 2^(2n-52))` and `mu = floor(2^(n+51) / q)` both fit 52 bits, and
/// `floor(c·mu / 2^(103-n))` is the quotient or one less: the first floor costs less than 2^(n-51), the second at most 2^(n-51).
#[derive(Copy, Clone)]
pub(super) struct Barrett {
    q: Words,
    mu: Words,
    mask: Words,
    align: __m128i,
    shift: __m128i,
}

impl Barrett {
    #[inline]
    #[target_feature(enable = "avx512f")]
    pub(super) fn new(q: Modulus) -> Self {
        let bits = q.bits();
        Self {
            q: splat(q.value()),
            mu: splat(((1u128 << (bits + 51)) / q.value() as u128) as u64),
            mask: splat(WORD_MASK),
            align: _mm_cvtsi64_si128((WORD - bits) as i64),
            shift: _mm_cvtsi64_si128((WORD - 1 - bits) as i64),
        }
    }

    /// `a·b` in `[0, q)`, for `a` and `b` in `[0, q)`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn mul(self, a: Words, b: Words) -> Words {
        let zero = _mm512_setzero_si512();
        let c = madd_high(
            zero,
            _mm512_sll_epi64(a, self.align),
            _mm512_sll_epi64(b, self.align),
        );
        let quotient = _mm512_srl_epi64(madd_high(zero, c, self.mu), self.shift);
        let remainder = sub(madd_low(zero, a, b), madd_low(zero, quotient, self.q));
        reduce(_mm512_and_si512(remainder, self.mask), self.q)
    }
}
