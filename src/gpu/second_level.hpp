// The second level of a block's fields: what level 0 lacks, a list in shared memory, is coded again
// or comes from codes. Used by the field coder and the fast decoder.
#pragma once

#include "gpu/code_tables.hpp"
#include "gpu/encode_plan.hpp"
#include "gpu/value_planes.hpp"

namespace uzip::gpu {

/// Fields that a block of threads takes at a time, 32 each.
inline constexpr unsigned kSecondFields = kThreads * kThreadValues;
/// How often it has to for a tile.
template <class Format>
inline constexpr unsigned kSecondTurns = Format::kTileValues / kSecondFields;

/// The codes of a second level: fields are counted from the first one of its window on, without those of level 0.
class SecondCodes {
 public:
  UZIP_DEVICE explicit SecondCodes(const LevelPlan& plan)
      : minus_base_(repeat_half(0u - plan.base[1])),
        below_(repeat_half(plan.base[0] - plan.base[1])),
        from_(plan.base[0] - plan.base[1] + plan.symbols0()),
        most_(repeat_half(plan.symbols1() + from_)) {}

  /// Of four fields: what has none gets the last one. Whatever else stands there gets some code.
  UZIP_DEVICE uint32_t of(uint32_t fields) const {
    const uint32_t even = of_halves(fields & 0x00ff00ffu);
    const uint32_t odd = of_halves(fields >> 8 & 0x00ff00ffu);
    return (even + odd * 256 - repeat_byte(from_)) & 0x0f0f0f0fu;
  }

 private:
  UZIP_DEVICE static uint32_t repeat_half(uint32_t half) { return (half & 0xffffu) * 0x00010001u; }

  /// Plus from_. A field n above the base has the code n if it is below level 0, n - symbols0 if it is behind.
  UZIP_DEVICE uint32_t of_halves(uint32_t fields) const {
    const uint32_t above = add_up_to_halves(fields, minus_base_, 0x7fff7fffu);  // those below are the largest
    const uint32_t low = add_up_to_halves(above, 0x00010001u, below_);
    return add_up_to_halves(low, maximum_of_halves(above, repeat_half(from_ - 1)), most_);
  }

  uint32_t minus_base_;
  uint32_t below_;  ///< fields of the window below level 0's
  uint32_t from_;   ///< the first field behind level 0's, counted like the others
  uint32_t most_;
};

/// Codes `count` fields of the list. Codes go to `out`, and what is left behind them, as far as there
/// is room up to `end`. Returns how many are left.
template <class Format>
UZIP_DEVICE uint32_t code_second_level(const uint8_t* list, uint32_t count,
                                            uint32_t packed_plan, uint8_t* out,
                                            const uint8_t* end, ScanSums& sums) {
  const LevelPlan plan = unpack_plan(packed_plan);
  const unsigned width = plan.width[1];
  const SecondCodes codes(plan);
  uint8_t* const escapes = out + packed_bytes(count, width);
  uint32_t all = 0;
  UZIP_NO_UNROLL
  for (unsigned turn = 0; turn < kSecondTurns<Format>; ++turn) {
    if (turn > 0 && turn * kSecondFields >= count) break;
    const unsigned first = turn * kSecondFields + thread_index() * kThreadValues;
    uint8_t* const words = out + first / 64 * width * 8 + first % 64 / 8;
    uint32_t every = 0;
    if (first < count) {
      uint32_t pairs[kSegments];
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i) {
        const uint2 fields = *reinterpret_cast<const uint2*>(list + first + 8 * i);
        pairs[i] = pair_nibbles(codes.of(fields.x), codes.of(fields.y));
      }
      const uint32_t exist = count - first < 32 ? (1u << (count - first)) - 1 : ~0u;
      every = exist;
      UZIP_UNROLL
      for (unsigned b = 0; b < kMostWidth; ++b) {
        if (b >= width) continue;
        const uint32_t bits =
            exist & highest_bytes(gather_paired_bits(pairs[0], b), gather_paired_bits(pairs[1], b),
                                  gather_paired_bits(pairs[2], b), gather_paired_bits(pairs[3], b));
        every &= bits;
        *reinterpret_cast<uint32_t*>(words + 8 * b) = bits;
      }
    } else if (first / 64 * 64 < count) {
      for (unsigned b = 0; b < width; ++b) *reinterpret_cast<uint32_t*>(words + 8 * b) = 0;
    }
    uint32_t left = 0;
    uint32_t rank = all + rank_threads(count_bits(every), sums, turn % 2 ^ 1, &left);
    all += left;
    // More than fits makes the levels not pay, and the fields are stored instead.
    if (all > static_cast<unsigned>(end - escapes)) continue;
    for (; every != 0; every &= every - 1) escapes[rank++] = list[first + lowest_bit(every)];
  }
  return all;
}

/// The second level of a block in shared memory.
struct SecondLevel {
  const uint8_t* words;
  const uint8_t* symbols;  ///< words around them can be read
  const uint8_t* escapes;
  uint32_t count;          ///< fields
  uint32_t escape_count;
  uint32_t width;
};

template <unsigned kWidth>
UZIP_DEVICE void decode_second_level_of(const SecondLevel& level, const CodeTables& tables,
                                        const uint32_t (&words)[4], uint8_t* out) {
  SymbolTable<kWidth> symbols;
  symbols.load(level.symbols);
  UZIP_UNROLL
  for (unsigned i = 0; i < 4; ++i) {
    uint32_t bits[kWidth];
    UZIP_UNROLL
    for (unsigned b = 0; b < kWidth; ++b) bits[b] = byte_of(words[b], i);
    uint32_t fields[2];
    symbols.fields_of(tables, bits, fields);
    *reinterpret_cast<uint2*>(out + 8 * i) = make_uint2(fields[0], fields[1]);
  }
}

/// Puts the fields into the list; ends with a barrier. False: the codes contradict the number of escapes.
template <class Format>
UZIP_DEVICE bool decode_second_level(SecondLevel level, const CodeTables& tables,
                                          uint8_t* list, ScanSums& sums) {
  uint32_t all = 0;
  UZIP_NO_UNROLL
  for (unsigned turn = 0; turn < kSecondTurns<Format>; ++turn) {
    if (turn > 0 && turn * kSecondFields >= level.count) break;
    const unsigned first = turn * kSecondFields + thread_index() * kThreadValues;
    uint32_t words[4] = {0, 0, 0, 0};
    uint32_t escaped = 0;
    if (first < level.count) {
      escaped = level.count - first < 32 ? (1u << (level.count - first)) - 1 : ~0u;
      const uint8_t* const own = level.words + first / 64 * level.width * 8 + first % 64 / 8;
      UZIP_UNROLL
      for (unsigned b = 0; b < 4; ++b) {
        if (b >= level.width) continue;
        words[b] = *reinterpret_cast<const uint32_t*>(own + 8 * b);
        escaped &= words[b];
      }
    }
    uint32_t found = 0;
    uint32_t rank = all + rank_threads(count_bits(escaped), sums, turn % 2 ^ 1, &found);
    all += found;
    if (all > level.escape_count) break;
    if (first >= level.count) continue;
    switch (level.width) {
      case 1: decode_second_level_of<1>(level, tables, words, list + first); break;
      case 2: decode_second_level_of<2>(level, tables, words, list + first); break;
      case 3: decode_second_level_of<3>(level, tables, words, list + first); break;
      default: decode_second_level_of<4>(level, tables, words, list + first); break;
    }
    for (; escaped != 0; escaped &= escaped - 1)
      list[first + lowest_bit(escaped)] = level.escapes[rank++];
  }
  sync_coders();
  return all == level.escape_count;
}

}  // namespace uzip::gpu
