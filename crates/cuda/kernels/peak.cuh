// What the device does at most: multiply-adds in chains that do not depend on each other.
#pragma once

#include "arithmetic.cuh"

#define PEAK_THREADS 256
#define CHAINS 8

KERNEL(peak_fp64, PeakParams, PEAK_THREADS) {
    const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
    double x[CHAINS];
    UNROLL
    for (int i = 0; i < CHAINS; i++) x[i] = (double)(thread + i);
    const double factor = 1.0 + (double)p.rounds, term = (double)thread;
    for (uint64_t round = 0; round < p.rounds; round++) {
        UNROLL
        for (int i = 0; i < CHAINS; i++) x[i] = __fma_rn(x[i], factor, term);
    }
    double sum = 0;
    UNROLL
    for (int i = 0; i < CHAINS; i++) sum = __dadd_rn(sum, x[i]);
    p.out[thread] = (uint64_t)__double_as_longlong(sum);
}

// Products of 32-bit words added to 64-bit sums.
KERNEL(peak_integer, PeakParams, PEAK_THREADS) {
    const uint32_t thread = blockIdx.x * blockDim.x + threadIdx.x;
    uint64_t x[CHAINS];
    UNROLL
    for (int i = 0; i < CHAINS; i++) x[i] = thread + i;
    for (uint64_t round = 0; round < p.rounds; round++) {
        UNROLL
        for (int i = 0; i < CHAINS; i++) x[i] = (uint64_t)(uint32_t)x[i] * (uint32_t)p.rounds + x[i];
    }
    uint64_t sum = 0;
    UNROLL
    for (int i = 0; i < CHAINS; i++) sum += x[i];
    p.out[thread] = sum;
}
