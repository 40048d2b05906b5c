// Below its highest bit a difference is random. So the byte that holds this bit is any of those of its
// length, equally often, those above are 0 and those below are random. But for the lowest bits: where
// all values have one sign, the format's step 2 and the zigzag make the lowest two equal.
#include "codec/difference_lengths.hpp"

#include "codec/level.hpp"

#include <algorithm>
#include <bit>

namespace uzip {
namespace {

/// Bytes of one plane by their length, and those that are random.
struct PlaneLengths {
  std::array<uint32_t, 9> of{};
  uint32_t random = 0;
};

/// The cheapest of one level and of storing the bits that vary; `total` bytes.
uint64_t plane_cost(const PlaneLengths& plane, uint32_t total) {
  unsigned varying = 8;
  if (plane.random == 0)
    while (varying > 0 && plane.of[varying] == 0) --varying;
  uint64_t best = uint64_t{varying} * total;
  if (plane.random + plane.of[8] == total) return best;
  // Lengths by falling count of each of their bytes, which are 1, 1, 2, 4, ...
  std::array<uint32_t, 9> keys;  // 128 times the count of a byte, then the length
  for (unsigned length = 0; length <= 8; ++length)
    keys[length] = plane.of[length] << (8 - std::max(length, 1u)) << 4 | length;
  std::sort(keys.begin(), keys.end(), std::greater<>());
  unsigned symbols = 0;
  uint32_t mass = 0;  // of the symbols
  size_t next = 0;
  for (unsigned width = 1; width <= 4; ++width) {
    const unsigned most = (1u << width) - 1;
    for (; next < keys.size(); ++next) {
      const unsigned length = keys[next] & 15;
      const unsigned bytes = length < 2 ? 1 : 1u << (length - 1);
      if (symbols + bytes > most) break;
      symbols += bytes;
      mass += plane.of[length];
    }
    // A part of the next length.
    uint32_t part = 0;
    if (next < keys.size()) part = (keys[next] >> 4) * (most - symbols) >> 7;
    // Codes must be worth a quarter of a bit, as for choose_record().
    best = std::min(best, uint64_t{width} * total + 8 * uint64_t{total - mass - part} + total / 4);
  }
  return best;
}

}  // namespace

void DifferenceLengths::count(const uint64_t* differences, size_t count) {
  for (size_t i = 0; i < count; ++i) ++of_[static_cast<size_t>(std::bit_width(differences[i]))];
  total_ += static_cast<uint32_t>(count);
  HistogramBuilder lowest;
  for (size_t i = 0; i < count; ++i) lowest.add(static_cast<uint8_t>(differences[i]), i);
  lowest.finish(&lowest_);
}

uint64_t DifferenceLengths::cost_of_lowest(unsigned rotation, size_t values) const {
  ByteHistogram bytes;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const auto low = static_cast<uint8_t>(byte << rotation);
    bytes.counts[low] = static_cast<uint16_t>(bytes.counts[low] + lowest_.counts[byte]);
  }
  bytes.total = lowest_.total;
  bytes.all_or = static_cast<uint8_t>(lowest_.all_or << rotation);
  bytes.all_and = static_cast<uint8_t>(lowest_.all_and << rotation);
  SequenceRecord record;
  return choose_record(bytes, values, 2, {rotation, rotation, false}, &record);
}

uint64_t DifferenceLengths::cost(unsigned rotation, size_t values) const {
  std::array<PlaneLengths, kMaxTypeSize> planes{};
  const unsigned size = bits_ / 8;
  uint32_t above = 0;  // differences whose highest bit is in a plane above
  for (unsigned length = bits_; length > 0; --length) {
    const uint32_t here = of_[length];
    const unsigned bit = length - 1 + rotation;
    if (bit >= bits_) {
      above += here;
      continue;
    }
    planes[bit / 8].of[bit % 8 + 1] += here;
  }
  uint64_t cost = 0;
  for (unsigned p = size; p-- > 1;) {
    PlaneLengths& plane = planes[p];
    uint32_t inside = 0;
    for (unsigned length = 1; length <= 8; ++length) inside += plane.of[length];
    plane.random = above;
    plane.of[0] = total_ - above - inside;
    cost += plane_cost(plane, total_);
    above += inside;
  }
  return cost * kCostUnit * values / total_ + cost_of_lowest(rotation, values);
}

}  // namespace uzip
