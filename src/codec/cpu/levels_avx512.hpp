// AVX-512 with VBMI2 and GFNI: one group of 64 bytes through a level, in registers. Shared by the
// kernels that code sequences and those that code values; like kernels_avx512.hpp for these files
// only.
//
// A group's codes are a matrix of 64 x w bits; the format wants its transpose. gf2p8affineqb
// transposes 8 x 8 bits in each 8 bytes, and one byte shuffle does the rest.
#pragma once

#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx512.hpp"

namespace uzip {
namespace {

/// A byte shuffle in memory. What is put there byte by byte can't be loaded at once for a while, so
/// those of the levels, which may be short, are made by the compiler.
struct Shuffle {
  alignas(64) uint8_t index[64];
  uint64_t used;  ///< bytes of the result that are not zero
  unsigned width;
};

/// Where the words of a mask's bits lie after transpose_bits(): byte j of word k is byte 8 * j +
/// bit k.
constexpr Shuffle pack_shuffle(unsigned mask) {
  Shuffle shuffle{};
  for (unsigned bit = 0; bit < 8; ++bit) {
    if ((mask >> bit & 1) == 0) continue;
    for (unsigned j = 0; j < 8; ++j)
      shuffle.index[8 * shuffle.width + j] = static_cast<uint8_t>(8 * j + bit);
    shuffle.used |= uint64_t{0xff} << (8 * shuffle.width);
    ++shuffle.width;
  }
  return shuffle;
}

/// The inverse, for transpose_reversed(): bit b of the values of byte j comes from the mask's word
/// k, byte j.
constexpr Shuffle unpack_shuffle(unsigned mask) {
  Shuffle shuffle{};
  for (unsigned bit = 0; bit < 8; ++bit) {
    if ((mask >> bit & 1) == 0) continue;
    for (unsigned j = 0; j < 8; ++j) {
      shuffle.index[8 * j + 7 - bit] = static_cast<uint8_t>(8 * shuffle.width + j);
      shuffle.used |= uint64_t{1} << (8 * j + 7 - bit);
    }
    ++shuffle.width;
  }
  return shuffle;
}

template <unsigned W>
constexpr Shuffle kPackLevel = pack_shuffle((1u << W) - 1);
/// For the lowest bits, by their number.
struct LowUnpacks {
  Shuffle of[8];
};
constexpr LowUnpacks make_low_unpacks() {
  LowUnpacks low{};
  for (unsigned bits = 0; bits < 8; ++bits) low.of[bits] = unpack_shuffle((1u << bits) - 1);
  return low;
}
constexpr LowUnpacks kUnpackLow = make_low_unpacks();

struct PackOrder {
  Bytes index;
  __mmask64 used;
  unsigned width;

  explicit PackOrder(unsigned mask) : PackOrder(pack_shuffle(mask)) {}
  explicit PackOrder(const Shuffle& shuffle)
      : index(load(shuffle.index)), used(shuffle.used), width(shuffle.width) {}
};

struct UnpackOrder {
  Bytes index;
  __mmask64 used;
  __mmask64 loaded;
  unsigned width;

  explicit UnpackOrder(unsigned mask) : UnpackOrder(unpack_shuffle(mask)) {}
  explicit UnpackOrder(const Shuffle& shuffle)
      : index(load(shuffle.index)),
        used(shuffle.used),
        loaded(low_bits(8 * size_t{shuffle.width})),
        width(shuffle.width) {}
  [[gnu::always_inline]] Bytes unpack(const uint8_t* words) const {
    return order_bits(load_some(words, loaded));
  }
  /// The same for kWidth words or less, where two, or else four, can be read: a load through a mask takes longer.
  template <unsigned kWidth>
  [[gnu::always_inline]] Bytes unpack_inside(const uint8_t* words) const {
    static_assert(kWidth <= 4);
    if constexpr (kWidth <= 2)
      return order_bits(
          _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words))));
    return order_bits(
        _mm512_castsi256_si512(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words))));
  }
  /// Of two words, and the bit of kSet is 1 in all values.
  static constexpr int kSet = 4;
  [[gnu::always_inline]] Bytes unpack_two_and_set(const uint8_t* words) const {
    const auto packed =
        _mm512_castsi128_si512(_mm_loadu_si128(reinterpret_cast<const __m128i*>(words)));
    return _mm512_gf2p8affine_epi64_epi8(unit_bytes(), order_words(packed), kSet);
  }

 private:
  [[gnu::always_inline]] Bytes order_words(Bytes packed) const {
    return _mm512_maskz_permutexvar_epi8(used, index, packed);
  }
  [[gnu::always_inline]] Bytes order_bits(Bytes packed) const {
    return transpose_reversed(order_words(packed));
  }
};

/// Fields of codes. A shuffle by a table does for all widths,
template <unsigned W>
class SymbolLookup {
 public:
  explicit SymbolLookup(const uint8_t* symbols)
      : table_(_mm512_broadcast_i32x4(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(symbols)))) {}
  /// `inside`: four words can be read.
  [[gnu::always_inline]] Bytes fields(const uint8_t* words, bool inside) const {
    const bool exact = W == 4;  // words
    return _mm512_shuffle_epi8(
        table_, inside || exact ? order_.template unpack_inside<W>(words) : order_.unpack(words));
  }

 private:
  Bytes table_;
  UnpackOrder order_{kUnpackLow.of[W]};
};
/// one field needs none,
template <>
class SymbolLookup<1> {
 public:
  explicit SymbolLookup(const uint8_t* symbols)
      : field_(_mm512_set1_epi8(static_cast<char>(symbols[0]))) {}
  [[gnu::always_inline]] Bytes fields(const uint8_t*, bool) const { return field_; }

 private:
  Bytes field_;
};
/// and three are s0 + b0 * (s1 + s0) + b1 * (s2 + s0) for the bits of a code, in bits modulo 2: one more product with a
/// matrix, on a port that has less to do than that of shuffles. What an escape gives doesn't matter.
template <>
class SymbolLookup<2> {
 public:
  explicit SymbolLookup(const uint8_t* symbols) {
    const uint64_t s0 = symbols[0];
    // In the matrix the row of bit 0 is the highest byte.
    const uint64_t rows = _pdep_u64(symbols[1] ^ s0, kBytes) |
                          _pdep_u64(symbols[2] ^ s0, 2 * kBytes) |
                          _pdep_u64(s0, UnpackOrder::kSet * kBytes);
    matrix_ = _mm512_set1_epi64(static_cast<int64_t>(__builtin_bswap64(rows)));
  }
  [[gnu::always_inline]] Bytes fields(const uint8_t* words, bool) const {
    return _mm512_gf2p8affine_epi64_epi8(order_.unpack_two_and_set(words), matrix_, 0);
  }

 private:
  static constexpr uint64_t kBytes = 0x0101010101010101u;
  Bytes matrix_;
  UnpackOrder order_{kUnpackLow.of[2]};
};
/// While so many groups are left, of one word or more, four words can be read.
constexpr size_t kGroupsOfFourWords = 4;

/// Looks codes up. Where all coded fields lie within 63 neighbours (exponents do), one shuffle is
/// enough.
struct NearLookup {
  Bytes base;
  Bytes codes;
  [[gnu::always_inline]] Bytes operator()(Bytes fields) const {
    const Bytes near = _mm512_min_epu8(_mm512_sub_epi8(fields, base), _mm512_set1_epi8(63));
    return _mm512_permutexvar_epi8(near, codes);
  }
};
struct FullLookup {
  Bytes codes[4];
  [[gnu::always_inline]] Bytes operator()(Bytes fields) const {
    const Bytes low = _mm512_permutex2var_epi8(codes[0], fields, codes[1]);
    const Bytes high = _mm512_permutex2var_epi8(codes[2], fields, codes[3]);
    return _mm512_mask_mov_epi8(low, _mm512_movepi8_mask(fields), high);
  }
};

/// Calls `code(lookup)` with the cheaper lookup that fits the codes.
template <unsigned W, class Code>
[[gnu::always_inline]] inline size_t with_lookup(const uint8_t* codes_of, Code code) {
  const Bytes escape = _mm512_set1_epi8((1 << W) - 1);
  FullLookup full;
  size_t first = 255;
  size_t last = 0;
#pragma GCC unroll 8
  for (size_t i = 0; i < 4; ++i) {
    full.codes[i] = load(codes_of + 64 * i);
    const uint64_t coded = _mm512_cmpneq_epi8_mask(full.codes[i], escape);
    if (coded == 0) continue;
    if (first == 255) first = 64 * i + static_cast<size_t>(__builtin_ctzll(coded));
    last = 64 * i + 63 - static_cast<size_t>(__builtin_clzll(coded));
  }
  if (last >= first + 63) return code(full);
  // Entry 63 stands for everything else and is an escape.
  const uint64_t inside = low_bits(last < first ? 0 : last - first + 1);
  const NearLookup near{_mm512_set1_epi8(static_cast<char>(first)),
                        _mm512_mask_loadu_epi8(escape, inside, codes_of + first)};
  return code(near);
}

template <unsigned W>
struct LevelEncoder {
  uint8_t* words;
  uint8_t* escapes;
  PackOrder order{kPackLevel<W>};

  LevelEncoder(uint8_t* to_words, uint8_t* to_escapes) : words(to_words), escapes(to_escapes) {}

  /// Codes the fields that `valid` marks.
  template <class Lookup>
  [[gnu::always_inline]] void encode(const Lookup& lookup, Bytes fields, uint64_t valid) {
    const Bytes escape = _mm512_set1_epi8((1 << W) - 1);
    const Bytes codes = _mm512_maskz_mov_epi8(valid, lookup(fields));
    const uint64_t escaped = _mm512_mask_cmpeq_epi8_mask(valid, codes, escape);
    store_words<W>(words, _mm512_permutexvar_epi8(order.index, transpose_bits(codes)));
    const Bytes rest = _mm512_maskz_compress_epi8(escaped, fields);
    const size_t count = popcount(escaped);
    // Most stores then stay within one cache line. One bit lets too much through for that.
    if constexpr (W > 1)
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(escapes), _mm512_castsi512_si256(rest));
    if (W == 1 || count > 32) store(escapes, rest);
    escapes += count;
    words += 8 * W;
  }
};

template <unsigned W>
struct LevelDecoder {
  const uint8_t* words;
  const uint8_t* escapes;
  SymbolLookup<W> lookup;

  LevelDecoder(const uint8_t* from_words, const uint8_t* symbols, const uint8_t* from_escapes)
      : words(from_words), escapes(from_escapes), lookup(symbols) {}

  /// `inside`: four words can be read.
  [[gnu::always_inline]] Bytes decode(uint64_t valid, bool inside) {
    uint64_t escaped = valid;
#pragma GCC unroll 8
    for (unsigned b = 0; b < W; ++b) {
      uint64_t word;
      __builtin_memcpy(&word, words + 8 * b, 8);
      escaped &= word;
    }
    const Bytes fields =
        _mm512_mask_expand_epi8(lookup.fields(words, inside), escaped, load(escapes));
    escapes += popcount(escaped);
    words += 8 * W;
    return fields;
  }
};

/// The same for a width that is known at run time only.
class AnyLevelDecoder {
 public:
  explicit AnyLevelDecoder(const LevelSource& level)
      : words_(level.words),
        escapes_(level.escapes),
        step_(8 * size_t{level.width}),
        escape_(_mm512_set1_epi8(static_cast<char>((1u << level.width) - 1))),
        table_(_mm512_broadcast_i32x4(
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(level.symbols)))),
        order_(kUnpackLow.of[level.width]) {}

  /// As of LevelDecoder.
  [[gnu::always_inline]] Bytes decode(uint64_t valid, bool inside) {
    const Bytes codes = inside ? order_.unpack_inside<4>(words_) : order_.unpack(words_);
    const uint64_t escaped = _mm512_mask_cmpeq_epi8_mask(valid, codes, escape_);
    const Bytes fields =
        _mm512_mask_expand_epi8(_mm512_shuffle_epi8(table_, codes), escaped, load(escapes_));
    escapes_ += popcount(escaped);
    words_ += step_;
    return fields;
  }
  size_t used(const LevelSource& level) const {
    return static_cast<size_t>(escapes_ - level.escapes);
  }

 private:
  const uint8_t* words_;
  const uint8_t* escapes_;
  size_t step_;
  Bytes escape_;
  Bytes table_;
  UnpackOrder order_;
};

}  // namespace

extern const TopKernels kAvx512TopKernels;

}  // namespace uzip
