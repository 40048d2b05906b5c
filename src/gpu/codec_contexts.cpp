#include "gpu/codec_contexts.hpp"

#include <algorithm>
#include <bit>

namespace uzip::gpu {
namespace {

/// A codec's working memory has a word for 8192 elements, so those for less would save nothing.
constexpr uint64_t kLeastCount = uint64_t{1} << 22;

}  // namespace

Status device_status(const PluginApi& api, int device, int failed) {
  return failed == 0 ? Status() : error(UZIP_ERR_INTERNAL, "GPU %d: %s", device, api.last_error());
}

CodecContexts::~CodecContexts() {
  for (CodecContext* context : contexts_) api_.destroy_codec(context);
}

Result<CodecContext*> CodecContexts::get(uint64_t count) {
  if (!contexts_.empty() && count <= most_count_) return contexts_.back();
  const uint64_t most = std::max(std::bit_ceil(count), kLeastCount);
  CodecContext* context = nullptr;
  UZIP_RETURN_IF_ERROR(device_status(api_, device_, api_.create_codec(most, &context)));
  contexts_.push_back(context);
  most_count_ = most;
  return context;
}

}  // namespace uzip::gpu
