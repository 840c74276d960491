// Sums of products, reduced once: at most 16 products of canonical residues are below q·2^64.
#pragma once

#include "pointwise.cuh"

// blockIdx = (words, limb). out_c = sum of digits·keys_c, or out_c plus it, with X -> X^galois applied to the digits; and out_0
// plus an addend, mapped as well.
KERNEL(key_product, KeyProductParams, POINTWISE_THREADS) {
    const Place at = place(p.out[0].basis, p.log_n);
    if (!at.inside) return;
    const Prime& m = p.primes[at.prime];
    const uint32_t source = p.galois == 1 ? at.k : source_of(at.k, p.galois, p.log_n);
    Wide sums[2] = {0, 0};
    for (uint32_t j = 0; j < p.count; j++) {
        uint64_t digit = limb(p.digits[j], at.prime, p.log_n)[source];
        UNROLL
        for (int c = 0; c < 2; c++) sums[c] += (Wide)digit * limb(p.keys[j][c], at.prime, p.log_n)[at.k];
    }
    if (p.addend.basis >> at.prime & 1) {
        // One more word below q: the sum stays far below q·2^64.
        sums[0] += limb(p.addend, at.prime, p.log_n)[source];
    }
    UNROLL
    for (int c = 0; c < 2; c++) {
        uint64_t& out = limb(p.out[c], at.prime, p.log_n)[at.k];
        uint64_t sum = reduce_wide(sums[c], m);
        out = p.accumulate ? add_word(out, sum, m) : sum;
    }
}

// blockIdx = (words, limb). out_c = sum of weights·terms_c, or out_c plus it, a weight standing for a run of words.
KERNEL(weighted_sum, WeightedSumParams, POINTWISE_THREADS) {
    const Place at = place(p.out[0].basis, p.log_n);
    if (!at.inside) return;
    const Prime& m = p.primes[at.prime];
    const uint32_t log_weights = p.log_n - p.log_stride;
    Wide sums[2] = {0, 0};
    for (uint32_t j = 0; j < p.count; j++) {
        uint64_t weight = limb(p.weights[j], at.prime, log_weights)[at.k >> p.log_stride];
        UNROLL
        for (int c = 0; c < 2; c++) sums[c] += (Wide)weight * limb(p.terms[j][c], at.prime, p.log_n)[at.k];
    }
    UNROLL
    for (int c = 0; c < 2; c++) {
        uint64_t& out = limb(p.out[c], at.prime, p.log_n)[at.k];
        uint64_t sum = reduce_wide(sums[c], m);
        out = p.accumulate ? add_word(out, sum, m) : sum;
    }
}
