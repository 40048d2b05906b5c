// AVX-512 with VBMI2 and GFNI: level coding of byte sequences, 64 at a time, and the table of all
// kernels.
//
// A group's codes are a matrix of 64 x w bits; the format wants its transpose. gf2p8affineqb
// transposes 8 x 8 bits in each 8 bytes, and one byte shuffle does the rest.
#include "codec/cpu/kernels_avx512.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_scalar.hpp"

namespace uzip {
namespace {

/// Where the words of a mask's bits lie after transpose_bits(): byte j of word k is byte 8 * j +
/// bit k.
struct PackOrder {
  Bytes index;
  __mmask64 used;
  unsigned width;

  explicit PackOrder(unsigned mask) {
    alignas(64) uint8_t bytes[64] = {};
    width = 0;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((mask >> bit & 1) == 0) continue;
      for (unsigned j = 0; j < 8; ++j) bytes[8 * width + j] = static_cast<uint8_t>(8 * j + bit);
      ++width;
    }
    index = load(bytes);
    used = low_bits(8 * size_t{width});
  }
};

/// The inverse, for transpose_reversed(): bit b of the values of byte j comes from the mask's word
/// k, byte j.
struct UnpackOrder {
  Bytes index;
  __mmask64 used;
  __mmask64 loaded;
  unsigned width;

  explicit UnpackOrder(unsigned mask) {
    alignas(64) uint8_t bytes[64] = {};
    used = 0;
    width = 0;
    for (unsigned bit = 0; bit < 8; ++bit) {
      if ((mask >> bit & 1) == 0) continue;
      for (unsigned j = 0; j < 8; ++j) {
        bytes[8 * j + 7 - bit] = static_cast<uint8_t>(8 * width + j);
        used |= uint64_t{1} << (8 * j + 7 - bit);
      }
      ++width;
    }
    index = load(bytes);
    loaded = low_bits(8 * size_t{width});
  }
  [[gnu::always_inline]] Bytes unpack(const uint8_t* words) const {
    const Bytes packed = load_some(words, loaded);
    return transpose_reversed(_mm512_maskz_permutexvar_epi8(used, index, packed));
  }
};

void pack_bits(const uint8_t* bytes, size_t count, unsigned mask, uint8_t* words) {
  const PackOrder order(mask);
  for (size_t at = 0; at < count; at += 64, words += 8 * order.width) {
    const Bytes v =
        count - at >= 64 ? load(bytes + at) : load_some(bytes + at, low_bits(count - at));
    store_some(words, order.used, _mm512_permutexvar_epi8(order.index, transpose_bits(v)));
  }
}

void unpack_bits(const uint8_t* words, size_t count, unsigned mask, uint8_t* bytes) {
  const UnpackOrder order(mask);
  for (size_t at = 0; at < count; at += 64, words += 8 * order.width) {
    const Bytes v = order.unpack(words);
    if (count - at >= 64)
      store(bytes + at, v);
    else
      store_some(bytes + at, low_bits(count - at), v);
  }
}

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

template <unsigned W, class Lookup>
[[gnu::always_inline]] inline size_t encode_with(const Lookup& lookup, const uint8_t* bytes,
                                                 size_t count, unsigned shift, uint8_t* words,
                                                 uint8_t* escapes) {
  const PackOrder order((1u << W) - 1);
  const Bytes escape = _mm512_set1_epi8((1 << W) - 1);
  const Bytes field_bits = _mm512_set1_epi8(static_cast<char>(0xffu >> shift));
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  uint8_t* out = escapes;
  auto group = [&](Bytes v, __mmask64 valid) __attribute__((always_inline)) {
    const Bytes fields = _mm512_and_si512(_mm512_srl_epi16(v, by), field_bits);
    const Bytes codes = _mm512_maskz_mov_epi8(valid, lookup(fields));
    const __mmask64 escaped = _mm512_mask_cmpeq_epi8_mask(valid, codes, escape);
    store_some(words, order.used, _mm512_permutexvar_epi8(order.index, transpose_bits(codes)));
    store(out, _mm512_maskz_compress_epi8(escaped, fields));
    out += popcount(escaped);
    words += 8 * W;
  };
  size_t at = 0;
  for (; at + 64 <= count; at += 64) group(load(bytes + at), ~__mmask64{0});
  const uint64_t rest = low_bits(count - at);
  if (rest != 0) group(load_some(bytes + at, rest), rest);
  return static_cast<size_t>(out - escapes);
}

template <unsigned W>
size_t encode_level(const uint8_t* bytes, size_t count, unsigned shift, const uint8_t* codes_of,
                    uint8_t* words, uint8_t* escapes) {
  const Bytes escape = _mm512_set1_epi8((1 << W) - 1);
  FullLookup full;
  size_t first = 255;
  size_t last = 0;
  for (size_t i = 0; i < 4; ++i) {
    full.codes[i] = load(codes_of + 64 * i);
    const uint64_t coded = _mm512_cmpneq_epi8_mask(full.codes[i], escape);
    if (coded == 0) continue;
    if (first == 255) first = 64 * i + static_cast<size_t>(__builtin_ctzll(coded));
    last = 64 * i + 63 - static_cast<size_t>(__builtin_clzll(coded));
  }
  if (last >= first + 63) return encode_with<W>(full, bytes, count, shift, words, escapes);
  // Entry 63 stands for everything else and is an escape.
  const uint64_t inside = low_bits(last < first ? 0 : last - first + 1);
  const NearLookup near{_mm512_set1_epi8(static_cast<char>(first)),
                        _mm512_mask_loadu_epi8(escape, inside, codes_of + first)};
  return encode_with<W>(near, bytes, count, shift, words, escapes);
}

template <unsigned W>
size_t decode_level(const uint8_t* words, size_t count, const uint8_t* symbols,
                    const uint8_t* escapes, uint8_t* dst) {
  const UnpackOrder order((1u << W) - 1);
  const Bytes table =
      _mm512_broadcast_i32x4(_mm_loadu_si128(reinterpret_cast<const __m128i*>(symbols)));
  const uint8_t* next = escapes;
  auto group = [&](__mmask64 valid) __attribute__((always_inline)) {
    uint64_t escaped = valid;
    for (unsigned b = 0; b < W; ++b) {
      uint64_t word;
      __builtin_memcpy(&word, words + 8 * b, 8);
      escaped &= word;
    }
    Bytes fields;
    if constexpr (W == 1)
      fields = _mm512_broadcastb_epi8(_mm512_castsi512_si128(table));
    else
      fields = _mm512_shuffle_epi8(table, order.unpack(words));
    fields = _mm512_mask_expand_epi8(fields, escaped, load(next));
    next += popcount(escaped);
    words += 8 * W;
    return fields;
  };
  size_t at = 0;
  for (; at + 64 <= count; at += 64) store(dst + at, group(~__mmask64{0}));
  const uint64_t rest = low_bits(count - at);
  if (rest != 0) store_some(dst + at, rest, group(rest));
  return static_cast<size_t>(next - escapes);
}

void combine(const uint8_t* fields, const uint8_t* low, size_t count, unsigned shift,
             unsigned value, uint8_t* dst) {
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const Bytes high_bits = _mm512_set1_epi8(static_cast<char>(0xffu << shift));
  const Bytes constant = _mm512_set1_epi8(static_cast<char>(value));
  for (size_t at = 0; at < count; at += 64) {
    const uint64_t valid = count - at >= 64 ? ~uint64_t{0} : low_bits(count - at);
    Bytes v = _mm512_and_si512(_mm512_sll_epi16(load_some(fields + at, valid), by), high_bits);
    v = _mm512_or_si512(v, constant);
    if (low != nullptr) v = _mm512_or_si512(v, load_some(low + at, valid));
    store_some(dst + at, valid, v);
  }
}

void bit_range(const uint8_t* bytes, size_t count, uint8_t* all_or, uint8_t* all_and) {
  Bytes any = _mm512_setzero_si512();
  Bytes every = _mm512_set1_epi8(-1);
  size_t at = 0;
  for (; at + 64 <= count; at += 64) {
    const Bytes v = load(bytes + at);
    any = _mm512_or_si512(any, v);
    every = _mm512_and_si512(every, v);
  }
  const uint64_t rest = low_bits(count - at);
  if (rest != 0) {
    any = _mm512_or_si512(any, load_some(bytes + at, rest));
    every = _mm512_and_si512(every, _mm512_mask_loadu_epi8(_mm512_set1_epi8(-1), rest, bytes + at));
  }
  auto high = static_cast<uint64_t>(_mm512_reduce_or_epi64(any));
  auto low = static_cast<uint64_t>(_mm512_reduce_and_epi64(every));
  for (unsigned shift = 32; shift >= 8; shift /= 2) {
    high |= high >> shift;
    low &= low >> shift;
  }
  *all_or = static_cast<uint8_t>(high);
  *all_and = static_cast<uint8_t>(low);
}

size_t repeat_length(const uint8_t* bytes, size_t count, unsigned period) {
  uint64_t pattern = 0;
  for (unsigned i = 0; i < 8; ++i) pattern |= uint64_t{bytes[i % period]} << (8 * i);
  const Bytes expected = _mm512_set1_epi64(static_cast<int64_t>(pattern));
  for (size_t at = 0; at < count; at += 64) {
    const uint64_t valid = count - at >= 64 ? ~uint64_t{0} : low_bits(count - at);
    const uint64_t differs =
        _mm512_mask_cmpneq_epi8_mask(valid, load_some(bytes + at, valid), expected);
    if (differs != 0) return at + static_cast<size_t>(__builtin_ctzll(differs));
  }
  return count;
}

}  // namespace

const CodecKernels kAvx512CodecKernels = {
    .split = {avx512_split_1, avx512_split_2, avx512_split_4, avx512_split_8},
    .merge = {avx512_merge_1, avx512_merge_2, avx512_merge_4, avx512_merge_8},
    .delta = {scalar_delta_1, scalar_delta_2, avx512_delta_4, avx512_delta_8},
    .undelta = {scalar_undelta_1, scalar_undelta_2, avx512_undelta_4, avx512_undelta_8},
    .remove_zeros = {scalar_remove_zeros_1, avx512_remove_zeros_2, avx512_remove_zeros_4,
                     avx512_remove_zeros_8},
    .insert_zeros = {scalar_insert_zeros_1, avx512_insert_zeros_2, avx512_insert_zeros_4,
                     avx512_insert_zeros_8},
    .pack_bits = pack_bits,
    .unpack_bits = unpack_bits,
    .encode_level = {nullptr, encode_level<1>, encode_level<2>, encode_level<3>, encode_level<4>},
    .decode_level = {nullptr, decode_level<1>, decode_level<2>, decode_level<3>, decode_level<4>},
    .combine = combine,
    .bit_range = bit_range,
    .repeat_length = repeat_length,
};

}  // namespace uzip
