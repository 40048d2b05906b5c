#include "guarded_buffer.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace perf {
namespace {
constexpr size_t kAlignment = 64;
constexpr std::byte kGuardByte{0xc3};
constexpr int kPoison = 0xa5;
}  // namespace

// The memory is not touched here, so that pages in use later appear where their user runs.
GuardedBuffer::GuardedBuffer(size_t capacity, const DeviceRuntime* device)
    : capacity_(capacity),
      storage_(new std::byte[capacity + 2 * kGuard + kAlignment]),
      device_(device),
      twin_(device != nullptr ? device->allocate(capacity + 2 * kGuard) : nullptr, Releaser{device}) {
  const auto address = reinterpret_cast<uintptr_t>(storage_.get()) + kGuard;
  start_ = storage_.get() + kGuard + (kAlignment - address % kAlignment) % kAlignment;
}

void GuardedBuffer::arm(size_t bytes) {
  armed_ = std::min(bytes, capacity_);
  std::fill_n(start_ - kGuard, kGuard, kGuardByte);
  std::fill_n(start_ + armed_, kGuard, kGuardByte);
}

size_t GuardedBuffer::count_trespasses() const {
  const auto changed = [](std::byte b) { return b != kGuardByte; };
  return static_cast<size_t>(std::count_if(start_ - kGuard, start_, changed) +
                             std::count_if(start_ + armed_, start_ + armed_ + kGuard, changed));
}

void GuardedBuffer::poison() { std::memset(start_, kPoison, armed_); }

void GuardedBuffer::push() {
  if (twin_) device_->copy(twin_.get(), begin(), used());
}

void GuardedBuffer::pull() {
  if (twin_) device_->copy(begin(), twin_.get(), used());
}

void GuardedBuffer::copy_from(const GuardedBuffer& other, std::byte* place, size_t bytes) {
  if (twin_) device_->copy(passed(place), other.passed(other.start_), bytes);
  else std::memcpy(place, other.start_, bytes);
}

}  // namespace perf
