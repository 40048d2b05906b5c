// Portable kernels, written so that a compiler can keep them in registers: eight bytes at a time in
// one word.
#include "codec/cpu/kernels_scalar.hpp"

#include "codec/cpu/bit_stream.hpp"
#include "codec/cpu/kernels.hpp"

// At its usual level this compiler leaves loops of unknown length alone.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include <array>
#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace uzip {
namespace {

constexpr uint64_t kOnes = 0x0101010101010101u;

template <class T>
T load(const uint8_t* src) {
  T value;
  std::memcpy(&value, src, sizeof value);
  return value;
}
template <class T>
void store(uint8_t* dst, T value) {
  std::memcpy(dst, &value, sizeof value);
}

template <class T>
T zigzag(T difference) {
  using Signed = std::make_signed_t<T>;
  return static_cast<T>(static_cast<T>(difference << 1) ^
                        static_cast<T>(static_cast<Signed>(difference) >> (8 * sizeof(T) - 1)));
}
template <class T>
T unzigzag(T value) {
  return static_cast<T>((value >> 1) ^ (T{0} - (value & 1)));
}

template <class T>
void split_plane(const uint8_t* src, size_t count, int rotation, size_t plane,
                 uint8_t* __restrict dst) {
  for (size_t i = 0; i < count; ++i)
    dst[i] = static_cast<uint8_t>(std::rotl(load<T>(src + i * sizeof(T)), rotation) >> (8 * plane));
}

/// For the usual rotation of 1. Constant shifts that stay within the type vectorize far better.
template <class T, size_t kPlane>
void split_plane_1(const uint8_t* src, size_t count, uint8_t* __restrict dst) {
  for (size_t i = 0; i < count; ++i) {
    const T value = load<T>(src + i * sizeof(T));
    if constexpr (kPlane == 0)
      dst[i] = static_cast<uint8_t>(static_cast<uint8_t>(value << 1) |
                                    static_cast<uint8_t>(value >> (8 * sizeof(T) - 1)));
    else
      dst[i] = static_cast<uint8_t>(value >> (8 * kPlane - 1));
  }
}

template <class T, size_t... kPlanes>
void split_1(const uint8_t* src, size_t count, uint8_t* const* planes,
             std::index_sequence<kPlanes...>) {
  ((planes[kPlanes] != nullptr ? split_plane_1<T, kPlanes>(src, count, planes[kPlanes]) : void()),
   ...);
}

template <class T>
void split(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  if (rotation == 1) return split_1<T>(src, count, planes, std::make_index_sequence<sizeof(T)>());
  for (size_t p = 0; p < sizeof(T); ++p)
    if (planes[p] != nullptr) split_plane<T>(src, count, static_cast<int>(rotation), p, planes[p]);
}

template <class T, bool kOne>
void merge_planes(const uint8_t* const* planes, size_t count, int rotation,
                  uint8_t* __restrict dst) {
  const uint8_t* plane[sizeof(T)];
  for (size_t p = 0; p < sizeof(T); ++p) plane[p] = planes[p];
  for (size_t i = 0; i < count; ++i) {
    T value = 0;
    for (size_t p = 0; p < sizeof(T); ++p)
      value = static_cast<T>(value | static_cast<T>(T{plane[p][i]} << (8 * p)));
    store<T>(dst + i * sizeof(T), kOne ? static_cast<T>(value >> 1 | value << (8 * sizeof(T) - 1))
                                       : std::rotr(value, rotation));
  }
}

template <class T>
void merge(const uint8_t* const* planes, size_t count, unsigned rotation, const Output& dst) {
  if (rotation == 1)
    merge_planes<T, true>(planes, count, 1, dst.values);
  else
    merge_planes<T, false>(planes, count, static_cast<int>(rotation), dst.values);
}

template <class T>
void delta(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst) {
  T previous = static_cast<T>(base);
  for (size_t i = 0; i < count; ++i) {
    const T value = std::rotl(load<T>(src + i * sizeof(T)), 1);
    store<T>(dst + i * sizeof(T), zigzag<T>(static_cast<T>(value - previous)));
    previous = value;
  }
}

template <class T>
uint64_t undelta(const uint8_t* src, size_t count, uint64_t base, const Output& dst) {
  T value = static_cast<T>(base);
  for (size_t i = 0; i < count; ++i) {
    value = static_cast<T>(value + unzigzag<T>(load<T>(src + i * sizeof(T))));
    store<T>(dst.values + i * sizeof(T), std::rotr(value, 1));
  }
  return value;
}

// Both without a branch for each value: where zeros stand is what makes them worth a bitmap.
template <class T>
size_t remove_zeros(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept, uint8_t* signs) {
  BitWriter sign_writer(signs);
  size_t stay = 0;
  for (size_t begin = 0; begin < count; begin += 64) {
    const size_t here = count - begin < 64 ? count - begin : 64;
    uint64_t kept_word = 0;
    uint64_t sign_bits = 0;
    size_t gone = 0;
    for (size_t i = 0; i < here; ++i) {
      const T value = load<T>(src + (begin + i) * sizeof(T));
      store<T>(dst + stay * sizeof(T), value);
      const bool keep = static_cast<T>(value << 1) != 0;
      stay += keep;
      kept_word |= uint64_t{keep} << i;
      const uint64_t sign = uint64_t{!keep} & static_cast<uint64_t>(value >> (8 * sizeof(T) - 1));
      sign_bits |= sign << (gone % 64);
      gone += !keep;
    }
    store<uint64_t>(kept + begin / 8, kept_word);
    sign_writer.put(sign_bits, gone);
  }
  return stay;
}

template <class T>
void insert_zeros(const uint8_t* src, const uint8_t* kept, const uint8_t* signs, size_t count,
                  uint8_t* dst) {
  BitReader sign_reader(signs);
  for (size_t begin = 0; begin < count; begin += 64) {
    const size_t here = count - begin < 64 ? count - begin : 64;
    const uint64_t kept_word = load<uint64_t>(kept + begin / 8);
    uint64_t sign_bits =
        sign_reader.get(static_cast<size_t>(std::popcount(~kept_word & lowest_bits(here))));
    for (size_t i = 0; i < here; ++i) {
      const unsigned keep = kept_word >> i & 1;
      const auto zero = static_cast<T>((sign_bits & 1) << (8 * sizeof(T) - 1));
      const auto mask = static_cast<T>(T{0} - static_cast<T>(keep));
      store<T>(dst + (begin + i) * sizeof(T),
               static_cast<T>((load<T>(src) & mask) | (zero & static_cast<T>(~mask))));
      src += keep * sizeof(T);
      sign_bits >>= 1 - keep;
    }
  }
}

/// Bit `bit` of each of eight bytes, gathered into one byte.
uint64_t gather_bit(uint64_t bytes, unsigned bit) {
  return ((bytes >> bit & kOnes) * 0x0102040810204080u) >> 56;
}

/// kSpread[b]: byte i is bit i of b.
constexpr std::array<uint64_t, 256> kSpread = [] {
  std::array<uint64_t, 256> table{};
  for (unsigned value = 0; value < 256; ++value)
    for (unsigned i = 0; i < 8; ++i)
      table[value] |= static_cast<uint64_t>(value >> i & 1) << (8 * i);
  return table;
}();
/// The same with all bits of the byte.
constexpr std::array<uint64_t, 256> kMasks = [] {
  std::array<uint64_t, 256> table{};
  for (unsigned value = 0; value < 256; ++value) table[value] = kSpread[value] * 255;
  return table;
}();

/// Eight bytes at `offset`, the ones from `count` on as zeros.
uint64_t load_tail(const uint8_t* bytes, size_t offset, size_t count) {
  if (offset + 8 <= count) return load<uint64_t>(bytes + offset);
  uint64_t word = 0;
  if (offset < count) std::memcpy(&word, bytes + offset, count - offset);
  return word;
}
void store_tail(uint8_t* bytes, size_t offset, size_t count, uint64_t word) {
  if (offset + 8 <= count) return store<uint64_t>(bytes + offset, word);
  if (offset < count) std::memcpy(bytes + offset, &word, count - offset);
}

void pack_bits(const uint8_t* bytes, size_t count, unsigned mask, uint8_t* words) {
  for (size_t begin = 0; begin < count; begin += 64) {
    for (unsigned rest = mask; rest != 0; rest &= rest - 1) {
      const auto bit = static_cast<unsigned>(std::countr_zero(rest));
      uint64_t word = 0;
      for (unsigned j = 0; j < 8; ++j)
        word |= gather_bit(load_tail(bytes, begin + 8 * j, count), bit) << (8 * j);
      store<uint64_t>(words, word);
      words += 8;
    }
  }
}

void unpack_bits(const uint8_t* words, size_t count, unsigned mask, uint8_t* bytes) {
  const auto width = static_cast<size_t>(std::popcount(mask));
  for (size_t begin = 0; begin < count; begin += 64, words += 8 * width) {
    for (unsigned j = 0; j < 8; ++j) {
      uint64_t result = 0;
      const uint8_t* word = words + j;
      for (unsigned rest = mask; rest != 0; rest &= rest - 1, word += 8)
        result |= kSpread[*word] << std::countr_zero(rest);
      store_tail(bytes, begin + 8 * j, count, result);
    }
  }
}

/// Many bytes at once, in whatever registers the processor has.
using Lanes [[gnu::vector_size(16)]] = uint8_t;

Lanes everywhere(uint8_t byte) { return Lanes{} + byte; }

/// Codes groups of 64 fields by comparing them with all symbols; that takes less than a table.
template <unsigned W>
class Codes {
 public:
  explicit Codes(const uint8_t* codes_of) : codes_of_(codes_of) {
    size_t found = 0;
    for (unsigned field = 0; field < 256; ++field) {
      const uint8_t code = codes_of[field];
      if (code == kEscape || found == kEscape) continue;
      fields_[found] = everywhere(static_cast<uint8_t>(field));
      changes_[found++] = everywhere(code ^ kEscape);
    }
  }
  void of(const uint8_t* fields, uint8_t* codes) const {
    for (size_t at = 0; at < 64; at += sizeof(Lanes)) {
      const auto group = load<Lanes>(fields + at);
      Lanes code = everywhere(kEscape);
      for (size_t s = 0; s < kEscape; ++s)
        code ^= reinterpret_cast<Lanes>(group == fields_[s]) & changes_[s];
      store<Lanes>(codes + at, code);
    }
  }
  void of(const uint8_t* fields, size_t count, uint8_t* codes) const {
    for (size_t i = 0; i < count; ++i) codes[i] = codes_of_[fields[i]];
  }

 private:
  static constexpr uint8_t kEscape = (1u << W) - 1;
  const uint8_t* codes_of_;
  Lanes fields_[kEscape] = {};
  Lanes changes_[kEscape] = {};  ///< what makes an escape the field's code; 0: nothing
};

template <unsigned W>
size_t encode_level(const uint8_t* bytes, size_t count, unsigned shift, const uint8_t* codes_of,
                    uint8_t* words, uint8_t* escapes) {
  const Codes<W> codes(codes_of);
  uint8_t* out = escapes;
  for (size_t begin = 0; begin < count; begin += 64, words += 8 * W) {
    const size_t here = count - begin < 64 ? count - begin : 64;
    const uint8_t* fields = bytes + begin;
    uint8_t shifted[64];
    if (shift != 0) {
      for (size_t i = 0; i < here; ++i) shifted[i] = static_cast<uint8_t>(fields[i] >> shift);
      fields = shifted;
    }
    alignas(16) uint8_t group[64] = {};
    if (here == 64)
      codes.of(fields, group);
    else
      codes.of(fields, here, group);
    uint64_t word[W] = {};
    for (unsigned j = 0; j < 8; ++j) {
      const auto eight = load<uint64_t>(group + 8 * j);
      for (unsigned b = 0; b < W; ++b) word[b] |= gather_bit(eight, b) << (8 * j);
    }
    uint64_t escaped = ~uint64_t{0};
    for (unsigned b = 0; b < W; ++b) {
      store<uint64_t>(words + 8 * b, word[b]);
      escaped &= word[b];
    }
    for (; escaped != 0; escaped &= escaped - 1) *out++ = fields[std::countr_zero(escaped)];
  }
  return static_cast<size_t>(out - escapes);
}

/// Chooses between the symbols by the bits of the codes, from the lowest bit up, in eight bytes at
/// once.
template <unsigned W>
uint64_t select_symbols(const uint64_t* symbols, const uint64_t* bits) {
  uint64_t chosen[1u << W];
  for (unsigned c = 0; c < 1u << W; ++c) chosen[c] = symbols[c];
  for (unsigned b = 0; b < W; ++b)
    for (unsigned c = 0; c < 1u << (W - 1 - b); ++c)
      chosen[c] = chosen[2 * c] ^ (bits[b] & (chosen[2 * c] ^ chosen[2 * c + 1]));
  return chosen[0];
}

template <unsigned W>
size_t decode_level(const uint8_t* words, size_t count, const uint8_t* symbols,
                    const uint8_t* escapes, uint8_t* dst) {
  uint64_t everywhere[1u << W];
  for (unsigned c = 0; c < 1u << W; ++c) everywhere[c] = symbols[c] * kOnes;
  const uint8_t* next = escapes;
  for (size_t begin = 0; begin < count; begin += 64, words += 8 * W) {
    uint64_t escaped = ~uint64_t{0};
    for (unsigned b = 0; b < W; ++b) escaped &= load<uint64_t>(words + 8 * b);
    if (count - begin < 64) escaped &= (uint64_t{1} << (count - begin)) - 1;
    for (unsigned j = 0; j < 8; ++j) {
      uint64_t bits[W];
      for (unsigned b = 0; b < W; ++b) bits[b] = kMasks[words[8 * b + j]];
      store_tail(dst, begin + 8 * j, count, select_symbols<W>(everywhere, bits));
    }
    for (; escaped != 0; escaped &= escaped - 1) dst[begin + std::countr_zero(escaped)] = *next++;
  }
  return static_cast<size_t>(next - escapes);
}

void combine(const uint8_t* fields, const uint8_t* low, size_t count, unsigned shift,
             unsigned value, uint8_t* dst) {
  for (size_t i = 0; i < count; ++i)
    dst[i] = static_cast<uint8_t>(fields[i] << shift | (low != nullptr ? low[i] : 0) | value);
}

void bit_range(const uint8_t* bytes, size_t count, uint8_t* all_or, uint8_t* all_and) {
  uint64_t any = 0;
  uint64_t every = ~uint64_t{0};
  size_t i = 0;
  for (; i + 8 <= count; i += 8) {
    const auto word = load<uint64_t>(bytes + i);
    any |= word;
    every &= word;
  }
  for (; i < count; ++i) {
    any |= bytes[i];
    every &= bytes[i] | ~uint64_t{0xff};
  }
  for (unsigned shift = 32; shift >= 8; shift /= 2) {
    any |= any >> shift;
    every &= every >> shift;
  }
  *all_or = static_cast<uint8_t>(any);
  *all_and = static_cast<uint8_t>(every);
}

/// Without an instruction for it: pairs, fours, bytes, and their sum on top.
size_t ones_of(uint64_t word) {
  word -= word >> 1 & 0x5555555555555555u;
  word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
  word = (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  return word * kOnes >> 56;
}

template <unsigned W>
size_t count_escapes(const uint8_t* words, size_t count) {
  return count_full_codes<W>(words, count, ones_of);
}

size_t count_ones(const uint8_t* words, size_t bits) { return count_escapes<1>(words, bits); }

// Its stores are ordinary ones.
void finish_streaming() {}

}  // namespace

void scalar_delta_1(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst) {
  delta<uint8_t>(src, count, base, dst);
}
uint64_t scalar_undelta_1(const uint8_t* src, size_t count, uint64_t base, const Output& dst) {
  return undelta<uint8_t>(src, count, base, dst);
}
size_t scalar_remove_zeros_1(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs) {
  return remove_zeros<uint8_t>(src, count, dst, kept, signs);
}
void scalar_insert_zeros_1(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst) {
  insert_zeros<uint8_t>(src, kept, signs, count, dst);
}
void scalar_delta_2(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst) {
  delta<uint16_t>(src, count, base, dst);
}
uint64_t scalar_undelta_2(const uint8_t* src, size_t count, uint64_t base, const Output& dst) {
  return undelta<uint16_t>(src, count, base, dst);
}
size_t scalar_remove_zeros_2(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs) {
  return remove_zeros<uint16_t>(src, count, dst, kept, signs);
}
void scalar_insert_zeros_2(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst) {
  insert_zeros<uint16_t>(src, kept, signs, count, dst);
}
void scalar_delta_4(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst) {
  delta<uint32_t>(src, count, base, dst);
}
uint64_t scalar_undelta_4(const uint8_t* src, size_t count, uint64_t base, const Output& dst) {
  return undelta<uint32_t>(src, count, base, dst);
}
size_t scalar_remove_zeros_4(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs) {
  return remove_zeros<uint32_t>(src, count, dst, kept, signs);
}
void scalar_insert_zeros_4(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst) {
  insert_zeros<uint32_t>(src, kept, signs, count, dst);
}
void scalar_delta_8(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst) {
  delta<uint64_t>(src, count, base, dst);
}
uint64_t scalar_undelta_8(const uint8_t* src, size_t count, uint64_t base, const Output& dst) {
  return undelta<uint64_t>(src, count, base, dst);
}
size_t scalar_remove_zeros_8(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs) {
  return remove_zeros<uint64_t>(src, count, dst, kept, signs);
}
void scalar_insert_zeros_8(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst) {
  insert_zeros<uint64_t>(src, kept, signs, count, dst);
}
size_t scalar_repeat_length(const uint8_t* bytes, size_t count, unsigned period) {
  uint64_t pattern = 0;
  for (unsigned i = 0; i < 8; ++i) pattern |= uint64_t{bytes[i % period]} << (8 * i);
  size_t i = 0;
  while (i + 8 <= count && load<uint64_t>(bytes + i) == pattern) i += 8;
  while (i < count && bytes[i] == bytes[i % period]) ++i;
  return i;
}

const CodecKernels kScalarCodecKernels = {
    .split = {split<uint8_t>, split<uint16_t>, split<uint32_t>, split<uint64_t>},
    .merge = {merge<uint8_t>, merge<uint16_t>, merge<uint32_t>, merge<uint64_t>},
    .delta = {delta<uint8_t>, delta<uint16_t>, delta<uint32_t>, delta<uint64_t>},
    .undelta = {undelta<uint8_t>, undelta<uint16_t>, undelta<uint32_t>, undelta<uint64_t>},
    .remove_zeros = {remove_zeros<uint8_t>, remove_zeros<uint16_t>, remove_zeros<uint32_t>,
                     remove_zeros<uint64_t>},
    .insert_zeros = {insert_zeros<uint8_t>, insert_zeros<uint16_t>, insert_zeros<uint32_t>,
                     insert_zeros<uint64_t>},
    .pack_bits = pack_bits,
    .unpack_bits = unpack_bits,
    .encode_level = {nullptr, encode_level<1>, encode_level<2>, encode_level<3>, encode_level<4>},
    .decode_level = {nullptr, decode_level<1>, decode_level<2>, decode_level<3>, decode_level<4>},
    .count_escapes = {nullptr, count_escapes<1>, count_escapes<2>, count_escapes<3>,
                      count_escapes<4>},
    .top = nullptr,
    .sums = 0,
    .combine = combine,
    .finish_streaming = finish_streaming,
    .bit_range = bit_range,
    .count_ones = count_ones,
    .repeat_length = scalar_repeat_length,
};

}  // namespace uzip
