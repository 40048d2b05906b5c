#include "comm/gpu_devices.hpp"

#include "base/log.hpp"
#include "comm/gpu_peers.hpp"
#include "comm/sysfs.hpp"

#include <algorithm>
#include <mutex>

namespace uzip {
namespace {

/// The plugin that the setting names, opened once for the process; null, and a line in the log, if it can't be.
const gpu::PluginApi* open_named(const std::string& path) {
  const auto opened = gpu::open_plugin(path);
  if (opened.ok()) return *opened;
  log(LogLevel::kWarn, "UZIP_GPU_PLUGIN: %s; the installed plugin is taken instead, if there is one", opened.status().message().c_str());
  return nullptr;
}

const gpu::PluginApi* open_installed() {
  const auto opened = gpu::installed_plugin();
  static std::once_flag said;
  if (opened.ok()) return *opened;
  std::call_once(said, [&] {
    log(LogLevel::kWarn, "buffers must be in host memory: %s", opened.status().message().c_str());
  });
  return nullptr;
}

}  // namespace

GpuDevices::GpuDevices(const Config& config) : config_(config), looks_(config.gpu == "auto") {
  if (looks_ || config.gpu == "off") return;
  api_ = open_named(config.gpu);
  looks_ = !api_;  // so that memory of a GPU is an error at least, not a crash
}

const gpu::PluginApi* GpuDevices::plugin() {
  if (api_) return api_;
  return looks_ && gpu::gpu_in_use() ? open_installed() : nullptr;
}

Result<GpuDevice*> GpuDevices::device(int number) {
  for (const auto& device : devices_)
    if (device->number == number) return device.get();
  const gpu::PluginApi* const api = plugin();
  if (!api) return error(UZIP_ERR_UNSUPPORTED, "there is no plugin for GPU %d", number);
  gpu::DeviceInfo info = {};
  const int numa_node = api->describe_device(number, &info) == 0 ? numa_of_pci(info.bus) : -1;
  auto made = std::make_unique<GpuDevice>(*api, number, numa_node);
  // What is staged meanwhile finds room beside two kernels that wait for other ranks: all of its blocks, which wait for
  // one another.
  const int blocks = config_.gpu_blocks == 0 && config_.gpu_peers ? info.processors : config_.gpu_blocks;
  UZIP_ASSIGN_OR_RETURN(made->executor, gpu::StreamExecutor::create(*api, number, static_cast<unsigned>(blocks)));
  devices_.push_back(std::move(made));
  return devices_.back().get();
}

bool GpuDevices::has_room(GpuDevice& device, size_t pinned_bytes, size_t device_bytes) const {
  const size_t limit = config_.gpu_memory ? config_.gpu_memory : kDefaultMemory;
  const size_t more = gpu::DeviceMemory::rounded(pinned_bytes) + gpu::DeviceMemory::rounded(device_bytes);
  const size_t in_use = device.pinned.in_use_bytes() + device.memory.in_use_bytes();
  if (in_use + more + device.pinned.idle_bytes() + device.memory.idle_bytes() <= limit) return true;
  if (device.pinned.has_idle(pinned_bytes) && device.memory.has_idle(device_bytes)) return true;
  if (in_use + more > limit) return false;
  device.pinned.release_idle();
  device.memory.release_idle();
  return true;
}

bool GpuDevices::progress() {
  bool moved = false;
  // Calls of the peers end first: what they waited for on their streams has come by then, too.
  for (size_t i = 0; i < peers_.size(); ++i) moved |= peers_[i]->progress();
  for (const auto& device : devices_) moved |= device->executor->progress();
  return moved;
}

bool GpuDevices::busy() const {
  return std::any_of(devices_.begin(), devices_.end(), [](const auto& device) { return device->executor->busy(); }) ||
         std::any_of(peers_.begin(), peers_.end(), [](const GpuPeers* peers) { return peers->busy(); });
}

}  // namespace uzip
