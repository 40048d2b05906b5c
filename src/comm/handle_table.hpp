// Opaque handles that can be checked: a handle is a place in a table and how often the place was used before, not
// an address. A handle that was freed, or never made, is found; it is never followed.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

namespace uzip {

/// Places for T, made on demand and never moved. Looking one up takes no lock, using one again no memory.
template <class T>
class HandleTable {
 public:
  /// A new handle, never 0; or 0, and the value unchanged, when the table is full.
  uintptr_t add(T&& value) {
    std::lock_guard lock(mutex_);
    if (free_.empty() && !grow()) return 0;
    const uint32_t index = free_.back();
    free_.pop_back();
    Place& place = *find(index);
    place.value = std::move(value);
    place.live.store(true, std::memory_order_release);
    return make(index, place.generation.load(std::memory_order_relaxed));
  }

  /// What the handle stands for, or null. The caller's thread rule keeps it alive meanwhile.
  T* get(uintptr_t handle) const {
    Place* place = checked(handle);
    return place ? &place->value : nullptr;
  }

  /// Ends the handle; nothing if it was none.
  std::optional<T> remove(uintptr_t handle) {
    std::lock_guard lock(mutex_);
    Place* place = checked(handle);
    if (!place) return std::nullopt;
    place->live.store(false, std::memory_order_release);
    place->generation.fetch_add(1, std::memory_order_release);
    free_.push_back(index_of(handle));
    std::optional<T> value(std::move(place->value));
    place->value = T();
    return value;
  }

 private:
  struct Place {
    std::atomic<uint32_t> generation{1};
    std::atomic<bool> live{false};
    T value{};
  };
  static constexpr uint32_t kBlockPlaces = 1024;
  static constexpr uint32_t kMostBlocks = 4096;

  // Index in the lower half of the word, generation in the upper: no handle is 0, or UZIP_IN_PLACE.
  static constexpr unsigned kIndexBits = sizeof(uintptr_t) * 4;
  static constexpr uintptr_t kHalfMask = (uintptr_t{1} << kIndexBits) - 1;
  static uintptr_t make(uint32_t index, uint32_t generation) {
    return (generation & kHalfMask) << kIndexBits | index;
  }
  static uint32_t index_of(uintptr_t handle) { return static_cast<uint32_t>(handle & kHalfMask); }

  Place* find(uint32_t index) const {
    const uint32_t block = index / kBlockPlaces;
    if (block >= kMostBlocks) return nullptr;
    Place* places = blocks_[block].load(std::memory_order_acquire);
    return places ? places + index % kBlockPlaces : nullptr;
  }

  Place* checked(uintptr_t handle) const {
    Place* place = find(index_of(handle));
    if (!place || !place->live.load(std::memory_order_acquire)) return nullptr;
    const uint32_t generation = place->generation.load(std::memory_order_acquire);
    return (generation & kHalfMask) == handle >> kIndexBits ? place : nullptr;
  }

  bool grow() {
    const auto block = static_cast<uint32_t>(storage_.size());
    if (block == kMostBlocks) return false;
    storage_.push_back(std::make_unique<Place[]>(kBlockPlaces));
    for (uint32_t i = kBlockPlaces; i-- > 0;) free_.push_back(block * kBlockPlaces + i);
    blocks_[block].store(storage_.back().get(), std::memory_order_release);
    return true;
  }

  std::mutex mutex_;
  std::array<std::atomic<Place*>, kMostBlocks> blocks_{};
  std::vector<std::unique_ptr<Place[]>> storage_;
  std::vector<uint32_t> free_;
};

}  // namespace uzip
