// AVX-512 with VBMI2 and GFNI: level coding of byte sequences, 64 at a time, and the table of all
// kernels.
#include "codec/cpu/kernels_avx512.hpp"
#include "codec/cpu/bit_stream.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_scalar.hpp"
#include "codec/cpu/levels_avx512.hpp"

namespace uzip {
namespace {

template <unsigned W>
void pack_some_bits(const uint8_t* bytes, size_t count, Bytes order, uint8_t* words) {
  for (size_t at = 0; at < count; at += 64, words += 8 * W)
    store_words<W>(
        words, _mm512_permutexvar_epi8(order, transpose_bits(load_first(bytes + at, count - at))));
}

void pack_bits(const uint8_t* bytes, size_t count, unsigned mask, uint8_t* words) {
  static constexpr decltype(&pack_some_bits<1>) kByWidth[] = {
      pack_some_bits<1>, pack_some_bits<2>, pack_some_bits<3>, pack_some_bits<4>,
      pack_some_bits<5>, pack_some_bits<6>, pack_some_bits<7>, pack_some_bits<8>};
  const PackOrder order(mask);
  if (order.width > 0) kByWidth[order.width - 1](bytes, count, order.index, words);
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

template <unsigned W>
size_t encode_level(const uint8_t* bytes, size_t count, unsigned shift, const uint8_t* codes_of,
                    uint8_t* words, uint8_t* escapes) {
  const Bytes field_bits = _mm512_set1_epi8(static_cast<char>(0xffu >> shift));
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  return with_lookup<W>(
      codes_of, [&](const auto& lookup) __attribute__((always_inline)) {
        LevelEncoder<W> level(words, escapes);
        size_t at = 0;
        for (; at + 64 <= count; at += 64) {
          prepare_ahead(level.words);
          level.encode(lookup, _mm512_and_si512(_mm512_srl_epi16(load(bytes + at), by), field_bits),
                       ~uint64_t{0});
        }
        const uint64_t rest = low_bits(count - at);
        if (rest != 0) {
          const Bytes v = load_some(bytes + at, rest);
          level.encode(lookup, _mm512_and_si512(_mm512_srl_epi16(v, by), field_bits), rest);
        }
        return static_cast<size_t>(level.escapes - escapes);
      });
}

template <unsigned W>
size_t decode_level(const uint8_t* words, size_t count, const uint8_t* symbols,
                    const uint8_t* escapes, uint8_t* dst) {
  LevelDecoder<W> level(words, symbols, escapes);
  size_t at = 0;
  // The last one, whole or not, reads no more words than there are.
  for (; at + 64 < count; at += 64) store(dst + at, level.decode(~uint64_t{0}, true));
  const uint64_t rest = low_bits(count - at);
  if (rest != 0) store_some(dst + at, rest, level.decode(rest, false));
  return static_cast<size_t>(level.escapes - escapes);
}

/// Of eight groups of W words, in W vectors: the bits that are set in all words of a group, each
/// group in a lane of its own.
template <unsigned W>
[[gnu::always_inline]] inline Bytes full_codes(const Bytes (&v)[W]);
template <>
[[gnu::always_inline]] inline Bytes full_codes<1>(const Bytes (&v)[1]) {
  return v[0];
}
template <>
[[gnu::always_inline]] inline Bytes full_codes<2>(const Bytes (&v)[2]) {
  return _mm512_and_si512(_mm512_unpacklo_epi64(v[0], v[1]), _mm512_unpackhi_epi64(v[0], v[1]));
}
/// The first words of groups stand in other lanes in each vector, and so do the second and the
/// third: blends collect them, each one lane behind the one before.
template <>
[[gnu::always_inline]] inline Bytes full_codes<3>(const Bytes (&v)[3]) {
  constexpr __mmask8 kFirst = 0x49;
  constexpr __mmask8 kSecond = 0x92;
  constexpr __mmask8 kThird = 0x24;
  const Bytes first =
      _mm512_mask_mov_epi64(_mm512_mask_mov_epi64(v[0], kSecond, v[1]), kThird, v[2]);
  const Bytes second =
      _mm512_mask_mov_epi64(_mm512_mask_mov_epi64(v[0], kThird, v[1]), kFirst, v[2]);
  const Bytes third =
      _mm512_mask_mov_epi64(_mm512_mask_mov_epi64(v[0], kFirst, v[1]), kSecond, v[2]);
  return _mm512_and_si512(first, _mm512_and_si512(_mm512_alignr_epi64(second, second, 1),
                                                  _mm512_alignr_epi64(third, third, 2)));
}
/// Half of each group of the first two vectors is brought together with the other half of one of
/// the last two.
template <>
[[gnu::always_inline]] inline Bytes full_codes<4>(const Bytes (&v)[4]) {
  constexpr __mmask8 kUpper = 0xcc;
  const Bytes low[2] = {v[0], v[1]};
  const Bytes high[2] = {v[2], v[3]};
  const Bytes some = full_codes<2>(low);
  const Bytes others = full_codes<2>(high);
  return _mm512_and_si512(_mm512_mask_mov_epi64(some, kUpper, others),
                          _mm512_permutex_epi64(_mm512_mask_mov_epi64(others, kUpper, some), 0x4e));
}

template <unsigned W>
size_t count_escapes(const uint8_t* words, size_t count) {
  Bytes sums = _mm512_setzero_si512();
  for (; count >= 8 * 64; count -= 8 * 64, words += 64 * W) {
    Bytes v[W];
#pragma GCC unroll 4
    for (unsigned i = 0; i < W; ++i) {
      _mm_prefetch(words + 64 * i + kNearAhead, _MM_HINT_T0);
      v[i] = load(words + 64 * i);
      // Stays in a register: compilers would load it, across two lines, for each of its uses.
      asm("" : "+v"(v[i]));
    }
    sums = _mm512_add_epi64(sums, _mm512_popcnt_epi64(full_codes<W>(v)));
  }
  return static_cast<size_t>(_mm512_reduce_add_epi64(sums)) +
         count_full_codes_by_words<W>(words, count);
}

void combine(const uint8_t* fields, const uint8_t* low, size_t count, unsigned shift,
             unsigned value, uint8_t* dst) {
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const Bytes high_bits = _mm512_set1_epi8(static_cast<char>(0xffu << shift));
  const Bytes constant = _mm512_set1_epi8(static_cast<char>(value));
  for (size_t at = 0; at < count; at += 64) {
    const size_t left = count - at;
    Bytes v = _mm512_and_si512(_mm512_sll_epi16(load_first(fields + at, left), by), high_bits);
    v = _mm512_or_si512(v, constant);
    if (low != nullptr) v = _mm512_or_si512(v, load_first(low + at, left));
    store_first(dst + at, left, v);
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

// Others may read what went past the caches.
void finish_streaming() { _mm_sfence(); }

}  // namespace

const CodecKernels kAvx512CodecKernels = {
    .split = {avx512_split_1, avx512_split_2, avx512_split_4, avx512_split_8},
    .merge = {avx512_merge_1, avx512_merge_2, avx512_merge_4, avx512_merge_8},
    .merge_level = {nullptr, nullptr, avx512_merge_level_4, avx512_merge_level_8},
    .delta = {scalar_delta_1, scalar_delta_2, avx512_delta_4, avx512_delta_8},
    .undelta = {scalar_undelta_1, scalar_undelta_2, avx512_undelta_4, avx512_undelta_8},
    .remove_zeros = {avx512_remove_zeros_1, avx512_remove_zeros_2, avx512_remove_zeros_4,
                     avx512_remove_zeros_8},
    .insert_zeros = {avx512_insert_zeros_1, avx512_insert_zeros_2, avx512_insert_zeros_4,
                     avx512_insert_zeros_8},
    .pack_bits = pack_bits,
    .unpack_bits = unpack_bits,
    .encode_level = {nullptr, encode_level<1>, encode_level<2>, encode_level<3>, encode_level<4>},
    .decode_level = {nullptr, decode_level<1>, decode_level<2>, decode_level<3>, decode_level<4>},
    .count_escapes = {nullptr, count_escapes<1>, count_escapes<2>, count_escapes<3>,
                      count_escapes<4>},
    .top = &kAvx512TopKernels,
    .sums = 1u << UZIP_BF16 | 1u << UZIP_FP16 | 1u << UZIP_FP32 | 1u << UZIP_FP64,
    .sums_in_place = 1u << UZIP_FP16 | 1u << UZIP_FP32 | 1u << UZIP_FP64,
    .combine = combine,
    .finish_streaming = finish_streaming,
    .bit_range = bit_range,
    .count_ones = count_escapes<1>,
    .repeat_length = repeat_length,
};

}  // namespace uzip
