// A buffer with guard bands: bytes before and after the part in use that nothing may touch. It may have a twin in memory
// of a GPU, which is what calls get.
#pragma once

#include "device_runtime.hpp"

#include <cstddef>
#include <memory>

namespace perf {

class GuardedBuffer {
 public:
  static constexpr size_t kGuard = 256;

  /// Room for `capacity` bytes, aligned to 64, with guard bands at both ends.
  /// With a `device`, the twin is there.
  explicit GuardedBuffer(size_t capacity, const DeviceRuntime* device = nullptr);

  std::byte* data() { return start_; }
  const std::byte* data() const { return start_; }
  size_t capacity() const { return capacity_; }

  /// Puts the guard bands around the first `bytes` bytes (at most the capacity).
  void arm(size_t bytes);
  /// Number of guard bytes that changed since arm().
  size_t count_trespasses() const;
  /// Sets the armed part to a pattern that no result has by chance.
  void poison();

  /// What a call gets for a place in this buffer: the place itself, or that in the twin.
  std::byte* passed(std::byte* place) const { return twin_ ? twin_.get() + (place - begin()) : place; }
  /// Copies the armed part and the guard bands to the twin, or from it; nothing where there is none.
  void push();
  void pull();
  /// Copies the first `bytes` bytes of another buffer to a place in this one, where calls see them: with twins, between these.
  void copy_from(const GuardedBuffer& other, std::byte* place, size_t bytes);

 private:
  struct Releaser {
    const DeviceRuntime* device;
    void operator()(std::byte* memory) const { device->release(memory); }
  };
  std::byte* begin() const { return start_ - kGuard; }
  size_t used() const { return armed_ + 2 * kGuard; }

  size_t capacity_;
  size_t armed_ = 0;
  std::unique_ptr<std::byte[]> storage_;
  std::byte* start_;
  const DeviceRuntime* device_;
  std::unique_ptr<std::byte, Releaser> twin_;
};

}  // namespace perf
