// The runtime functions that the plugin calls, under one name for CUDA and HIP. Host code of the
// plugin only.
#pragma once

#include "gpu/platform.hpp"

#include <cstddef>

#if defined(__HIP__)
#define UZIP_GPU_RUNTIME(name) hip##name
#define UZIP_KERNEL_ARGUMENT
#else
#define UZIP_GPU_RUNTIME(name) cuda##name
#define UZIP_KERNEL_ARGUMENT __grid_constant__
#endif

namespace uzip::gpu {

using Error = UZIP_GPU_RUNTIME(Error_t);
using Stream = UZIP_GPU_RUNTIME(Stream_t);
using Event = UZIP_GPU_RUNTIME(Event_t);
inline constexpr Error kSuccess = UZIP_GPU_RUNTIME(Success);

inline const char* error_text(Error error) { return UZIP_GPU_RUNTIME(GetErrorString)(error); }
/// The error of the last launch; clears it.
inline Error take_error() { return UZIP_GPU_RUNTIME(GetLastError)(); }

/// How many blocks of threads a processor of the current device runs at a time; `shared_bytes` are
/// those of shared memory that a launch adds. Must be asked before the first launch on a device.
template <class Kernel>
Error blocks_per_processor(int* blocks, Kernel kernel, int threads, unsigned shared_bytes) {
#if !defined(__HIP__)
  if (shared_bytes > 0) {
    const Error error = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                             static_cast<int>(shared_bytes));
    if (error != kSuccess) return error;
  }
#endif
  return UZIP_GPU_RUNTIME(OccupancyMaxActiveBlocksPerMultiprocessor)(blocks, kernel, threads,
                                                                     shared_bytes);
}

/// Brings a kernel to the device, which otherwise its first launch does.
template <class Kernel>
Error load_kernel(Kernel kernel) {
#if defined(__HIP__)
  hipFuncAttributes attributes;
#else
  cudaFuncAttributes attributes;
#endif
  return UZIP_GPU_RUNTIME(FuncGetAttributes)(&attributes, reinterpret_cast<const void*>(kernel));
}

}  // namespace uzip::gpu
