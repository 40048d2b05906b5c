// Memory of a GPU for the measuring programs, through the driver's library, which is opened when it is asked for: the
// programs themselves need no GPU.
#pragma once

#include <cstddef>
#include <string>

namespace perf {

/// Where the buffers of a call are.
enum class MemoryKind { kHost, kCuda, kPinned, kManaged };
/// "cuda"
const char* name_of(MemoryKind kind);

class DeviceRuntime {
 public:
  /// For memory of this kind, which is not the host's, on GPU `rank` modulo their number. Throws Failure if there is
  /// no driver or no GPU.
  DeviceRuntime(MemoryKind kind, int rank);

  /// Throws Failure if there is not so much.
  std::byte* allocate(size_t bytes) const;
  void release(std::byte* memory) const;
  /// Between any two kinds of memory; returns when it is done.
  void copy(void* dst, const void* src, size_t bytes) const;
  /// "NVIDIA H200"
  const std::string& device_name() const { return device_name_; }

 private:
  MemoryKind kind_;
  std::string device_name_;
};

/// A stream of the GPU that the thread's last DeviceRuntime is for.
class DeviceStream {
 public:
  /// Throws Failure.
  DeviceStream();
  ~DeviceStream();
  DeviceStream(const DeviceStream&) = delete;
  DeviceStream& operator=(const DeviceStream&) = delete;
  /// CUDA's own: a CUstream or cudaStream_t.
  void* handle() const { return stream_; }
  /// Whether all that was given to it has ended. Throws Failure if something of it has failed.
  bool is_done() const;

 private:
  void* stream_ = nullptr;
};

}  // namespace perf
