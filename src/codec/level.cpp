// Finds the best widths by trying all of them: a code's cost depends only on how many symbols the
// levels before it hold, so there are few states.
#include "codec/level.hpp"

// At its usual level this compiler leaves loops of unknown length alone.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include <algorithm>
#include <bit>
#include <cstring>
#include <functional>

namespace uzip {
namespace {

/// lesser() comes from before the pragma; calls of it stay calls, and loops with calls are not vectorized.
template <class T>
T lesser(T a, T b) {
  return b < a ? b : a;
}

using Counts = std::array<uint16_t, 256>;

/// Most counts of a sample are small: those below are sorted by place, not by comparison.
constexpr unsigned kLargeCount = 63;
constexpr unsigned kFew = 32;  ///< so many things are sorted at once

/// The mass of the i most frequent fields, i <= count.
struct Masses {
  std::array<uint32_t, kMaxSymbols + 1> of;
  unsigned count = 0;

  void add_up(const uint16_t* sorted_counts) {
    of[0] = 0;
    for (unsigned i = 0; i < count; ++i) of[i + 1] = of[i] + sorted_counts[i];
  }
};

/// Counts that are looked at together.
constexpr unsigned kAtOnce = 4;
bool none_of_four(const uint16_t* counts) {
  uint64_t four;
  std::memcpy(&four, counts, sizeof four);
  return four == 0;
}

/// The counts that are not 0, in the order of their fields; returns how many there are.
unsigned gather_counts(const Counts& counts, unsigned fields, uint16_t* present) {
  unsigned found = 0;
  for (unsigned field = 0; field < fields; field += kAtOnce) {
    if (none_of_four(&counts[field])) continue;  // most are
    for (unsigned i = field; i < field + kAtOnce; ++i) {
      present[found] = counts[i];
      found += counts[i] != 0;
    }
  }
  return found;
}

/// Of the first `wanted` fields by falling count; their names don't matter yet.
Masses masses_of(const Counts& counts, unsigned fields, unsigned wanted) {
  std::array<uint16_t, 256 + kAtOnce> present;
  const unsigned found = gather_counts(counts, fields, present.data());
  Masses masses;
  masses.count = lesser(found, wanted);
  if (found <= kFew) {
    std::sort(present.begin(), present.begin() + found, std::greater<>());
    masses.add_up(present.data());
    return masses;
  }
  // Neighbours are counted in different tables, since equal ones would wait for each other.
  std::array<std::array<uint16_t, kLargeCount + 1>, 2> buckets{};
  std::array<uint16_t, 256 + kLargeCount + kAtOnce> sorted;
  unsigned at = 0;
  for (unsigned i = 0; i < found; ++i) {
    const uint16_t count = present[i];
    ++buckets[i % 2][lesser<unsigned>(count, kLargeCount)];
    sorted[at] = count;
    at += count >= kLargeCount;
  }
  std::sort(sorted.begin(), sorted.begin() + at, std::greater<>());
  for (unsigned count = kLargeCount; --count > 0 && at < masses.count;) {
    const unsigned times = buckets[0][count] + buckets[1][count];
    // Nearly always a few, so always a few are written.
    for (unsigned i = 0; i < kAtOnce; ++i) sorted[at + i] = static_cast<uint16_t>(count);
    for (unsigned i = kAtOnce; i < times; ++i) sorted[at + i] = static_cast<uint16_t>(count);
    at += times;
  }
  masses.add_up(sorted.data());
  return masses;
}

/// Fields by falling count.
struct Ranking {
  std::array<uint8_t, kMaxSymbols> symbols;
  unsigned count = 0;
};

/// The first `wanted` fields.
Ranking rank_fields(const Counts& counts, unsigned fields, unsigned wanted) {
  std::array<uint32_t, 256 + kAtOnce> keys;
  unsigned found = 0;
  for (unsigned field = 0; field < fields; field += kAtOnce) {
    if (none_of_four(&counts[field])) continue;  // most are
    for (unsigned i = field; i < field + kAtOnce; ++i) {
      keys[found] = uint32_t{counts[i]} << 8 | (255u - i);
      found += counts[i] != 0;
    }
  }
  Ranking ranking;
  ranking.count = lesser(found, wanted);
  if (found > kFew)
    std::nth_element(keys.begin(), keys.begin() + ranking.count - 1, keys.begin() + found,
                     std::greater<>());
  const unsigned sorted = found > kFew ? ranking.count : found;
  std::sort(keys.begin(), keys.begin() + sorted, std::greater<>());
  for (unsigned i = 0; i < ranking.count; ++i)
    ranking.symbols[i] = static_cast<uint8_t>(255 - (keys[i] & 255));
  return ranking;
}

/// Fields that the histogram lacks but that are likely: the neighbours of the most frequent one.
void add_neighbours(Ranking& ranking, unsigned fields, unsigned wanted) {
  std::array<bool, 256> used{};
  for (unsigned i = 0; i < ranking.count; ++i) used[ranking.symbols[i]] = true;
  const unsigned center = ranking.symbols[0];
  auto add = [&](unsigned field) {
    if (ranking.count >= wanted || field >= fields || used[field]) return;
    used[field] = true;
    ranking.symbols[ranking.count++] = static_cast<uint8_t>(field);
  };
  for (unsigned distance = 1; distance < fields && ranking.count < wanted; ++distance) {
    add(center + distance);
    add(center - distance);
  }
  while (ranking.count < wanted) ranking.symbols[ranking.count++] = ranking.symbols[0];
}

/// Cheapest widths for fields of these masses; costs are those of the sample. What is left to code
/// after some levels depends only on how many symbols these have, so the table has one row for each
/// number of levels and one entry for each number of symbols. Samples are small: costs fit into 32
/// bits, of which many are compared at once.
uint64_t best_widths(const Masses& masses, uint32_t total, size_t count, unsigned max_levels,
                     std::array<uint8_t, kMaxLevels>* widths) {
  constexpr unsigned kMost = 15;  // symbols of a level
  constexpr auto kUnit = static_cast<int32_t>(kCostUnit);
  // What a level costs in the descriptor weighs more in a small sequence.
  std::array<int32_t, 5> described{};
  for (unsigned width = 1; width <= 4; ++width)
    described[width] =
        static_cast<int32_t>((32 + 8 * ((1u << width) - 1)) * kCostUnit * total / count);
  const unsigned known = masses.count;
  std::array<int32_t, kMaxSymbols + 1> left{};  // a bit of each
  for (unsigned i = 0; i <= known; ++i)
    left[i] = kUnit * static_cast<int32_t>(total - masses.of[i]);

  // Cost of what is left after so many levels with so many symbols; with all symbols that is
  // nothing.
  std::array<std::array<int32_t, kMaxSymbols + kMost + 1>, kMaxLevels + 1> after;
  const auto nothing_beyond = [&](unsigned level, unsigned last) {
    std::fill_n(after[level].begin() + last + 1, kMost, 0);
  };
  for (unsigned i = 0; i <= known; ++i) after[max_levels][i] = 8 * left[i];
  nothing_beyond(max_levels, known);
  for (unsigned level = max_levels; level-- > 0;) {
    const int32_t* const deeper = after[level + 1].data();
    const unsigned last = lesser(kMost * level, known);
    nothing_beyond(level, last);
    for (unsigned i = 0; i <= last; ++i) {
      const int32_t narrow = lesser(left[i] + described[1] + deeper[i + 1],
                                      2 * left[i] + described[2] + deeper[i + 3]);
      const int32_t wide = lesser(3 * left[i] + described[3] + deeper[i + 7],
                                    4 * left[i] + described[4] + deeper[i + 15]);
      const int32_t coded = lesser(narrow, wide);
      after[level][i] = level == 0 ? coded : lesser(coded, 8 * left[i]);
    }
  }
  unsigned offset = 0;
  for (unsigned level = 0; level < max_levels; ++level) {
    if (level > 0 && after[level][offset] == 8 * left[offset]) break;  // nothing is gained by it
    unsigned width = 1;
    while (static_cast<int32_t>(width) * left[offset] + described[width] +
               after[level + 1][offset + (1u << width) - 1] !=
           after[level][offset])
      ++width;
    (*widths)[level] = static_cast<uint8_t>(width);
    offset += (1u << width) - 1;
  }
  return static_cast<uint64_t>(after[0][0]);
}

/// The counts of the fields byte >> shift, for rising shifts.
class FieldCounts {
 public:
  explicit FieldCounts(const ByteHistogram& histogram) : counts_(histogram.counts) {}
  const Counts& at(unsigned shift) {
    for (; shift_ < shift; ++shift_) {
      const Counts finer = counts_;
      for (unsigned i = 0; i < 128u >> shift_; ++i)
        counts_[i] = static_cast<uint16_t>(finer[2 * i] + finer[2 * i + 1]);
    }
    return counts_;
  }

 private:
  Counts counts_;
  unsigned shift_ = 0;
};

/// Names the fields that record->widths were chosen for.
void fill_symbols(const ByteHistogram& histogram, SequenceRecord* record) {
  while (record->levels < kMaxLevels && record->widths[record->levels] != 0) ++record->levels;
  const unsigned fields = 256u >> record->shift;
  const unsigned wanted = record->symbol_count();
  Ranking ranking = rank_fields(FieldCounts(histogram).at(record->shift), fields, wanted);
  if (ranking.count < wanted) add_neighbours(ranking, fields, wanted);
  std::copy_n(ranking.symbols.begin(), wanted, record->symbols.begin());
}

}  // namespace

void HistogramBuilder::finish(ByteHistogram* histogram) const {
  Counts sums;
  uint32_t total = 0;
  uint16_t any = 0;
  uint16_t every = 0xff;
  for (uint16_t i = 0; i < 256; ++i) {
    const auto count =
        static_cast<uint16_t>(counts_[0][i] + counts_[1][i] + counts_[2][i] + counts_[3][i]);
    const auto occurs = static_cast<uint16_t>(-static_cast<uint16_t>(count != 0));
    sums[i] = count;
    total += count;
    any = static_cast<uint16_t>(any | (occurs & i));
    every = static_cast<uint16_t>(every & (static_cast<uint16_t>(~occurs) | i));
  }
  histogram->counts = sums;
  histogram->total = total;
  histogram->all_or = static_cast<uint8_t>(any);
  histogram->all_and = static_cast<uint8_t>(every);
}

uint64_t choose_record(const ByteHistogram& histogram, size_t count, unsigned max_levels,
                       ShiftRange shifts, SequenceRecord* record) {
  const unsigned varying = histogram.varying();
  const uint64_t bit = uint64_t{histogram.total} * kCostUnit;
  SequenceRecord best;
  uint64_t lowest = static_cast<uint64_t>(std::popcount(varying)) * bit;
  best.stored = static_cast<uint8_t>(varying);
  best.value = static_cast<uint8_t>(histogram.all_and);
  if (varying == 0xff) best.value = 0;
  if (shifts.required) {
    best = SequenceRecord{};
    best.shift = static_cast<uint8_t>(shifts.first);
    best.stored = static_cast<uint8_t>((1u << best.shift) - 1);
    lowest = 8 * bit;
  }
  if (std::popcount(varying) > 1) {
    FieldCounts counts(histogram);
    uint64_t previous = UINT64_MAX;
    for (unsigned shift = shifts.first; shift <= shifts.last && varying >> shift != 0; ++shift) {
      const unsigned below = (1u << shift) - 1;
      SequenceRecord candidate;
      candidate.shift = static_cast<uint8_t>(shift);
      candidate.stored = static_cast<uint8_t>(varying & below);
      candidate.value = static_cast<uint8_t>(histogram.all_and & below & ~varying);
      const Masses masses = masses_of(counts.at(shift), 256u >> shift, 15 * max_levels);
      const uint64_t cost =
          static_cast<uint64_t>(std::popcount(varying & below)) * bit +
          best_widths(masses, histogram.total, count, max_levels, &candidate.widths);
      // Coding a field takes time: a quarter of a bit must be in it. Costs have one minimum,
      // nearly.
      if (cost + (best.widths[0] == 0 ? bit / 4 : 0) < lowest) {
        lowest = cost;
        best = candidate;
      } else if (cost > previous) {
        break;
      }
      previous = cost;
    }
    if (best.widths[0] != 0) fill_symbols(histogram, &best);
  }
  best.place = record->place;
  *record = best;
  return lowest * count / histogram.total;
}

}  // namespace uzip
