// All kernels of the backend, as one program. src/kernel.rs names them.
#include "conversion.cuh"
#include "expansion.cuh"
#include "ntt.cuh"
#include "peak.cuh"
#include "pointwise.cuh"
#include "products.cuh"
