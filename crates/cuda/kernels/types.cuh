// The structs that the host passes. src/abi.rs has the same, field by field.
#pragma once

#include "platform.cuh"

// One prime and what its arithmetic needs, in device memory.
struct Prime {
    double q;
    double reciprocal;      // 1/q
    double n_inverse;       // 1/N mod q, centred
    uint64_t word;          // q
    uint64_t inverse;       // q^-1 mod 2^64
    uint64_t r2;            // 2^128 mod q
    uint64_t quotient;      // floor(2^52/q)
    const double* roots;    // psi^bitrev(k) at index k, centred
};

// A polynomial: the limbs of a set, one after the other.
struct Operand {
    uint64_t* words;
    uint64_t basis;
};

#define MAX_BATCH 16
#define MAX_DIGITS 16
// Blocks of the generator that a group of draws comes from, and draws of a block.
#define GROUP_BLOCKS 32
#define DRAWS 8

// Transforms of the limbs in a mask, from source to target (which may be the same).
struct NttJob {
    Operand target;
    Operand source;
    uint64_t limbs;
    const double* factors;  // by prime, see the kernels; may be null
    Operand minuend;        // forward: (minuend - transform)·factor where its words are not null
    uint64_t integers;      // forward: the source's words are signed integers of 32 bits, for all limbs alike, the coefficients of
                            // the multiples of 2^(integers - 1); 0: limbs
};

struct NttParams {
    const Prime* primes;
    uint32_t log_n;
    uint32_t tile_bits;     // words of a block's tile
    uint32_t stages;        // of this pass
    uint32_t whole;         // this pass does all stages
    NttJob jobs[MAX_BATCH];
};

// One source limb of a base conversion, in device memory.
struct ConversionSource {
    double inverse;         // (Q/q)^-1 mod q
    uint64_t weight;        // floor(2^84/q)
};

// A factor below 2^50, split at bit 25; aligned, so that it is one access.
struct alignas(8) SplitFactor {
    uint32_t low;
    uint32_t high;
};

// From the source's limbs to the target's limbs in a mask.
struct ConversionJob {
    Operand target;
    Operand source;
    uint64_t from;          // source limbs that take part
    uint64_t limbs;         // limbs to write
    const ConversionSource* sources;
    const SplitFactor* factors;  // by prime: one per source limb and -Q, in Montgomery form
};

struct ConversionParams {
    const Prime* primes;
    uint32_t log_n;
    uint32_t ready;         // the source's words are x·inverse already
    ConversionJob jobs[MAX_BATCH];
};

// Limbs to copy, of several polynomials; those that the source lacks become zero.
struct CopyJob {
    Operand target;
    Operand source;
    uint64_t limbs;
};

struct CopyParams {
    uint64_t log_n;
    CopyJob jobs[MAX_BATCH];
};

struct CopyWordsParams {
    uint64_t* target;
    const uint64_t* source;
    uint64_t count;
};

// Chains of operations that do not depend on each other, to measure what the device does at most.
struct PeakParams {
    uint64_t* out;          // a word per thread
    uint64_t rounds;
};

// Which draws of a group are kept, in device memory.
struct DrawGroup {
    uint64_t before;                  // draws of the limb that are kept before it
    uint64_t kept[GROUP_BLOCKS / 8];  // a byte per block, a bit per draw
};

// What a uniform polynomial is expanded from.
struct Seed {
    DrawGroup* groups;      // of each limb of `counted`
    uint64_t counted;
    uint32_t key[8];
};

struct ExpansionJob {
    Operand target;
    uint64_t limbs;         // to write
    Seed seed;
};

struct ExpansionParams {
    const Prime* primes;
    uint32_t log_n;
    uint32_t groups;        // of a limb
    ExpansionJob jobs[MAX_BATCH];
};

struct PointwiseParams {
    const Prime* primes;
    Operand out;
    Operand a;
    Operand b;
    uint64_t limbs;         // limbs to write
    const double* factors;  // by prime; may be null
    uint32_t log_n;
    uint32_t argument;      // Galois element, or base-2 logarithm of a stride
};

// A factor or term for the first and for the second half of each limb, by its number among those written.
struct ScalarParams {
    const Prime* primes;
    Operand out;
    Operand a;
    uint64_t limbs;
    uint32_t log_n;
    uint32_t padding;
    uint64_t values[64][2];
};

struct KeyProductParams {
    const Prime* primes;
    Operand out[2];
    Operand digits[MAX_DIGITS];
    Operand keys[MAX_DIGITS][2];
    Operand addend;         // on its limbs, mapped like the digits, it is added to out[0]
    uint32_t count;
    uint32_t log_n;
    uint32_t galois;        // 1: none
    uint32_t accumulate;
};

// The same where some second halves of keys have no words but a seed.
struct SeededProductParams {
    KeyProductParams product;
    Seed seeds[MAX_DIGITS]; // with no groups where the key has words
    uint64_t groups;        // of a limb
};

struct WeightedSumParams {
    const Prime* primes;
    Operand out[2];
    Operand weights[MAX_DIGITS];
    Operand terms[MAX_DIGITS][2];
    uint32_t count;
    uint32_t log_n;
    uint32_t log_stride;
    uint32_t accumulate;
};
