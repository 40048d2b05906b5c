// Finds the best widths by trying all of them: a code's cost depends only on how many symbols the
// levels before it hold, so there are few states.
#include "codec/level.hpp"

// At its usual level this compiler leaves loops of unknown length alone.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include <algorithm>
#include <span>
#include <utility>

namespace uzip {
namespace {

/// lesser() comes from before the pragma; calls of it stay calls, and loops with calls are not vectorized.
template <class T>
T lesser(T a, T b) {
  return b < a ? b : a;
}

/// Fields by falling count, and the mass of the first i of them, i <= count.
struct Ranking {
  std::array<uint8_t, kMaxSymbols> symbols;
  std::array<uint32_t, kMaxSymbols + 1> mass;
  unsigned count = 0;
};

/// Sorts fields by falling count. Most counts of a sample are small: by place, not by comparison.
void sort_by_place(const std::array<uint32_t, 256>& counts, std::span<const uint8_t> fields,
                   uint8_t* sorted) {
  constexpr uint32_t kLast = 63;  // and all larger counts
  std::array<uint16_t, kLast + 1> begin{};
  for (uint8_t field : fields) ++begin[lesser(counts[field], kLast)];
  const unsigned large = begin[kLast];
  uint16_t end = 0;
  for (unsigned bucket = kLast + 1; bucket-- > 0;)
    end = static_cast<uint16_t>(end + std::exchange(begin[bucket], end));
  for (uint8_t field : fields) sorted[begin[lesser(counts[field], kLast)]++] = field;
  std::sort(sorted, sorted + large, [&](uint8_t a, uint8_t b) {
    return counts[a] != counts[b] ? counts[a] > counts[b] : a < b;
  });
}

/// The first `wanted`.
Ranking rank_fields(const std::array<uint32_t, 256>& counts, unsigned fields, unsigned wanted) {
  std::array<uint8_t, 256> present;
  std::array<uint8_t, 256> sorted;
  std::array<uint32_t, 32> keys;
  unsigned found = 0;
  for (unsigned field = 0; field < fields; field += 2) {
    if ((counts[field] | counts[field + 1]) == 0) continue;  // most are
    for (unsigned i = field; i < field + 2; ++i)
      if (counts[i] != 0) present[found++] = static_cast<uint8_t>(i);
  }
  if (found <= keys.size()) {
    for (unsigned i = 0; i < found; ++i) keys[i] = counts[present[i]] << 8 | (255u - present[i]);
    std::sort(keys.begin(), keys.begin() + found, std::greater<>());
    for (unsigned i = 0; i < found; ++i) sorted[i] = static_cast<uint8_t>(255 - (keys[i] & 255));
  } else {
    sort_by_place(counts, {present.data(), found}, sorted.data());
  }
  Ranking ranking;
  ranking.count = lesser(found, wanted);
  ranking.mass[0] = 0;
  for (unsigned i = 0; i < ranking.count; ++i) {
    ranking.symbols[i] = sorted[i];
    ranking.mass[i + 1] = ranking.mass[i] + counts[sorted[i]];
  }
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

/// Cheapest widths for fields of this ranking; costs are those of the sample. What is left to code
/// after some levels depends only on how many symbols these have, so the table has one row for each
/// number of levels and one entry for each number of symbols. Samples are small: costs fit into 32
/// bits, of which many are compared at once.
uint64_t best_widths(const Ranking& ranking, uint32_t total, size_t count, unsigned max_levels,
                     std::array<uint8_t, kMaxLevels>* widths) {
  constexpr unsigned kMost = 15;  // symbols of a level
  constexpr auto kUnit = static_cast<int32_t>(kCostUnit);
  // What a level costs in the descriptor weighs more in a small sequence.
  std::array<int32_t, 5> described{};
  for (unsigned width = 1; width <= 4; ++width)
    described[width] =
        static_cast<int32_t>((32 + 8 * ((1u << width) - 1)) * kCostUnit * total / count);
  const unsigned known = ranking.count;
  std::array<int32_t, kMaxSymbols + 1> left{};  // a bit of each
  for (unsigned i = 0; i <= known; ++i)
    left[i] = kUnit * static_cast<int32_t>(total - ranking.mass[i]);

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
  const std::array<uint32_t, 256>& at(unsigned shift) {
    for (; shift_ < shift; ++shift_)
      for (unsigned i = 0; i < 128u >> shift_; ++i)
        counts_[i] = counts_[2 * i] + counts_[2 * i + 1];
    return counts_;
  }

 private:
  std::array<uint32_t, 256> counts_;
  unsigned shift_ = 0;
};

/// Levels for the fields byte >> shift, of which the sample has `total`; returns their cost in it.
uint64_t choose_levels(const std::array<uint32_t, 256>& counts, uint32_t total, size_t count,
                       unsigned max_levels, unsigned shift, SequenceRecord* record) {
  const unsigned fields = 256u >> shift;
  Ranking ranking = rank_fields(counts, fields, 15 * max_levels);
  std::array<uint8_t, kMaxLevels> widths{};
  const uint64_t cost = best_widths(ranking, total, count, max_levels, &widths);
  record->shift = static_cast<uint8_t>(shift);
  record->widths = widths;
  record->levels = 0;
  while (record->levels < kMaxLevels && widths[record->levels] != 0) ++record->levels;
  const unsigned wanted = record->symbol_count();
  if (ranking.count < wanted) add_neighbours(ranking, fields, wanted);
  std::copy_n(ranking.symbols.begin(), wanted, record->symbols.begin());
  return cost;
}

}  // namespace

void HistogramBuilder::finish(ByteHistogram* histogram) const {
  const uint32_t* const even = counts_[0].data();
  const uint32_t* const odd = counts_[1].data();
  std::array<uint32_t, 256> sums;
  uint32_t total = 0;
  uint32_t any = 0;
  uint32_t every = 0xff;
  for (uint32_t i = 0; i < 256; ++i) {
    const uint32_t count = even[i] + odd[i];
    const uint32_t occurs = 0u - static_cast<uint32_t>(count != 0);
    sums[i] = count;
    total += count;
    any |= occurs & i;
    every &= ~occurs | i;
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
      candidate.stored = static_cast<uint8_t>(varying & below);
      candidate.value = static_cast<uint8_t>(histogram.all_and & below & ~varying);
      const uint64_t cost =
          static_cast<uint64_t>(std::popcount(varying & below)) * bit +
          choose_levels(counts.at(shift), histogram.total, count, max_levels, shift, &candidate);
      // Coding a field takes time: a quarter of a bit must be in it. Costs have one minimum,
      // nearly.
      if (cost + (best.levels == 0 ? bit / 4 : 0) < lowest) {
        lowest = cost;
        best = candidate;
      } else if (cost > previous) {
        break;
      }
      previous = cost;
    }
  }
  best.place = record->place;
  *record = best;
  return lowest * count / histogram.total;
}

}  // namespace uzip
