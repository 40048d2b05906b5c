// Finds the best widths by trying all of them: a code's cost depends only on how many symbols the
// levels before it hold, so there are few states.
#include "codec/level.hpp"

#include <algorithm>

namespace uzip {
namespace {

/// Fields by falling count, and the mass of the first i of them.
struct Ranking {
  std::array<uint8_t, kMaxSymbols> symbols;
  std::array<uint32_t, kMaxSymbols + 1> mass{};
  unsigned count = 0;
};

Ranking rank_fields(const std::array<uint32_t, 256>& counts, unsigned fields) {
  std::array<uint32_t, 256> keys;
  unsigned found = 0;
  for (unsigned field = 0; field < fields; field += 2) {
    if ((counts[field] | counts[field + 1]) == 0) continue;  // most are
    for (unsigned i = field; i < field + 2; ++i)
      if (counts[i] != 0) keys[found++] = counts[i] << 8 | (255 - i);
  }
  const unsigned top = std::min<unsigned>(found, kMaxSymbols);
  if (found <= 32)
    std::sort(keys.begin(), keys.begin() + found, std::greater<>());
  else
    std::partial_sort(keys.begin(), keys.begin() + top, keys.begin() + found, std::greater<>());
  Ranking ranking;
  ranking.count = top;
  for (unsigned i = 0; i < kMaxSymbols; ++i) {
    if (i < top) ranking.symbols[i] = static_cast<uint8_t>(255 - (keys[i] & 255));
    ranking.mass[i + 1] = ranking.mass[i] + (i < top ? keys[i] >> 8 : 0);
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
/// number of levels and one entry for each number of symbols.
uint64_t best_widths(const Ranking& ranking, uint32_t total, size_t count, unsigned max_levels,
                     std::array<uint8_t, kMaxLevels>* widths) {
  // What a level costs in the descriptor weighs more in a small sequence.
  std::array<uint64_t, 5> described{};
  for (unsigned width = 1; width <= 4; ++width)
    described[width] = (32 + 8 * ((1u << width) - 1)) * kCostUnit * total / count;

  std::array<uint64_t, kMaxSymbols + 1> after;  // cost of what is left after the levels before
  std::array<std::array<uint8_t, kMaxSymbols + 1>, kMaxLevels> choice{};
  for (unsigned offset = 0; offset <= 15 * max_levels; ++offset)
    after[offset] = 8 * kCostUnit * (total - ranking.mass[offset]);
  for (unsigned level = max_levels; level-- > 0;) {
    // An entry is overwritten only after all entries that need it: levels look at higher offsets.
    for (unsigned offset = level; offset <= 15 * level; ++offset) {
      const uint64_t left = total - ranking.mass[offset];
      if (left == 0) break;  // so many symbols hold all; nothing costs nothing
      uint64_t lowest = level == 0 ? UINT64_MAX : 8 * kCostUnit * left;
      for (unsigned width = 1; width <= 4; ++width) {
        const uint64_t cost =
            width * kCostUnit * left + described[width] + after[offset + (1u << width) - 1];
        if (cost >= lowest) continue;
        lowest = cost;
        choice[level][offset] = static_cast<uint8_t>(width);
      }
      after[offset] = lowest;
    }
  }
  unsigned offset = 0;
  for (unsigned level = 0; level < max_levels && choice[level][offset] != 0; ++level) {
    (*widths)[level] = choice[level][offset];
    offset += (1u << choice[level][offset]) - 1;
  }
  return after[0];
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
  Ranking ranking = rank_fields(counts, fields);
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
