// How the threads of a block share a tile of values: who holds which, and prefix sums over them.
// Used by all kernels.
//
// A tile has 8192 values. Each group of 32 lanes holds 1024 consecutive ones, in four segments of
// 256; in a segment each lane holds 8 consecutive values, so that loads and stores of a group are
// contiguous. Bits about a thread's 32 values are kept in one word: byte i is segment i. Of 8-bit types
// a tile has twice as many values, as many bytes as of 16-bit ones, held as sliced_values.hpp says.
#pragma once

#include "gpu/platform.hpp"

namespace uzip::gpu {

inline constexpr unsigned kThreads = 256;
inline constexpr unsigned kGroupLanes = 32;
inline constexpr unsigned kGroups = kThreads / kGroupLanes;
inline constexpr unsigned kSegments = 4;
inline constexpr unsigned kSegmentValues = 8;
inline constexpr unsigned kThreadValues = kSegments * kSegmentValues;

/// Values of a tile, of elements of so many bytes: one of frames' blocks as well.
constexpr UZIP_HOST_DEVICE unsigned tile_log2(size_t element_bytes) {
  return element_bytes == 1 ? 14 : 13;
}
constexpr UZIP_HOST_DEVICE unsigned tile_values(size_t element_bytes) {
  return 1u << tile_log2(element_bytes);
}

UZIP_DEVICE unsigned lane_index() { return thread_index() % kGroupLanes; }
UZIP_DEVICE unsigned group_index() { return thread_index() / kGroupLanes; }

#if !defined(UZIP_HAS_GROUP_OPERATIONS)
UZIP_DEVICE uint32_t add_from_below(uint32_t value, unsigned distance) {
  const uint32_t other = shuffle_up(value, distance);
  return lane_index() >= distance ? value + other : value;
}
UZIP_DEVICE uint32_t add_up_to_halves(uint32_t a, uint32_t b, uint32_t most) {
  const uint32_t low = (a + b) & 0xffffu;
  const uint32_t high = ((a >> 16) + (b >> 16)) & 0xffffu;
  const uint32_t most_low = most & 0xffffu;
  const uint32_t most_high = most >> 16;
  return (low < most_low ? low : most_low) | (high < most_high ? high : most_high) << 16;
}
UZIP_DEVICE uint32_t maximum_of_halves(uint32_t a, uint32_t b) {
  const uint32_t low = (a & 0xffffu) < (b & 0xffffu) ? b : a;
  const uint32_t high = a >> 16 < b >> 16 ? b : a;
  return (low & 0xffffu) | (high & 0xffff0000u);
}
UZIP_DEVICE uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  return byte_permute(a, b, selector);
}
template <uint32_t kMask>
UZIP_DEVICE uint32_t select_bits(uint32_t a, uint32_t b) {
  return (a & kMask) | (b & ~kMask);
}
UZIP_DEVICE uint32_t signs_of_halves(uint32_t a, uint32_t b) {
  return (byte_permute(a, b, 0x7531) >> 7 & 0x01010101u) * 0xffu;
}
UZIP_DEVICE uint32_t group_sum(uint32_t value) {
  for (unsigned distance = kGroupLanes / 2; distance > 0; distance /= 2)
    value += shuffle(value, lane_index() ^ distance);
  return value;
}
UZIP_DEVICE uint32_t group_minimum(uint32_t value) {
  for (unsigned distance = kGroupLanes / 2; distance > 0; distance /= 2) {
    const uint32_t other = shuffle(value, lane_index() ^ distance);
    value = other < value ? other : value;
  }
  return value;
}
UZIP_DEVICE uint32_t group_maximum(uint32_t value) { return ~group_minimum(~value); }
#endif

/// Index in the tile of the first of a thread's values in a segment.
UZIP_DEVICE unsigned first_value(unsigned thread, unsigned segment) {
  return thread / kGroupLanes * (kGroupLanes * kThreadValues) + segment * (kGroupLanes * kSegmentValues) +
         thread % kGroupLanes * kSegmentValues;
}

/// Bits of the values of a segment that exist in a tile of `values`.
UZIP_DEVICE uint32_t valid_bits(unsigned first, unsigned values) {
  if (first + kSegmentValues <= values) return 0xffu;
  return first >= values ? 0u : (1u << (values - first)) - 1u;
}

/// The number of set bits of each byte, in that byte.
UZIP_DEVICE uint32_t count_bits_of_bytes(uint32_t word) {
  word -= (word >> 1) & 0x55555555u;
  word = (word & 0x33333333u) + ((word >> 2) & 0x33333333u);
  return (word + (word >> 4)) & 0x0f0f0f0fu;
}

UZIP_DEVICE unsigned byte_of(uint32_t word, unsigned index) { return word >> (8 * index) & 0xffu; }

/// Sums of the groups, for scans over a block. Two, used in turn, spare a barrier.
struct ScanSums {
  uint32_t sums[2][kGroups];
};

/// This group's sum put in place, all sums read after a barrier: what stands before this group, and
/// all. `turn` alternates from call to call.
UZIP_DEVICE uint32_t before_group(uint32_t sum, ScanSums& shared, unsigned turn, uint32_t* total) {
  if (lane_index() == 0) shared.sums[turn][group_index()] = sum;
  sync_coders();
  const uint32_t other = lane_index() < kGroups ? shared.sums[turn][lane_index()] : 0;
  *total = group_sum(other);
  return group_sum(lane_index() < group_index() ? other : 0);
}

/// How many set bits stand before each of this thread's segments, in the order of the values.
struct SegmentRanks {
  uint32_t first[kSegments];
  uint32_t total;
};

UZIP_DEVICE SegmentRanks rank_segments(uint32_t mask, ScanSums& shared, unsigned turn) {
  // Four sums in one word: of the lanes before this one each is at most 31 * 8.
  const uint32_t counts = count_bits_of_bytes(mask);
  uint32_t before = shuffle_up(counts, 1);
  if (lane_index() == 0) before = 0;
  UZIP_UNROLL
  for (unsigned distance = 1; distance < kGroupLanes; distance *= 2)
    before = add_from_below(before, distance);
  const uint32_t last_before = shuffle(before, kGroupLanes - 1);
  const uint32_t last = shuffle(counts, kGroupLanes - 1);
  SegmentRanks ranks;
  uint32_t sum = 0;
  UZIP_UNROLL
  for (unsigned i = 0; i < kSegments; ++i) {
    ranks.first[i] = sum + byte_of(before, i);
    sum += byte_of(last_before, i) + byte_of(last, i);
  }
  const uint32_t group = before_group(sum, shared, turn, &ranks.total);
  UZIP_UNROLL
  for (unsigned i = 0; i < kSegments; ++i) ranks.first[i] += group;
  return ranks;
}

/// The ranks of a thread's set bits by their number in the thread, in few registers.
class ThreadRanks {
 public:
  UZIP_DEVICE ThreadRanks(uint32_t mask, const SegmentRanks& ranks) {
    uint32_t offset[kSegments];
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i)
      offset[i] = ranks.first[i] - count_bits(mask & ((1u << (8 * i)) - 1));
    low_ = (offset[0] & 0xffffu) | offset[1] << 16;
    high_ = (offset[2] & 0xffffu) | offset[3] << 16;
  }
  /// Of bit `number`, which is in this segment.
  UZIP_DEVICE uint32_t rank(unsigned segment, uint32_t number) const {
    return (((segment < 2 ? low_ : high_) >> (segment % 2 * 16)) + number) & 0xffffu;
  }

 private:
  uint32_t low_;
  uint32_t high_;
};

/// Sum of the values of the threads before this one, and of all.
UZIP_DEVICE uint32_t rank_threads(uint32_t value, ScanSums& shared, unsigned turn,
                                  uint32_t* total) {
  uint32_t sum = value;
  UZIP_UNROLL
  for (unsigned distance = 1; distance < kGroupLanes; distance *= 2)
    sum = add_from_below(sum, distance);
  const uint32_t group = shuffle(sum, kGroupLanes - 1);
  return before_group(group, shared, turn, total) + sum - value;
}

// ---- Four bytes in a word ---------------------------------------------------------------------

UZIP_DEVICE uint32_t repeat_byte(uint32_t byte) { return byte * 0x01010101u; }

/// The lower halves of eight bytes in one word: byte i has values i and i + 4.
UZIP_DEVICE uint32_t pair_nibbles(uint32_t first, uint32_t second) { return second * 16 + first; }

/// Bit `bit` of eight values from pair_nibbles(), in the highest byte; the rest is garbage.
UZIP_DEVICE uint32_t gather_paired_bits(uint32_t pairs, unsigned bit) {
  return (pairs & (0x11111111u << bit)) * (0x01020408u >> bit);
}
/// The highest bytes of four words.
UZIP_DEVICE uint32_t highest_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d) {
  return byte_permute(byte_permute(a, b, 0x0073), byte_permute(c, d, 0x0073), 0x5410);
}

/// The lowest bits of the four bytes, in the lowest four bits.
UZIP_DEVICE uint32_t gather_bits(uint32_t word) {
  return ((word & 0x01010101u) * 0x10204080u) >> 28;
}

/// The inverse: bits 0 ... 3 become the lowest bits of the bytes.
UZIP_DEVICE uint32_t scatter_bits(uint32_t bits) { return (bits * 0x00204081u) & 0x01010101u; }

}  // namespace uzip::gpu
