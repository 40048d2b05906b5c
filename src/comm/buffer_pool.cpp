#include "comm/buffer_pool.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <cstdlib>

namespace uzip {
namespace {

/// Page-aligned, so that blocks never share a cache line or page with the caller's data.
constexpr size_t kAlignment = 4096;

}  // namespace

BufferPool::~BufferPool() {
  for (const Buffer& buffer : idle_) std::free(buffer.data);
}

Result<Buffer> BufferPool::get(size_t bytes) {
  if (bytes > PTRDIFF_MAX / 4)
    return error(UZIP_ERR_NO_MEMORY, "a round would need %zu bytes of scratch; use smaller chunks", bytes);
  const size_t size = std::max(std::bit_ceil(bytes + kSlack), kAlignment);
  for (size_t i = idle_.size(); i-- > 0;) {
    if (idle_[i].bytes != size) continue;
    const Buffer buffer = idle_[i];
    idle_.erase(idle_.begin() + static_cast<ptrdiff_t>(i));
    idle_bytes_ -= size;
    in_use_ += size;
    return buffer;
  }
  void* data = std::aligned_alloc(kAlignment, size);
  if (!data)
    return error(UZIP_ERR_NO_MEMORY, "no memory for %zu bytes of scratch (%zu in use); use smaller chunks",
                 size, in_use_);
  in_use_ += size;
  return Buffer{static_cast<std::byte*>(data), size};
}

void BufferPool::put(Buffer buffer) {
  if (!buffer.data) return;
  in_use_ -= buffer.bytes;
  if (idle_bytes_ + buffer.bytes > kMostIdleBytes) return std::free(buffer.data);
  idle_bytes_ += buffer.bytes;
  idle_.push_back(buffer);
}

}  // namespace uzip
