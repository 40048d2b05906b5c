// A job whose calls may have buffers in GPU memory, of the GPU that the tests make up or of a real one, and arrays there.
#pragma once

#include "comm/loopback_job.hpp"
#include "gpu/plugin.hpp"

#include <cstddef>
#include <string>

namespace uzip {

/// A plugin, and how many devices it has.
struct TestGpu {
  const gpu::PluginApi* api = nullptr;
  int devices = 0;
  bool fake = false;
};
TestGpu fake_gpu_for_tests(uint64_t seed);
/// Without a device or plugin (UZIP_TEST_GPU_PLUGIN, or the one of this build) `api` is null and *why says which.
TestGpu real_gpu(std::string* why);

/// All engines use this plugin.
class GpuJob : public LoopbackJob {
 public:
  GpuJob(const TestGpu& gpu, int ranks, const LoopbackOptions& wire = {}, const Config& config = Config());
};

/// Bytes in memory of a kind. Of a real GPU managed memory is device memory.
class GpuArray {
 public:
  GpuArray(const TestGpu& gpu, gpu::MemoryKind kind, int device, size_t bytes);
  ~GpuArray();
  GpuArray(GpuArray&& other) noexcept;
  GpuArray(const GpuArray&) = delete;
  GpuArray& operator=(const GpuArray&) = delete;

  std::byte* data() const { return data_; }
  size_t size() const { return bytes_; }
  void write(const void* from) const { move(data_, from); }
  void read(void* to) const { move(to, data_); }

 private:
  void move(void* dst, const void* src) const;

  TestGpu gpu_;
  gpu::MemoryKind kind_;
  std::byte* data_ = nullptr;
  size_t bytes_;
};

/// Delays, other orders, and each message in a way of its own.
LoopbackOptions stormy_gpu_wire(uint64_t seed);

}  // namespace uzip
