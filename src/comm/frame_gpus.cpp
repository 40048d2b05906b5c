#include "comm/frame_gpus.hpp"

#include "comm/call_memory.hpp"

namespace uzip {

FrameGpus& FrameGpus::instance() {
  // Never destroyed: a GPU's runtime may have ended before the destructors of a library run.
  static FrameGpus* const gpus = new FrameGpus();
  return *gpus;
}

void FrameGpus::use(const gpu::PluginApi* api) {
  const std::scoped_lock lock(coding_, making_);
  codecs_.clear();
  devices_.reset();
  test_api_ = api;
}

Result<GpuDevices*> FrameGpus::devices() {
  const std::lock_guard lock(making_);
  if (!devices_) {
    UZIP_ASSIGN_OR_RETURN(const Config* const config, load_config());
    devices_ = std::make_unique<GpuDevices>(*config);
    if (test_api_) devices_->use(test_api_);
  }
  return devices_.get();
}

Result<gpu::FrameCodec*> FrameGpus::codec_of(int device) {
  const auto index = static_cast<size_t>(device);
  if (codecs_.size() <= index) codecs_.resize(index + 1);
  if (!codecs_[index]) {
    UZIP_ASSIGN_OR_RETURN(GpuDevices* const gpus, devices());
    UZIP_ASSIGN_OR_RETURN(const Config* const config, load_config());
    UZIP_ASSIGN_OR_RETURN(codecs_[index], gpu::FrameCodec::create(*gpus->plugin(), device,
                                                                  static_cast<unsigned>(config->gpu_blocks),
                                                                  {config->timeout, config->timeout_limit}));
  }
  return codecs_[index].get();
}

Result<int> FrameGpus::device_of(const Buffer& elements, const Buffer& frame) {
  if (!test_api_ && !gpu::gpu_in_use()) return -1;
  UZIP_ASSIGN_OR_RETURN(GpuDevices* const gpus, devices());
  if (!gpus->in_use()) return -1;
  const gpu::PluginApi* const api = gpus->plugin();
  const Buffer* const buffers[] = {&elements, &frame};
  gpu::PointerInfo infos[] = {{gpu::MemoryKind::kHost, -1}, {gpu::MemoryKind::kHost, -1}};
  for (size_t i = 0; i < 2; ++i) {
    const Buffer& buffer = *buffers[i];
    if (buffer.bytes == 0 || !buffer.data) continue;
    if (api && api->describe_pointer(buffer.data, &infos[i]) != 0)
      return error(UZIP_ERR_INTERNAL, "where is %s? %s", buffer.name, api->last_error());
    if (infos[i].kind == gpu::MemoryKind::kHost && !is_readable(buffer.data))
      return error(UZIP_ERR_INVALID, "%s is %p, which is neither memory of the host nor of a GPU that can be used here; was "
                                     "it freed, or is the library's GPU plugin missing or off (UZIP_GPU_PLUGIN)?",
                   buffer.name, buffer.data);
  }
  const gpu::PointerInfo &of_elements = infos[0], &of_frame = infos[1];
  if (of_elements.kind == gpu::MemoryKind::kDevice) return of_elements.device;
  if (of_elements.kind == gpu::MemoryKind::kManaged) {
    // On the GPU that the caller uses, whose work on them comes first.
    int device = of_frame.device;
    if (of_frame.kind == gpu::MemoryKind::kDevice || api->current_device(&device) == 0) return device;
    return error(UZIP_ERR_INTERNAL, "which GPU is in use? %s", api->last_error());
  }
  if (of_frame.kind != gpu::MemoryKind::kDevice) return -1;
  if (elements.bytes == 0) return of_frame.device;
  return error(UZIP_ERR_INVALID, "%s is in memory of GPU %d and %s in memory of the host; copy one of them to where the "
                                 "other is", frame.name, of_frame.device, elements.name);
}

}  // namespace uzip
