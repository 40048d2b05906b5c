// Memory that processes open to one another, and streams that write and wait for words of memory,
// under one name for CUDA and HIP. Host code of the plugin only.
#pragma once

#include "gpu/runtime.hpp"

#include <cstdint>

#if !defined(__HIP__)
#include <cuda.h>
#endif

namespace uzip::gpu {

#if defined(__HIP__)
using IpcHandle = hipIpcMemHandle_t;

struct WordOperations {
  bool load() { return true; }
  bool write(Stream stream, uint64_t* word, uint64_t value) const {
    return hipStreamWriteValue64(stream, word, value, 0) == hipSuccess;
  }
  bool wait(Stream stream, uint64_t* word, uint64_t value) const {
    return hipStreamWaitValue64(stream, word, value, hipStreamWaitValueGte) == hipSuccess;
  }
};
#else
using IpcHandle = cudaIpcMemHandle_t;

/// Functions of the driver, which the plugin does not link.
class WordOperations {
 public:
  bool load() {
    return find("cuStreamWriteValue64", &write_) && find("cuStreamWaitValue64", &wait_);
  }
  /// After all that is on the stream before; visible to whoever sees it.
  bool write(Stream stream, uint64_t* word, uint64_t value) const {
    return write_(stream, reinterpret_cast<CUdeviceptr>(word), value,
                  CU_STREAM_WRITE_VALUE_DEFAULT) == CUDA_SUCCESS;
  }
  /// Until the word is `value` or more.
  bool wait(Stream stream, uint64_t* word, uint64_t value) const {
    return wait_(stream, reinterpret_cast<CUdeviceptr>(word), value, CU_STREAM_WAIT_VALUE_GEQ) ==
           CUDA_SUCCESS;
  }

 private:
  using Function = CUresult (*)(CUstream, CUdeviceptr, cuuint64_t, unsigned);

  static bool find(const char* name, Function* function) {
    cudaDriverEntryPointQueryResult found;
    constexpr unsigned kVersion = 12000;  // of the driver's interface
    return cudaGetDriverEntryPointByVersion(name, reinterpret_cast<void**>(function), kVersion,
                                            cudaEnableDefault, &found) == cudaSuccess &&
           found == cudaDriverEntryPointSuccess;
  }

  Function write_ = nullptr;
  Function wait_ = nullptr;
};
#endif

}  // namespace uzip::gpu
