// Sums of products, reduced once: at most 16 products of canonical residues are below q·2^64.
#pragma once

#include "expansion.cuh"
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

// Words of a thread of the next kernel.
#define SEEDED_WORDS 4

// blockIdx = (tiles of words, limb). The same with second halves that are expanded as they are used: the block expands a tile's words
// into shared memory, one digit after the other.
KERNEL(seeded_product, SeededProductParams, POINTWISE_THREADS, 2) {
    SHARED(uint64_t, uniform);
    const KeyProductParams& product = p.product;
    const uint32_t prime = nth_bit(product.out[0].basis, blockIdx.y);
    const Prime m = product.primes[prime];
    const uint32_t log_n = product.log_n, n = 1u << log_n, tile = SEEDED_WORDS * blockDim.x;
    const uint32_t first = blockIdx.x * tile, end = min(first + tile, n);
    Wide sums[SEEDED_WORDS][2];
    uint32_t sources[SEEDED_WORDS];
    UNROLL
    for (int i = 0; i < SEEDED_WORDS; i++) {
        const uint32_t k = first + i * blockDim.x + threadIdx.x;
        sources[i] = product.galois == 1 ? k : source_of(k & (n - 1), product.galois, log_n);
        sums[i][0] = sums[i][1] = 0;
    }
    for (uint32_t j = 0; j < product.count; j++) {
        const Seed& seed = p.seeds[j];
        if (seed.groups) {
            const Notes notes(seed, prime, m, (uint32_t)p.groups);
            auto store = [&](uint32_t at, uint64_t residue) {
                if (at >= first && at < end) uniform[at - first] = residue;
            };
            __syncthreads();
            const uint32_t blocks = notes.count * GROUP_BLOCKS;
            for (uint32_t block = notes.group_of(first) * GROUP_BLOCKS + threadIdx.x; block < blocks; block += blockDim.x) {
                if (notes.groups[block / GROUP_BLOCKS].before >= end) break;
                notes.block(block, store);
            }
            if (threadIdx.x == 0) notes.rest(end, store);
            __syncthreads();
        }
        const uint64_t* digit = limb(product.digits[j], prime, log_n);
        const uint64_t* key = limb(product.keys[j][0], prime, log_n);
        const uint64_t* other = seed.groups ? uniform : limb(product.keys[j][1], prime, log_n) + first;
        UNROLL
        for (int i = 0; i < SEEDED_WORDS; i++) {
            const uint32_t at = i * blockDim.x + threadIdx.x;
            if (first + at >= end) continue;
            sums[i][0] += (Wide)digit[sources[i]] * key[first + at];
            sums[i][1] += (Wide)digit[sources[i]] * other[at];
        }
    }
    const bool added = product.addend.basis >> prime & 1;
    UNROLL
    for (int i = 0; i < SEEDED_WORDS; i++) {
        const uint32_t k = first + i * blockDim.x + threadIdx.x;
        if (k >= end) continue;
        if (added) sums[i][0] += limb(product.addend, prime, log_n)[sources[i]];
        UNROLL
        for (int c = 0; c < 2; c++) {
            uint64_t& out = limb(product.out[c], prime, log_n)[k];
            uint64_t sum = reduce_wide(sums[i][c], m);
            out = product.accumulate ? add_word(out, sum, m) : sum;
        }
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
