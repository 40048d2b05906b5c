// Memory for scratch and wire places: blocks are reused, so that a running call does not allocate.
#pragma once

#include "base/status.hpp"

#include <cstddef>
#include <vector>

namespace uzip {

/// Aligned block of memory; given back to its pool by hand (BufferPool::put).
struct Buffer {
  std::byte* data = nullptr;
  size_t bytes = 0;
};

/// Blocks of power-of-two sizes. Keeps at most kMostIdleBytes that nobody uses; what is in use is bounded by
/// the plans: window * bytes of a round for each operation in flight.
class BufferPool {
 public:
  static constexpr size_t kMostIdleBytes = 64 * 1024 * 1024;

  BufferPool() = default;
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// At least `bytes` bytes, with kSlack more behind them that vector code may touch.
  Result<Buffer> get(size_t bytes);
  void put(Buffer buffer);

  size_t in_use_bytes() const { return in_use_; }
  size_t idle_bytes() const { return idle_bytes_; }
  static constexpr size_t kSlack = 64;

 private:
  std::vector<Buffer> idle_;
  size_t idle_bytes_ = 0;
  size_t in_use_ = 0;
};

}  // namespace uzip
