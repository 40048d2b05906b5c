// Where the bytes of a tile belong in a frame that is encoded by many blocks of threads at a time.
// Used by the encode kernel.
//
// It depends on the sizes of all tiles before. Each tile says its own in a word of memory; one block
// of threads adds the words up and answers in their place.
#pragma once

#include "gpu/codec_args.hpp"
#include "gpu/cooperative.hpp"

namespace uzip::gpu {

enum WordState : uint32_t { kEmpty = 0, kOwn = 1, kSum = 2 };

constexpr uint64_t kUnitMask = (uint64_t{1} << kUnitBits) - 1;
constexpr uint64_t kSumMask = (uint64_t{1} << kStateShift) - 1;

/// Blocks with a plain part, and coded units of 16 bytes.
UZIP_DEVICE uint64_t pack_sums(uint64_t plains, uint32_t units) {
  return plains << kUnitBits | units;
}
/// What a tile takes.
UZIP_DEVICE uint64_t own_sums(const EncodeArgs& args, bool constant, unsigned coded_bytes) {
  return pack_sums(constant && args.fixed_plain == 0 ? 0 : 1, coded_bytes / 16);
}
UZIP_DEVICE uint64_t word_of(uint32_t epoch, WordState state, uint64_t sums) {
  return static_cast<uint64_t>(epoch) << kEpochShift | static_cast<uint64_t>(state) << kStateShift |
         sums;
}
UZIP_DEVICE bool has_state(uint64_t word, uint32_t epoch, WordState state) {
  return word >> kEpochShift == epoch && (word >> kStateShift & 3u) >= state;
}
UZIP_DEVICE uint64_t wait_for_word(const uint64_t* place, uint32_t epoch, WordState state) {
  uint64_t word;
  do {
    word = load_shared_word(place);
  } while (!has_state(word, epoch, state));
  return word & kSumMask;
}

/// The blocks of threads of a large frame but the first one code tiles; the first one adds up what
/// tiles take, as far as they are coded, for all others. So a tile's place costs one look at one
/// word, and by the time that is needed, after the next tile is coded, it is there.
UZIP_DEVICE void sum_tiles(uint64_t* words, uint32_t epoch, uint32_t tiles, ScanSums& sums,
                           uint64_t* found) {
  uint64_t carry = 0;
  for (uint32_t done = 0; done < tiles;) {
    const uint32_t index = done + thread_index();
    const uint64_t word = index < tiles ? load_shared_word(words + index) : 0;
    const uint32_t ready = ballot(index < tiles && has_state(word, epoch, kOwn));
    if (lane_index() == 0) found[group_index()] = ready;
    sync();
    uint32_t count = 0;
    for (unsigned g = 0; g < kGroups; ++g) {
      const auto bits = static_cast<uint32_t>(found[g]);
      count += bits == ~0u ? kGroupLanes : lowest_bit(~bits);
      if (bits != ~0u) break;
    }
    const bool counts = thread_index() < count;
    const auto own_units = static_cast<uint32_t>(counts ? word & kUnitMask : 0);
    const auto own_plains = static_cast<uint32_t>(counts ? (word & kSumMask) >> kUnitBits : 0);
    uint32_t units = 0;
    uint32_t plains = 0;
    const uint32_t units_before = rank_threads(own_units, sums, 0, &units);
    const uint32_t plains_before = rank_threads(own_plains, sums, 1, &plains);
    if (counts)
      store_shared_word(
          words + index,
          word_of(epoch, kSum,
                  carry + pack_sums(plains_before + own_plains, units_before + own_units)));
    carry += pack_sums(plains, units);
    done += count;
  }
}

/// What the tiles before this one take, by one group: from the sum, which has the tile's `own`, or
/// from the words of all of them.
UZIP_DEVICE uint64_t sums_before(const uint64_t* words, uint32_t epoch, uint32_t tiles,
                                 uint32_t tile, uint64_t own) {
  if (tiles > kDirectTiles) return wait_for_word(words + tile, epoch, kSum) - own;
  uint32_t plains = 0;
  uint32_t units = 0;
  bool missing;
  do {
    plains = units = 0;
    missing = false;
    UZIP_UNROLL
    for (uint32_t i = 0; i < kDirectTiles; i += kGroupLanes) {
      if (i + lane_index() >= tile) continue;
      const uint64_t word = load_shared_word(words + i + lane_index());
      missing |= !has_state(word, epoch, kOwn);
      plains += static_cast<uint32_t>((word & kSumMask) >> kUnitBits);
      units += static_cast<uint32_t>(word & kUnitMask);
    }
  } while (missing);
  return pack_sums(group_sum(plains), group_sum(units));
}

}  // namespace uzip::gpu
