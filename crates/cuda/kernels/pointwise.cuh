// Word by word operations. blockIdx = (words, limb); a thread does one word.
#pragma once

#include "arithmetic.cuh"

#define POINTWISE_THREADS 256

// The word that a thread works on.
struct Place {
    uint32_t prime;
    uint32_t k;
    bool inside;
};

DEVICE Place place(uint64_t limbs, uint32_t log_n) {
    uint32_t k = blockIdx.x * blockDim.x + threadIdx.x;
    return {nth_bit(limbs, blockIdx.y), k, k < 1u << log_n};
}

#define POINTWISE(name)                          \
    KERNEL(name, PointwiseParams, POINTWISE_THREADS) { \
        const Place at = place(p.limbs, p.log_n); \
        if (!at.inside) return;                  \
        const Prime& m = p.primes[at.prime];     \
        const uint32_t k = at.k;                 \
        uint64_t& out = limb(p.out, at.prime, p.log_n)[k];

#define OPERAND(x) limb(p.x, at.prime, p.log_n)[k]

POINTWISE(add)
    out = add_word(OPERAND(a), OPERAND(b), m);
}

POINTWISE(sub)
    out = sub_word(OPERAND(a), OPERAND(b), m);
}

POINTWISE(neg)
    out = sub_word(0, OPERAND(a), m);
}

POINTWISE(mul_into)
    out = mul_word(OPERAND(a), to_double(OPERAND(b)), m);
}

POINTWISE(mul_add)
    out = add_word(out, mul_word(OPERAND(a), to_double(OPERAND(b)), m), m);
}

// (a - b)·factor: how a division ends in coefficient form. The difference has B < 1, the factor is at most q/2.
POINTWISE(sub_scale)
    out = canonical(mul(__dsub_rn(to_double(OPERAND(a)), to_double(OPERAND(b))), p.factors[at.prime], m), m);
}

POINTWISE(automorphism)
    (void)m;
    out = limb(p.a, at.prime, p.log_n)[source_of(k, p.argument, p.log_n)];
}

POINTWISE(add_automorphism)
    out = add_word(out, limb(p.a, at.prime, p.log_n)[source_of(k, p.argument, p.log_n)], m);
}

// In coefficient form, with the inverse Galois element: coefficient k comes from k/g modulo 2N, and X^N = -1.
POINTWISE(automorphism_coefficients)
    uint32_t n = 1u << p.log_n;
    uint32_t source = (k * p.argument) & (2 * n - 1);
    uint64_t word = limb(p.a, at.prime, p.log_n)[source & (n - 1)];
    out = source < n ? word : sub_word(0, word, m);
}

// Every 2^argument-th word.
POINTWISE(compress)
    (void)m;
    out = limb(p.a, at.prime, p.log_n + p.argument)[k << p.argument];
}

// The residues of signed integers, which a's words are, of all limbs alike: coefficients of the multiples of 2^argument.
POINTWISE(reduce_signed)
    if (k & ((1u << p.argument) - 1)) {
        out = 0;
        return;
    }
    int64_t x = (int64_t)p.a.words[k >> p.argument];
    uint64_t magnitude = x < 0 ? 0 - (uint64_t)x : (uint64_t)x;
    uint64_t residue = reduce_wide(magnitude, m);
    out = x < 0 ? sub_word(0, residue, m) : residue;
}

// The same for integers of 32 bits, two of which each of a's words has: they lie below every prime.
POINTWISE(reduce_narrow)
    if (k & ((1u << p.argument) - 1)) {
        out = 0;
        return;
    }
    const uint32_t source = k >> p.argument;
    const int32_t x = (int32_t)(uint32_t)(p.a.words[source / 2] >> 32 * (source & 1));
    out = x < 0 ? m.word - (uint64_t)(-(int64_t)x) : (uint64_t)x;
}

#undef POINTWISE
#undef OPERAND

// blockIdx = (words, limb, job). Limbs that the source lacks become zero.
KERNEL(copy, CopyParams, POINTWISE_THREADS) {
    const CopyJob& job = p.jobs[blockIdx.z];
    if (blockIdx.y >= (uint32_t)__popcll((long long)job.limbs)) return;
    const uint32_t log_n = (uint32_t)p.log_n;
    const Place at = place(job.limbs, log_n);
    if (!at.inside) return;
    const bool there = job.source.basis >> at.prime & 1;
    limb(job.target, at.prime, log_n)[at.k] = there ? limb(job.source, at.prime, log_n)[at.k] : 0;
}

// Plain words, wherever they are from. A thread takes every gridDim·blockDim-th.
KERNEL(copy_words, CopyWordsParams, POINTWISE_THREADS) {
    const uint64_t step = (uint64_t)gridDim.x * blockDim.x;
    for (uint64_t k = (uint64_t)blockIdx.x * blockDim.x + threadIdx.x; k < p.count; k += step) p.target[k] = p.source[k];
}

// A factor or term for each half of each limb; a's limbs number the values.
#define SCALAR(name)                             \
    KERNEL(name, ScalarParams, POINTWISE_THREADS) { \
        const Place at = place(p.limbs, p.log_n); \
        if (!at.inside) return;                  \
        const Prime& m = p.primes[at.prime];     \
        uint64_t& out = limb(p.out, at.prime, p.log_n)[at.k]; \
        const uint64_t a = limb(p.a, at.prime, p.log_n)[at.k]; \
        const uint64_t value = p.values[rank(p.a.basis, at.prime)][at.k >> (p.log_n - 1)];

SCALAR(scale)
    out = mul_word(a, to_double(value), m);
}

SCALAR(shift)
    out = add_word(a, value, m);
}

SCALAR(add_scaled)
    out = add_word(out, mul_word(a, to_double(value), m), m);
}

#undef SCALAR
