// The end of every decoding: eight values go to the destination, or are reduced with an operand on
// the way. Used by the decode kernels and the reduce kernel.
#pragma once

#include "gpu/codec_args.hpp"
#include "gpu/element_math.hpp"
#include "gpu/value_planes.hpp"

namespace uzip::gpu {

/// Element i of eight.
template <class Bits>
UZIP_DEVICE Bits element_of(const Words<sizeof(Bits)>& words, unsigned i) {
  if constexpr (sizeof(Bits) == 8)
    return static_cast<Bits>(words.word[2 * i] | static_cast<uint64_t>(words.word[2 * i + 1]) << 32);
  else if constexpr (sizeof(Bits) == 4)
    return static_cast<Bits>(words.word[i]);
  else if constexpr (sizeof(Bits) == 2)
    return static_cast<Bits>(words.word[i / 2] >> (16 * (i % 2)));
  else
    return static_cast<Bits>(words.word[i / 4] >> (8 * (i % 4)));
}

/// Puts element i into words that hold zeros there.
template <class Bits>
UZIP_DEVICE void put_element(Words<sizeof(Bits)>& words, unsigned i, Bits bits) {
  if constexpr (sizeof(Bits) == 8) {
    words.word[2 * i] = static_cast<uint32_t>(bits);
    words.word[2 * i + 1] = static_cast<uint32_t>(static_cast<uint64_t>(bits) >> 32);
  } else if constexpr (sizeof(Bits) == 4) {
    words.word[i] = static_cast<uint32_t>(bits);
  } else if constexpr (sizeof(Bits) == 2) {
    words.word[i / 2] |= static_cast<uint32_t>(static_cast<uint16_t>(bits)) << (16 * (i % 2));
  } else {
    words.word[i / 4] |= static_cast<uint32_t>(static_cast<uint8_t>(bits)) << (8 * (i % 4));
  }
}

template <class Accumulator>
UZIP_DEVICE auto reduce_words(const Words<sizeof(typename Accumulator::Bits)>& a,
                              const Words<sizeof(typename Accumulator::Bits)>& b, uint32_t op,
                              uint64_t average_over) {
  using Bits = typename Accumulator::Bits;
  Words<sizeof(Bits)> result{};
  UZIP_UNROLL
  for (unsigned i = 0; i < kSegmentValues; ++i) {
    Accumulator accumulator(op, element_of<Bits>(a, i));
    accumulator.next(element_of<Bits>(b, i));
    put_element<Bits>(result, i, accumulator.result(average_over));
  }
  return result;
}

/// Whether a reduction of two arrays is a sum or an average of two.
UZIP_DEVICE bool is_pair_sum(uint32_t op, uint64_t average_over) {
  return op == UZIP_SUM || (op == UZIP_AVG && (average_over == 0 || average_over == 2));
}
UZIP_DEVICE bool is_pair_average(uint32_t op, uint64_t average_over) {
  return op == UZIP_AVG && average_over == 2;
}

/// Whether combine_word() knows the type.
#if defined(UZIP_HAS_SUMS_OF_WORDS)
template <int kType, bool kAverage>
inline constexpr bool kCombinesWords =
    kType == UZIP_BF16 || kType == UZIP_FP8_E5M2 || (kType == UZIP_FP16 && !kAverage)
#if defined(UZIP_HAS_E4M3)
    || kType == UZIP_FP8_E4M3FN
#endif
    ;
template <int kType, bool kAverage>
UZIP_DEVICE uint32_t combine_word(uint32_t a, uint32_t b) {
  if constexpr (kType == UZIP_BF16) return kAverage ? average_of_bf16(a, b) : sum_of_bf16(a, b);
  if constexpr (kType == UZIP_FP16) return sum_of_fp16(a, b);
  if constexpr (kType == UZIP_FP8_E5M2) return combine_e5m2<kAverage>(a, b);
#if defined(UZIP_HAS_E4M3)
  if constexpr (kType == UZIP_FP8_E4M3FN) return combine_e4m3fn<kAverage>(a, b);
#endif
  return 0;
}
#else
template <int kType, bool kAverage>
inline constexpr bool kCombinesWords = false;
template <int kType, bool kAverage>
UZIP_DEVICE uint32_t combine_word(uint32_t, uint32_t) {
  return 0;
}
#endif

template <int kType, bool kAverage>
UZIP_DEVICE uint4 combine_unit(const uint4& a, const uint4& b) {
  return make_uint4(combine_word<kType, kAverage>(a.x, b.x), combine_word<kType, kAverage>(a.y, b.y),
                    combine_word<kType, kAverage>(a.z, b.z),
                    combine_word<kType, kAverage>(a.w, b.w));
}

/// Sums, or averages of two.
template <int kType, bool kAverage, unsigned kSize>
UZIP_DEVICE Words<kSize> combine_words(const Words<kSize>& a, const Words<kSize>& b) {
  if constexpr (kCombinesWords<kType, kAverage>) {
    Words<kSize> result;
    UZIP_UNROLL
    for (unsigned i = 0; i < 2 * kSize; ++i)
      result.word[i] = combine_word<kType, kAverage>(a.word[i], b.word[i]);
    return result;
  } else {
    return reduce_words<typename AccumulatorOf<kType>::Type>(a, b, kAverage ? UZIP_AVG : UZIP_SUM,
                                                             kAverage ? 2 : 0);
  }
}

/// Any operation on `count` values (8, if there are more) of any alignment. A call: it is not for
/// what must be fast.
template <int kType, unsigned kSize>
UZIP_DEVICE_CALL void emit(const DecodeArgs& args, uint64_t first, unsigned count, bool aligned,
                           Words<kSize> words) {
  const uint64_t offset = first * kSize;
  const bool whole = aligned && count >= kSegmentValues;
  const unsigned some = count < kSegmentValues ? count : kSegmentValues;
  if (args.operand != nullptr) {
    const uint8_t* const operand = args.operand + offset;
    const Words<kSize> other =
        whole ? load_values<kSize>(operand) : load_some_values<kSize>(operand, some, 0);
    words = reduce_words<typename AccumulatorOf<kType>::Type>(other, words, args.op,
                                                              args.average_over);
  }
  if (whole)
    store_values<kSize>(args.dst + offset, words);
  else
    store_some_values<kSize>(args.dst + offset, some, words);
}

}  // namespace uzip::gpu
