// AVX2: values of one or two bytes straight to a level, and back by way of a piece of the top plane that stays in the
// first cache: escapes have to be put in place in memory.
#include "codec/cpu/bit_stream.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx2.hpp"
#include "codec/cpu/levels_avx2.hpp"
#include "codec/cpu/sinks_avx2.hpp"

namespace uzip {
namespace {

/// 32 values of one byte: the rotated value is the top plane.
struct Values1 {
  static constexpr size_t kSize = 1;
  [[gnu::always_inline]] static Bytes read(const uint8_t* src, uint8_t*) {
    const Bytes v = load(src);
    const Bytes sign = _mm256_and_si256(_mm256_srli_epi16(v, 7), _mm256_set1_epi8(1));
    return _mm256_or_si256(_mm256_add_epi8(v, v), sign);
  }
  /// 64 values from their top plane.
  template <class Sink>
  [[gnu::always_inline]] static void join(Bytes a, Bytes b, const uint8_t*, Sink& sink) {
    sink.put(turn(a), turn(b));
  }

 private:
  [[gnu::always_inline]] static Bytes turn(Bytes v) {
    const Bytes top = _mm256_set1_epi8(INT8_MIN);
    const Bytes sign = _mm256_and_si256(_mm256_slli_epi16(v, 7), top);
    return _mm256_or_si256(_mm256_andnot_si256(top, _mm256_srli_epi16(v, 1)), sign);
  }
};

/// 32 values of two bytes: the top plane, and the other one as it is.
struct Values2 {
  static constexpr size_t kSize = 2;
  [[gnu::always_inline]] static Bytes read(const uint8_t* src, uint8_t* other) {
    const Bytes low = _mm256_set1_epi16(0xff);
    const Bytes v0 = load_halves(src, src + 32);
    const Bytes v1 = load_halves(src + 16, src + 48);
    const Bytes a = _mm256_or_si256(_mm256_add_epi16(v0, v0), _mm256_srli_epi16(v0, 15));
    const Bytes b = _mm256_or_si256(_mm256_add_epi16(v1, v1), _mm256_srli_epi16(v1, 15));
    store(other, _mm256_packus_epi16(_mm256_and_si256(a, low), _mm256_and_si256(b, low)));
    return _mm256_packus_epi16(_mm256_srli_epi16(a, 8), _mm256_srli_epi16(b, 8));
  }
  template <class Sink>
  [[gnu::always_inline]] static void join(Bytes a, Bytes b, const uint8_t* other, Sink& sink) {
    join_half(a, load(other), sink);
    join_half(b, load(other + 32), sink);
  }

 private:
  template <class Sink>
  [[gnu::always_inline]] static void join_half(Bytes top, Bytes low, Sink& sink) {
    top = _mm256_permute4x64_epi64(top, 0xd8);
    low = _mm256_permute4x64_epi64(low, 0xd8);
    sink.put(turn(_mm256_unpacklo_epi8(low, top)), turn(_mm256_unpackhi_epi8(low, top)));
  }
  [[gnu::always_inline]] static Bytes turn(Bytes v) {
    return _mm256_or_si256(_mm256_srli_epi16(v, 1), _mm256_slli_epi16(v, 15));
  }
};

template <class Values, unsigned W, unsigned kShift, class Codes>
[[gnu::always_inline]] inline size_t encode_with(const Codes& codes, const uint8_t* src,
                                                 size_t count, const TopPlane& top,
                                                 uint8_t* escapes) {
  const Bytes field_bits = _mm256_set1_epi8(static_cast<char>(0xffu >> kShift));
  uint8_t* low_words = top.low_words;
  uint8_t* words = top.words;
  uint8_t* out = escapes;
  const auto group = [&](const uint8_t* values, uint8_t* other, uint64_t valid)
                         __attribute__((always_inline)) {
    Bytes a = Values::read(values, other);
    Bytes b = Values::read(values + 32 * Values::kSize, other + 32 * (Values::kSize - 1));
    if constexpr (kShift > 0) {
      uint64_t low[kShift];
      take_bits<kShift>(_mm256_slli_epi16(a, 8 - kShift), _mm256_slli_epi16(b, 8 - kShift), low);
#pragma GCC unroll 4
      for (unsigned bit = 0; bit < kShift; ++bit, low_words += 8) put_word(low_words, low[bit]);
      a = _mm256_and_si256(_mm256_srli_epi16(a, kShift), field_bits);
      b = _mm256_and_si256(_mm256_srli_epi16(b, kShift), field_bits);
    }
    out = encode_group<W>(codes, a, b, words, out, valid);
    words += 8 * W;
  };
  uint8_t* other = top.other;
  for (; count >= 64; count -= 64) {
#pragma GCC unroll 8
    for (size_t i = 0; i < Values::kSize; ++i) fetch_ahead(src + 64 * i);
    group(src, other, ~uint64_t{0});
    src += 64 * Values::kSize;
    other += 64 * (Values::kSize - 1);
  }
  if (count > 0) {
    alignas(32) uint8_t values[64 * Values::kSize] = {};
    alignas(32) uint8_t others[64 * Values::kSize];
    __builtin_memcpy(values, src, count * Values::kSize);
    group(values, others, lowest_bits(count));
    if constexpr (Values::kSize > 1) __builtin_memcpy(other, others, count);
  }
  return static_cast<size_t>(out - escapes);
}

template <class Values, unsigned W>
size_t encode(const uint8_t* src, size_t count, const uint8_t* codes_of, const TopPlane& top,
              uint8_t* escapes) {
  return with_codes<W>(
      codes_of, top.shift, [&](const auto& codes) __attribute__((always_inline)) {
        if constexpr (Values::kSize == 2) {
          if (top.shift == 0) return encode_with<Values, W, 0>(codes, src, count, top, escapes);
        } else {
          if (top.shift == 2) return encode_with<Values, W, 2>(codes, src, count, top, escapes);
        }
        return encode_with<Values, W, 3>(codes, src, count, top, escapes);
      });
}

constexpr size_t kPiece = 1024;  // values

/// Two halves of 64 fields become those of the top plane. kShift is the shift, or 8 if that is known at run time only.
template <unsigned kShift>
struct LowBits {
  __m128i by;
  Bytes high;
  unsigned shift;

  explicit LowBits(unsigned field_shift)
      : by(_mm_cvtsi32_si128(static_cast<int>(field_shift))),
        high(_mm256_set1_epi8(static_cast<char>(0xffu << field_shift))),
        shift(kShift < 8 ? kShift : field_shift) {}
  [[gnu::always_inline]] void add(Bytes& a, Bytes& b, const uint8_t* words) const {
    a = _mm256_and_si256(_mm256_sll_epi16(a, by), high);
    b = _mm256_and_si256(_mm256_sll_epi16(b, by), high);
#pragma GCC unroll 4
    for (unsigned bit = 0; bit < (kShift < 8 ? kShift : shift); ++bit) {
      const uint64_t word = get_word(words + 8 * bit);
      const Bytes value = _mm256_set1_epi8(static_cast<char>(1u << bit));
      a = _mm256_or_si256(a, spread(static_cast<uint32_t>(word), value));
      b = _mm256_or_si256(b, spread(static_cast<uint32_t>(word >> 32), value));
    }
  }
};

template <class Values, unsigned W, unsigned kShift, class Sink>
[[gnu::always_inline]] inline size_t decode_with(const ConstTopPlane& top, size_t count,
                                                 const uint8_t* symbols, const uint8_t* escapes,
                                                 const Output& output) {
  constexpr size_t kOther = Values::kSize - 1;
  const LowBits<kShift> low(top.shift);
  const uint8_t* words = top.words;
  const uint8_t* low_words = top.low_words;
  const uint8_t* other = top.other;
  const uint8_t* next = escapes;
  alignas(32) uint8_t plane[kPiece];
  const auto group = [&](const uint8_t* fields, const uint8_t* others, auto& sink)
                         __attribute__((always_inline)) {
    Bytes a = load(fields);
    Bytes b = load(fields + 32);
    if constexpr (kShift > 0) low.add(a, b, low_words);
    Values::join(a, b, others, sink);
  };
  Sink sink(output);
  for (; count > 0;) {
    const size_t here = count < kPiece ? count : kPiece;
    next += decode_fields<W>(words, here, symbols, next, plane);
    words += here / 64 * 8 * W;
    size_t at = 0;
    for (; at + 64 <= here; at += 64, other += 64 * kOther, low_words += 8 * low.shift)
      group(plane + at, other, sink);
    count -= here;
    if (at == here) continue;
    // The last values of all, of less than a group.
    alignas(32) uint8_t others[64 * Values::kSize] = {};
    alignas(32) uint8_t values[64 * Values::kSize];
    const size_t rest = here - at;
    if constexpr (kOther > 0) __builtin_memcpy(others, other, rest);
    StoreSink last({values, values});
    group(plane + at, others, last);
    __builtin_memcpy(sink.finish(), values, rest * Values::kSize);
  }
  return static_cast<size_t>(next - escapes);
}

template <class Values, unsigned W, class Sink>
[[gnu::noinline]] size_t decode_to(const ConstTopPlane& top, size_t count, const uint8_t* symbols,
                                   const uint8_t* escapes, const Output& dst) {
  // Those of the types that there are, and others, which other encoders may have chosen.
  constexpr unsigned kUsual = Values::kSize == 2 ? 0 : 2;
  if (top.shift == kUsual) return decode_with<Values, W, kUsual, Sink>(top, count, symbols, escapes, dst);
  if (top.shift == 3) return decode_with<Values, W, 3, Sink>(top, count, symbols, escapes, dst);
  return decode_with<Values, W, 8, Sink>(top, count, symbols, escapes, dst);
}

template <class Values, unsigned W>
size_t decode(const ConstTopPlane& top, size_t count, const uint8_t* symbols,
              const uint8_t* escapes, const Output& dst) {
  return with_sink<Values::kSize>(dst, [&](auto sink) {
    return decode_to<Values, W, typename decltype(sink)::Type>(top, count, symbols, escapes, dst);
  });
}

}  // namespace

const TopKernels kAvx2TopKernels = {
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
