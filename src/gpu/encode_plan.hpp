// Chooses the widths and windows of a block from a histogram of some of its fields: the cheapest
// run of consecutive fields gets the codes. Used by the encode kernel; deterministic.
#pragma once

#include "gpu/cooperative.hpp"

#include <type_traits>

namespace uzip::gpu {

inline constexpr unsigned kHistogramBins = 256;
inline constexpr unsigned kHistogramPadding = 32;  ///< zeros behind the bins
inline constexpr unsigned kSamples = 2 * kThreads;
inline constexpr unsigned kMostDeviceLevels = 2;
inline constexpr unsigned kMostWidth = 4;  ///< of a level's codes, in bits

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

/// A histogram of up to 256 fields. All lanes of a group call its functions, with the same results.
class ManyFields {
 public:
  UZIP_DEVICE ManyFields(const uint32_t* bins, unsigned fields) : bins_(bins), fields_(fields) {}

  /// The cheapest width and base for level 0, when what it lacks costs `escape_bits` each, as
  /// cost << 11 | width << 8 | base. Each lane tries one base around the most frequent field.
  UZIP_DEVICE uint32_t cheapest_window(uint32_t samples, unsigned most_width,
                                       uint32_t escape_bits) const {
    const int first = static_cast<int>(most_frequent()) - 15 + static_cast<int>(lane_index());
    const unsigned base = first < 0 ? 0 : static_cast<unsigned>(first);
    uint32_t best = ~0u;
    uint32_t mass = 0;
    uint32_t width = 1;
    UZIP_UNROLL
    for (unsigned i = 0; i < 15; ++i) {
      mass += bins_[base + i];
      if (((i + 1) & (i + 2)) != 0) continue;  // windows hold 1, 3, 7 or 15 fields
      const uint32_t cost = width * samples + escape_bits * (samples - mass);
      if (width <= most_width && base + i < fields_) {
        const uint32_t key = cost << 11 | width << 8 | base;
        best = key < best ? key : best;
      }
      ++width;
    }
    return group_minimum(best);
  }

  UZIP_DEVICE unsigned fields() const { return fields_; }
  /// Of `count` fields from `first` on, which are in the histogram.
  UZIP_DEVICE uint32_t samples_of(unsigned first, unsigned count) const {
    uint32_t sum = 0;
    for (unsigned i = 0; i < count; ++i) sum += bins_[first + i];
    return sum;
  }

 private:
  UZIP_DEVICE unsigned most_frequent() const {
    constexpr unsigned kEach = kHistogramBins / kGroupLanes;
    uint32_t best = 0;
    UZIP_UNROLL
    for (unsigned i = 0; i < kEach; ++i) {
      const unsigned field = i * kGroupLanes + lane_index();
      const uint32_t key = bins_[field] << 8 | field;
      best = key > best ? key : best;
    }
    return group_maximum(best) & 0xffu;
  }

  const uint32_t* bins_;
  unsigned fields_;
};

/// The same of up to 32 fields, with every base tried. Each lane has one field, and the samples of those before it.
class FewFields {
 public:
  UZIP_DEVICE FewFields(const uint32_t* bins, unsigned fields) : fields_(fields) {
    const uint32_t own = bins[lane_index()];
    uint32_t sum = own;
    UZIP_UNROLL
    for (unsigned distance = 1; distance < kGroupLanes; distance *= 2)
      sum = add_from_below(sum, distance);
    before_ = sum - own;
    all_ = shuffle(sum, kGroupLanes - 1);
  }

  UZIP_DEVICE uint32_t cheapest_window(uint32_t samples, unsigned most_width,
                                       uint32_t escape_bits) const {
    uint32_t best = ~0u;
    UZIP_UNROLL
    for (uint32_t width = 1; width <= kMostWidth; ++width) {
      const unsigned symbols = (1u << width) - 1;
      const uint32_t mass = samples_before(lane_index() + symbols) - before_;
      const uint32_t cost = width * samples + escape_bits * (samples - mass);
      const uint32_t key = cost << 11 | width << 8 | lane_index();
      if (width <= most_width && lane_index() + symbols <= fields_ && key < best) best = key;
    }
    return group_minimum(best);
  }

  UZIP_DEVICE unsigned fields() const { return fields_; }
  UZIP_DEVICE uint32_t samples_of(unsigned first, unsigned count) const {
    return samples_before(first + count) - samples_before(first);
  }

 private:
  /// Of a field; any number if there is none, but for the one behind the last.
  UZIP_DEVICE uint32_t samples_before(unsigned field) const {
    const uint32_t before = shuffle(before_, field % kGroupLanes);
    return field == kGroupLanes ? all_ : before;
  }

  unsigned fields_;
  uint32_t before_;
  uint32_t all_;
};

/// The cheapest width, 2 or 3, and base for level 1, when level 0 is settled, of one of these histograms; ~0 if there is none.
template <class Counts>
UZIP_DEVICE uint32_t cheapest_second(const Counts& counts, uint32_t escaped, uint32_t inside,
                                     const LevelPlan& plan) {
  const unsigned width = 2 + lane_index() / 16;
  const unsigned before = lane_index() % 16;
  const unsigned symbols = (1u << width) - 1;
  const unsigned all = symbols + plan.symbols0();
  const unsigned base = plan.base[0] - before;
  const bool possible =
      before <= symbols && before <= plan.base[0] && base + all <= counts.fields();
  const uint32_t mass = counts.samples_of(base, possible ? all : 0);
  const uint32_t key = (width * escaped + 8 * (escaped + inside - mass)) << 11 | width << 8 | base;
  return group_minimum(possible ? key : ~0u);
}

/// Called by all lanes of one group, with the same result on all. `bins` holds `samples` fields.
template <unsigned kFieldBits>
UZIP_DEVICE LevelPlan plan_levels(const uint32_t* bins, uint32_t samples, unsigned most_levels) {
  constexpr unsigned kFields = 1u << kFieldBits;
  constexpr uint32_t kSecondLevelBits = 3;  ///< that an escape of the first costs, about
  const std::conditional_t<kFields <= kGroupLanes, FewFields, ManyFields> counts(bins, kFields);
  const bool two = most_levels > 1;
  const uint32_t first =
      counts.cheapest_window(samples, two ? 3 : 4, two ? kSecondLevelBits : 8);
  LevelPlan plan{};
  plan.levels = 1;
  plan.width[0] = first >> 8 & 7u;
  plan.base[0] = first & 0xffu;
  uint32_t cost = first >> 11;
  if (two) {
    const uint32_t escaped = (cost - plan.width[0] * samples) / kSecondLevelBits;
    const uint32_t second = cheapest_second(counts, escaped, samples - escaped, plan);
    cost = plan.width[0] * samples + 8 * escaped;
    if (second != ~0u && second >> 11 < 8 * escaped) {
      cost = plan.width[0] * samples + (second >> 11);
      plan.levels = 2;
      plan.width[1] = second >> 8 & 7u;
      plan.base[1] = second & 0xffu;
    }
  }
  if (cost >= kFieldBits * samples) plan.store_fields();
  return plan;
}

}  // namespace uzip::gpu
