// AVX2: one group of 64 fields through a level. Shared by the kernels that code sequences and those
// that code values; like kernels_avx2.hpp for these files only.
#pragma once

#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx2.hpp"
#include "codec/cpu/moves_avx2.hpp"

namespace uzip {
namespace {

[[gnu::always_inline]] inline uint64_t get_word(const uint8_t* src) {
  uint64_t word;
  __builtin_memcpy(&word, src, 8);
  return word;
}
[[gnu::always_inline]] inline void put_word(uint8_t* dst, uint64_t word) {
  __builtin_memcpy(dst, &word, 8);
}

/// The highest bit of each of 64 bytes.
[[gnu::always_inline]] inline uint64_t top_bits(Bytes a, Bytes b) {
  const auto low = static_cast<uint32_t>(_mm256_movemask_epi8(a));
  const auto high = static_cast<uint32_t>(_mm256_movemask_epi8(b));
  return low | uint64_t{high} << 32;
}
/// Any bit.
[[gnu::always_inline]] inline uint64_t bits_of(Bytes a, Bytes b, __m128i shift_to_top) {
  return top_bits(_mm256_sll_epi16(a, shift_to_top), _mm256_sll_epi16(b, shift_to_top));
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

/// Where the fields that have a code begin and end.
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
};

// Each of the following codes 64 fields: W words of bits, of which the AND marks the escapes.

/// Up to two bits: the bits are comparisons with the symbols.
template <unsigned W>
struct FewCodes {
  static_assert(W <= 2);
  Bytes symbols[3];

  explicit FewCodes(const uint8_t* codes_of) {
#pragma GCC unroll 4
    for (unsigned code = 0; code < (1u << W) - 1; ++code) {
      // A code without a field takes that of code 0, which makes the same bits 0 and others.
      symbols[code] = symbols[0];
      const Bytes wanted = _mm256_set1_epi8(static_cast<char>(code));
      for (size_t i = 0; i < 256; i += 32) {
        const Bytes same = _mm256_cmpeq_epi8(load(codes_of + i), wanted);
        const auto found = static_cast<uint32_t>(_mm256_movemask_epi8(same));
        if (found == 0) continue;
        const size_t field = i + static_cast<size_t>(__builtin_ctz(found));
        symbols[code] = _mm256_set1_epi8(static_cast<char>(field));
        break;
      }
    }
  }
  [[gnu::always_inline]] void operator()(Bytes a, Bytes b, uint64_t (&words)[W]) const {
    const Bytes a0 = _mm256_cmpeq_epi8(a, symbols[0]);
    const Bytes b0 = _mm256_cmpeq_epi8(b, symbols[0]);
    if constexpr (W == 1) {
      words[0] = ~top_bits(a0, b0);
    } else {
      words[0] = ~top_bits(_mm256_or_si256(a0, _mm256_cmpeq_epi8(a, symbols[2])),
                           _mm256_or_si256(b0, _mm256_cmpeq_epi8(b, symbols[2])));
      words[1] = ~top_bits(_mm256_or_si256(a0, _mm256_cmpeq_epi8(a, symbols[1])),
                           _mm256_or_si256(b0, _mm256_cmpeq_epi8(b, symbols[1])));
    }
  }
};

/// Bits of codes that stand at the top of their bytes.
template <unsigned W>
[[gnu::always_inline]] inline void take_bits(Bytes a, Bytes b, uint64_t (&words)[W]) {
#pragma GCC unroll 4
  for (unsigned i = 0; i < W; ++i) {
    words[W - 1 - i] = top_bits(a, b);
    a = _mm256_add_epi8(a, a);
    b = _mm256_add_epi8(b, b);
  }
}

/// A table of kEntries neighbours, whose last entry stands for all other fields, if there are any: an escape.
template <unsigned W, unsigned kEntries>
struct NearCodes {
  Bytes base;
  Bytes low;
  Bytes high;

  NearCodes(const uint8_t* codes_of, size_t first) {
    alignas(16) uint8_t codes[32];
    for (size_t i = 0; i < 32; ++i) {
      const unsigned code = first + i < 256 ? codes_of[first + i] : (1u << W) - 1;
      codes[i] = static_cast<uint8_t>(code << (8 - W));
    }
    base = _mm256_set1_epi8(static_cast<char>(first));
    low = _mm256_broadcastsi128_si256(load_16(codes));
    high = _mm256_broadcastsi128_si256(load_16(codes + 16));
  }
  [[gnu::always_inline]] Bytes codes(Bytes fields) const {
    const Bytes near =
        _mm256_min_epu8(_mm256_sub_epi8(fields, base), _mm256_set1_epi8(kEntries - 1));
    if constexpr (kEntries == 16) return _mm256_shuffle_epi8(low, near);
    return _mm256_blendv_epi8(_mm256_shuffle_epi8(low, near), _mm256_shuffle_epi8(high, near),
                              _mm256_slli_epi16(near, 3));
  }
  [[gnu::always_inline]] void operator()(Bytes a, Bytes b, uint64_t (&words)[W]) const {
    take_bits<W>(codes(a), codes(b), words);
  }
};

/// Whatever the symbols are: all are compared.
template <unsigned W>
struct AnyCodes {
  static constexpr unsigned kEscape = (1u << W) - 1;
  Bytes symbols[kEscape];
  Bytes changes[kEscape];  ///< what makes an escape the symbol's code; 0: nothing

  explicit AnyCodes(const uint8_t* codes_of) {
    for (Bytes& change : changes) change = _mm256_setzero_si256();
    for (Bytes& symbol : symbols) symbol = _mm256_setzero_si256();
    size_t found = 0;
    for (unsigned field = 0; field < 256 && found < kEscape; ++field) {
      if (codes_of[field] == kEscape) continue;
      symbols[found] = _mm256_set1_epi8(static_cast<char>(field));
      changes[found++] = _mm256_set1_epi8(static_cast<char>((codes_of[field] ^ kEscape) << (8 - W)));
    }
  }
  [[gnu::always_inline]] Bytes codes(Bytes fields) const {
    Bytes result = _mm256_set1_epi8(static_cast<char>(kEscape << (8 - W)));
#pragma GCC unroll 16
    for (unsigned s = 0; s < kEscape; ++s)
      result = _mm256_xor_si256(
          result, _mm256_and_si256(_mm256_cmpeq_epi8(fields, symbols[s]), changes[s]));
    return result;
  }
  [[gnu::always_inline]] void operator()(Bytes a, Bytes b, uint64_t (&words)[W]) const {
    take_bits<W>(codes(a), codes(b), words);
  }
};

/// Calls `code(codes)` with the cheapest way to these codes of fields of 8 - `shift` bits.
template <unsigned W, class Code>
[[gnu::always_inline]] inline size_t with_codes(const uint8_t* codes_of, unsigned shift,
                                                Code code) {
  if constexpr (W <= 2) {
    return code(FewCodes<W>(codes_of));
  } else {
    const CodeRange range(codes_of, (1u << W) - 1);
    if (range.size() <= 15) return code(NearCodes<W, 16>(codes_of, range.first));
    if (shift >= 3) return code(NearCodes<W, 32>(codes_of, 0));
    if (range.size() <= 31) return code(NearCodes<W, 32>(codes_of, range.first));
    return code(AnyCodes<W>(codes_of));
  }
}

/// Appends those of 64 fields that `escaped` marks (slack): a few one by one, many compressed, sixteen at a time.
template <unsigned W>
[[gnu::always_inline]] inline uint8_t* append(Bytes a, Bytes b, uint64_t escaped, uint8_t* out) {
  constexpr int kFew = 8;
  if (W > 2 && __builtin_popcountll(escaped) <= kFew) {
    alignas(32) uint8_t fields[64];
    store(fields, a);
    store(fields + 32, b);
    for (; escaped != 0; escaped &= escaped - 1) *out++ = fields[__builtin_ctzll(escaped)];
    return out;
  }
#pragma GCC unroll 4
  for (unsigned q = 0; q < 4; ++q, escaped >>= 16)
    out = append_quarter(quarter(a, b, q), static_cast<unsigned>(escaped & 0xffff), out);
  return out;
}

/// Codes 64 fields, or the first of them that `valid` marks; returns the end of the escapes.
template <unsigned W, class Codes>
[[gnu::always_inline]] inline uint8_t* encode_group(const Codes& codes, Bytes a, Bytes b,
                                                    uint8_t* words, uint8_t* escapes,
                                                    uint64_t valid = ~uint64_t{0}) {
  uint64_t bits[W];
  codes(a, b, bits);
  uint64_t escaped = valid;
#pragma GCC unroll 4
  for (unsigned bit = 0; bit < W; ++bit) {
    put_word(words + 8 * bit, bits[bit] & valid);
    escaped &= bits[bit];
  }
  return append<W>(a, b, escaped, escapes);
}

/// Escapes that are put in place one by one: always as many, since how many there are cannot be foreseen.
constexpr int kFewEscapes = 4;
/// Puts at most kFewEscapes in place. Those that there are not go to out[64], which is written later.
[[gnu::always_inline]] inline const uint8_t* put_few(uint64_t escaped, const uint8_t* next,
                                                     uint8_t* out) {
  const int count = __builtin_popcountll(escaped);
#pragma GCC unroll 8
  for (int i = 0; i < kFewEscapes; ++i, escaped &= escaped - 1)
    out[_tzcnt_u64(escaped)] = next[i];
  return next + count;
}

/// One level, as CodecKernels::decode_level.
template <unsigned W>
[[gnu::always_inline]] inline size_t decode_fields(const uint8_t* words, size_t count,
                                                   const uint8_t* symbols, const uint8_t* escapes,
                                                   uint8_t* dst) {
  const Bytes table =
      _mm256_broadcastsi128_si256(_mm_loadu_si128(reinterpret_cast<const __m128i*>(symbols)));
  const uint8_t* next = escapes;
  size_t at = 0;
  for (; at + 64 <= count; at += 64, words += 8 * W) {
    Bytes a = _mm256_setzero_si256();
    Bytes b = a;
    uint64_t escaped = ~uint64_t{0};
#pragma GCC unroll 8
    for (unsigned bit = 0; bit < W; ++bit) {
      const uint64_t word = get_word(words + 8 * bit);
      const Bytes value = _mm256_set1_epi8(static_cast<char>(1 << bit));
      a = _mm256_or_si256(a, spread(static_cast<uint32_t>(word), value));
      b = _mm256_or_si256(b, spread(static_cast<uint32_t>(word >> 32), value));
      escaped &= word;
    }
    uint8_t* const out = dst + at;
    a = _mm256_shuffle_epi8(table, a);
    b = _mm256_shuffle_epi8(table, b);
    // The escape's entry in `symbols` is 0.
    if (W <= 2 || at + 128 > count || __builtin_popcountll(escaped) > kFewEscapes) {
#pragma GCC unroll 4
      for (unsigned q = 0; q < 4; ++q, escaped >>= 16) {
        const auto marked = static_cast<unsigned>(escaped & 0xffff);
        const __m128i moved = expand_quarter(load_16(next), marked);
        store_16(out + 16 * q, _mm_or_si128(quarter(a, b, q), moved));
        next += static_cast<unsigned>(__builtin_popcount(marked));
      }
    } else {
      store(out, a);
      store(out + 32, b);
      next = put_few(escaped, next, out);
    }
  }
  next += kScalarCodecKernels.decode_level[W](words, count - at, symbols, next, dst + at);
  return static_cast<size_t>(next - escapes);
}

}  // namespace

extern const TopKernels kAvx2TopKernels;

}  // namespace uzip
