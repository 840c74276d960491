// The dialect that all kernels are written in: CUDA C++, or plain C++ where HOST_SHIM is defined.
//
// A kernel is declared with KERNEL(name, Params, threads[, blocks per multiprocessor]) and takes one plain struct by value. Dynamic shared memory is
// named with SHARED. CHECK states what a proof says, and is tested where the kernels run on the host. Everything else is CUDA's own: blockIdx, threadIdx, __syncthreads().
#pragma once

#include <stdint.h>

#ifdef HOST_SHIM
#include "shim.h"
#else
#define KERNEL(name, Params, ...) \
    extern "C" __global__ void __launch_bounds__(__VA_ARGS__) name(const __grid_constant__ Params p)
#define SHARED(type, name) extern __shared__ type name[]
#define DEVICE __device__ __forceinline__
#define UNROLL _Pragma("unroll")
#define CHECK(condition)
#endif
