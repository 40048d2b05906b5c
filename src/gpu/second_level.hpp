// The second level of a block's fields: what level 0 lacks, a list in shared memory, is coded again
// or comes from codes. Used by the field coder and the fast decoder. These are calls, so that blocks
// of one level, which are more, keep their registers.
#pragma once

#include "gpu/code_tables.hpp"
#include "gpu/encode_plan.hpp"
#include "gpu/value_planes.hpp"

namespace uzip::gpu {

/// Codes `count` fields of the list. Codes go to `out`, and what is left behind them, as far as there
/// is room up to `end`. Each thread codes 32 fields. Returns how many are left.
UZIP_DEVICE_CALL uint32_t code_second_level(const uint8_t* list, uint32_t count,
                                            uint32_t packed_plan, uint8_t* out,
                                            const uint8_t* end, ScanSums& sums) {
  const LevelPlan plan = unpack_plan(packed_plan);
  const unsigned width = plan.width[1];
  const unsigned first = thread_index() * 32;
  uint8_t* const words = out + first / 64 * width * 8 + first % 64 / 8;
  uint32_t every = 0;
  uint32_t fields[8];
  if (first < count) {
    const uint32_t base = repeat_byte(plan.base[1]);
    const uint32_t skipped = repeat_byte((plan.base[0] + plan.symbols0()) & 0xffu);
    const bool skips = plan.base[0] + plan.symbols0() < 256;
    const uint32_t above = repeat_byte(0xffu << width & 0xffu);
    uint32_t bits[4] = {0, 0, 0, 0};
    UZIP_UNROLL
    for (unsigned k = 0; k < 8; ++k) {
      fields[k] = reinterpret_cast<const uint32_t*>(list + first)[k];
      const uint32_t behind = skips ? not_less_bytes(fields[k], skipped) : 0;
      const uint32_t index =
          subtract_bytes(subtract_bytes(fields[k], base), behind * plan.symbols0());
      const uint32_t outside = nonzero_bytes(index & above);
      UZIP_UNROLL
      for (unsigned b = 0; b < 4; ++b) bits[b] |= gather_bits(index >> b | outside) << (4 * k);
    }
    const uint32_t exists = count - first < 32 ? (1u << (count - first)) - 1 : ~0u;
    every = exists;
    UZIP_UNROLL
    for (unsigned b = 0; b < 4; ++b) {
      if (b >= width) continue;
      every &= bits[b];
      *reinterpret_cast<uint32_t*>(words + 8 * b) = bits[b] & exists;
    }
  } else if (first / 64 * 64 < count) {
    for (unsigned b = 0; b < width; ++b) *reinterpret_cast<uint32_t*>(words + 8 * b) = 0;
  }
  uint32_t left = 0;
  uint32_t rank = rank_threads(count_bits(every), sums, 1, &left);
  uint8_t* const escapes = out + packed_bytes(count, width);
  // More than fits makes the levels not pay, and the fields are stored instead.
  if (every == 0 || left > static_cast<unsigned>(end - escapes)) return left;
  UZIP_UNROLL
  for (unsigned k = 0; k < 8; ++k)
    for (uint32_t mask = every >> (4 * k) & 15u; mask != 0; mask &= mask - 1)
      escapes[rank++] = static_cast<uint8_t>(fields[k] >> (8 * lowest_bit(mask)));
  return left;
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

/// Puts the fields into the list; ends with a barrier. Each thread decodes 32. False: the codes
/// contradict the number of escapes.
UZIP_DEVICE_CALL bool decode_second_level(SecondLevel level, const CodeTables& tables,
                                          uint8_t* list, ScanSums& sums) {
  const unsigned first = thread_index() * 32;
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
  uint32_t total = 0;
  uint32_t rank = rank_threads(count_bits(escaped), sums, 1, &total);
  if (total == level.escape_count && first < level.count) {
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
  return total == level.escape_count;
}

}  // namespace uzip::gpu
