// The reduction kernels at the compiler's baseline: SSE2 on x86-64, NEON on AArch64.
#define UZIP_REDUCE_KERNELS reduce_kernels_portable
#include "base/reduce_kernels.inl"
