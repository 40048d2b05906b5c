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
  for (unsigned field = 0; field < fields; ++field)
    if (counts[field] != 0) keys[found++] = counts[field] << 8 | (255 - field);
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

/// All costs are those of the sample.
class Search {
 public:
  Search(const Ranking& ranking, uint32_t total, size_t count, unsigned max_levels)
      : ranking_(ranking), total_(total), max_levels_(max_levels) {
    // What a level costs in the descriptor weighs more in a small sequence.
    for (unsigned width = 1; width <= 4; ++width)
      described_[width] = (32 + 8 * ((1u << width) - 1)) * kCostUnit * total / count;
  }

  /// Cheapest way to code what is left after `offset` symbols; the widths are in `best` from
  /// `level` on.
  uint64_t cost(unsigned level, unsigned offset, std::array<uint8_t, kMaxLevels>* best) const {
    const uint64_t left = total_ - ranking_.mass[std::min<unsigned>(offset, kMaxSymbols)];
    const uint64_t raw = 8 * left * kCostUnit;
    if (level == max_levels_ || (level > 0 && left == 0)) return raw;
    uint64_t lowest = level == 0 ? UINT64_MAX : raw;
    for (unsigned width = 1; width <= 4; ++width) {
      std::array<uint8_t, kMaxLevels> rest{};
      const uint64_t own = width * left * kCostUnit + described_[width];
      if (own >= lowest) break;
      const uint64_t all = own + cost(level + 1, offset + (1u << width) - 1, &rest);
      if (all >= lowest) continue;
      lowest = all;
      *best = rest;
      (*best)[level] = static_cast<uint8_t>(width);
    }
    return lowest;
  }

 private:
  const Ranking& ranking_;
  uint64_t total_;
  unsigned max_levels_;
  std::array<uint64_t, 5> described_{};
};

/// Levels for the fields byte >> shift; returns their cost in the sample.
uint64_t choose_levels(const ByteHistogram& histogram, size_t count, unsigned max_levels,
                       unsigned shift, SequenceRecord* record) {
  std::array<uint32_t, 256> shifted;
  const std::array<uint32_t, 256>* counts = &histogram.counts;
  const unsigned fields = 256u >> shift;
  if (shift > 0) {
    std::fill_n(shifted.begin(), fields, 0);
    for (unsigned i = 0; i < 256; ++i) shifted[i >> shift] += histogram.counts[i];
    counts = &shifted;
  }
  Ranking ranking = rank_fields(*counts, fields);
  std::array<uint8_t, kMaxLevels> widths{};
  const uint64_t cost = Search(ranking, histogram.total, count, max_levels).cost(0, 0, &widths);
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

bool ByteHistogram::looks_random() const {
  // Random bytes have total^2 / 512 equal pairs, give or take total / 22; a saving of 1/16 needs
  // more.
  const uint64_t expected = uint64_t{total} * total / 512;
  return varying() == 0xff && pairs <= expected + expected / 4 + total / 8;
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
  if (std::popcount(varying) > 1 && !histogram.looks_random()) {
    uint64_t previous = UINT64_MAX;
    for (unsigned shift = shifts.first; shift <= shifts.last && varying >> shift != 0; ++shift) {
      const unsigned below = (1u << shift) - 1;
      SequenceRecord candidate;
      candidate.stored = static_cast<uint8_t>(varying & below);
      candidate.value = static_cast<uint8_t>(histogram.all_and & below & ~varying);
      const uint64_t cost = static_cast<uint64_t>(std::popcount(varying & below)) * bit +
                            choose_levels(histogram, count, max_levels, shift, &candidate);
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
