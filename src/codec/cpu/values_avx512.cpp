// AVX-512: differences of neighbours, and values without their zeros.
#include "codec/cpu/bit_stream.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx512.hpp"
#include "codec/cpu/sums_avx512.hpp"

namespace uzip {
namespace {

struct Words4 {
  static constexpr size_t kSize = 4;
  static constexpr size_t kLanes = 16;
  static Bytes set1(uint64_t x) { return _mm512_set1_epi32(static_cast<int>(x)); }
  static Bytes rol1(Bytes v) { return _mm512_rol_epi32(v, 1); }
  static Bytes ror1(Bytes v) { return _mm512_ror_epi32(v, 1); }
  static Bytes add(Bytes a, Bytes b) { return _mm512_add_epi32(a, b); }
  static Bytes sub(Bytes a, Bytes b) { return _mm512_sub_epi32(a, b); }
  static Bytes zigzag(Bytes d) {
    return _mm512_xor_si512(_mm512_slli_epi32(d, 1), _mm512_srai_epi32(d, 31));
  }
  static Bytes unzigzag(Bytes v) {
    const Bytes sign = _mm512_srai_epi32(_mm512_slli_epi32(v, 31), 31);
    return _mm512_xor_si512(_mm512_srli_epi32(v, 1), sign);
  }
  static Bytes shift_in(Bytes v, Bytes before) { return _mm512_alignr_epi32(v, before, 15); }
  static Bytes running_sum(Bytes v) {
    const Bytes zero = _mm512_setzero_si512();
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 15));
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 14));
    v = _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 12));
    return _mm512_add_epi32(v, _mm512_alignr_epi32(v, zero, 8));
  }
  static Bytes last(Bytes v) { return _mm512_permutexvar_epi32(_mm512_set1_epi32(15), v); }
  static uint64_t first(Bytes v) { return static_cast<uint32_t>(_mm512_cvtsi512_si32(v)); }
  static uint64_t nonzero(Bytes v) {
    return _mm512_test_epi32_mask(v, _mm512_set1_epi32(0x7fffffff));
  }
  static uint64_t negative(Bytes v) { return _mm512_movepi32_mask(v); }
  static Bytes compress(uint64_t m, Bytes v) {
    return _mm512_maskz_compress_epi32(static_cast<__mmask16>(m), v);
  }
  static Bytes expand(uint64_t m, Bytes v) {
    return _mm512_maskz_expand_epi32(static_cast<__mmask16>(m), v);
  }
  static Bytes set_signs(uint64_t m, Bytes v) {
    return _mm512_mask_mov_epi32(v, static_cast<__mmask16>(m), _mm512_set1_epi32(INT32_MIN));
  }
};

struct Words8 {
  static constexpr size_t kSize = 8;
  static constexpr size_t kLanes = 8;
  static Bytes set1(uint64_t x) { return _mm512_set1_epi64(static_cast<int64_t>(x)); }
  static Bytes rol1(Bytes v) { return _mm512_rol_epi64(v, 1); }
  static Bytes ror1(Bytes v) { return _mm512_ror_epi64(v, 1); }
  static Bytes add(Bytes a, Bytes b) { return _mm512_add_epi64(a, b); }
  static Bytes sub(Bytes a, Bytes b) { return _mm512_sub_epi64(a, b); }
  static Bytes zigzag(Bytes d) {
    return _mm512_xor_si512(_mm512_slli_epi64(d, 1), _mm512_srai_epi64(d, 63));
  }
  static Bytes unzigzag(Bytes v) {
    const Bytes sign = _mm512_srai_epi64(_mm512_slli_epi64(v, 63), 63);
    return _mm512_xor_si512(_mm512_srli_epi64(v, 1), sign);
  }
  static Bytes shift_in(Bytes v, Bytes before) { return _mm512_alignr_epi64(v, before, 7); }
  static Bytes running_sum(Bytes v) {
    const Bytes zero = _mm512_setzero_si512();
    v = _mm512_add_epi64(v, _mm512_alignr_epi64(v, zero, 7));
    v = _mm512_add_epi64(v, _mm512_alignr_epi64(v, zero, 6));
    return _mm512_add_epi64(v, _mm512_alignr_epi64(v, zero, 4));
  }
  static Bytes last(Bytes v) { return _mm512_permutexvar_epi64(_mm512_set1_epi64(7), v); }
  static uint64_t first(Bytes v) {
    return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm512_castsi512_si128(v)));
  }
  static uint64_t nonzero(Bytes v) {
    return _mm512_test_epi64_mask(v, _mm512_set1_epi64(INT64_MAX));
  }
  static uint64_t negative(Bytes v) { return _mm512_movepi64_mask(v); }
  static Bytes compress(uint64_t m, Bytes v) {
    return _mm512_maskz_compress_epi64(static_cast<__mmask8>(m), v);
  }
  static Bytes expand(uint64_t m, Bytes v) {
    return _mm512_maskz_expand_epi64(static_cast<__mmask8>(m), v);
  }
  static Bytes set_signs(uint64_t m, Bytes v) {
    return _mm512_mask_mov_epi64(v, static_cast<__mmask8>(m), _mm512_set1_epi64(INT64_MIN));
  }
};

struct Words2 {
  static constexpr size_t kSize = 2;
  static constexpr size_t kLanes = 32;
  static uint64_t nonzero(Bytes v) { return _mm512_test_epi16_mask(v, _mm512_set1_epi16(0x7fff)); }
  static uint64_t negative(Bytes v) { return _mm512_movepi16_mask(v); }
  static Bytes compress(uint64_t m, Bytes v) {
    return _mm512_maskz_compress_epi16(static_cast<__mmask32>(m), v);
  }
  static Bytes expand(uint64_t m, Bytes v) {
    return _mm512_maskz_expand_epi16(static_cast<__mmask32>(m), v);
  }
  static Bytes set_signs(uint64_t m, Bytes v) {
    return _mm512_mask_mov_epi16(v, static_cast<__mmask32>(m), _mm512_set1_epi16(INT16_MIN));
  }
};

struct Words1 {
  static constexpr size_t kSize = 1;
  static constexpr size_t kLanes = 64;
  static uint64_t nonzero(Bytes v) { return _mm512_test_epi8_mask(v, _mm512_set1_epi8(0x7f)); }
  static uint64_t negative(Bytes v) { return _mm512_movepi8_mask(v); }
  static Bytes compress(uint64_t m, Bytes v) { return _mm512_maskz_compress_epi8(m, v); }
  static Bytes expand(uint64_t m, Bytes v) { return _mm512_maskz_expand_epi8(m, v); }
  static Bytes set_signs(uint64_t m, Bytes v) {
    return _mm512_mask_mov_epi8(v, m, _mm512_set1_epi8(INT8_MIN));
  }
};

template <class Words>
[[gnu::always_inline]] inline void delta(const uint8_t* src, size_t count, uint64_t base,
                                         uint8_t* dst) {
  Bytes before = Words::set1(base);
  const bool far = fetches_far();
  for (size_t left = count * Words::kSize; left > 0;) {
    fetch_ahead(src, far);
    const Bytes r = Words::rol1(load_first(src, left));
    store_first(dst, left, Words::zigzag(Words::sub(r, Words::shift_in(r, before))));
    before = r;
    src += 64;
    dst += 64;
    left -= left < 64 ? left : 64;
  }
}

template <class Words, class Sink>
[[gnu::always_inline]] inline uint64_t undelta_to(const uint8_t* src, size_t count, uint64_t base,
                                                  const Output& output) {
  Bytes carry = Words::set1(base);
  Sink sink(output);
  size_t left = count * Words::kSize;
  for (; left >= 64; left -= 64, src += 64) {
    const Bytes sums = Words::running_sum(Words::unzigzag(load(src)));
    sink.put(Words::ror1(Words::add(sums, carry)));
    // Only this addition depends on the vector before.
    carry = Words::add(carry, Words::last(sums));
  }
  uint8_t* const dst = sink.finish();
  if (left > 0) {
    const Bytes sums = Words::running_sum(Words::unzigzag(load_some(src, low_bits(left))));
    store_some(dst, low_bits(left), Words::ror1(Words::add(sums, carry)));
    carry = Words::add(carry, Words::last(sums));
  }
  return Words::first(carry);
}

template <class Words, class SumOfThem>
[[gnu::always_inline]] inline uint64_t undelta(const uint8_t* src, size_t count, uint64_t base,
                                               const Output& dst) {
  if (dst.sum != nullptr) return undelta_to<Words, SumOfThem>(src, count, base, dst);
  if (dst.streams) return undelta_to<Words, StreamSink>(src, count, base, dst);
  return AheadSink::is_for(dst) ? undelta_to<Words, AheadSink>(src, count, base, dst)
                                : undelta_to<Words, StoreSink>(src, count, base, dst);
}

template <class Words>
[[gnu::always_inline]] inline size_t remove_zeros(const uint8_t* src, size_t count, uint8_t* dst,
                                                  uint8_t* kept, uint8_t* signs) {
  BitWriter sign_writer(signs);
  const uint8_t* const begin = dst;
  for (size_t at = 0; at < count; at += 64, kept += 8) {
    const size_t here = count - at < 64 ? count - at : 64;
    uint64_t kept_word = 0;
    uint64_t negative = 0;
#pragma GCC unroll 8
    for (size_t i = 0; i < Words::kSize; ++i, src += 64) {
      const size_t lane = i * Words::kLanes;
      if (lane >= here) break;
      const Bytes v = load_first(src, here * Words::kSize - 64 * i);
      const uint64_t stays = Words::nonzero(v);
      kept_word |= stays << lane;
      negative |= Words::negative(v) << lane;
      store(dst, Words::compress(stays, v));
      dst += popcount(stays) * Words::kSize;
    }
    __builtin_memcpy(kept, &kept_word, 8);
    const uint64_t gone = ~kept_word & low_bits(here);
    sign_writer.put(_pext_u64(negative, gone), popcount(gone));
  }
  return static_cast<size_t>(dst - begin) / Words::kSize;
}

template <class Words>
[[gnu::always_inline]] inline void insert_zeros(const uint8_t* src, const uint8_t* kept,
                                                const uint8_t* signs, size_t count, uint8_t* dst) {
  BitReader sign_reader(signs);
  for (size_t at = 0; at < count; at += 64, kept += 8) {
    const size_t here = count - at < 64 ? count - at : 64;
    uint64_t kept_word;
    __builtin_memcpy(&kept_word, kept, 8);
    kept_word &= low_bits(here);
    const uint64_t gone = ~kept_word & low_bits(here);
    const uint64_t negative = _pdep_u64(sign_reader.get(popcount(gone)), gone);
#pragma GCC unroll 8
    for (size_t i = 0; i < Words::kSize; ++i, dst += 64) {
      const size_t lane = i * Words::kLanes;
      if (lane >= here) break;
      const uint64_t stays = kept_word >> lane & low_bits(Words::kLanes);
      const Bytes v = Words::set_signs(negative >> lane, Words::expand(stays, load(src)));
      store_first(dst, here * Words::kSize - 64 * i, v);
      src += popcount(stays) * Words::kSize;
    }
  }
}

}  // namespace

void avx512_delta_4(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst) {
  delta<Words4>(src, count, base, dst);
}
void avx512_delta_8(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst) {
  delta<Words8>(src, count, base, dst);
}
uint64_t avx512_undelta_4(const uint8_t* src, size_t count, uint64_t base, const Output& dst) {
  return undelta<Words4, SumOfFp32>(src, count, base, dst);
}
uint64_t avx512_undelta_8(const uint8_t* src, size_t count, uint64_t base, const Output& dst) {
  return undelta<Words8, SumOfFp64>(src, count, base, dst);
}
size_t avx512_remove_zeros_1(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs) {
  return remove_zeros<Words1>(src, count, dst, kept, signs);
}
size_t avx512_remove_zeros_2(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs) {
  return remove_zeros<Words2>(src, count, dst, kept, signs);
}
size_t avx512_remove_zeros_4(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs) {
  return remove_zeros<Words4>(src, count, dst, kept, signs);
}
size_t avx512_remove_zeros_8(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                             uint8_t* signs) {
  return remove_zeros<Words8>(src, count, dst, kept, signs);
}
void avx512_insert_zeros_1(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst) {
  insert_zeros<Words1>(src, kept, signs, count, dst);
}
void avx512_insert_zeros_2(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst) {
  insert_zeros<Words2>(src, kept, signs, count, dst);
}
void avx512_insert_zeros_4(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst) {
  insert_zeros<Words4>(src, kept, signs, count, dst);
}
void avx512_insert_zeros_8(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                           size_t count, uint8_t* dst) {
  insert_zeros<Words8>(src, kept, signs, count, dst);
}

}  // namespace uzip
