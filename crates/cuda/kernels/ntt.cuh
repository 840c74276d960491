// Number-theoretic transforms of all limbs of a batch.
//
// A transform of up to 2^12 words is one pass, a longer one two: the first stages on columns (words N/2^stages apart), the
// others on rows (consecutive words); the inverse the other way round. A block loads a tile of 2^12 words into shared memory
// once and does all stages of its pass there, up to four at a time in registers. blockIdx = (tile, limb, job).
//
// Between passes words are doubles with B <= 1/2 and a small rest, stored as they are.
#pragma once

#include "arithmetic.cuh"

#define NTT_THREADS 256

// One word of padding per 16 keeps strided accesses on different banks.
DEVICE uint32_t padded(uint32_t i) { return i + (i >> 4); }

// A block's part of a pass. Word t of the tile has its row's number in the bits from row_bit() on.
struct Tile {
    uint32_t log_n;
    uint32_t bits;
    uint32_t stages;
    bool columns;

    DEVICE uint32_t row_bit() const { return columns ? bits - stages : 0; }
    // Index in the limb of word t of the tile.
    DEVICE uint32_t index(uint32_t t) const {
        if (!columns) return (blockIdx.x << bits) + t;
        uint32_t low = row_bit();
        return ((t >> low) << (log_n - stages)) + (blockIdx.x << low) + (t & ((1u << low) - 1));
    }
    // How far apart words lie in the limb whose indices in the tile differ in bit `bit`, one of a row's.
    DEVICE uint32_t stride(uint32_t bit) const { return 1u << (columns ? bit - row_bit() + log_n - stages : bit); }
};

// The words that one thread transforms at a time: 2^R from `base` on, those of index base + (k << bit).
struct Group {
    uint32_t base;
    uint32_t bit;
    uint32_t root;          // of the group's block in its first stage: 2^stage + the block's number
};

// Group number `work` of a round of R stages, whose first is `stage` of the pass.
template <int R>
DEVICE Group group(const Tile& tile, uint32_t work, uint32_t bit, uint32_t stage) {
    uint32_t low = work & ((1u << bit) - 1), high = work >> bit;
    uint32_t first = tile.columns ? 0 : tile.log_n - tile.stages;
    uint32_t before = tile.columns ? 0 : blockIdx.x << (tile.bits - bit - R);
    return {(high << (bit + R)) | low, bit, (1u << (first + stage)) + before + high};
}

// Where word k of a group lies in shared memory: base + (k << bit), padded. From bit 4 on padding adds up; at bit 0 the
// group is aligned and short enough to have none inside.
DEVICE double& in_tile(double* shared, const Group& g, uint32_t k) {
    if (g.bit >= 4) return shared[padded(g.base) + k * padded(1u << g.bit)];
    if (g.bit == 0) return shared[padded(g.base) + k];
    return shared[padded(g.base + (k << g.bit))];
}

// Cooley-Tukey: x = u + v·w, y = u - v·w. From B <= 1 the bound goes to 1.63, 2.33, 3.12, 4.01 in four stages, so that every
// factor has B < 4 as mul() wants it; then it is reduced.
template <int R>
DEVICE void forward_stages(double (&x)[1 << R], const Group& g, const Prime& m) {
    UNROLL
    for (int u = 0; u < R; u++) {
        const int half = 1 << (R - 1 - u);
        // One loop of constant length, which is unrolled for certain: x has to stay in registers.
        UNROLL
        for (int k = 0; k < 1 << (R - 1); k++) {
            const int j = k / half;
            double w = m.roots[(g.root << u) + j];
            double& a = x[k + half * j];
            double& b = x[k + half * j + half];
            double v = mul(b, w, m);
            b = __dsub_rn(a, v);
            a = __dadd_rn(a, v);
        }
    }
    UNROLL
    for (int k = 0; k < 1 << R; k++) x[k] = reduce(x[k], m);
}

// Gentleman-Sande: x = u + v, y = (u - v)/w. Since psi^-e = -psi^(N-e), the inverse powers of a stage are its powers read
// backwards, with the sign in the difference.
//
// Sums double the bound. From B <= 1 (canonical) or 1/2 (reduced) it is at most 8 after three stages, and words that were
// sums in the second and the third are reduced before the fourth; the others have at most 3/2 there. Differences that are
// multiplied stay below B = 4 (canonical words are not negative, so their differences are no larger than they).
template <int R>
DEVICE void inverse_stages(double (&x)[1 << R], const Group& g, const Prime& m) {
    UNROLL
    for (int level = 0; level < R; level++) {
        const int half = 1 << level;
        const int u = R - 1 - level;
        if (level == 3) {
            UNROLL
            for (int k = 0; k < 1 << R; k++) {
                if ((k & 6) == 0) x[k] = reduce(x[k], m);
            }
        }
        // The last root of the stage whose first is 2^s, mirrored: 3·2^s - 1 - index.
        uint32_t stage = 31 - __clz((int)g.root) + u;
        uint32_t mirrored = (3u << stage) - 1 - (g.root << u);
        UNROLL
        for (int k = 0; k < 1 << (R - 1); k++) {
            const int j = k / half;
            double w = m.roots[mirrored - j];
            double& a = x[k + half * j];
            double& b = x[k + half * j + half];
            double v = __dsub_rn(b, a);
            a = __dadd_rn(a, b);
            b = mul(v, w, m);
        }
    }
    UNROLL
    for (int k = 0; k < 1 << R; k++) x[k] = reduce(x[k], m);
}

// What a block works on.
struct Work {
    Tile tile;
    const Prime& m;
    double* shared;
};

// R stages in registers: from `from` (words, or doubles of the pass before) or shared memory, to `to` or shared memory. Where
// an inverse transform ends, words are multiplied by 1/N or a factor that has it.
template <int R, bool INVERSE>
DEVICE void round_of(const Work& w, uint32_t bit, uint32_t stage, const uint64_t* from, bool words, uint64_t* to,
                     bool ends, double factor) {
    const uint32_t stride = w.tile.stride(bit);
    for (uint32_t work = threadIdx.x; work < 1u << (w.tile.bits - R); work += blockDim.x) {
        Group g = group<R>(w.tile, work, bit, stage);
        const uint32_t start = w.tile.index(g.base);
        double x[1 << R];
        UNROLL
        for (int k = 0; k < 1 << R; k++) {
            if (from) {
                uint64_t bits = from[start + k * stride];
                x[k] = words ? to_double(bits) : __longlong_as_double((long long)bits);
            } else {
                x[k] = in_tile(w.shared, g, k);
            }
        }
        if (INVERSE) inverse_stages<R>(x, g, w.m);
        else forward_stages<R>(x, g, w.m);
        UNROLL
        for (int k = 0; k < 1 << R; k++) {
            // B <= 1/2 before, so at most 5/8 after the factor.
            if (ends) to[start + k * stride] = canonical(mul(x[k], factor, w.m), w.m);
            else if (to) to[start + k * stride] = (uint64_t)__double_as_longlong(x[k]);
            else in_tile(w.shared, g, k) = x[k];
        }
    }
}

template <bool INVERSE>
DEVICE void any_round(uint32_t radix, const Work& w, uint32_t bit, uint32_t stage, const uint64_t* from, bool words,
                      uint64_t* to, bool ends, double factor) {
    switch (radix) {
        case 4: round_of<4, INVERSE>(w, bit, stage, from, words, to, ends, factor); break;
        case 3: round_of<3, INVERSE>(w, bit, stage, from, words, to, ends, factor); break;
        default: round_of<2, INVERSE>(w, bit, stage, from, words, to, ends, factor); break;
    }
}

// Stages of the next round, of `left`: four while that leaves none or at least two.
DEVICE uint32_t radix_of(uint32_t left) { return left == 5 ? 3 : left > 4 ? 4 : left; }

// LOG_N is 16 where a kernel is compiled for that degree, else 0.
template <int LOG_N>
DEVICE Tile tile_of(const NttParams& p, bool columns) {
    if (LOG_N) return {LOG_N, 12, LOG_N / 2, columns};
    return {p.log_n, p.tile_bits, p.stages, columns};
}

template <int LOG_N>
DEVICE void forward_pass(const NttParams& p, bool columns, double* shared) {
    const NttJob& job = p.jobs[blockIdx.z];
    if (blockIdx.y >= (uint32_t)__popcll((long long)job.limbs)) return;
    const uint32_t prime = nth_bit(job.limbs, blockIdx.y);
    const Prime m = p.primes[prime];
    const Work w = {tile_of<LOG_N>(p, columns), m, shared};
    const uint32_t low = w.tile.row_bit(), stages = w.tile.stages;
    const bool begins = columns || (!LOG_N && p.whole);
    const uint64_t* from = limb(begins ? job.source : job.target, prime, w.tile.log_n);
    uint64_t* target = limb(job.target, prime, w.tile.log_n);

    if constexpr (LOG_N != 0) {
        round_of<4, false>(w, low + 4, 0, from, begins, nullptr, false, 0.0);
        __syncthreads();
        round_of<4, false>(w, low, 4, nullptr, false, columns ? target : nullptr, false, 0.0);
    } else {
        for (uint32_t done = 0, radix; done < stages; done += radix) {
            radix = radix_of(stages - done);
            bool ends = columns && done + radix == stages;
            any_round<false>(radix, w, low + stages - done - radix, done, from, begins, ends ? target : nullptr, false, 0.0);
            from = nullptr;
            if (!ends) __syncthreads();
        }
    }
    if (columns) return;

    // Rows end in shared memory, since a thread's words are neighbours: from there they leave in order.
    if (LOG_N) __syncthreads();
    const uint64_t* minuend = job.minuend.words ? limb(job.minuend, prime, w.tile.log_n) : nullptr;
    const double factor = minuend ? job.factors[prime] : 0.0;
    const uint32_t start = w.tile.index(0);
    for (uint32_t t = threadIdx.x; t < 1u << w.tile.bits; t += blockDim.x) {
        double x = shared[padded(t)];
        // The difference has B <= 3/2 and the factor is at most q/2, so the product is below q.
        if (minuend) x = mul(__dsub_rn(to_double(minuend[start + t]), x), factor, m);
        target[start + t] = canonical(x, m);
    }
}

template <int LOG_N>
DEVICE void inverse_pass(const NttParams& p, bool columns, double* shared) {
    const NttJob& job = p.jobs[blockIdx.z];
    if (blockIdx.y >= (uint32_t)__popcll((long long)job.limbs)) return;
    const uint32_t prime = nth_bit(job.limbs, blockIdx.y);
    const Prime m = p.primes[prime];
    const Work w = {tile_of<LOG_N>(p, columns), m, shared};
    const uint32_t low = w.tile.row_bit(), stages = w.tile.stages, start = w.tile.index(0);
    const uint64_t* from = limb(columns ? job.target : job.source, prime, w.tile.log_n);
    uint64_t* target = limb(job.target, prime, w.tile.log_n);
    const double factor = job.factors ? job.factors[prime] : m.n_inverse;

    if (!columns) {
        for (uint32_t t = threadIdx.x; t < 1u << w.tile.bits; t += blockDim.x) {
            shared[padded(t)] = to_double(from[start + t]);
        }
        from = nullptr;
        __syncthreads();
    }
    if constexpr (LOG_N != 0) {
        round_of<4, true>(w, low, 4, from, false, nullptr, false, 0.0);
        __syncthreads();
        round_of<4, true>(w, low + 4, 0, nullptr, false, target, columns, factor);
    } else {
        for (uint32_t done = 0, radix; done < stages; done += radix) {
            radix = radix_of(stages - done);
            bool ends = !p.whole && done + radix == stages;
            any_round<true>(radix, w, low + done, stages - done - radix, from, false, ends ? target : nullptr,
                            ends && columns, factor);
            from = nullptr;
            if (!ends) __syncthreads();
        }
        if (!p.whole) return;
        for (uint32_t t = threadIdx.x; t < 1u << w.tile.bits; t += blockDim.x) {
            target[start + t] = canonical(mul(shared[padded(t)], factor, m), m);
        }
    }
}

// A multiprocessor has to hold `blocks` blocks, which bounds a thread's registers: 64 for four, 80 for three.
#define NTT(name, pass, log_n, columns, blocks)                \
    KERNEL(name, NttParams, NTT_THREADS, blocks) {             \
        SHARED(double, shared);                                \
        pass<log_n>(p, columns, shared);                       \
    }

NTT(ntt_columns, forward_pass, 0, true, 3)
NTT(ntt_rows, forward_pass, 0, false, 3)
NTT(ntt_columns_16, forward_pass, 16, true, 4)
NTT(ntt_rows_16, forward_pass, 16, false, 4)
NTT(intt_rows, inverse_pass, 0, false, 3)
NTT(intt_columns, inverse_pass, 0, true, 3)
NTT(intt_rows_16, inverse_pass, 16, false, 4)
NTT(intt_columns_16, inverse_pass, 16, true, 4)

#undef NTT
