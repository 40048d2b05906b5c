// Chooses the widths and windows of a block from a histogram of some of its fields: the cheapest
// run of consecutive fields gets the codes. Used by the encode kernel; deterministic.
#pragma once

#include "gpu/cooperative.hpp"

namespace uzip::gpu {

inline constexpr unsigned kHistogramBins = 256;
inline constexpr unsigned kHistogramPadding = 32;  ///< zeros behind the bins
inline constexpr unsigned kSamples = 2 * kThreads;
inline constexpr unsigned kMostDeviceLevels = 2;

/// Level 0 codes the fields base[0] ... base[0] + n(0) - 1, n(l) = 2^width[l] - 1. Level 1 codes
/// the n(1) others of the n(0) + n(1) fields from base[1]. Indices are known when it is compiled, so
/// that a plan stays in registers.
struct LevelPlan {
  uint32_t levels;  ///< 0: the fields are stored
  uint32_t width[kMostDeviceLevels];  ///< 0 for levels that are not used
  uint32_t base[kMostDeviceLevels];

  UZIP_DEVICE uint32_t symbols0() const { return (1u << width[0]) - 1; }
  UZIP_DEVICE uint32_t symbols1() const { return (1u << width[1]) - 1; }
  /// Symbol `index` of the plan, those of level 0 first.
  UZIP_DEVICE uint32_t symbol(uint32_t index) const {
    if (index < symbols0()) return base[0] + index;
    const uint32_t field = base[1] + index - symbols0();
    return field >= base[0] ? field + symbols0() : field;
  }
  UZIP_DEVICE void store_fields() {
    levels = 0;
    width[0] = width[1] = 0;
  }
};

/// A plan in one word, as one group of lanes hands it to the others.
UZIP_DEVICE uint32_t pack_plan(const LevelPlan& plan) {
  return plan.levels | plan.width[0] << 2 | plan.width[1] << 5 | plan.base[0] << 8 |
         plan.base[1] << 16;
}
UZIP_DEVICE LevelPlan unpack_plan(uint32_t word) {
  return {word & 3u, {word >> 2 & 7u, word >> 5 & 7u}, {word >> 8 & 0xffu, word >> 16 & 0xffu}};
}

/// The most frequent field.
UZIP_DEVICE unsigned most_frequent(const uint32_t* bins) {
  constexpr unsigned kEach = kHistogramBins / kGroupLanes;
  uint32_t best = 0;
  UZIP_UNROLL
  for (unsigned i = 0; i < kEach; ++i) {
    const unsigned field = i * kGroupLanes + lane_index();
    const uint32_t key = bins[field] << 8 | field;
    best = key > best ? key : best;
  }
  return group_maximum(best) & 0xffu;
}

/// The cheapest width and base for level 0, when what it lacks costs `escape_bits` each, as
/// cost << 11 | width << 8 | base. Each lane tries one base around the most frequent field.
UZIP_DEVICE uint32_t cheapest_window(const uint32_t* bins, uint32_t samples, unsigned fields,
                                     unsigned most_width, uint32_t escape_bits) {
  const int first = static_cast<int>(most_frequent(bins)) - 15 + static_cast<int>(lane_index());
  const unsigned base = first < 0 ? 0 : static_cast<unsigned>(first);
  uint32_t best = ~0u;
  uint32_t mass = 0;
  uint32_t width = 1;
  UZIP_UNROLL
  for (unsigned i = 0; i < 15; ++i) {
    mass += bins[base + i];
    if (((i + 1) & (i + 2)) != 0) continue;  // windows hold 1, 3, 7 or 15 fields
    const uint32_t cost = width * samples + escape_bits * (samples - mass);
    if (width <= most_width && base + i < fields) {
      const uint32_t key = cost << 11 | width << 8 | base;
      best = key < best ? key : best;
    }
    ++width;
  }
  return group_minimum(best);
}

/// The cheapest width, 2 or 3, and base for level 1, when level 0 is settled; ~0 if there is none.
UZIP_DEVICE uint32_t cheapest_second(const uint32_t* bins, uint32_t escaped, uint32_t inside,
                                     unsigned fields, const LevelPlan& plan) {
  const unsigned width = 2 + lane_index() / 16;
  const unsigned before = lane_index() % 16;
  const unsigned symbols = (1u << width) - 1;
  uint32_t key = ~0u;
  if (before <= symbols && before <= plan.base[0]) {
    const unsigned base = plan.base[0] - before;
    const unsigned all = symbols + plan.symbols0();
    if (base + all <= fields) {
      uint32_t mass = 0;
      for (unsigned i = 0; i < all; ++i) mass += bins[base + i];
      key = (width * escaped + 8 * (escaped + inside - mass)) << 11 | width << 8 | base;
    }
  }
  return group_minimum(key);
}

/// Called by all lanes of one group, with the same result on all. `bins` holds `samples` fields.
UZIP_DEVICE LevelPlan plan_levels(const uint32_t* bins, uint32_t samples, unsigned field_bits,
                                  unsigned most_levels) {
  const unsigned fields = 1u << field_bits;
  constexpr uint32_t kSecondLevelBits = 3;  ///< that an escape of the first costs, about
  const bool two = most_levels > 1;
  const uint32_t first =
      cheapest_window(bins, samples, fields, two ? 3 : 4, two ? kSecondLevelBits : 8);
  LevelPlan plan{};
  plan.levels = 1;
  plan.width[0] = first >> 8 & 7u;
  plan.base[0] = first & 0xffu;
  uint32_t cost = first >> 11;
  if (two) {
    const uint32_t escaped = (cost - plan.width[0] * samples) / kSecondLevelBits;
    const uint32_t second =
        cheapest_second(bins, escaped, samples - escaped, fields, plan);
    cost = plan.width[0] * samples + 8 * escaped;
    if (second != ~0u && second >> 11 < 8 * escaped) {
      cost = plan.width[0] * samples + (second >> 11);
      plan.levels = 2;
      plan.width[1] = second >> 8 & 7u;
      plan.base[1] = second & 0xffu;
    }
  }
  if (cost >= field_bits * samples) plan.store_fields();
  return plan;
}

}  // namespace uzip::gpu
