// Chooses how to store a sequence from a histogram of it: which bits as they are, how many levels
// for the rest, their widths and their symbols. Used by the planner. Integer arithmetic only, so
// every machine chooses the same.
#pragma once

#include "codec/block.hpp"

#include <cstdint>

namespace uzip {

/// Histogram of the bytes of a sample of less than 2^16, with the bits that occur.
struct ByteHistogram {
  std::array<uint16_t, 256> counts{};
  uint32_t total = 0;
  uint8_t all_or = 0;
  uint8_t all_and = 0xff;

  unsigned varying() const { return all_or & ~unsigned{all_and} & 0xffu; }
};

/// Fills a histogram. Neighbours are counted in different tables, since equal ones would wait for
/// each other.
class HistogramBuilder {
 public:
  static constexpr size_t kTables = 4;
  void add(uint8_t byte, size_t index) { ++counts_[index % kTables][byte]; }
  void finish(ByteHistogram* histogram) const;

 private:
  std::array<std::array<uint16_t, 256>, kTables> counts_{};
};

/// Costs are in bits for the whole sequence, times kCostUnit.
inline constexpr uint64_t kCostUnit = 16;

/// Which shifts choose_record() may use for a level-coded field.
struct ShiftRange {
  unsigned first = 0;
  unsigned last = 5;
  bool required = false;  ///< there must be a field (coded or not) with shift `first`
};

/// The cheapest record for `count` bytes that are distributed like `histogram`, with at most
/// `max_levels` levels. Fills everything but place and escapes; returns the cost. histogram.total >
/// 0.
uint64_t choose_record(const ByteHistogram& histogram, size_t count, unsigned max_levels,
                       ShiftRange shifts, SequenceRecord* record);

}  // namespace uzip
