// Uniform polynomials from their seeds, as crates/ring/src/ring/input.rs expands them: limb i with prime q is read from ChaCha20 with
// the seed as key and stream number i·2^50 + q, in words of 64 bits. A word's low 52 bits are kept if they are below the largest
// multiple of q up to 2^52, and give the next residue.
//
// How many draws are kept before some place is not known before all are made. So a first kernel counts, for each chunk of the stream,
// what is kept; then every chunk knows where its residues go. Counts stay for as long as the key does: they are few.
#pragma once

#include "arithmetic.cuh"

#define EXPANSION_THREADS 256
// Words that a thread draws: one block of the generator. A chunk is what a block of threads draws at once.
#define DRAWS 8

#define DRAW_BITS 52

DEVICE uint32_t rotate_left(uint32_t x, int by) { return x << by | x >> (32 - by); }

DEVICE void quarter_round(uint32_t& a, uint32_t& b, uint32_t& c, uint32_t& d) {
    a += b; d = rotate_left(d ^ a, 16);
    c += d; b = rotate_left(b ^ c, 12);
    a += b; d = rotate_left(d ^ a, 8);
    c += d; b = rotate_left(b ^ c, 7);
}

// Block number `counter` of a stream (RFC 8439, with 64 bits each of counter and stream number).
DEVICE void chacha20(const uint32_t* key, uint64_t stream, uint64_t counter, uint32_t (&x)[16]) {
    const uint32_t input[16] = {
        0x61707865, 0x3320646e, 0x79622d32, 0x6b206574,
        key[0], key[1], key[2], key[3], key[4], key[5], key[6], key[7],
        (uint32_t)counter, (uint32_t)(counter >> 32), (uint32_t)stream, (uint32_t)(stream >> 32),
    };
    UNROLL
    for (int i = 0; i < 16; i++) x[i] = input[i];
    for (int round = 0; round < 10; round++) {
        quarter_round(x[0], x[4], x[8], x[12]);
        quarter_round(x[1], x[5], x[9], x[13]);
        quarter_round(x[2], x[6], x[10], x[14]);
        quarter_round(x[3], x[7], x[11], x[15]);
        quarter_round(x[0], x[5], x[10], x[15]);
        quarter_round(x[1], x[6], x[11], x[12]);
        quarter_round(x[2], x[7], x[8], x[13]);
        quarter_round(x[3], x[4], x[9], x[14]);
    }
    UNROLL
    for (int i = 0; i < 16; i++) x[i] += input[i];
}

// The draws of a thread in a chunk.
struct Draws {
    uint64_t words[DRAWS];
    uint64_t limit;
    uint64_t reciprocal;

    DEVICE Draws(const ExpansionJob& job, uint32_t prime, const Prime& m, uint32_t chunk) {
        uint32_t x[16];
        uint64_t stream = (uint64_t)prime << 50 | m.word;
        chacha20(job.seed, stream, (uint64_t)chunk * EXPANSION_THREADS + threadIdx.x, x);
        UNROLL
        for (int i = 0; i < DRAWS; i++) {
            words[i] = (x[2 * i] | (uint64_t)x[2 * i + 1] << 32) & ((1ull << DRAW_BITS) - 1);
        }
        reciprocal = (1ull << DRAW_BITS) / m.word;
        limit = reciprocal * m.word;
    }

    DEVICE uint32_t kept() const {
        uint32_t count = 0;
        UNROLL
        for (int i = 0; i < DRAWS; i++) count += words[i] < limit;
        return count;
    }

    // The quotient of a draw is right or one too small.
    DEVICE uint64_t residue(uint64_t x, const Prime& m) const {
        uint64_t quotient = (uint64_t)((Wide)x * reciprocal >> DRAW_BITS);
        uint64_t rest = x - quotient * m.word;
        return rest >= m.word ? rest - m.word : rest;
    }
};

// Turns the counts in shared memory, one per thread, into those of all threads up to each.
DEVICE void running_sums(uint32_t* sums) {
    for (uint32_t step = 1; step < EXPANSION_THREADS; step *= 2) {
        uint32_t before = threadIdx.x >= step ? sums[threadIdx.x - step] : 0;
        __syncthreads();
        sums[threadIdx.x] += before;
        __syncthreads();
    }
}

DEVICE uint32_t* counts_of(const ExpansionJob& job, uint32_t prime) {
    return job.counts + rank(job.counted, prime) * MAX_CHUNKS;
}

// blockIdx = (chunk, limb, job).
KERNEL(expansion_counts, ExpansionParams, EXPANSION_THREADS) {
    SHARED(uint32_t, sums);
    const ExpansionJob& job = p.jobs[blockIdx.z];
    if (blockIdx.y >= (uint32_t)__popcll((long long)job.limbs)) return;
    const uint32_t prime = nth_bit(job.limbs, blockIdx.y);
    const Draws draws(job, prime, p.primes[prime], blockIdx.x);
    sums[threadIdx.x] = draws.kept();
    __syncthreads();
    running_sums(sums);
    if (threadIdx.x == 0) counts_of(job, prime)[blockIdx.x] = sums[EXPANSION_THREADS - 1];
}

// blockIdx = (chunk, limb, job). The last chunk goes on until the limb is full, however many draws were not kept.
KERNEL(expansion, ExpansionParams, EXPANSION_THREADS) {
    SHARED(uint32_t, sums);
    const ExpansionJob& job = p.jobs[blockIdx.z];
    if (blockIdx.y >= (uint32_t)__popcll((long long)job.limbs)) return;
    const uint32_t prime = nth_bit(job.limbs, blockIdx.y);
    const Prime m = p.primes[prime];
    const uint32_t* counts = counts_of(job, prime);
    const uint32_t n = 1u << p.log_n;
    uint64_t* target = limb(job.target, prime, (uint32_t)p.log_n);
    uint32_t start = 0;
    for (uint32_t i = 0; i < blockIdx.x; i++) start += counts[i];

    for (uint32_t chunk = blockIdx.x; start < n; chunk++) {
        const Draws draws(job, prime, m, chunk);
        const uint32_t kept = draws.kept();
        sums[threadIdx.x] = kept;
        __syncthreads();
        running_sums(sums);
        uint32_t at = start + sums[threadIdx.x] - kept;
        UNROLL
        for (int i = 0; i < DRAWS; i++) {
            if (draws.words[i] < draws.limit) {
                if (at < n) target[at] = draws.residue(draws.words[i], m);
                at++;
            }
        }
        start += sums[EXPANSION_THREADS - 1];
        if (blockIdx.x + 1 < gridDim.x) return;
        __syncthreads();
    }
}
