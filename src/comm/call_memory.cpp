#include "comm/call_memory.hpp"

#include "comm/gpu_devices.hpp"

#include <sys/uio.h>
#include <unistd.h>

#include <cerrno>

namespace uzip {
namespace {

/// One of the call's buffers and what the plugin says of it.
struct Buffer {
  const char* name;
  const std::byte* data;
  size_t bytes;
  gpu::PointerInfo info;

  bool on_gpu() const { return info.kind == gpu::MemoryKind::kDevice || info.kind == gpu::MemoryKind::kManaged; }
};

Status check_host_buffer(const CollArgs& args, const Buffer& buffer) {
  if (is_readable(buffer.data)) return Status();
  return error(UZIP_ERR_INVALID, "%s: %s is %p, which is neither memory of the host nor of a GPU that can be used here; "
                                 "was it freed, or is the library's GPU plugin missing or off (UZIP_GPU_PLUGIN)?",
               call_name(args.kind), buffer.name, static_cast<const void*>(buffer.data));
}

/// What device memory does not allow.
Status check_supported(const CollArgs& args) {
  if (args.user_op)
    return error(UZIP_ERR_UNSUPPORTED, "%s: a user-defined operation runs on the host and can't reduce what is in GPU "
                                       "memory; copy the elements to the host, or take one of the library's operations",
                 call_name(args.kind));
  return Status();
}

}  // namespace

bool is_readable(const void* data) {
  char byte;
  const iovec local{&byte, 1}, remote{const_cast<void*>(data), 1};
  return process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == 1 || errno != EFAULT;
}

Status find_memory(GpuDevices& gpus, CollArgs& args) {
  if (!gpus.in_use()) return Status();
  const gpu::PluginApi* const api = gpus.plugin();
  Buffer buffers[] = {{"src", args.src, args.src_bytes, {gpu::MemoryKind::kHost, -1}},
                      {"dst", args.dst, args.dst_bytes, {gpu::MemoryKind::kHost, -1}}};
  const Buffer* on_gpu = nullptr;
  bool pinned = false;
  for (Buffer& buffer : buffers) {
    if (buffer.bytes == 0 || !buffer.data) continue;
    if (&buffer != buffers && buffer.data == buffers[0].data && buffers[0].bytes > 0) buffer.info = buffers[0].info;
    else if (api && api->describe_pointer(buffer.data, &buffer.info) != 0)
      return error(UZIP_ERR_INTERNAL, "%s: where is %s? %s", call_name(args.kind), buffer.name, api->last_error());
    pinned |= buffer.info.kind == gpu::MemoryKind::kPinned;
    if (buffer.info.kind == gpu::MemoryKind::kHost) UZIP_RETURN_IF_ERROR(check_host_buffer(args, buffer));
    // Managed memory can be used on any GPU: that of the other buffer decides.
    if (buffer.on_gpu() && (!on_gpu || buffer.info.kind == gpu::MemoryKind::kDevice)) {
      if (on_gpu && on_gpu->info.kind == gpu::MemoryKind::kDevice && on_gpu->info.device != buffer.info.device)
        return error(UZIP_ERR_INVALID, "%s: src is in memory of GPU %d and dst in that of GPU %d; both must be on one",
                     call_name(args.kind), on_gpu->info.device, buffer.info.device);
      on_gpu = &buffer;
    }
  }
  if (on_gpu) {
    for (const Buffer& buffer : buffers)
      if (buffer.bytes > 0 && buffer.data && buffer.info.kind == gpu::MemoryKind::kHost)
        return error(UZIP_ERR_INVALID, "%s: %s is in memory of GPU %d and %s in ordinary host memory, which the GPU "
                                       "can't reach; put both on the GPU, or use pinned memory",
                     call_name(args.kind), on_gpu->name, on_gpu->info.device, buffer.name);
    args.device = on_gpu->info.device;
    if (on_gpu->info.kind == gpu::MemoryKind::kManaged) (void)api->current_device(&args.device);
  } else if (pinned && args.stream) {
    // Host memory, but what fills it may still be on the stream.
    if (api->current_device(&args.device) != 0)
      return error(UZIP_ERR_INTERNAL, "%s: %s", call_name(args.kind), api->last_error());
    for (const Buffer& buffer : buffers)
      if (buffer.bytes > 0 && buffer.data && buffer.info.kind == gpu::MemoryKind::kHost)
        return error(UZIP_ERR_INVALID, "%s: with a stream, %s must be in memory that a GPU can reach: of the GPU, "
                                       "managed or pinned", call_name(args.kind), buffer.name);
  }
  return args.device >= 0 ? check_supported(args) : Status();
}

}  // namespace uzip
