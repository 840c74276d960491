// All kernels of the backend, as one program. src/kernel.rs names them.
#include "conversion.cuh"
#include "ntt.cuh"
#include "pointwise.cuh"
#include "products.cuh"
