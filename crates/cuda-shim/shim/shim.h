// Enough of CUDA C++ to compile the kernels as plain C++ and run them on the host.
//
// A block's threads are fibers that run one after the other from barrier to barrier, in an order of the caller's choice: what
// a kernel computes must not depend on it. Shared memory is full of NaN when a block starts.
#pragma once

#include <math.h>
#include <stddef.h>
#include <string.h>

namespace shim {

struct Index {
    uint32_t x, y, z;
};

// What a kernel is known by.
struct Kernel {
    const char* name;
    size_t params;
    void (*run)(const void* params);
};

struct Registration {
    Registration(const char* name, size_t params, void (*run)(const void*));
};

// Gives way to the block's other threads until all have come here.
void barrier();

// The block's dynamic shared memory.
void* shared_memory();

// Ends the program: a kernel does not what it says.
[[noreturn]] void fail(const char* what);

}  // namespace shim

inline thread_local shim::Index threadIdx, blockIdx, blockDim, gridDim;

#define KERNEL(kernel, Params, ...)                                                                  \
    static void kernel(const Params& p);                                                             \
    static const shim::Registration kernel##_registration(                                           \
        #kernel, sizeof(Params), [](const void* p) { kernel(*static_cast<const Params*>(p)); });     \
    static void kernel(const Params& p)
#define SHARED(type, name) type* const name = static_cast<type*>(shim::shared_memory())
#define DEVICE inline
#define UNROLL
#define CHECK(condition) \
    if (!(condition)) shim::fail(#condition)

inline void __syncthreads() { shim::barrier(); }

// IEEE 754 with one rounding each: the compiler must not contract them (-ffp-contract=off).
inline double __dadd_rn(double a, double b) { return a + b; }
inline double __dsub_rn(double a, double b) { return a - b; }
inline double __dmul_rn(double a, double b) { return a * b; }
inline double __fma_rn(double a, double b, double c) { return fma(a, b, c); }

inline double __longlong_as_double(long long x) {
    double out;
    memcpy(&out, &x, sizeof out);
    return out;
}
inline long long __double_as_longlong(double x) {
    long long out;
    memcpy(&out, &x, sizeof out);
    return out;
}

inline uint64_t __umul64hi(uint64_t a, uint64_t b) { return (uint64_t)((unsigned __int128)a * b >> 64); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline uint32_t __brev(uint32_t x) {
    uint32_t out = 0;
    for (int i = 0; i < 32; i++) out |= (x >> i & 1) << (31 - i);
    return out;
}
inline uint32_t min(uint32_t a, uint32_t b) { return a < b ? a : b; }
