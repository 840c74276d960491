// Exact arithmetic modulo primes q with 2^32 < q < 2^50.
//
// Two kinds. Transforms and slot-wise products use FP64 fused multiply-adds, of which a data-centre GPU does one per
// lane and cycle. Sums of products use 64-bit integers and one Montgomery reduction with R = 2^64.
//
// FP64: a residue is an integer-valued double x, usually not canonical; B = |x|/q is its bound. Doubles below 2^53 are
// exact integers, so sums are exact up to B = 8.
#pragma once

#include "types.cuh"

// Adding and subtracting 1.5·2^52 rounds a double of magnitude at most 2^51 to the nearest integer.
#define ROUNDER 6755399441055744.0
#define ROUNDER_BITS 0x4338000000000000ull
#define TWO_52 4503599627370496.0
#define TWO_52_BITS 0x4330000000000000ull

// The integer x < 2^52 as a double: its bits are the mantissa of 2^52 + x.
DEVICE double to_double(uint64_t x) {
    return __dsub_rn(__longlong_as_double((long long)(x | TWO_52_BITS)), TWO_52);
}

// A signed integer of 32 bits: its bits with the highest one turned over are those of x + 2^31.
DEVICE double signed_to_double(int32_t x) {
    const uint64_t bits = (uint32_t)x ^ 0x80000000u;
    return __dsub_rn(__longlong_as_double((long long)(bits | TWO_52_BITS)), TWO_52 + 2147483648.0);
}

// to_double() of a canonical residue, with B <= 1/2 and a little: q/2 is compared with by its high word alone.
DEVICE double to_centred(uint64_t x, const Prime& m) {
    const bool above = (uint32_t)(x >> 32) > (uint32_t)(m.word >> 33);
    return __dsub_rn(__longlong_as_double((long long)(x | TWO_52_BITS)), above ? TWO_52 + m.q : TWO_52);
}

// An integer-valued double below 2^63 modulo 2^64.
DEVICE uint64_t as_word(double x) { return (uint64_t)(int64_t)x; }

// x mod q with B <= 1/2 and a rest below B·2^-51, for |x| < 2^53 and B <= 2^8: that is the quotient's error, and x - c·q is an
// integer below 2^53, hence exact.
DEVICE double reduce(double x, const Prime& m) {
    double c = __dsub_rn(__fma_rn(x, m.reciprocal, ROUNDER), ROUNDER);
    double out = __fma_rn(-c, m.q, x);
    CHECK(as_word(x) - as_word(c) * m.word == as_word(out) && fabs(x) <= 256 * m.q && fabs(x) < 2 * TWO_52 && fabs(out) <= m.q / 2 + 8);
    return out;
}

// a·w mod q, exactly, with B <= 1/2 + |a·w/q|·2^-52, for |a·w/q| <= 2^51.
//
// h is a·w rounded, so a·w = h + l with l exact (a fused multiply-add computes the rounding error of a product). h and the
// reciprocal are each right to 2^-53, so c is within |a·w/q|·2^-52 + 1/2 of a·w/q: the bound. h - c·q = (a·w - c·q) - l is
// an integer; |a·w - c·q| < q < 2^50 and |l| <= |a·w|·2^-53 < 2^50, so it is below 2^53 and the second multiply-add exact,
// and so is the last sum.
//
// With |w| <= q/2 the bound is 1/2 + B(a)/8; with two canonical residues it is 3/4.
DEVICE double mul(double a, double w, const Prime& m) {
    double h = __dmul_rn(a, w);
    double c = __dsub_rn(__fma_rn(h, m.reciprocal, ROUNDER), ROUNDER);
    double l = __fma_rn(a, w, -h);
    double out = __dadd_rn(__fma_rn(-c, m.q, h), l);
    CHECK(as_word(a) * as_word(w) - as_word(c) * m.word == as_word(out) && fabs(out) <= m.q);
    return out;
}

// From B < 1 to the canonical residue: the low bits of ROUNDER + x are x in two's complement, and the rest is integers.
DEVICE uint64_t canonical(double x, const Prime& m) {
    uint64_t residue = (uint64_t)__double_as_longlong(__dadd_rn(x, ROUNDER)) - ROUNDER_BITS;
    CHECK(fabs(x) < m.q);
    return residue + ((uint64_t)((int64_t)residue >> 63) & m.word);
}

// a·w for canonical residues, the second as a double.
DEVICE uint64_t mul_word(uint64_t a, double w, const Prime& m) {
    return canonical(mul(to_double(a), w, m), m);
}

// a + b, a - b for canonical residues.
DEVICE uint64_t add_word(uint64_t a, uint64_t b, const Prime& m) {
    uint64_t sum = a + b;
    return sum >= m.word ? sum - m.word : sum;
}

DEVICE uint64_t sub_word(uint64_t a, uint64_t b, const Prime& m) {
    return a >= b ? a - b : a + m.word - b;
}

typedef unsigned __int128 Wide;

// x·2^-64 mod q, canonical, for x < q·2^64: the low words of x and of (x·q^-1 mod 2^64)·q are equal, so their difference
// is that of the high words, in (-q, q).
DEVICE uint64_t montgomery_reduce(Wide x, const Prime& m) {
    uint64_t high = (uint64_t)(x >> 64);
    uint64_t subtrahend = __umul64hi((uint64_t)x * m.inverse, m.word);
    return high >= subtrahend ? high - subtrahend : high + m.word - subtrahend;
}

// x mod q for x < q·2^64.
DEVICE uint64_t reduce_wide(Wide x, const Prime& m) {
    return montgomery_reduce((Wide)montgomery_reduce(x, m) * m.r2, m);
}

// Position of the set bit with n others below it.
DEVICE uint32_t nth_bit(uint64_t mask, uint32_t n) {
    uint32_t at = 0;
    UNROLL
    for (int width = 32; width > 0; width /= 2) {
        uint64_t low = mask & ((1ull << width) - 1);
        uint32_t count = (uint32_t)__popcll((long long)low);
        if (n >= count) {
            n -= count;
            mask >>= width;
            at += width;
        } else {
            mask = low;
        }
    }
    return at;
}

// Set bits below position i.
DEVICE uint32_t rank(uint64_t mask, uint32_t i) {
    return (uint32_t)__popcll((long long)(mask & ((1ull << i) - 1)));
}

// The words of limb i. Contract: the basis has it.
DEVICE uint64_t* limb(const Operand& a, uint32_t i, uint32_t log_n) {
    return a.words + ((size_t)rank(a.basis, i) << log_n);
}

// Where word k of an automorphism's image comes from, in evaluation form: X -> X^g takes exponent e(k) = 2·bitrev(k) + 1 to
// g·e(k) modulo 2N.
DEVICE uint32_t source_of(uint32_t k, uint32_t galois, uint32_t log_n) {
    uint32_t shift = 32 - log_n;
    uint32_t exponent = 2 * (__brev(k) >> shift) + 1;
    uint32_t source = (exponent * galois) & ((2u << log_n) - 1);
    return __brev(source >> 1) >> shift;
}
