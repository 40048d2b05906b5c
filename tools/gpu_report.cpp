#include "gpu_report.hpp"

#include "comm/gpu_devices.hpp"
#include "comm/sysfs.hpp"
#include "gpu/plugin_loader.hpp"

#include <cstdio>
#include <string>

namespace uzip {
namespace {

Status failed(const gpu::PluginApi& api) { return error(UZIP_ERR_INTERNAL, "%s", api.last_error()); }

Status print_device(const gpu::PluginApi& api, int device) {
  gpu::DeviceInfo info;
  if (api.describe_device(device, &info) != 0) return failed(api);
  const int numa = numa_of_pci(info.bus);
  std::printf("GPU %-3d      %s, %s, NUMA node %s, compute capability %d.%d, %d multiprocessors, %.1f GiB\n", device, info.name,
              info.bus, numa < 0 ? "unknown" : std::to_string(numa).c_str(), info.compute_major, info.compute_minor,
              info.processors, static_cast<double>(info.memory_bytes) / (1 << 30));
  return Status();
}

/// Whose memory a GPU reaches, and whether the link has atomics of its own, as NVLink and Infinity Fabric do.
Status print_peers(const gpu::PluginApi& api, int device, int count) {
  for (int peer = 0; peer < count; ++peer) {
    if (peer == device) continue;
    gpu::PairInfo pair;
    if (api.describe_pair(device, peer, &pair) != 0) return failed(api);
    std::printf("GPU %d -> %-3d %s\n", device, peer,
                !pair.access          ? "no access to its memory"
                : pair.native_atomics ? "reads and writes its memory, by a link of their own (with atomics)"
                                      : "reads and writes its memory, by PCIe (without atomics)");
  }
  return Status();
}

}  // namespace

Status print_gpus(const Config& config) {
  if (config.gpu == "off") {
    std::printf("GPUs         not looked for: UZIP_GPU_PLUGIN is off\n");
    return Status();
  }
  const auto opened = config.gpu == "auto" ? gpu::installed_plugin() : gpu::open_plugin(config.gpu);
  if (!opened.ok()) {
    if (config.gpu != "auto") return opened.status();
    std::printf("GPUs         none: %s\n", opened.status().message().c_str());
    return Status();
  }
  const gpu::PluginApi& api = **opened;
  int count = 0;
  if (api.device_count(&count) != 0) {
    std::printf("GPUs         none: %s\n", api.last_error());
    return Status();
  }
  std::printf("plugin       %s\n", api.name);
  std::printf("GPU memory   calls use at most %zu MiB of each (UZIP_GPU_MEMORY)\n",
              (config.gpu_memory ? config.gpu_memory : GpuDevices::kDefaultMemory) >> 20);
  for (int device = 0; device < count; ++device) UZIP_RETURN_IF_ERROR(print_device(api, device));
  for (int device = 0; device < count; ++device) UZIP_RETURN_IF_ERROR(print_peers(api, device, count));
  return Status();
}

}  // namespace uzip
