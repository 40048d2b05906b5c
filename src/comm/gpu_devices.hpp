// The GPUs whose memory a job's calls use: opens a plugin when there may be such memory, tells where a pointer is, and
// has for each GPU what runs steps there. Used by Engine, and by the validation of calls through CallContext.
#pragma once

#include "base/config.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/plugin_loader.hpp"
#include "gpu/stream_executor.hpp"

#include <memory>
#include <vector>

namespace uzip {

class GpuPeers;

/// What calls on the memory of one GPU share.
struct GpuDevice {
  /// `numa_node`: of the GPU, or -1.
  GpuDevice(const gpu::PluginApi& api, int device, int numa_node)
      : number(device), pinned(api, device, gpu::DeviceMemory::Kind::kPinned, numa_node),
        memory(api, device, gpu::DeviceMemory::Kind::kDevice) {}

  int number;
  gpu::DeviceMemory pinned;  ///< wire places
  gpu::DeviceMemory memory;  ///< scratch, and the places where frames are coded
  std::unique_ptr<gpu::StreamExecutor> executor;  ///< ends before the memory that it works on
};

class GpuDevices {
 public:
  explicit GpuDevices(const Config& config);
  GpuDevices(const GpuDevices&) = delete;
  GpuDevices& operator=(const GpuDevices&) = delete;

  /// Uses this plugin from now on. For tests; before anything else.
  void use(const gpu::PluginApi* api) { api_ = api; }

  /// The plugin, or null: no pointer can be to memory of a GPU, or UZIP_GPU_PLUGIN is off. That a plugin is missing is logged
  /// once. Needs no lock.
  const gpu::PluginApi* plugin();
  /// Whether there is memory that only a GPU can read, whether or not there is a plugin for it.
  bool in_use() const { return api_ || (looks_ && gpu::gpu_in_use()); }

  // With the engine's mutex.
  /// What there is for this GPU, made at the first call.
  Result<GpuDevice*> device(int number);
  /// Whether so much more stays within UZIP_GPU_MEMORY, of this GPU. Makes room by giving idle blocks back.
  bool has_room(GpuDevice& device, size_t pinned_bytes, size_t device_bytes) const;
  /// What moves forward with progress(), too.
  void add(GpuPeers* peers) { peers_.push_back(peers); }
  void remove(GpuPeers* peers) { std::erase(peers_, peers); }
  const std::vector<GpuPeers*>& peers() const { return peers_; }
  bool progress();
  bool busy() const;

  static constexpr size_t kDefaultMemory = size_t{156} << 20;

 private:
  const Config& config_;
  bool looks_;  ///< for a GPU in use
  const gpu::PluginApi* api_ = nullptr;
  std::vector<std::unique_ptr<GpuDevice>> devices_;
  std::vector<GpuPeers*> peers_;
};

}  // namespace uzip
