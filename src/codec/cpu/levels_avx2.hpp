// AVX2: one group of 64 fields through a level. Shared by the kernels that code sequences and those
// that code values; like kernels_avx2.hpp for these files only.
#pragma once

#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx2.hpp"

namespace uzip {
namespace {

/// Byte shuffles that move the marked ones of eight bytes to the front, and back. Two make one of sixteen bytes.
struct MoveTables {
  alignas(64) uint8_t compress[256][8];
  alignas(64) uint8_t compress_upper[256][8];  ///< of the upper eight
  alignas(64) uint8_t expand[256][8];
  alignas(64) uint8_t after[9][16];  ///< added to the upper eight: how many the lower ones took
};
constexpr MoveTables make_move_tables() {
  MoveTables tables{};
  for (unsigned mask = 0; mask < 256; ++mask) {
    unsigned next = 0;
#pragma GCC unroll 8
    for (unsigned i = 0; i < 8; ++i) {
      tables.compress[mask][i] = 0x80;
      tables.compress_upper[mask][i] = 0x80;
      tables.expand[mask][i] = 0x80;
    }
#pragma GCC unroll 8
    for (unsigned i = 0; i < 8; ++i) {
      if ((mask >> i & 1) == 0) continue;
      tables.compress[mask][next] = static_cast<uint8_t>(i);
      tables.compress_upper[mask][next] = static_cast<uint8_t>(i + 8);
      tables.expand[mask][i] = static_cast<uint8_t>(next++);
    }
  }
  for (unsigned count = 0; count <= 8; ++count)
    for (unsigned i = 8; i < 16; ++i) tables.after[count][i] = static_cast<uint8_t>(count);
  return tables;
}
constexpr MoveTables kMove = make_move_tables();

/// Two words of eight bytes.
[[gnu::always_inline]] inline __m128i load_words(const uint8_t* lower, const uint8_t* upper) {
  const __m128 low = _mm_castsi128_ps(load_word(lower));
  return _mm_castps_si128(_mm_loadh_pi(low, reinterpret_cast<const __m64*>(upper)));
}
[[gnu::always_inline]] inline void store_upper_word(uint8_t* dst, __m128i v) {
  _mm_storeh_pi(reinterpret_cast<__m64*>(dst), _mm_castsi128_ps(v));
}
/// Sixteen of 64 bytes.
[[gnu::always_inline]] inline __m128i quarter(Bytes a, Bytes b, unsigned index) {
  const Bytes half = index < 2 ? a : b;
  return index % 2 == 0 ? _mm256_castsi256_si128(half) : _mm256_extracti128_si256(half, 1);
}
[[gnu::always_inline]] inline unsigned ones_of_byte(unsigned byte) {
  return static_cast<unsigned>(__builtin_popcount(byte));
}

[[gnu::always_inline]] inline uint64_t get_word(const uint8_t* src) {
  uint64_t word;
  __builtin_memcpy(&word, src, 8);
  return word;
}
[[gnu::always_inline]] inline void put_word(uint8_t* dst, uint64_t word) {
  __builtin_memcpy(dst, &word, 8);
}

/// Bit `bit` of each of 64 bytes.
[[gnu::always_inline]] inline uint64_t bits_of(Bytes a, Bytes b, __m128i shift_to_top) {
  const auto low = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_sll_epi16(a, shift_to_top)));
  const auto high = static_cast<uint32_t>(_mm256_movemask_epi8(_mm256_sll_epi16(b, shift_to_top)));
  return low | uint64_t{high} << 32;
}
[[gnu::always_inline]] inline __m128i to_top(unsigned bit) {
  return _mm_cvtsi32_si128(static_cast<int>(7 - bit));
}

/// 32 bytes that are `value` where the bit of `bits` is set, else 0.
[[gnu::always_inline]] inline Bytes spread(uint32_t bits, Bytes value) {
  const Bytes replicate = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                           2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
  const Bytes select = _mm256_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
  const Bytes copies = _mm256_shuffle_epi8(_mm256_set1_epi32(static_cast<int>(bits)), replicate);
  return _mm256_and_si256(_mm256_cmpeq_epi8(_mm256_and_si256(copies, select), select), value);
}

/// Which fields have a code.
struct CodeRange {
  size_t first = 256;
  size_t last = 0;

  CodeRange(const uint8_t* codes_of, unsigned escape) {
    const Bytes escapes = _mm256_set1_epi8(static_cast<char>(escape));
    for (size_t i = 0; i < 256; i += 32) {
      const Bytes same = _mm256_cmpeq_epi8(load(codes_of + i), escapes);
      const auto coded = ~static_cast<uint32_t>(_mm256_movemask_epi8(same));
      if (coded == 0) continue;
      if (first == 256) first = i + static_cast<size_t>(__builtin_ctz(coded));
      last = i + 31 - static_cast<size_t>(__builtin_clz(coded));
    }
  }
  size_t size() const { return first > last ? 0 : last - first + 1; }
  bool is_near() const { return first <= last && size() <= 31; }
};

/// Codes of fields that lie within kEntries - 1 neighbours; the last entry stands for all others
/// and is an escape.
template <unsigned kEntries>
struct NearLookup {
  Bytes base;
  Bytes low;
  Bytes high;

  NearLookup(const CodeRange& range, const uint8_t* codes_of, unsigned escape) {
    alignas(16) uint8_t codes[32];
    for (size_t i = 0; i < 32; ++i)
      codes[i] = i < range.size() ? codes_of[range.first + i] : static_cast<uint8_t>(escape);
    base = _mm256_set1_epi8(static_cast<char>(range.first));
    low = _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(codes)));
    high =
        _mm256_broadcastsi128_si256(_mm_load_si128(reinterpret_cast<const __m128i*>(codes + 16)));
  }
  [[gnu::always_inline]] Bytes operator()(Bytes fields) const {
    const Bytes near =
        _mm256_min_epu8(_mm256_sub_epi8(fields, base), _mm256_set1_epi8(kEntries - 1));
    if constexpr (kEntries == 16) return _mm256_shuffle_epi8(low, near);
    return _mm256_blendv_epi8(_mm256_shuffle_epi8(low, near), _mm256_shuffle_epi8(high, near),
                              _mm256_slli_epi16(near, 3));
  }
};

/// Calls `code(lookup)` with the cheaper lookup for a near range.
template <unsigned W, class Code>
[[gnu::always_inline]] inline size_t with_lookup(const CodeRange& range, const uint8_t* codes_of,
                                                 Code code) {
  constexpr unsigned kEscape = (1u << W) - 1;
  if (range.size() <= 15) return code(NearLookup<16>(range, codes_of, kEscape));
  return code(NearLookup<32>(range, codes_of, kEscape));
}

/// Appends those of 64 fields that `escaped` marks, picked one by one,
[[gnu::always_inline]] inline uint8_t* append_rare(Bytes a, Bytes b, uint64_t escaped,
                                                   uint8_t* out) {
  alignas(32) uint8_t fields[64];
  store(fields, a);
  store(fields + 32, b);
  for (; escaped != 0; escaped &= escaped - 1) *out++ = fields[__builtin_ctzll(escaped)];
  return out;
}
/// or compressed, sixteen at a time.
[[gnu::always_inline]] inline uint8_t* append_many(Bytes a, Bytes b, uint64_t escaped,
                                                   uint8_t* out) {
#pragma GCC unroll 4
  for (unsigned q = 0; q < 4; ++q, escaped >>= 16) {
    const auto lower = static_cast<unsigned>(escaped & 0xff);
    const auto upper = static_cast<unsigned>(escaped >> 8 & 0xff);
    const __m128i order = load_words(kMove.compress[lower], kMove.compress_upper[upper]);
    const __m128i moved = _mm_shuffle_epi8(quarter(a, b, q), order);
    store_word(out, moved);
    out += ones_of_byte(lower);
    store_upper_word(out, moved);
    out += ones_of_byte(upper);
  }
  return out;
}

/// Codes 64 fields; returns the end of the escapes.
template <unsigned W, class Lookup>
[[gnu::always_inline]] inline uint8_t* encode_group(const Lookup& lookup, Bytes a, Bytes b,
                                                    uint8_t* words, uint8_t* escapes) {
  const Bytes codes_a = lookup(a);
  const Bytes codes_b = lookup(b);
  uint64_t escaped = ~uint64_t{0};
#pragma GCC unroll 8
  for (unsigned bit = 0; bit < W; ++bit) {
    const uint64_t word = bits_of(codes_a, codes_b, to_top(bit));
    put_word(words + 8 * bit, word);
    escaped &= word;
  }
  if constexpr (W > 2) return append_rare(a, b, escaped, escapes);
  return append_many(a, b, escaped, escapes);
}

}  // namespace

extern const TopKernels kAvx2TopKernels;

}  // namespace uzip
