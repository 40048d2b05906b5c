// The plugin and memory of a device for the tests and measuring programs of src/gpu. The plugin is
// looked for at UZIP_TEST_GPU_PLUGIN, or else in the build directory.
#pragma once

#include "gpu/plugin_loader.hpp"

#include <cstdio>
#include <cstdlib>
#include <string>

namespace uzip::gpu {

/// Null when there is no plugin or no device; then *why says which.
inline const PluginApi* find_gpu(std::string* why) {
  const char* const path = std::getenv("UZIP_TEST_GPU_PLUGIN");
  const auto plugin = open_plugin(path != nullptr ? path : "./libuzipcoll_cuda.so");
  if (!plugin.ok()) {
    *why = plugin.status().message();
    return nullptr;
  }
  int devices = 0;
  if ((*plugin)->device_count(&devices) != 0) {
    *why = (*plugin)->last_error();
    return nullptr;
  }
  *why = "there is no GPU";
  return devices > 0 ? *plugin : nullptr;
}

/// Ends the program with the plugin's message unless `failed` is 0.
inline void require(const PluginApi& gpu, int failed) {
  if (failed == 0) return;
  std::fprintf(stderr, "%s\n", gpu.last_error());
  std::exit(1);
}

/// Memory of the current device.
class GpuMemory {
 public:
  GpuMemory(const PluginApi& gpu, size_t bytes) : gpu_(gpu), bytes_(bytes) {
    require(gpu, gpu.allocate(&memory_, bytes));
  }
  ~GpuMemory() { gpu_.release(memory_); }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;
  uint8_t* data() const { return static_cast<uint8_t*>(memory_); }
  size_t size() const { return bytes_; }

 private:
  const PluginApi& gpu_;
  void* memory_ = nullptr;
  size_t bytes_;
};

}  // namespace uzip::gpu
