#include "comm/round_memory.hpp"

#include "comm/gpu_devices.hpp"
#include "comm/schedule_cache.hpp"

#include <utility>

namespace uzip {

Status RoundMemory::get(const PreparedSchedule& schedule, BufferPool& pool, GpuDevice* gpu) {
  if (gpu) {
    UZIP_ASSIGN_OR_RETURN(pinned_, gpu->pinned.get(schedule.memory_bytes));
    Result<gpu::DeviceBlock> device = gpu->memory.get(schedule.device_bytes);
    if (!device.ok()) {
      gpu->pinned.put(std::exchange(pinned_, {}));
      return device.status();
    }
    device_ = *device;
    gpu_ = gpu;
  } else {
    UZIP_ASSIGN_OR_RETURN(host_, pool.get(schedule.memory_bytes));
    pool_ = &pool;
  }
  memory_bytes_ = schedule.memory_bytes;
  device_bytes_ = schedule.device_bytes;
  return Status();
}

void RoundMemory::put() {
  if (pool_) pool_->put(std::exchange(host_, {}));
  if (gpu_) {
    gpu_->pinned.put(std::exchange(pinned_, {}));
    gpu_->memory.put(std::exchange(device_, {}));
  }
  pool_ = nullptr;
  gpu_ = nullptr;
}

bool RoundMemory::suffices(const PreparedSchedule& schedule) const {
  return !empty() && schedule.memory_bytes <= memory_bytes_ && schedule.device_bytes <= device_bytes_;
}

}  // namespace uzip
