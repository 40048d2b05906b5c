// What differences will take in planes, told from their lengths and lowest bits, so that rotations
// can be compared without a histogram of every plane for each. Used by the planner.
#pragma once

#include "codec/block_sample.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace uzip {

/// How many of a sample's differences have so many significant bits, and what their lowest bits are.
class DifferenceLengths {
 public:
  /// Of values of `size` bytes.
  explicit DifferenceLengths(size_t size) : bits_(8 * static_cast<unsigned>(size)) {}

  void count(const uint64_t* differences, size_t count);

  /// About what the differences of a block of `values` take when they are rotated left by `rotation`,
  /// in bits times kCostUnit.
  uint64_t cost(unsigned rotation, size_t values) const;

 private:
  uint64_t cost_of_lowest(unsigned rotation, size_t values) const;

  unsigned bits_;
  uint32_t total_ = 0;
  std::array<uint16_t, 65> of_{};
  ByteHistogram lowest_;  ///< bytes
};

}  // namespace uzip
