// Uniform polynomials from their seeds, as crates/ring/src/ring/input.rs expands them: limb i with prime q is read from ChaCha20 with
// the seed as key and stream number i·2^50 + q, in words of 64 bits. A word's low 52 bits are kept if they are below the largest
// multiple of q up to 2^52, and give the next residue.
//
// How many draws are kept before some place is not known before all are made. So a first kernel notes which are kept, a bit each, and how
// many before each group of them; from then on every block of the generator knows where its residues go. Notes stay for as long as the
// key does: they are a fiftieth of its words.
#pragma once

#include "arithmetic.cuh"

#define EXPANSION_THREADS 256

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

// The draws of one block of the generator.
struct Draws {
    uint64_t words[DRAWS];
    uint64_t limit;

    DEVICE Draws(const Seed& seed, uint32_t prime, const Prime& m, uint32_t block) {
        uint32_t x[16];
        chacha20(seed.key, (uint64_t)prime << 50 | m.word, block, x);
        UNROLL
        for (int i = 0; i < DRAWS; i++) {
            words[i] = (x[2 * i] | (uint64_t)x[2 * i + 1] << 32) & ((1ull << DRAW_BITS) - 1);
        }
        limit = m.quotient * m.word;
    }

    // A bit per draw.
    DEVICE uint32_t kept() const {
        uint32_t mask = 0;
        UNROLL
        for (int i = 0; i < DRAWS; i++) mask |= (uint32_t)(words[i] < limit) << i;
        return mask;
    }

    // Hands over the residues, the first of which is word `at` of the limb. The quotient of a draw is right or one too small.
    template <class Store>
    DEVICE uint32_t residues(const Prime& m, uint32_t at, Store store) const {
        UNROLL
        for (int i = 0; i < DRAWS; i++) {
            if (words[i] < limit) {
                uint64_t quotient = (uint64_t)((Wide)words[i] * m.quotient >> DRAW_BITS);
                uint64_t rest = words[i] - quotient * m.word;
                store(at++, rest >= m.word ? rest - m.word : rest);
            }
        }
        return at;
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

// What is noted of a limb.
struct Notes {
    const Seed& seed;
    uint32_t prime;
    const Prime& m;
    DrawGroup* groups;
    uint32_t count;

    DEVICE Notes(const Seed& seed, uint32_t prime, const Prime& m, uint32_t count)
        : seed(seed), prime(prime), m(m), groups(seed.groups + (size_t)rank(seed.counted, prime) * count), count(count) {}

    // The word that the first draw kept of a block gives.
    DEVICE uint32_t place(uint32_t block) const {
        const DrawGroup& group = groups[block / GROUP_BLOCKS];
        uint32_t at = (uint32_t)group.before, before = block % GROUP_BLOCKS;
        UNROLL
        for (uint32_t i = 0; i < GROUP_BLOCKS / 8; i++) {
            uint32_t blocks = before > 8 * i ? min(before - 8 * i, 8u) : 0;
            uint64_t mask = blocks == 8 ? ~0ull : (1ull << 8 * blocks) - 1;
            at += (uint32_t)__popcll((long long)(group.kept[i] & mask));
        }
        return at;
    }

    // The residues of a block.
    template <class Store>
    DEVICE void block(uint32_t block, Store store) const {
        Draws(seed, prime, m, block).residues(m, place(block), store);
    }

    // The last group that words up to `word` may come from.
    DEVICE uint32_t group_of(uint32_t word) const {
        uint32_t low = 0, high = count;
        while (high - low > 1) {
            uint32_t middle = (low + high) / 2;
            if (groups[middle].before <= word) low = middle;
            else high = middle;
        }
        return low;
    }

    // For one thread: the residues up to word `end` that come after all groups, which hardly ever are too few.
    template <class Store>
    DEVICE void rest(uint32_t end, Store store) const {
        uint32_t at = (uint32_t)groups[count - 1].before;
        UNROLL
        for (uint32_t i = 0; i < GROUP_BLOCKS / 8; i++) at += (uint32_t)__popcll((long long)groups[count - 1].kept[i]);
        for (uint32_t block = count * GROUP_BLOCKS; at < end; block++) at = Draws(seed, prime, m, block).residues(m, at, store);
    }
};

// blockIdx = (0, limb, job). Makes the notes.
KERNEL(expansion_notes, ExpansionParams, EXPANSION_THREADS) {
    SHARED(uint32_t, sums);
    const ExpansionJob& job = p.jobs[blockIdx.z];
    if (blockIdx.y >= (uint32_t)__popcll((long long)job.limbs)) return;
    const uint32_t prime = nth_bit(job.limbs, blockIdx.y);
    const Prime m = p.primes[prime];
    const Notes notes(job.seed, prime, m, p.groups);
    uint32_t before = 0;
    for (uint32_t first = 0; first < p.groups; first += EXPANSION_THREADS / GROUP_BLOCKS) {
        const uint32_t block = first * GROUP_BLOCKS + threadIdx.x, number = threadIdx.x % GROUP_BLOCKS;
        const uint32_t kept = Draws(job.seed, prime, m, block).kept();
        const uint32_t count = (uint32_t)__popcll((long long)kept);
        sums[threadIdx.x] = count;
        __syncthreads();
        running_sums(sums);
        if (block / GROUP_BLOCKS < p.groups) {
            DrawGroup& group = notes.groups[block / GROUP_BLOCKS];
            if (number == 0) group.before = before + sums[threadIdx.x] - count;
            ((uint8_t*)group.kept)[number] = (uint8_t)kept;
        }
        before += sums[EXPANSION_THREADS - 1];
        __syncthreads();
    }
}

// blockIdx = (blocks of the generator, limb, job). The first thread finds what may be missing.
KERNEL(expansion, ExpansionParams, EXPANSION_THREADS) {
    const ExpansionJob& job = p.jobs[blockIdx.z];
    if (blockIdx.y >= (uint32_t)__popcll((long long)job.limbs)) return;
    const uint32_t prime = nth_bit(job.limbs, blockIdx.y);
    const Prime m = p.primes[prime];
    const Notes notes(job.seed, prime, m, p.groups);
    const uint32_t n = 1u << p.log_n, block = blockIdx.x * EXPANSION_THREADS + threadIdx.x;
    uint64_t* target = limb(job.target, prime, p.log_n);
    auto store = [&](uint32_t at, uint64_t residue) {
        if (at < n) target[at] = residue;
    };
    if (block < p.groups * GROUP_BLOCKS) notes.block(block, store);
    if (block == 0) notes.rest(n, store);
}
