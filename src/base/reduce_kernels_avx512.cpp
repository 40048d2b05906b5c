// The reduction kernels for AVX-512 (F, BW, VL, DQ).
#define UZIP_REDUCE_KERNELS reduce_kernels_avx512
#include "base/reduce_kernels.inl"
