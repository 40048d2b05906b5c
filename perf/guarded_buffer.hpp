// A buffer with guard bands: bytes before and after the part in use that nothing may touch.
#pragma once

#include <cstddef>
#include <memory>

namespace perf {

class GuardedBuffer {
 public:
  static constexpr size_t kGuard = 256;

  /// Room for `capacity` bytes, aligned to 64, with guard bands at both ends.
  explicit GuardedBuffer(size_t capacity);

  std::byte* data() { return start_; }
  const std::byte* data() const { return start_; }
  size_t capacity() const { return capacity_; }

  /// Puts the guard bands around the first `bytes` bytes (at most the capacity).
  void arm(size_t bytes);
  /// Number of guard bytes that changed since arm().
  size_t count_trespasses() const;
  /// Sets the armed part to a pattern that no result has by chance.
  void poison();

 private:
  size_t capacity_;
  size_t armed_ = 0;
  std::unique_ptr<std::byte[]> storage_;
  std::byte* start_;
};

}  // namespace perf
