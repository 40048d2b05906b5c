// The GPUs that calls on frames use: tells where elements and frame are, and has what codes there. One for the process,
// since these calls belong to no communicator. Used by codec_api.cpp only.
#pragma once

#include "base/status.hpp"
#include "comm/gpu_devices.hpp"
#include "gpu/frame_codec.hpp"

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <vector>

namespace uzip {

/// Any thread; calls on GPU memory wait for one another, those on host memory for nobody.
class FrameGpus {
 public:
  static FrameGpus& instance();
  FrameGpus(const FrameGpus&) = delete;
  FrameGpus& operator=(const FrameGpus&) = delete;

  /// Uses this plugin from now on, null: the one that the settings say, and forgets all devices. For tests.
  void use(const gpu::PluginApi* api);

  /// A block of memory that a call was given, under its argument's name.
  struct Buffer {
    const char* name;
    const void* data;
    size_t bytes;
  };
  /// The GPU that has the elements, the current one if they are managed, that of the frame if there are none; -1: the host's
  /// work. An error: one of the two can't be read by anybody, or the frame is on a GPU and its elements are not.
  Result<int> device_of(const Buffer& elements, const Buffer& frame);

  /// Calls `work` with the codec of the GPU, which nobody else uses meanwhile.
  template <class Work>
  Status with(int device, const Work& work) {
    const std::lock_guard lock(coding_);
    UZIP_ASSIGN_OR_RETURN(gpu::FrameCodec* const codec, codec_of(device));
    return work(*codec);
  }

 private:
  FrameGpus() = default;
  Result<GpuDevices*> devices();
  Result<gpu::FrameCodec*> codec_of(int device);

  std::atomic<const gpu::PluginApi*> test_api_ = nullptr;
  std::mutex making_;                    ///< devices_
  std::unique_ptr<GpuDevices> devices_;  ///< for the plugin that the settings name
  std::mutex coding_;                    ///< codecs_, and what they do
  std::vector<std::unique_ptr<gpu::FrameCodec>> codecs_;  ///< by number of the device
};

}  // namespace uzip
