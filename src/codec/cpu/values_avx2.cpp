// AVX2: differences of neighbours, and values without their zeros, 64 values at a time.
#include "codec/cpu/bit_stream.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx2.hpp"
#include "codec/cpu/moves_avx2.hpp"
#include "codec/cpu/sinks_avx2.hpp"

namespace uzip {
namespace {

struct Words4 {
  static constexpr size_t kSize = 4;
  static Bytes set1(uint64_t x) { return _mm256_set1_epi32(static_cast<int>(x)); }
  static Bytes rol1(Bytes v) {
    return _mm256_or_si256(_mm256_add_epi32(v, v), _mm256_srli_epi32(v, 31));
  }
  static Bytes ror1(Bytes v) {
    return _mm256_or_si256(_mm256_srli_epi32(v, 1), _mm256_slli_epi32(v, 31));
  }
  static Bytes add(Bytes a, Bytes b) { return _mm256_add_epi32(a, b); }
  static Bytes sub(Bytes a, Bytes b) { return _mm256_sub_epi32(a, b); }
  static Bytes zigzag(Bytes d) {
    return _mm256_xor_si256(_mm256_add_epi32(d, d), _mm256_srai_epi32(d, 31));
  }
  static Bytes unzigzag(Bytes v) {
    const Bytes odd = _mm256_and_si256(v, _mm256_set1_epi32(1));
    return _mm256_xor_si256(_mm256_srli_epi32(v, 1),
                            _mm256_sub_epi32(_mm256_setzero_si256(), odd));
  }
  /// The last value comes first.
  static Bytes turn(Bytes v) {
    return _mm256_permutevar8x32_epi32(v, _mm256_setr_epi32(7, 0, 1, 2, 3, 4, 5, 6));
  }
  static Bytes replace_first(Bytes v, Bytes first) { return _mm256_blend_epi32(v, first, 1); }
  static Bytes running_sum(Bytes v) {
    v = _mm256_add_epi32(v, _mm256_slli_si256(v, 4));
    v = _mm256_add_epi32(v, _mm256_slli_si256(v, 8));
    // The lower half's sum, in the upper one.
    const Bytes lower = _mm256_permute2x128_si256(v, v, 0x08);
    return _mm256_add_epi32(v, _mm256_shuffle_epi32(lower, 0xff));
  }
  static Bytes last(Bytes v) { return _mm256_permutevar8x32_epi32(v, _mm256_set1_epi32(7)); }
  static uint64_t first(Bytes v) { return static_cast<uint32_t>(_mm256_cvtsi256_si32(v)); }
};

struct Words8 {
  static constexpr size_t kSize = 8;
  static Bytes set1(uint64_t x) { return _mm256_set1_epi64x(static_cast<int64_t>(x)); }
  static Bytes rol1(Bytes v) {
    return _mm256_or_si256(_mm256_add_epi64(v, v), _mm256_srli_epi64(v, 63));
  }
  static Bytes ror1(Bytes v) {
    return _mm256_or_si256(_mm256_srli_epi64(v, 1), _mm256_slli_epi64(v, 63));
  }
  static Bytes add(Bytes a, Bytes b) { return _mm256_add_epi64(a, b); }
  static Bytes sub(Bytes a, Bytes b) { return _mm256_sub_epi64(a, b); }
  static Bytes zigzag(Bytes d) {
    return _mm256_xor_si256(_mm256_add_epi64(d, d),
                            _mm256_cmpgt_epi64(_mm256_setzero_si256(), d));
  }
  static Bytes unzigzag(Bytes v) {
    const Bytes odd = _mm256_and_si256(v, _mm256_set1_epi64x(1));
    return _mm256_xor_si256(_mm256_srli_epi64(v, 1),
                            _mm256_sub_epi64(_mm256_setzero_si256(), odd));
  }
  static Bytes turn(Bytes v) { return _mm256_permute4x64_epi64(v, 0x93); }
  static Bytes replace_first(Bytes v, Bytes first) { return _mm256_blend_epi32(v, first, 3); }
  static Bytes running_sum(Bytes v) {
    v = _mm256_add_epi64(v, _mm256_slli_si256(v, 8));
    const Bytes lower = _mm256_permute4x64_epi64(v, 0x50);
    return _mm256_add_epi64(v, _mm256_blend_epi32(_mm256_setzero_si256(), lower, 0xf0));
  }
  static Bytes last(Bytes v) { return _mm256_permute4x64_epi64(v, 0xff); }
  static uint64_t first(Bytes v) {
    return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm256_castsi256_si128(v)));
  }
};

template <class Words>
[[gnu::always_inline]] inline void delta(const uint8_t* src, size_t count, uint64_t base,
                                         uint8_t* dst) {
  Bytes before = Words::set1(base);
  const auto differences = [&](const uint8_t* from, uint8_t* to) __attribute__((always_inline)) {
    const Bytes r = Words::rol1(load(from));
    const Bytes turned = Words::turn(r);
    store(to, Words::zigzag(Words::sub(r, Words::replace_first(turned, before))));
    before = turned;
  };
  size_t left = count * Words::kSize;
  for (; left >= 64; left -= 64, src += 64, dst += 64) {
    fetch_ahead(src);
    differences(src, dst);
    differences(src + 32, dst + 32);
  }
  for (; left > 0; left -= left < 32 ? left : 32, src += 32, dst += 32) {
    alignas(32) uint8_t from[32] = {};
    alignas(32) uint8_t to[32];
    const size_t here = left < 32 ? left : 32;
    __builtin_memcpy(from, src, here);
    differences(from, to);
    __builtin_memcpy(dst, to, here);
  }
}

template <class Words, class Sink>
[[gnu::always_inline]] inline uint64_t undelta_to(const uint8_t* src, size_t count, uint64_t base,
                                                  const Output& output) {
  Bytes carry = Words::set1(base);
  const auto values = [&](const uint8_t* from) __attribute__((always_inline)) {
    const Bytes sums = Words::running_sum(Words::unzigzag(load(from)));
    const Bytes result = Words::ror1(Words::add(sums, carry));
    // Only this addition depends on the vector before.
    carry = Words::add(carry, Words::last(sums));
    return result;
  };
  Sink sink(output);
  size_t left = count * Words::kSize;
  for (; left >= 64; left -= 64, src += 64) {
    const Bytes first = values(src);
    sink.put(first, values(src + 32));
  }
  uint8_t* dst = sink.finish();
  for (; left > 0; left -= left < 32 ? left : 32, src += 32, dst += 32) {
    alignas(32) uint8_t from[32] = {};  // differences of 0: the last value stays
    alignas(32) uint8_t to[32];
    const size_t here = left < 32 ? left : 32;
    __builtin_memcpy(from, src, here);
    store(to, values(from));
    __builtin_memcpy(dst, to, here);
  }
  return Words::first(carry);
}

template <class Words>
[[gnu::always_inline]] inline uint64_t undelta(const uint8_t* src, size_t count, uint64_t base,
                                               const Output& output) {
  return with_sink<Words::kSize>(output, [&](auto sink) {
    return undelta_to<Words, typename decltype(sink)::Type>(src, count, base, output);
  });
}

// A piece of values is what one shuffle moves: `nonzero` and `negative` give a bit for each,
// `compress` moves those of a mask to the front, `expand` puts them back between zeros. All loads
// and stores of values are those of a whole piece, which may reach into the slack.

struct Piece1 {
  static constexpr size_t kSize = 1;
  static constexpr size_t kValues = 16;
  using Vector = __m128i;
  static Vector get(const uint8_t* src) { return load_16(src); }
  static void put(uint8_t* dst, Vector v) { store_16(dst, v); }
  static uint64_t nonzero(Vector v) {
    return 0xffffu & ~mask_of(_mm_cmpeq_epi8(_mm_add_epi8(v, v), _mm_setzero_si128()));
  }
  static uint64_t negative(Vector v) { return mask_of(v); }
  static uint8_t* compress(uint64_t mask, Vector v, uint8_t* dst) {
    return append_quarter(v, static_cast<unsigned>(mask), dst);
  }
  static Vector expand(uint64_t mask, const uint8_t* src) {
    return expand_quarter(load_16(src), static_cast<unsigned>(mask));
  }
  static Vector signs(uint64_t mask) {
    const __m128i bytes =
        _mm_shuffle_epi8(_mm_cvtsi32_si128(static_cast<int>(mask)),
                         _mm_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1));
    const __m128i bits = _mm_set1_epi64x(static_cast<int64_t>(0x8040201008040201u));
    const __m128i set = _mm_cmpeq_epi8(_mm_and_si128(bytes, bits), bits);
    return _mm_and_si128(set, _mm_set1_epi8(INT8_MIN));
  }
  static Vector join(Vector a, Vector b) { return _mm_or_si128(a, b); }

 private:
  static uint64_t mask_of(Vector v) { return static_cast<uint32_t>(_mm_movemask_epi8(v)); }
};

struct Piece2 {
  static constexpr size_t kSize = 2;
  static constexpr size_t kValues = 8;
  using Vector = __m128i;
  static Vector get(const uint8_t* src) { return load_16(src); }
  static void put(uint8_t* dst, Vector v) { store_16(dst, v); }
  static uint64_t nonzero(Vector v) {
    return 0xffu & ~mask_of(_mm_cmpeq_epi16(_mm_add_epi16(v, v), _mm_setzero_si128()));
  }
  static uint64_t negative(Vector v) { return 0xffu & mask_of(v); }
  static uint8_t* compress(uint64_t mask, Vector v, uint8_t* dst) {
    store_16(dst, _mm_shuffle_epi8(v, pairs_of(load_word(kCompressLower.order[mask]))));
    return dst + 2 * ones_of_byte(static_cast<unsigned>(mask));
  }
  static Vector expand(uint64_t mask, const uint8_t* src) {
    return _mm_shuffle_epi8(load_16(src), pairs_of(load_word(kExpand.order[mask])));
  }
  static Vector signs(uint64_t mask) {
    const __m128i bits = _mm_setr_epi16(1, 2, 4, 8, 16, 32, 64, 128);
    const __m128i set =
        _mm_cmpeq_epi16(_mm_and_si128(_mm_set1_epi16(static_cast<int16_t>(mask)), bits), bits);
    return _mm_slli_epi16(set, 15);
  }
  static Vector join(Vector a, Vector b) { return _mm_or_si128(a, b); }

 private:
  /// Signed saturation keeps the sign.
  static uint64_t mask_of(Vector v) {
    return static_cast<uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(v, v)));
  }
  /// Of bytes, those of words; what has the top bit set keeps it.
  static __m128i pairs_of(__m128i bytes) {
    const __m128i lower = _mm_adds_epu8(bytes, bytes);
    return _mm_unpacklo_epi8(lower, _mm_adds_epu8(lower, _mm_set1_epi8(1)));
  }
};

/// Words of four bytes to the lanes that `lanes` names; those with the top bit of a byte set become 0.
[[gnu::always_inline]] inline Bytes expand_words(Bytes v, __m128i lanes) {
  const Bytes index = _mm256_cvtepu8_epi32(lanes);
  const Bytes moved = _mm256_permutevar8x32_epi32(v, index);
  // The sign of a word whose byte has the top bit set.
  return _mm256_castps_si256(_mm256_blendv_ps(_mm256_castsi256_ps(moved), _mm256_setzero_ps(),
                                              _mm256_castsi256_ps(_mm256_slli_epi32(index, 24))));
}

struct Piece4 {
  static constexpr size_t kSize = 4;
  static constexpr size_t kValues = 8;
  using Vector = Bytes;
  static Vector get(const uint8_t* src) { return load(src); }
  static void put(uint8_t* dst, Vector v) { store(dst, v); }
  static uint64_t nonzero(Vector v) {
    return 0xffu & ~negative(_mm256_cmpeq_epi32(_mm256_add_epi32(v, v), _mm256_setzero_si256()));
  }
  static uint64_t negative(Vector v) {
    return static_cast<uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(v)));
  }
  static uint8_t* compress(uint64_t mask, Vector v, uint8_t* dst) {
    const Bytes index = _mm256_cvtepu8_epi32(load_word(kCompressLower.order[mask]));
    store(dst, _mm256_permutevar8x32_epi32(v, index));
    return dst + 4 * ones_of_byte(static_cast<unsigned>(mask));
  }
  static Vector expand(uint64_t mask, const uint8_t* src) {
    return expand_words(load(src), load_word(kExpand.order[mask]));
  }
  static Vector signs(uint64_t mask) {
    // Each lane's bit becomes its sign.
    const Bytes by = _mm256_setr_epi32(31, 30, 29, 28, 27, 26, 25, 24);
    const Bytes shifted = _mm256_sllv_epi32(_mm256_set1_epi32(static_cast<int>(mask)), by);
    return _mm256_and_si256(shifted, _mm256_set1_epi32(INT32_MIN));
  }
  static Vector join(Vector a, Vector b) { return _mm256_or_si256(a, b); }
};

struct Piece8 {
  static constexpr size_t kSize = 8;
  static constexpr size_t kValues = 4;
  using Vector = Bytes;
  static Vector get(const uint8_t* src) { return load(src); }
  static void put(uint8_t* dst, Vector v) { store(dst, v); }
  static uint64_t nonzero(Vector v) {
    return 0xfu & ~negative(_mm256_cmpeq_epi64(_mm256_add_epi64(v, v), _mm256_setzero_si256()));
  }
  static uint64_t negative(Vector v) {
    return static_cast<uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(v)));
  }
  static uint8_t* compress(uint64_t mask, Vector v, uint8_t* dst) {
    const Bytes index = _mm256_cvtepu8_epi32(load_word(kCompressPairs.order[mask]));
    store(dst, _mm256_permutevar8x32_epi32(v, index));
    return dst + 8 * ones_of_byte(static_cast<unsigned>(mask));
  }
  static Vector expand(uint64_t mask, const uint8_t* src) {
    return expand_words(load(src), load_word(kExpandPairs.order[mask]));
  }
  static Vector signs(uint64_t mask) {
    const Bytes by = _mm256_setr_epi64x(63, 62, 61, 60);
    const Bytes shifted = _mm256_sllv_epi64(_mm256_set1_epi64x(static_cast<int64_t>(mask)), by);
    return _mm256_and_si256(shifted, _mm256_set1_epi64x(INT64_MIN));
  }
  static Vector join(Vector a, Vector b) { return _mm256_or_si256(a, b); }
};

template <class Piece>
[[gnu::always_inline]] inline size_t remove_zeros(const uint8_t* src, size_t count, uint8_t* dst,
                                                  uint8_t* kept, uint8_t* signs) {
  BitWriter sign_writer(signs);
  uint8_t* out = dst;
  const auto group = [&](const uint8_t* values, uint64_t valid) __attribute__((always_inline)) {
    uint64_t kept_word = 0;
    uint64_t negative = 0;
#pragma GCC unroll 16
    for (size_t at = 0; at < 64; at += Piece::kValues) {
      const auto v = Piece::get(values + at * Piece::kSize);
      const uint64_t stays = Piece::nonzero(v);
      kept_word |= stays << at;
      negative |= Piece::negative(v) << at;
      out = Piece::compress(stays, v, out);
    }
    __builtin_memcpy(kept, &kept_word, 8);
    kept += 8;
    const uint64_t gone = ~kept_word & valid;
    negative &= gone;
    // Most zeros have one sign, and not all processors extract bits quickly.
    const auto zeros = static_cast<size_t>(__builtin_popcountll(gone));
    sign_writer.put(negative == 0 ? 0 : _pext_u64(negative, gone), zeros);
  };
  for (; count >= 64; count -= 64, src += 64 * Piece::kSize) {
#pragma GCC unroll 8
    for (size_t i = 0; i < Piece::kSize; ++i) fetch_ahead(src + 64 * i);
    group(src, ~uint64_t{0});
  }
  if (count > 0) {
    alignas(32) uint8_t values[64 * Piece::kSize] = {};
    __builtin_memcpy(values, src, count * Piece::kSize);
    group(values, lowest_bits(count));
  }
  return static_cast<size_t>(out - dst) / Piece::kSize;
}

template <class Piece>
[[gnu::always_inline]] inline void insert_zeros(const uint8_t* src, const uint8_t* kept,
                                                const uint8_t* signs, size_t count, uint8_t* dst) {
  BitReader sign_reader(signs);
  const auto group = [&](uint8_t* to, uint64_t valid) __attribute__((always_inline)) {
    uint64_t kept_word;
    __builtin_memcpy(&kept_word, kept, 8);
    kept += 8;
    kept_word &= valid;
    const uint64_t gone = ~kept_word & valid;
    const uint64_t minus = sign_reader.get(static_cast<size_t>(__builtin_popcountll(gone)));
    const uint64_t negative = minus == 0 ? 0 : _pdep_u64(minus, gone);
    constexpr uint64_t kPiece = (uint64_t{1} << Piece::kValues) - 1;
    const uint8_t* const from = src;
    size_t taken = 0;
#pragma GCC unroll 16
    for (size_t at = 0; at < 64; at += Piece::kValues) {
      const uint64_t stays = kept_word >> at & kPiece;
      const auto v = Piece::expand(stays, from + taken * Piece::kSize);
      Piece::put(to + at * Piece::kSize, Piece::join(v, Piece::signs(negative >> at & kPiece)));
      taken += static_cast<size_t>(__builtin_popcountll(stays));
    }
    src = from + taken * Piece::kSize;
  };
  for (; count >= 64; count -= 64, dst += 64 * Piece::kSize) group(dst, ~uint64_t{0});
  if (count > 0) {
    alignas(32) uint8_t values[64 * Piece::kSize];
    group(values, lowest_bits(count));
    __builtin_memcpy(dst, values, count * Piece::kSize);
  }
}

}  // namespace

void avx2_delta_4(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst) {
  delta<Words4>(src, count, base, dst);
}
void avx2_delta_8(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst) {
  delta<Words8>(src, count, base, dst);
}
uint64_t avx2_undelta_4(const uint8_t* src, size_t count, uint64_t base, const Output& dst) {
  return undelta<Words4>(src, count, base, dst);
}
uint64_t avx2_undelta_8(const uint8_t* src, size_t count, uint64_t base, const Output& dst) {
  return undelta<Words8>(src, count, base, dst);
}
size_t avx2_remove_zeros_1(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                           uint8_t* signs) {
  return remove_zeros<Piece1>(src, count, dst, kept, signs);
}
size_t avx2_remove_zeros_2(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                           uint8_t* signs) {
  return remove_zeros<Piece2>(src, count, dst, kept, signs);
}
size_t avx2_remove_zeros_4(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                           uint8_t* signs) {
  return remove_zeros<Piece4>(src, count, dst, kept, signs);
}
size_t avx2_remove_zeros_8(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                           uint8_t* signs) {
  return remove_zeros<Piece8>(src, count, dst, kept, signs);
}
void avx2_insert_zeros_1(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                         size_t count, uint8_t* dst) {
  insert_zeros<Piece1>(src, kept, signs, count, dst);
}
void avx2_insert_zeros_2(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                         size_t count, uint8_t* dst) {
  insert_zeros<Piece2>(src, kept, signs, count, dst);
}
void avx2_insert_zeros_4(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                         size_t count, uint8_t* dst) {
  insert_zeros<Piece4>(src, kept, signs, count, dst);
}
void avx2_insert_zeros_8(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                         size_t count, uint8_t* dst) {
  insert_zeros<Piece8>(src, kept, signs, count, dst);
}

}  // namespace uzip
