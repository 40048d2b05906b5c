// Memory whose last byte is followed by a page that may not be touched, for finding reads and
// writes past the end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uzip {

class GuardedMemory {
 public:
  explicit GuardedMemory(size_t capacity);
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  /// The last `bytes` bytes before the guard page; at most the capacity.
  std::span<std::byte> last(size_t bytes) const { return {end_ - bytes, bytes}; }

 private:
  std::byte* begin_;
  std::byte* end_;
  size_t mapped_;
};

}  // namespace uzip
