// The reduction kernels for AVX2 and F16C.
#define UZIP_REDUCE_KERNELS reduce_kernels_avx2
#include "base/reduce_kernels.inl"
