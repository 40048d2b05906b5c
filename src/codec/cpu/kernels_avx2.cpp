// AVX2: level coding of byte sequences, 64 at a time, and the table of all kernels. What is left
// over of a sequence goes to the portable kernels.
#include "codec/cpu/kernels_avx2.hpp"

#include "codec/cpu/bit_stream.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_scalar.hpp"
#include "codec/cpu/levels_avx2.hpp"

namespace uzip {
namespace {

void pack_bits(const uint8_t* bytes, size_t count, unsigned mask, uint8_t* words) {
  size_t at = 0;
  for (; at + 64 <= count; at += 64) {
    const Bytes a = load(bytes + at);
    const Bytes b = load(bytes + at + 32);
    for (unsigned rest = mask; rest != 0; rest &= rest - 1, words += 8)
      put_word(words, bits_of(a, b, to_top(static_cast<unsigned>(__builtin_ctz(rest)))));
  }
  kScalarCodecKernels.pack_bits(bytes + at, count - at, mask, words);
}

void unpack_bits(const uint8_t* words, size_t count, unsigned mask, uint8_t* bytes) {
  size_t at = 0;
  for (; at + 64 <= count; at += 64) {
    Bytes a = _mm256_setzero_si256();
    Bytes b = a;
    for (unsigned rest = mask; rest != 0; rest &= rest - 1, words += 8) {
      const Bytes value = _mm256_set1_epi8(static_cast<char>(rest & -rest));
      const uint64_t word = get_word(words);
      a = _mm256_or_si256(a, spread(static_cast<uint32_t>(word), value));
      b = _mm256_or_si256(b, spread(static_cast<uint32_t>(word >> 32), value));
    }
    store(bytes + at, a);
    store(bytes + at + 32, b);
  }
  kScalarCodecKernels.unpack_bits(words, count - at, mask, bytes + at);
}

template <unsigned W>
size_t encode_level(const uint8_t* bytes, size_t count, unsigned shift, const uint8_t* codes_of,
                    uint8_t* words, uint8_t* escapes) {
  const Bytes field_bits = _mm256_set1_epi8(static_cast<char>(0xffu >> shift));
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  return with_codes<W>(
      codes_of, shift, [&](const auto& codes) __attribute__((always_inline)) {
        const auto fields = [&](const uint8_t* at) __attribute__((always_inline)) {
          return _mm256_and_si256(_mm256_srl_epi16(load(at), by), field_bits);
        };
        uint8_t* out = escapes;
        uint8_t* to = words;
        size_t at = 0;
        for (; at + 64 <= count; at += 64, to += 8 * W)
          out = encode_group<W>(codes, fields(bytes + at), fields(bytes + at + 32), to, out);
        if (const size_t rest = count - at; rest > 0) {
          alignas(32) uint8_t group[64] = {};
          __builtin_memcpy(group, bytes + at, rest);
          out = encode_group<W>(codes, fields(group), fields(group + 32), to, out,
                                lowest_bits(rest));
        }
        return static_cast<size_t>(out - escapes);
      });
}

template <unsigned W>
size_t decode_level(const uint8_t* words, size_t count, const uint8_t* symbols,
                    const uint8_t* escapes, uint8_t* dst) {
  return decode_fields<W>(words, count, symbols, escapes, dst);
}

void combine(const uint8_t* fields, const uint8_t* low, size_t count, unsigned shift,
             unsigned value, uint8_t* dst) {
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const Bytes high_bits = _mm256_set1_epi8(static_cast<char>(0xffu << shift));
  const Bytes constant = _mm256_set1_epi8(static_cast<char>(value));
  size_t at = 0;
  for (; at + 32 <= count; at += 32) {
    Bytes v = _mm256_and_si256(_mm256_sll_epi16(load(fields + at), by), high_bits);
    v = _mm256_or_si256(v, constant);
    if (low != nullptr) v = _mm256_or_si256(v, load(low + at));
    store(dst + at, v);
  }
  const uint8_t* const rest = low == nullptr ? nullptr : low + at;
  kScalarCodecKernels.combine(fields + at, rest, count - at, shift, value, dst + at);
}

void bit_range(const uint8_t* bytes, size_t count, uint8_t* all_or, uint8_t* all_and) {
  Bytes any = _mm256_setzero_si256();
  Bytes every = _mm256_set1_epi8(-1);
  size_t at = 0;
  for (; at + 32 <= count; at += 32) {
    const Bytes v = load(bytes + at);
    any = _mm256_or_si256(any, v);
    every = _mm256_and_si256(every, v);
  }
  alignas(32) uint8_t both[64];
  store(both, any);
  store(both + 32, every);
  uint8_t some = 0;
  uint8_t all = 0xff;
  for (size_t i = 0; i < 32; ++i) {
    some = static_cast<uint8_t>(some | both[i]);
    all = static_cast<uint8_t>(all & both[32 + i]);
  }
  for (; at < count; ++at) {
    some = static_cast<uint8_t>(some | bytes[at]);
    all = static_cast<uint8_t>(all & bytes[at]);
  }
  *all_or = some;
  *all_and = all;
}

// Others may read what went past the caches.
void finish_streaming() { _mm_sfence(); }

}  // namespace

const CodecKernels kAvx2CodecKernels = {
    .split = {avx2_split_1, avx2_split_2, avx2_split_4, avx2_split_8},
    .merge = {avx2_merge_1, avx2_merge_2, avx2_merge_4, avx2_merge_8},
    .delta = {scalar_delta_1, scalar_delta_2, avx2_delta_4, avx2_delta_8},
    .undelta = {scalar_undelta_1, scalar_undelta_2, avx2_undelta_4, avx2_undelta_8},
    .remove_zeros = {avx2_remove_zeros_1, avx2_remove_zeros_2, avx2_remove_zeros_4,
                     avx2_remove_zeros_8},
    .insert_zeros = {avx2_insert_zeros_1, avx2_insert_zeros_2, avx2_insert_zeros_4,
                     avx2_insert_zeros_8},
    .pack_bits = pack_bits,
    .unpack_bits = unpack_bits,
    .encode_level = {nullptr, encode_level<1>, encode_level<2>, encode_level<3>, encode_level<4>},
    .decode_level = {nullptr, decode_level<1>, decode_level<2>, decode_level<3>, decode_level<4>},
    .count_escapes = {nullptr, count_full_codes_by_words<1>, count_full_codes_by_words<2>,
                      count_full_codes_by_words<3>, count_full_codes_by_words<4>},
    .top = &kAvx2TopKernels,
    .sums = 1u << UZIP_BF16 | 1u << UZIP_FP16 | 1u << UZIP_FP32 | 1u << UZIP_FP64,
    .sums_in_place = 1u << UZIP_FP32 | 1u << UZIP_FP64,
    .combine = combine,
    .finish_streaming = finish_streaming,
    .bit_range = bit_range,
    .count_ones = count_full_codes_by_words<1>,
    .repeat_length = scalar_repeat_length,
};

}  // namespace uzip
