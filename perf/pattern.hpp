// A long sequence of elements that repeats: what buffers are filled with, and compared with.
// Its period is a prime number of elements, so a piece that lands at a wrong place (a multiple of
// some chunk) does not look right.
#pragma once

#include "element_types.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace perf {

/// Mixes any two numbers into 64 random-looking bits (splitmix64's finaliser).
inline uint64_t mix(uint64_t stream, uint64_t index) {
  uint64_t z = (stream + 1) * 0x9e3779b97f4a7c15u + index * 0xd1342543de82ef95u;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
  return z ^ (z >> 31);
}

class Pattern {
 public:
  Pattern() = default;
  /// `period` zero elements of `type`, to be set one by one or through data(). period > 0.
  Pattern(const ElementType& type, size_t period)
      : size_(type.size), period_(period), bytes_(period * type.size) {}

  size_t period() const { return period_; }
  std::byte* data() { return bytes_.data(); }
  void set(size_t index, uint64_t bits) { store_bits(bytes_.data(), index, size_, bits); }

  /// dst[i] = element (first + i) of the endless sequence, i < count.
  void fill(void* dst, size_t first, size_t count) const;
  /// Number of elements of `actual` that differ in any bit from the sequence starting at `first`.
  size_t count_differences(const void* actual, size_t first, size_t count) const;

 private:
  size_t size_ = 1;
  size_t period_ = 1;
  std::vector<std::byte> bytes_;
};

/// Number of the `count` elements of `size` bytes in which `a` and `b` differ.
size_t count_differing_elements(const void* a, const void* b, size_t count, size_t size);

}  // namespace perf
