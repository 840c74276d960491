// Number-theoretic transforms of all limbs of a batch.
//
// A transform of up to 2^12 words is one pass, a longer one two: the first stages on columns (words N/2^stages apart), the
// others on rows (consecutive words); the inverse the other way round. A block loads a tile of 2^12 words into shared memory
// once and does all stages of its pass there, up to four at a time in registers. blockIdx = (tile, limb, job).
//
// Kernels for degree 2^16 know all shapes when they are compiled, and most corrections are left out for primes below NARROW.
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

// Below this, doubles have room for 2^12 multiples of a prime, and products of 2^11.
#define NARROW 2199023255552.0

// Stages whose roots are stored in another order in rings of degree 2^16, the last four: those of a warp's neighbouring groups
// are neighbours, root j of group G in stage 12 + u at (2^u + j)·2^12 + G. src/tables.rs lays them out.
#define SORTED_GROUPS 4096u

// Root j of a group in stage u of its round.
template <bool SORTED>
DEVICE double root_of(const Prime& m, const Group& g, int u, int j) {
    // Pointers first: what is constant then needs no instruction.
    if (SORTED) return (m.roots + (g.root - SORTED_GROUPS))[SORTED_GROUPS * ((1 << u) + j)];
    return (m.roots + (g.root << u))[j];
}

// The same of the inverse. Since psi^-e = -psi^(N-e), the inverse powers of a stage are its powers read backwards, with the sign in
// the difference.
template <bool SORTED>
DEVICE double inverse_root_of(const Prime& m, const Group& g, int u, int j) {
    if (SORTED) return (m.roots + (2 * SORTED_GROUPS - 1 - g.root))[SORTED_GROUPS * ((2 << u) - 1 - j)];
    // The last root of the stage whose first is 2^s, mirrored: 3·2^s - 1 - index.
    uint32_t stage = 31 - __clz((int)g.root) + u;
    return (m.roots + ((3u << stage) - 1 - (g.root << u)))[-j];
}

template <int COUNT, int SIZE>
DEVICE void reduce_first(double (&x)[SIZE], const Prime& m) {
    UNROLL
    for (int k = 0; k < COUNT; k++) x[k] = reduce(x[k], m);
}

// Cooley-Tukey: x = u + v·w, y = u - v·w.
//
// The words that are not multiplied in the first stage, the first half, come with B <= 1/2, others with B < 4 as mul() wants it.
// Those go to B <= 1/2 + 1/2, and four stages that each add 1/2 + B/8 lead to below 4. For narrow primes nothing is reduced
// on the way: a stage adds 1/2 + B·2^-12, and 17 stages lead to less than 10.
template <int R, bool SORTED>
DEVICE void forward_stages(double (&x)[1 << R], const Group& g, const Prime& m) {
    UNROLL
    for (int u = 0; u < R; u++) {
        const int half = 1 << (R - 1 - u);
        // One loop of constant length, which is unrolled for certain: x has to stay in registers.
        UNROLL
        for (int k = 0; k < 1 << (R - 1); k++) {
            const int j = k / half;
            double w = root_of<SORTED>(m, g, u, j);
            double& a = x[k + half * j];
            double& b = x[k + half * j + half];
            double v = mul(b, w, m);
            b = __dsub_rn(a, v);
            a = __dadd_rn(a, v);
        }
    }
}

// Gentleman-Sande: x = u + v, y = (u - v)/w.
//
// Sums double the bound. From B <= 1 (canonical) or 1/2 (reduced) it is at most 8 after three stages, and words that were
// sums in the second and the third are reduced before the fourth; the others have at most 3/2 there, so that it ends with at most 3.
// Differences that are multiplied stay below B = 4 (canonical words are not negative, so their differences are no larger than they).
// For narrow primes nothing is reduced, and eight stages lead to at most 2^8.
//
// Where the transform ENDS, both words of the last stage, which has one root, are multiplied by the factor: B < 1.
template <int R, bool SORTED, bool ENDS>
DEVICE void inverse_stages(double (&x)[1 << R], const Group& g, const Prime& m, bool narrow, double factor) {
    UNROLL
    for (int level = 0; level < R; level++) {
        const int half = 1 << level;
        const int u = R - 1 - level;
        if (level == 3 && !narrow) {
            UNROLL
            for (int k = 0; k < 1 << R; k++) {
                if ((k & 6) == 0) x[k] = reduce(x[k], m);
            }
        }
        const bool scaled = ENDS && level == R - 1;
        const double last = scaled ? mul(inverse_root_of<SORTED>(m, g, u, 0), factor, m) : 0.0;
        UNROLL
        for (int k = 0; k < 1 << (R - 1); k++) {
            const int j = k / half;
            double w = scaled ? last : inverse_root_of<SORTED>(m, g, u, j);
            double& a = x[k + half * j];
            double& b = x[k + half * j + half];
            double v = __dsub_rn(b, a);
            a = __dadd_rn(a, b);
            if (scaled) a = mul(a, factor, m);
            b = mul(v, w, m);
        }
    }
}

// What a block works on.
struct Work {
    Tile tile;
    const Prime& m;
    double* shared;
    bool narrow;

    // Does something with all groups of a round, each of which one thread has; exactly one group a thread where ONE says so.
    template <int R, bool ONE, class Body>
    DEVICE void each_group(uint32_t bit, uint32_t stage, Body body) const {
        if constexpr (ONE) {
            body(group<R>(tile, threadIdx.x, bit, stage));
        } else {
            for (uint32_t work = threadIdx.x; work < 1u << (tile.bits - R); work += blockDim.x) {
                body(group<R>(tile, work, bit, stage));
            }
        }
    }

    // Does something with all words of the tile, in order: their numbers and places in shared memory.
    template <int LOG_N, class Body>
    DEVICE void each_word(Body body) const {
        if constexpr (LOG_N != 0) {
            UNROLL
            for (uint32_t i = 0; i < 16; i++) body(threadIdx.x + i * NTT_THREADS, shared[padded(threadIdx.x) + i * padded(NTT_THREADS)]);
        } else {
            for (uint32_t t = threadIdx.x; t < 1u << tile.bits; t += blockDim.x) body(t, shared[padded(t)]);
        }
    }

    template <int SIZE>
    DEVICE void from_tile(double (&x)[SIZE], const Group& g) const {
        UNROLL
        for (int k = 0; k < SIZE; k++) x[k] = in_tile(shared, g, k);
    }

    template <int SIZE>
    DEVICE void to_tile(const double (&x)[SIZE], const Group& g) const {
        UNROLL
        for (int k = 0; k < SIZE; k++) in_tile(shared, g, k) = x[k];
    }

    // Canonical words; the first half centred, for forward_stages().
    template <int SIZE>
    DEVICE void from_words(double (&x)[SIZE], const Group& g, const uint64_t* words) const {
        const uint64_t* start = words + tile.index(g.base);
        const uint32_t stride = tile.stride(g.bit);
        UNROLL
        for (int k = 0; k < SIZE; k++) {
            const uint64_t word = start[(size_t)k * stride];
            x[k] = k < SIZE / 2 ? to_centred(word, m) : to_double(word);
        }
    }

    // Integers, which lie below q/2; see NttJob.
    template <int SIZE>
    DEVICE void from_integers(double (&x)[SIZE], const Group& g, const uint64_t* words, uint32_t spread) const {
        const int32_t* integers = (const int32_t*)words;
        const uint32_t start = tile.index(g.base), stride = tile.stride(g.bit), mask = (1u << spread) - 1;
        UNROLL
        for (int k = 0; k < SIZE; k++) {
            const uint32_t at = start + k * stride;
            x[k] = at & mask ? 0.0 : signed_to_double(integers[at >> spread]);
        }
    }

    // What to_doubles() left in the pass before.
    template <int SIZE>
    DEVICE void from_doubles(double (&x)[SIZE], const Group& g, const uint64_t* words) const {
        const uint64_t* start = words + tile.index(g.base);
        const uint32_t stride = tile.stride(g.bit);
        UNROLL
        for (int k = 0; k < SIZE; k++) x[k] = __longlong_as_double((long long)start[(size_t)k * stride]);
    }

    template <int SIZE>
    DEVICE void to_doubles(const double (&x)[SIZE], const Group& g, uint64_t* words) const {
        uint64_t* start = words + tile.index(g.base);
        const uint32_t stride = tile.stride(g.bit);
        UNROLL
        for (int k = 0; k < SIZE; k++) start[(size_t)k * stride] = (uint64_t)__double_as_longlong(x[k]);
    }

    template <int SIZE>
    DEVICE void to_words(const double (&x)[SIZE], const Group& g, uint64_t* words) const {
        uint64_t* start = words + tile.index(g.base);
        const uint32_t stride = tile.stride(g.bit);
        UNROLL
        for (int k = 0; k < SIZE; k++) start[(size_t)k * stride] = canonical(x[k], m);
    }
};

// R stages of any degree: from words or integers, from the pass before, or from the tile, and to the next pass or to the tile.
template <int R>
DEVICE void forward_round(const Work& w, uint32_t bit, uint32_t stage, const uint64_t* from, bool words, uint32_t integers, uint64_t* to) {
    w.each_group<R, false>(bit, stage, [&](const Group& g) {
        double x[1 << R];
        if (from && words) {
            if (integers) w.from_integers(x, g, from, integers - 1);
            else w.from_words(x, g, from);
        } else {
            if (from) w.from_doubles(x, g, from);
            else w.from_tile(x, g);
            reduce_first<1 << (R - 1)>(x, w.m);
        }
        forward_stages<R, false>(x, g, w.m);
        if (to) w.to_doubles(x, g, to);
        else w.to_tile(x, g);
    });
}

// The same of the inverse; where it ends in memory, after a product with the factor.
template <int R>
DEVICE void inverse_round(const Work& w, uint32_t bit, uint32_t stage, const uint64_t* from, uint64_t* to, bool ends, double factor) {
    w.each_group<R, false>(bit, stage, [&](const Group& g) {
        double x[1 << R];
        if (from) w.from_doubles(x, g, from);
        else w.from_tile(x, g);
        inverse_stages<R, false, false>(x, g, w.m, false, 0.0);
        reduce_first<1 << R>(x, w.m);
        if (ends) {
            UNROLL
            for (int k = 0; k < 1 << R; k++) x[k] = mul(x[k], factor, w.m);
            w.to_words(x, g, to);
        } else if (to) {
            w.to_doubles(x, g, to);
        } else {
            w.to_tile(x, g);
        }
    });
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
    const Work w = {tile_of<LOG_N>(p, columns), m, shared, m.q < NARROW};
    const uint32_t low = w.tile.row_bit(), stages = w.tile.stages;
    const bool begins = columns || (!LOG_N && p.whole);
    const uint32_t integers = begins ? (uint32_t)job.integers : 0;
    const uint64_t* from = integers ? job.source.words : limb(begins ? job.source : job.target, prime, w.tile.log_n);
    uint64_t* target = limb(job.target, prime, w.tile.log_n);

    if constexpr (LOG_N != 0) {
        w.each_group<4, true>(low + 4, 0, [&](const Group& g) {
            double x[16];
            if (columns) {
                if (integers) w.from_integers(x, g, from, integers - 1);
                else w.from_words(x, g, from);
            } else {
                w.from_doubles(x, g, from);
                if (!w.narrow) reduce_first<8>(x, m);
            }
            forward_stages<4, false>(x, g, m);
            w.to_tile(x, g);
        });
        __syncthreads();
        w.each_group<4, true>(low, 4, [&](const Group& g) {
            double x[16];
            w.from_tile(x, g);
            if (!w.narrow) reduce_first<8>(x, m);
            if (columns) {
                forward_stages<4, false>(x, g, m);
                w.to_doubles(x, g, target);
            } else {
                forward_stages<4, true>(x, g, m);
                w.to_tile(x, g);
            }
        });
    } else {
        for (uint32_t done = 0, radix; done < stages; done += radix) {
            radix = radix_of(stages - done);
            const uint32_t bit = low + stages - done - radix;
            const bool ends = columns && done + radix == stages;
            uint64_t* to = ends ? target : nullptr;
            switch (radix) {
                case 4: forward_round<4>(w, bit, done, from, begins, integers, to); break;
                case 3: forward_round<3>(w, bit, done, from, begins, integers, to); break;
                default: forward_round<2>(w, bit, done, from, begins, integers, to); break;
            }
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
    target += start;
    w.each_word<LOG_N>([&](uint32_t t, double& word) {
        double x = reduce(word, m);
        // The difference has B <= 3/2 and the factor is at most q/2, so the product is below q.
        if (minuend) x = mul(__dsub_rn(to_double((minuend + start)[t]), x), factor, m);
        target[t] = canonical(x, m);
    });
}

template <int LOG_N>
DEVICE void inverse_pass(const NttParams& p, bool columns, double* shared) {
    const NttJob& job = p.jobs[blockIdx.z];
    if (blockIdx.y >= (uint32_t)__popcll((long long)job.limbs)) return;
    const uint32_t prime = nth_bit(job.limbs, blockIdx.y);
    const Prime m = p.primes[prime];
    const Work w = {tile_of<LOG_N>(p, columns), m, shared, m.q < NARROW};
    const uint32_t low = w.tile.row_bit(), stages = w.tile.stages, start = w.tile.index(0);
    const uint64_t* from = limb(columns ? job.target : job.source, prime, w.tile.log_n);
    uint64_t* target = limb(job.target, prime, w.tile.log_n);
    const double factor = job.factors ? job.factors[prime] : m.n_inverse;

    if (!columns) {
        w.each_word<LOG_N>([&](uint32_t t, double& word) { word = to_double((from + start)[t]); });
        from = nullptr;
        __syncthreads();
    }
    if constexpr (LOG_N != 0) {
        w.each_group<4, true>(low, 4, [&](const Group& g) {
            double x[16];
            if (columns) {
                w.from_doubles(x, g, from);
                inverse_stages<4, false, false>(x, g, m, w.narrow, 0.0);
            } else {
                w.from_tile(x, g);
                inverse_stages<4, true, false>(x, g, m, w.narrow, 0.0);
            }
            if (!w.narrow) reduce_first<16>(x, m);
            w.to_tile(x, g);
        });
        __syncthreads();
        w.each_group<4, true>(low + 4, 0, [&](const Group& g) {
            double x[16];
            w.from_tile(x, g);
            if (columns) {
                inverse_stages<4, false, true>(x, g, m, w.narrow, factor);
                w.to_words(x, g, target);
            } else {
                inverse_stages<4, false, false>(x, g, m, w.narrow, 0.0);
                reduce_first<16>(x, m);
                w.to_doubles(x, g, target);
            }
        });
    } else {
        for (uint32_t done = 0, radix; done < stages; done += radix) {
            radix = radix_of(stages - done);
            const uint32_t bit = low + done, stage = stages - done - radix;
            const bool leaves = !p.whole && done + radix == stages, ends = leaves && columns;
            uint64_t* to = leaves ? target : nullptr;
            switch (radix) {
                case 4: inverse_round<4>(w, bit, stage, from, to, ends, factor); break;
                case 3: inverse_round<3>(w, bit, stage, from, to, ends, factor); break;
                default: inverse_round<2>(w, bit, stage, from, to, ends, factor); break;
            }
            from = nullptr;
            if (!leaves) __syncthreads();
        }
        if (!p.whole) return;
        w.each_word<0>([&](uint32_t t, double& word) { (target + start)[t] = canonical(mul(word, factor, m), m); });
    }
}

// A multiprocessor has to hold `blocks` blocks, which bounds a thread's registers: 64 for four, 128 for two.
#define NTT(name, pass, log_n, columns, blocks)                \
    KERNEL(name, NttParams, NTT_THREADS, blocks) {             \
        SHARED(double, shared);                                \
        pass<log_n>(p, columns, shared);                       \
    }

NTT(ntt_columns, forward_pass, 0, true, 2)
NTT(ntt_rows, forward_pass, 0, false, 2)
NTT(ntt_columns_16, forward_pass, 16, true, 4)
NTT(ntt_rows_16, forward_pass, 16, false, 4)
NTT(intt_rows, inverse_pass, 0, false, 2)
NTT(intt_columns, inverse_pass, 0, true, 2)
NTT(intt_rows_16, inverse_pass, 16, false, 4)
NTT(intt_columns_16, inverse_pass, 16, true, 4)

#undef NTT
