// Tables in shared memory that turn bits of codes into fields. Used by the fast decoder.
#pragma once

#include "gpu/cooperative.hpp"

namespace uzip::gpu {

struct CodeTables {
  uint32_t spread[256];  ///< bit i of a byte, in bit 4 * i
  /// For a mask of four bytes: where each comes from, 4 + n being the next of a list if its bit is
  /// set, and above that the number of set bits.
  uint32_t expand[16];

  /// By all threads; a barrier must follow.
  UZIP_DEVICE void make() {
    static_assert(kThreads == 256);
    const unsigned byte = thread_index();
    uint32_t spread_byte = 0;
    UZIP_UNROLL
    for (unsigned i = 0; i < 8; ++i) spread_byte |= (byte >> i & 1u) << (4 * i);
    spread[byte] = spread_byte;
    if (byte >= 16) return;
    uint32_t selector = 0;
    unsigned taken = 0;
    UZIP_UNROLL
    for (unsigned i = 0; i < 4; ++i)
      selector |= ((byte >> i & 1u) != 0 ? 4 + taken++ : i) << (4 * i);
    expand[byte] = selector | taken << 16;
  }
};

/// Four bytes of a list of whole words in shared memory, from byte `index` on; the next word can be read, too.
UZIP_DEVICE uint32_t word_at(const uint8_t* list, unsigned index) {
  const auto* const words = reinterpret_cast<const uint32_t*>(list) + index / 4;
  const uint64_t two = words[0] | static_cast<uint64_t>(words[1]) << 32;
  return static_cast<uint32_t>(two >> (index % 4 * 8));
}

/// Up to 16 symbols.
template <unsigned kWidth>
struct SymbolTable {
  static constexpr unsigned kWords = kWidth < 4 ? 2 : 4;
  uint32_t word[kWords];

  /// From any address of shared memory that has readable words around.
  UZIP_DEVICE void load(const uint8_t* symbols) {
    const unsigned shift = reinterpret_cast<uintptr_t>(symbols) % 4 * 8;
    const auto* const at = reinterpret_cast<const uint32_t*>(symbols - shift / 8);
    uint32_t low = at[0];
    UZIP_UNROLL
    for (unsigned i = 0; i < kWords; ++i) {
      const uint32_t high = at[i + 1];
      word[i] = static_cast<uint32_t>((low | static_cast<uint64_t>(high) << 32) >> shift);
      low = high;
    }
  }
  /// From whole words.
  UZIP_DEVICE void load_aligned(const uint8_t* symbols) {
    UZIP_UNROLL
    for (unsigned i = 0; i < kWords; ++i) word[i] = reinterpret_cast<const uint32_t*>(symbols)[i];
  }

  /// Fields of eight codes, of which bits[b] has bit b of each.
  UZIP_DEVICE void fields_of(const CodeTables& tables, const uint32_t (&bits)[kWidth],
                             uint32_t (&fields)[2]) const {
    // Byte i of a result is the one that nibble i of the codes names.
    uint32_t codes = tables.spread[bits[0]];
    UZIP_UNROLL
    for (unsigned b = 1; b < (kWidth < 3 ? kWidth : 3); ++b) codes += tables.spread[bits[b]] << b;
    UZIP_UNROLL
    for (unsigned half = 0; half < 2; ++half) {
      fields[half] = pick_bytes(word[0], word[1], codes >> (16 * half));
      if constexpr (kWidth == 4) {
        const uint32_t upper = scatter_bits(bits[3] >> (4 * half) & 15u) * 0xffu;
        const uint32_t others = pick_bytes(word[2], word[3], codes >> (16 * half));
        fields[half] = (fields[half] & ~upper) | (others & upper);
      }
    }
  }
};

}  // namespace uzip::gpu
