// What all host code has in common that codes on a device: its working memory there, and what its kernels ask of memory. Used
// by FrameCodec and StreamExecutor.
#pragma once

#include "base/status.hpp"
#include "gpu/plugin.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace uzip::gpu {

/// Alignment of the parts of a frame.
inline constexpr size_t kPartAlignment = 16;

/// What a function of the plugin says, with the number of the device.
Status device_status(const PluginApi& api, int device, int failed);

/// Codecs of one device, made as frames get longer; with it as the current one. Those for shorter frames may still be in use
/// then, so all live until this ends.
class CodecContexts {
 public:
  CodecContexts(const PluginApi& api, int device) : api_(api), device_(device) {}
  ~CodecContexts();
  CodecContexts(const CodecContexts&) = delete;
  CodecContexts& operator=(const CodecContexts&) = delete;

  /// One for frames of `count` elements.
  Result<CodecContext*> get(uint64_t count);

 private:
  const PluginApi& api_;
  const int device_;
  std::vector<CodecContext*> contexts_;  ///< the last one is for the longest frames
  uint64_t most_count_ = 0;              ///< elements that it is for
};

}  // namespace uzip::gpu
