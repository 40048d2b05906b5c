// Chooses the code of a sequence from a histogram: how many levels, their widths and their symbols.
// Used by the planner. Integer arithmetic only, so every machine chooses the same.
#pragma once

#include "codec/block.hpp"

#include <cstdint>
#include <span>

namespace uzip {

/// A histogram of fields; `total` is the sum of the counts, less than 2^24.
struct FieldHistogram {
  std::array<uint32_t, 256> counts{};
  uint32_t total = 0;

  /// That of the fields byte >> shift.
  FieldHistogram shifted(unsigned shift) const;
};

/// Costs are in bits, for the whole sequence, times kCostUnit.
inline constexpr uint64_t kCostUnit = 16;

/// The cheapest code of at most `max_levels` levels for `count` bytes whose fields (byte >>
/// record->shift) are distributed like `histogram`. Fills levels, widths and symbols of `record`
/// and returns the cost of the levels, descriptor included. histogram.total > 0.
uint64_t choose_levels(const FieldHistogram& histogram, size_t count, unsigned max_levels,
                       SequenceRecord* record);

}  // namespace uzip
