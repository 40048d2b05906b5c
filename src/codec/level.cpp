// Finds the best widths by trying all of them: a code's cost depends only on how many symbols the
// levels before it hold, so there are few states.
#include "codec/level.hpp"

#include <algorithm>

namespace uzip {
namespace {

/// Symbols by falling count, and the mass of the first i of them.
struct Ranking {
  std::array<uint8_t, 256> symbols;
  std::array<uint32_t, kMaxSymbols + 1> mass{};
  unsigned count = 0;
};

Ranking rank_symbols(const FieldHistogram& histogram) {
  std::array<uint32_t, 256> keys;
  unsigned count = 0;
  for (unsigned symbol = 0; symbol < 256; ++symbol)
    if (histogram.counts[symbol] != 0)
      keys[count++] = histogram.counts[symbol] << 8 | (255 - symbol);
  const unsigned top = std::min<unsigned>(count, kMaxSymbols);
  std::partial_sort(keys.begin(), keys.begin() + top, keys.begin() + count, std::greater<>());
  Ranking ranking;
  ranking.count = top;
  for (unsigned i = 0; i < top; ++i)
    ranking.symbols[i] = static_cast<uint8_t>(255 - (keys[i] & 255));
  for (unsigned i = 0; i < kMaxSymbols; ++i)
    ranking.mass[i + 1] = ranking.mass[i] + (i < top ? keys[i] >> 8 : 0);
  return ranking;
}

/// Fields that the histogram lacks but that are likely: the neighbours of the most frequent one.
void add_neighbours(Ranking& ranking, unsigned fields) {
  std::array<bool, 256> used{};
  for (unsigned i = 0; i < ranking.count; ++i) used[ranking.symbols[i]] = true;
  const int center = ranking.symbols[0];
  auto add = [&](int symbol) {
    if (ranking.count >= kMaxSymbols || symbol < 0 || symbol >= static_cast<int>(fields)) return;
    if (used[static_cast<unsigned>(symbol)]) return;
    used[static_cast<unsigned>(symbol)] = true;
    ranking.symbols[ranking.count++] = static_cast<uint8_t>(symbol);
  };
  for (int distance = 1; distance < 64; ++distance) {
    add(center + distance);
    add(center - distance);
  }
  while (ranking.count < kMaxSymbols) ranking.symbols[ranking.count++] = ranking.symbols[0];
}

class Search {
 public:
  Search(const Ranking& ranking, uint32_t total, size_t count, unsigned max_levels)
      : ranking_(ranking), total_(total), scale_(count * kCostUnit), max_levels_(max_levels) {}

  /// Cheapest way to code what is left after `offset` symbols; the widths are in `best` from
  /// `level` on.
  uint64_t cost(unsigned level, unsigned offset, std::array<uint8_t, kMaxLevels>* best) const {
    const uint64_t left = total_ - ranking_.mass[std::min<unsigned>(offset, kMaxSymbols)];
    const uint64_t raw = bits(8 * left);
    if (level == max_levels_ || (level > 0 && left == 0)) return raw;
    uint64_t lowest = level == 0 ? UINT64_MAX : raw;
    for (unsigned width = 1; width <= 4; ++width) {
      std::array<uint8_t, kMaxLevels> rest{};
      const unsigned symbols = (1u << width) - 1;
      const uint64_t own = bits(width * left) + (32 + 8 * symbols) * kCostUnit;
      if (own >= lowest) break;
      const uint64_t all = own + cost(level + 1, offset + symbols, &rest);
      if (all >= lowest) continue;
      lowest = all;
      *best = rest;
      (*best)[level] = static_cast<uint8_t>(width);
    }
    return lowest;
  }

 private:
  /// Bits of the sample, scaled to the sequence.
  uint64_t bits(uint64_t sample_bits) const { return sample_bits * scale_ / total_; }

  const Ranking& ranking_;
  uint64_t total_;
  uint64_t scale_;
  unsigned max_levels_;
};

}  // namespace

FieldHistogram FieldHistogram::shifted(unsigned shift) const {
  FieldHistogram result;
  result.total = total;
  for (unsigned i = 0; i < 256; ++i) result.counts[i >> shift] += counts[i];
  return result;
}

uint64_t choose_levels(const FieldHistogram& histogram, size_t count, unsigned max_levels,
                       SequenceRecord* record) {
  Ranking ranking = rank_symbols(histogram);
  std::array<uint8_t, kMaxLevels> widths{};
  const uint64_t cost =
      Search(ranking, histogram.total, count, max_levels).cost(0, 0, &widths) + 32 * kCostUnit;
  add_neighbours(ranking, 256u >> record->shift);
  record->widths = widths;
  record->levels = 0;
  while (record->levels < kMaxLevels && widths[record->levels] != 0) ++record->levels;
  std::copy_n(ranking.symbols.begin(), kMaxSymbols, record->symbols.begin());
  return cost;
}

}  // namespace uzip
