// The tables of reduction kernels, one for each CPU target; reduce.cpp chooses among them. Plain
// pointers and no inline functions: this header is compiled for every instruction set (see
// reduce_kernels.inl).
#pragma once

#include <cstddef>
#include <cstdint>

namespace uzip {

inline constexpr size_t kReduceTypes = 12;
inline constexpr size_t kReduceOps = 5;

/// As reduce(), for `bytes` > 0 of elements and `source_count` > 0. `average_over` is for UZIP_AVG
/// only, and > 0. Needs the default floating point environment.
using ReduceKernel = void (*)(void* dst, const void* const* sources, size_t source_count,
                              size_t bytes, size_t average_over);

/// kernels[type][op], by the values of uzip_dtype_t and uzip_op_t.
struct ReduceKernels {
  ReduceKernel kernels[kReduceTypes][kReduceOps];
};

extern const ReduceKernels reduce_kernels_portable;
extern const ReduceKernels reduce_kernels_avx2;
extern const ReduceKernels reduce_kernels_avx512;

}  // namespace uzip
