// Portable kernels: level coding of byte sequences, 64 at a time in vectors of sixteen, and the table of all kernels.
#include "codec/cpu/kernels_scalar.hpp"

#include "codec/cpu/bit_stream.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/lanes.hpp"

// At its usual level this compiler leaves loops of unknown length alone.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include <array>
#include <bit>
#include <cstring>

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

void pack_bits(const uint8_t* bytes, size_t count, unsigned mask, uint8_t* words) {
  const auto width = static_cast<size_t>(std::popcount(mask));
  for (size_t begin = 0; begin < count; begin += 64, words += 8 * width) {
    const uint8_t* group = bytes + begin;
    alignas(16) uint8_t rest[64];
    if (count - begin < 64) {
      std::memset(rest, 0, sizeof rest);
      std::memcpy(rest, group, count - begin);
      group = rest;
    }
    Lanes lanes[4] = {load_lanes(group), load_lanes(group + 16), load_lanes(group + 32),
                      load_lanes(group + 48)};
    size_t word = width;
    for (unsigned bit = 8; bit-- > 0 && word > 0;) {
      if ((mask >> bit & 1) != 0) store<uint64_t>(words + 8 * --word, top_bits(lanes));
      for (Lanes& lane : lanes) lane += lane;
    }
  }
}

void unpack_bits(const uint8_t* words, size_t count, unsigned mask, uint8_t* bytes) {
  const auto width = static_cast<size_t>(std::popcount(mask));
  for (size_t begin = 0; begin < count; begin += 64, words += 8 * width) {
    alignas(16) uint8_t rest[64];
    uint8_t* const group = count - begin < 64 ? rest : bytes + begin;
    for (unsigned q = 0; q < 4; ++q) {
      Lanes result{};
      const uint8_t* word = words + 2 * q;
      for (unsigned left = mask; left != 0; left &= left - 1, word += 8)
        result |= spread(word) & everywhere(static_cast<uint8_t>(left & -left));
      store_lanes(group + 16 * q, result);
    }
    if (count - begin < 64) std::memcpy(bytes + begin, rest, count - begin);
  }
}

/// Codes of 64 fields, as words of bits, by comparing with all symbols; that takes less than a table.
template <unsigned W>
class Codes {
 public:
  explicit Codes(const uint8_t* codes_of) {
    std::array<bool, kEscape> found{};
    for (unsigned at = 0; at < 256; at += 8) {
      if (load<uint64_t>(codes_of + at) == kEscape * kOnes) continue;  // most are
      for (unsigned field = at; field < at + 8; ++field) {
        const uint8_t code = codes_of[field];
        if (code == kEscape || found[code]) continue;
        found[code] = true;
        fields_[code] = everywhere(static_cast<uint8_t>(field));
        changes_[code] = everywhere(static_cast<uint8_t>((code ^ kEscape) << (8 - W)));
      }
    }
    // A code without a field takes that of code 0, which makes the same bits 0 and others.
    for (unsigned code = 1; W <= 2 && code < kEscape; ++code)
      if (!found[code]) fields_[code] = fields_[0];
  }
  [[gnu::always_inline]] void of(const Lanes (&fields)[4], uint64_t (&words)[W]) const {
    if constexpr (W <= 2) {
      words[0] = ~top_bits({is(fields[0], 0, 2), is(fields[1], 0, 2), is(fields[2], 0, 2),
                            is(fields[3], 0, 2)});
      if constexpr (W == 2)
        words[1] = ~top_bits({is(fields[0], 0, 1), is(fields[1], 0, 1), is(fields[2], 0, 1),
                              is(fields[3], 0, 1)});
    } else {
      Lanes codes[4];
      for (unsigned i = 0; i < 4; ++i) {
        codes[i] = everywhere(kEscape << (8 - W));
        for (size_t s = 0; s < kEscape; ++s)
          codes[i] ^= reinterpret_cast<Lanes>(fields[i] == fields_[s]) & changes_[s];
      }
      for (unsigned b = 0; b < W; ++b) {
        words[W - 1 - b] = top_bits(codes);
        for (Lanes& code : codes) code += code;
      }
    }
  }

 private:
  static constexpr uint8_t kEscape = (1u << W) - 1;
  /// Where a field has one of two codes, of which only the first exists for one bit.
  [[gnu::always_inline]] Lanes is(Lanes fields, unsigned code, unsigned or_code) const {
    const auto one = reinterpret_cast<Lanes>(fields == fields_[code]);
    return W == 1 ? one : one | reinterpret_cast<Lanes>(fields == fields_[or_code % kEscape]);
  }
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
    alignas(16) uint8_t group[64];
    if (here < 64) {
      std::memset(group, 0, sizeof group);
      std::memcpy(group, fields, here);
      fields = group;
    }
    if (shift != 0) {
      for (size_t i = 0; i < 64; ++i) group[i] = static_cast<uint8_t>(fields[i] >> shift);
      fields = group;
    }
    const Lanes lanes[4] = {load_lanes(fields), load_lanes(fields + 16), load_lanes(fields + 32),
                            load_lanes(fields + 48)};
    uint64_t word[W];
    codes.of(lanes, word);
    const uint64_t valid = lowest_bits(here);
    uint64_t escaped = valid;
    for (unsigned b = 0; b < W; ++b) {
      store<uint64_t>(words + 8 * b, word[b] & valid);
      escaped &= word[b];
    }
    if constexpr (kShuffles && W <= 2) {
      for (unsigned q = 0; q < 4; ++q)
        out = append_marked(lanes[q], static_cast<unsigned>(escaped >> (16 * q) & 0xffff), out);
    } else {
      for (; escaped != 0; escaped &= escaped - 1) *out++ = fields[std::countr_zero(escaped)];
    }
  }
  return static_cast<size_t>(out - escapes);
}

/// Symbols of sixteen codes, given by their bits.
template <unsigned W>
class Symbols {
 public:
  explicit Symbols(const uint8_t* symbols) : table_(load_lanes(symbols)) {
    for (unsigned c = 0; c < 1u << W; ++c) everywhere_[c] = everywhere(symbols[c]);
  }
  [[gnu::always_inline]] Lanes of(const Lanes (&bits)[W]) const {
    if constexpr (kShuffles) {
      Lanes codes{};
      for (unsigned b = 0; b < W; ++b) codes |= bits[b] & everywhere(static_cast<uint8_t>(1u << b));
      return shuffle(table_, codes);
    }
    // Chooses between the symbols by the bits, from the lowest up.
    Lanes chosen[1u << W];
    for (unsigned c = 0; c < 1u << W; ++c) chosen[c] = everywhere_[c];
    for (unsigned b = 0; b < W; ++b)
      for (unsigned c = 0; c < 1u << (W - 1 - b); ++c)
        chosen[c] = chosen[2 * c] ^ (bits[b] & (chosen[2 * c] ^ chosen[2 * c + 1]));
    return chosen[0];
  }

 private:
  Lanes table_;
  Lanes everywhere_[1u << W];
};

template <unsigned W>
size_t decode_level(const uint8_t* words, size_t count, const uint8_t* symbols,
                    const uint8_t* escapes, uint8_t* dst) {
  const Symbols<W> lookup(symbols);
  const uint8_t* next = escapes;
  for (size_t begin = 0; begin < count; begin += 64, words += 8 * W) {
    const size_t here = count - begin < 64 ? count - begin : 64;
    alignas(16) uint8_t group[64];
    uint8_t* const out = here == 64 ? dst + begin : group;
    uint64_t escaped = lowest_bits(here);
    for (unsigned b = 0; b < W; ++b) escaped &= load<uint64_t>(words + 8 * b);
    for (unsigned q = 0; q < 4; ++q) {
      Lanes bits[W];
      for (unsigned b = 0; b < W; ++b) bits[b] = spread(words + 8 * b + 2 * q);
      Lanes fields = lookup.of(bits);
      if constexpr (kShuffles && W <= 2) {
        // The escape's entry in `symbols` is 0.
        const auto marked = static_cast<unsigned>(escaped >> (16 * q) & 0xffff);
        fields |= place_marked(load_lanes(next), marked);
        next += kOnesOf.of[marked & 0xff] + kOnesOf.of[marked >> 8];
      }
      store_lanes(out + 16 * q, fields);
    }
    if constexpr (!kShuffles || W > 2)
      for (; escaped != 0; escaped &= escaped - 1) out[std::countr_zero(escaped)] = *next++;
    if (here < 64) std::memcpy(dst + begin, group, here);
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

size_t scalar_repeat_length(const uint8_t* bytes, size_t count, unsigned period) {
  uint64_t pattern = 0;
  for (unsigned i = 0; i < 8; ++i) pattern |= uint64_t{bytes[i % period]} << (8 * i);
  size_t i = 0;
  while (i + 8 <= count && load<uint64_t>(bytes + i) == pattern) i += 8;
  while (i < count && bytes[i] == bytes[i % period]) ++i;
  return i;
}

const CodecKernels kScalarCodecKernels = {
    .split = {scalar_split_1, scalar_split_2, scalar_split_4, scalar_split_8},
    .merge = {scalar_merge_1, scalar_merge_2, scalar_merge_4, scalar_merge_8},
    .delta = {scalar_delta_1, scalar_delta_2, scalar_delta_4, scalar_delta_8},
    .undelta = {scalar_undelta_1, scalar_undelta_2, scalar_undelta_4, scalar_undelta_8},
    .remove_zeros = {scalar_remove_zeros_1, scalar_remove_zeros_2, scalar_remove_zeros_4,
                     scalar_remove_zeros_8},
    .insert_zeros = {scalar_insert_zeros_1, scalar_insert_zeros_2, scalar_insert_zeros_4,
                     scalar_insert_zeros_8},
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
