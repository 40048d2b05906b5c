// Pinned host memory and memory of a device for calls in flight: blocks are reused, since a runtime's own allocation
// may wait for all that a device is doing. Used by src/comm for each GPU.
#pragma once

#include "base/status.hpp"
#include "gpu/plugin.hpp"

#include <cstddef>
#include <vector>

namespace uzip::gpu {

/// Makes `device` the calling thread's current one while it lives.
class DeviceScope {
 public:
  DeviceScope(const PluginApi& api, int device);
  ~DeviceScope();
  DeviceScope(const DeviceScope&) = delete;
  DeviceScope& operator=(const DeviceScope&) = delete;

 private:
  const PluginApi& api_;
  int before_ = -1;  ///< -1: it was the current one
};

struct DeviceBlock {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

/// Blocks of one kind on one device. Not thread-safe. The blocks that are out must be back before it ends.
class DeviceMemory {
 public:
  enum class Kind { kPinned, kDevice };
  /// `numa_node`: where pinned memory should be, that of the device; -1: nobody knows.
  DeviceMemory(const PluginApi& api, int device, Kind kind, int numa_node = -1)
      : api_(api), device_(device), kind_(kind), numa_node_(numa_node) {}
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  /// At least `bytes`, aligned to 256; of none, no block. Nothing may be going on any more in a block that is put back.
  Result<DeviceBlock> get(size_t bytes);
  void put(DeviceBlock block);
  /// Gives what nobody uses back to the runtime, which may wait for the device.
  void release_idle();

  /// Whether get() would find a block.
  bool has_idle(size_t bytes) const;
  /// What get() adds to in_use_bytes().
  static size_t rounded(size_t bytes);
  size_t in_use_bytes() const { return in_use_; }
  size_t idle_bytes() const { return idle_bytes_; }

 private:
  void release(std::byte* data);

  const PluginApi& api_;
  const int device_;
  const Kind kind_;
  const int numa_node_;
  std::vector<DeviceBlock> idle_;
  size_t in_use_ = 0;
  size_t idle_bytes_ = 0;
};

}  // namespace uzip::gpu
