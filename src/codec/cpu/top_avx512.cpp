// AVX-512: values of one or two bytes straight to a level and back. What these save is the way of
// the top plane through memory.
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx512.hpp"
#include "codec/cpu/levels_avx512.hpp"
#include "codec/cpu/sums_avx512.hpp"

namespace uzip {
namespace {

/// 64 values of one byte: the rotated value is the top plane.
struct Values1 {
  static constexpr size_t kSize = 1;
  Bytes left = _mm512_set1_epi64(static_cast<int64_t>(0x8001020408102040u));
  Bytes right = _mm512_set1_epi64(static_cast<int64_t>(0x0204081020408001u));

  [[gnu::always_inline]] Bytes read(const uint8_t* src, size_t count, uint8_t*) const {
    const Bytes v = count == 64 ? load(src) : load_some(src, low_bits(count));
    return _mm512_gf2p8affine_epi64_epi8(v, left, 0);
  }
  [[gnu::always_inline]] void join(Bytes top, size_t, const uint8_t*, Bytes (&v)[1]) const {
    v[0] = _mm512_gf2p8affine_epi64_epi8(top, right, 0);
  }
};

/// 64 values of two bytes: the top plane, and the other one as it is.
struct Values2 {
  static constexpr size_t kSize = 2;

  [[gnu::always_inline]] Bytes read(const uint8_t* src, size_t count, uint8_t* other) const {
    const bool whole = count == 64;
    const Bytes v0 = whole ? load(src) : load_some(src, part_mask(2 * count, 0));
    const Bytes v1 = whole ? load(src + 64) : load_some(src + 64, part_mask(2 * count, 1));
    Bytes v[2] = {_mm512_shldi_epi16(v0, v0, 1), _mm512_shldi_epi16(v1, v1, 1 + 8)};
    Places<2>::to_planes(v);
    if (whole)
      store(other, v[0]);
    else
      store_some(other, low_bits(count), v[0]);
    return v[1];
  }
  [[gnu::always_inline]] void join(Bytes top, size_t count, const uint8_t* other,
                                   Bytes (&v)[2]) const {
    v[0] = count == 64 ? load(other) : load_some(other, low_bits(count));
    v[1] = top;
    Places<2>::to_values(v);
    v[0] = _mm512_shrdi_epi16(v[0], v[0], 1);
    v[1] = _mm512_shrdi_epi16(v[1], v[1], 1 + 8);
  }
};

template <class Values, unsigned W, unsigned kShift, class Lookup>
[[gnu::always_inline]] inline size_t encode_with(const Lookup& lookup, const uint8_t* src,
                                                 size_t count, const TopPlane& top,
                                                 uint8_t* escapes) {
  const Values values;
  LevelEncoder<W> level(top.words, escapes);
  const PackOrder low_order(kPackLevel<kShift>);
  const Bytes field_bits = _mm512_set1_epi8(static_cast<char>(0xffu >> kShift));
  uint8_t* low_words = top.low_words;
  uint8_t* other = top.other;
  const bool far = fetches_far();
  auto group = [&](size_t here) __attribute__((always_inline)) {
    Bytes fields = values.read(src, here, other);
    if constexpr (kShift > 0) {
      store_words<kShift>(low_words,
                          _mm512_permutexvar_epi8(low_order.index, transpose_bits(fields)));
      low_words += 8 * kShift;
      fields = _mm512_and_si512(_mm512_srli_epi16(fields, kShift), field_bits);
    }
    level.encode(lookup, fields, here == 64 ? ~uint64_t{0} : low_bits(here));
    src += 64 * Values::kSize;
    other += 64 * (Values::kSize - 1);
  };
  for (; count >= 64; count -= 64) {
    for (size_t i = 0; i < Values::kSize; ++i) fetch_ahead(src + 64 * i, far);
    if constexpr (Values::kSize > 1) prepare_ahead(other);
    if constexpr (kShift > 0) prepare_ahead(low_words);
    prepare_ahead(level.words);
    group(64);
  }
  if (count > 0) group(count);
  return static_cast<size_t>(level.escapes - escapes);
}

template <class Values, unsigned W>
size_t encode(const uint8_t* src, size_t count, const uint8_t* codes_of, const TopPlane& top,
              uint8_t* escapes) {
  return with_lookup<W>(
      codes_of, [&](const auto& lookup) __attribute__((always_inline)) {
        if constexpr (Values::kSize == 2) {
          if (top.shift == 0) return encode_with<Values, W, 0>(lookup, src, count, top, escapes);
        } else {
          if (top.shift == 2) return encode_with<Values, W, 2>(lookup, src, count, top, escapes);
        }
        return encode_with<Values, W, 3>(lookup, src, count, top, escapes);
      });
}

template <class Values, unsigned W, bool kShifts, class Sink>
[[gnu::always_inline]] inline size_t decode_with(const ConstTopPlane& top, size_t count,
                                                 const uint8_t* symbols, const uint8_t* escapes,
                                                 const Output& output) {
  const Values values;
  LevelDecoder<W> level(top.words, symbols, escapes);
  const UnpackOrder low_order(kUnpackLow.of[top.shift]);
  const size_t low_bytes = 8 * top.shift;
  const Bytes high_bits = _mm512_set1_epi8(static_cast<char>(0xffu << top.shift));
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(top.shift));
  const uint8_t* low_words = top.low_words;
  const uint8_t* other = top.other;
  Bytes v[Values::kSize];
  auto group = [&](size_t here, bool inside) __attribute__((always_inline)) {
    Bytes plane = level.decode(here == 64 ? ~uint64_t{0} : low_bits(here), inside);
    if constexpr (kShifts) {
      const Bytes low =
          inside ? low_order.unpack_inside<4>(low_words) : low_order.unpack(low_words);
      plane = _mm512_and_si512(_mm512_sll_epi16(plane, by), high_bits);
      plane = _mm512_or_si512(plane, low);
      low_words += low_bytes;
    }
    values.join(plane, here, other, v);
    other += 64 * (Values::kSize - 1);
  };
  Sink sink(output);
  auto whole_group = [&](bool inside) __attribute__((always_inline)) {
    group(64, inside);
#pragma GCC unroll 2
    for (size_t i = 0; i < Values::kSize; ++i) sink.put(v[i]);
    count -= 64;
  };
  // What this library encodes has at most three bits below the field.
  if (top.shift <= 4)
    while (count >= kGroupsOfFourWords * 64) whole_group(true);
  while (count >= 64) whole_group(false);
  uint8_t* const end = sink.finish();
  if (count > 0) {
    group(count, false);
    for (size_t i = 0; i < Values::kSize; ++i)
      store_some(end + 64 * i, part_mask(Values::kSize * count, i), v[i]);
  }
  return static_cast<size_t>(level.escapes - escapes);
}

template <class Values, unsigned W, class Sink>
[[gnu::noinline]] size_t decode_to(const ConstTopPlane& top, size_t count, const uint8_t* symbols,
                                   const uint8_t* escapes, const Output& dst) {
  return top.shift == 0 ? decode_with<Values, W, false, Sink>(top, count, symbols, escapes, dst)
                        : decode_with<Values, W, true, Sink>(top, count, symbols, escapes, dst);
}

template <class Values, unsigned W>
size_t decode(const ConstTopPlane& top, size_t count, const uint8_t* symbols,
              const uint8_t* escapes, const Output& dst) {
  if constexpr (Values::kSize == 2) {
    if (dst.sum != nullptr && dst.sum->type == UZIP_BF16)
      return NativeBfloat16::runs_here()
                 ? decode_to<Values, W, SumOfNativeBf16>(top, count, symbols, escapes, dst)
                 : decode_to<Values, W, SumOfBf16>(top, count, symbols, escapes, dst);
    if (dst.sum != nullptr)
      return decode_to<Values, W, SumOfFp16>(top, count, symbols, escapes, dst);
  }
  if (dst.streams) return decode_to<Values, W, StreamSink>(top, count, symbols, escapes, dst);
  return AheadSink::is_for(dst)
             ? decode_to<Values, W, AheadSink>(top, count, symbols, escapes, dst)
             : decode_to<Values, W, StoreSink>(top, count, symbols, escapes, dst);
}

}  // namespace

const TopKernels kAvx512TopKernels = {
    .encode = {{nullptr, encode<Values1, 1>, encode<Values1, 2>, encode<Values1, 3>,
                encode<Values1, 4>},
               {nullptr, encode<Values2, 1>, encode<Values2, 2>, encode<Values2, 3>,
                encode<Values2, 4>}},
    .decode = {{nullptr, decode<Values1, 1>, decode<Values1, 2>, decode<Values1, 3>,
                decode<Values1, 4>},
               {nullptr, decode<Values2, 1>, decode<Values2, 2>, decode<Values2, 3>,
                decode<Values2, 4>}},
};

}  // namespace uzip
