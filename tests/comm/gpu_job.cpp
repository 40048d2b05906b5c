#include "comm/gpu_job.hpp"

#include "gpu/gpu_memory.hpp"
#include "support/fake_gpu.hpp"

#include <cstring>
#include <utility>

namespace uzip {

TestGpu fake_gpu_for_tests(uint64_t seed) {
  fake_gpu::reset(seed);
  return {fake_gpu::plugin(), fake_gpu::kDevices, true};
}

TestGpu real_gpu(std::string* why) {
  TestGpu gpu;
  gpu.api = gpu::find_gpu(why);
  if (gpu.api) gpu::require(*gpu.api, gpu.api->device_count(&gpu.devices));
  return gpu;
}

GpuJob::GpuJob(const TestGpu& gpu, int ranks, const LoopbackOptions& wire, const Config& config)
    : LoopbackJob(ranks, wire, config) {
  for (int rank = 0; rank < ranks; ++rank) engine(rank).gpus().use(gpu.api);
}

GpuArray::GpuArray(const TestGpu& gpu, gpu::MemoryKind kind, int device, size_t bytes)
    : gpu_(gpu), kind_(kind), bytes_(bytes) {
  if (gpu.fake) {
    data_ = fake_gpu::allocate(kind, device % gpu.devices, bytes);
    return;
  }
  void* memory = nullptr;
  gpu::require(*gpu.api, gpu.api->set_device(device % gpu.devices));
  gpu::require(*gpu.api, kind == gpu::MemoryKind::kPinned ? gpu.api->allocate_pinned(&memory, bytes)
                                                          : gpu.api->allocate(&memory, bytes));
  data_ = static_cast<std::byte*>(memory);
}

GpuArray::GpuArray(GpuArray&& other) noexcept
    : gpu_(other.gpu_), kind_(other.kind_), data_(std::exchange(other.data_, nullptr)), bytes_(other.bytes_) {}

GpuArray::~GpuArray() {
  if (!data_) return;
  if (gpu_.fake) fake_gpu::release(data_);
  else (void)(kind_ == gpu::MemoryKind::kPinned ? gpu_.api->release_pinned(data_) : gpu_.api->release(data_));
}

void GpuArray::move(void* dst, const void* src) const {
  if (gpu_.fake) {
    std::memcpy(fake_gpu::behind(dst), fake_gpu::behind(src), bytes_);
    return;
  }
  gpu::require(*gpu_.api, gpu_.api->copy(dst, src, bytes_, nullptr));
  gpu::require(*gpu_.api, gpu_.api->wait_stream(nullptr));
}

LoopbackOptions stormy_gpu_wire(uint64_t seed) {
  LoopbackOptions wire;
  wire.seed = seed;
  wire.longest_delay = static_cast<int>(seed % 3) * 4;
  wire.reorder_senders = true;
  wire.reorder_messages = seed % 2 == 1;
  wire.random_modes = true;
  wire.eager_limit = seed % 4 == 0 ? 0 : 700;
  return wire;
}

}  // namespace uzip
