// Portable kernels: values to byte planes and back, differences of neighbours, and values without their zeros.
#include "codec/cpu/bit_stream.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_scalar.hpp"

// At its usual level this compiler leaves loops of unknown length alone.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include <bit>
#include <cstring>
#include <type_traits>
#include <utility>

namespace uzip {
namespace {

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
void scalar_split_1(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  split<uint8_t>(src, count, rotation, planes);
}
void scalar_merge_1(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst) {
  merge<uint8_t>(planes, count, rotation, dst);
}
void scalar_split_2(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  split<uint16_t>(src, count, rotation, planes);
}
void scalar_merge_2(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst) {
  merge<uint16_t>(planes, count, rotation, dst);
}
void scalar_split_4(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  split<uint32_t>(src, count, rotation, planes);
}
void scalar_merge_4(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst) {
  merge<uint32_t>(planes, count, rotation, dst);
}
void scalar_split_8(const uint8_t* src, size_t count, unsigned rotation, uint8_t* const* planes) {
  split<uint64_t>(src, count, rotation, planes);
}
void scalar_merge_8(const uint8_t* const* planes, size_t count, unsigned rotation,
                    const Output& dst) {
  merge<uint64_t>(planes, count, rotation, dst);
}

}  // namespace uzip
