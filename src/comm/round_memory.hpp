// The memory of one round: scratch, and wire places. For buffers in host memory one block of the engine's pool; for
// those of a GPU two, since the transport sends from host memory what the GPU computes in its own.
#pragma once

#include "comm/buffer_pool.hpp"
#include "gpu/device_memory.hpp"

#include <cstddef>

namespace uzip {

struct GpuDevice;
struct PreparedSchedule;

class RoundMemory {
 public:
  /// Takes what the schedule needs, from `pool` or the GPU. It must hold nothing.
  Status get(const PreparedSchedule& schedule, BufferPool& pool, GpuDevice* gpu);
  void put();

  /// Whether it is enough for this schedule.
  bool suffices(const PreparedSchedule& schedule) const;
  bool empty() const { return !pool_ && !gpu_; }

  std::byte* wires() const { return gpu_ ? pinned_.data : host_.data; }
  /// Scratch and, on a GPU, the places where frames are coded.
  std::byte* scratch() const { return gpu_ ? device_.data : host_.data; }

 private:
  BufferPool* pool_ = nullptr;
  GpuDevice* gpu_ = nullptr;
  Buffer host_;
  gpu::DeviceBlock pinned_, device_;
  size_t memory_bytes_ = 0, device_bytes_ = 0;  ///< that were asked for
};

}  // namespace uzip
