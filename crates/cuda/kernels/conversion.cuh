// Centred fast base conversion.
//
// With y_i = x_i·(Q/q_i)^-1 mod q_i: out_j = sum of y_i·(Q/q_i) - v·Q mod p_j, where v is the rounded sum of y_i/q_i in fixed
// point with 32 fractional bits, as crates/ring/src/conversion.rs defines it.
//
// A thread owns a coefficient: it computes all y once and keeps them, split at bit 25, in its own column of shared memory.
// Products of halves are below 2^50, so 64-bit sums of them hold all terms and one reduction per target is enough.
#pragma once

#include "arithmetic.cuh"

#define CONVERSION_THREADS 64
// Targets of one block, and how many of them share a reading of the column.
#define CONVERSION_TARGETS 8
#define CONVERSION_TOGETHER 4

#define SPLIT 25
#define SPLIT_MASK ((1u << SPLIT) - 1)

DEVICE SplitFactor split(uint64_t y) {
    return {(uint32_t)y & SPLIT_MASK, (uint32_t)(y >> SPLIT)};
}

// Sums of products of split numbers.
struct SplitSum {
    uint64_t low, middle, high;

    DEVICE void add(SplitFactor a, SplitFactor b) {
        low += (uint64_t)a.low * b.low;
        middle += (uint64_t)a.low * b.high;
        middle += (uint64_t)a.high * b.low;
        high += (uint64_t)a.high * b.high;
    }

    DEVICE Wide value() const {
        return (Wide)low + ((Wide)middle << SPLIT) + ((Wide)high << (2 * SPLIT));
    }
};

// blockIdx = (coefficients, targets, job).
KERNEL(convert, ConversionParams, CONVERSION_THREADS, 16) {
    SHARED(SplitFactor, columns);
    const ConversionJob& job = p.jobs[blockIdx.z];
    const uint32_t targets = (uint32_t)__popcll((long long)job.limbs);
    const uint32_t first = blockIdx.y * CONVERSION_TARGETS;
    const uint32_t k = blockIdx.x * blockDim.x + threadIdx.x;
    if (first >= targets || k >= 1u << p.log_n) return;
    SplitFactor* column = columns + threadIdx.x;

    uint32_t sources = 0;
    uint64_t quotient = 0;
    for (uint64_t rest = job.from; rest; rest &= rest - 1, sources++) {
        uint32_t i = (uint32_t)__ffsll((long long)rest) - 1;
        ConversionSource constants = job.sources[sources];
        uint64_t y = limb(job.source, i, p.log_n)[k];
        if (!p.ready) y = mul_word(y, constants.inverse, p.primes[i]);
        column[sources * CONVERSION_THREADS] = split(y);
        Wide fraction = (Wide)y * constants.weight;
        quotient += (uint64_t)(fraction >> 52);
    }
    column[sources * CONVERSION_THREADS] = split((quotient + (1ull << 31)) >> 32);

    const uint32_t end = min(first + CONVERSION_TARGETS, targets);
    for (uint32_t group = first; group < end; group += CONVERSION_TOGETHER) {
        uint32_t primes[CONVERSION_TOGETHER];
        const SplitFactor* factors[CONVERSION_TOGETHER];
        SplitSum sums[CONVERSION_TOGETHER];
        UNROLL
        for (uint32_t j = 0; j < CONVERSION_TOGETHER; j++) {
            primes[j] = nth_bit(job.limbs, min(group + j, targets - 1));
            factors[j] = job.factors + primes[j] * (sources + 1);
            sums[j] = {0, 0, 0};
        }
        for (uint32_t i = 0; i <= sources; i++) {
            SplitFactor y = column[i * CONVERSION_THREADS];
            UNROLL
            for (uint32_t j = 0; j < CONVERSION_TOGETHER; j++) sums[j].add(y, factors[j][i]);
        }
        UNROLL
        for (uint32_t j = 0; j < CONVERSION_TOGETHER; j++) {
            if (group + j < end) {
                uint64_t residue = montgomery_reduce(sums[j].value(), p.primes[primes[j]]);
                limb(job.target, primes[j], p.log_n)[k] = residue;
            }
        }
    }
}
