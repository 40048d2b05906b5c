// Vectors of the width of the target, and moving them between registers and memory, also in part.
// First part of reduce_kernels.inl; see there.
#include <cstddef>
#include <cstdint>

#if defined(__SSE2__)
// GCC 12 takes the deliberately undefined registers in its own header for mistakes (its bug
// 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#if !defined(__clang__)
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop
#endif

namespace uzip {
namespace {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__);

#if defined(__AVX512BW__)
constexpr size_t kVectorBytes = 64;
constexpr size_t kRegisters = 32;
#elif defined(__AVX2__)
constexpr size_t kVectorBytes = 32;
constexpr size_t kRegisters = 16;
#else
constexpr size_t kVectorBytes = 16;
constexpr size_t kRegisters = 16;
#endif

#define UZIP_INLINE inline __attribute__((always_inline))

template <class T>
struct LanesOf {
  typedef T Type __attribute__((vector_size(kVectorBytes)));
};
template <class T>
using Lanes = typename LanesOf<T>::Type;
using Words = Lanes<uint32_t>;
using Ints = Lanes<int32_t>;  ///< for comparisons: older instruction sets have only signed ones
using Floats = Lanes<float>;

template <class T>
UZIP_INLINE Lanes<T> all(T value) {
  return value - Lanes<T>{};
}

UZIP_INLINE Words load(const void* src) {
  Words words;
  __builtin_memcpy(&words, src, kVectorBytes);
  return words;
}

UZIP_INLINE void store(void* dst, Words words) { __builtin_memcpy(dst, &words, kVectorBytes); }

// The first `bytes` < kVectorBytes of a vector; the rest is zero and harmless.
#if defined(__AVX512BW__)
UZIP_INLINE Words load_part(const void* src, size_t bytes) {
  return Words(_mm512_maskz_loadu_epi8((uint64_t{1} << bytes) - 1, src));
}

UZIP_INLINE void store_part(void* dst, Words words, size_t bytes) {
  _mm512_mask_storeu_epi8(dst, (uint64_t{1} << bytes) - 1, __m512i(words));
}
#else
// By way of registers: a vector read back from just stored pieces would wait for the stores.
template <class T>
UZIP_INLINE uint64_t load_as(const char* src) {
  T value;
  __builtin_memcpy(&value, src, sizeof value);
  return value;
}

template <class T>
UZIP_INLINE void store_as(char* dst, uint64_t bits) {
  const T value = static_cast<T>(bits);
  __builtin_memcpy(dst, &value, sizeof value);
}

// The first and the last sizeof(T) of `bytes` <= 2 * sizeof(T) bytes; where they overlap they are
// the same.
template <class T>
UZIP_INLINE uint64_t load_ends(const char* src, size_t bytes) {
  return load_as<T>(src) | load_as<T>(src + bytes - sizeof(T)) << (8 * (bytes - sizeof(T)));
}

template <class T>
UZIP_INLINE void store_ends(char* dst, uint64_t bits, size_t bytes) {
  store_as<T>(dst, bits);
  store_as<T>(dst + bytes - sizeof(T), bits >> (8 * (bytes - sizeof(T))));
}

// 0 < bytes < 8.
UZIP_INLINE uint64_t load_few(const char* src, size_t bytes) {
  if (bytes >= 4) return load_ends<uint32_t>(src, bytes);
  if (bytes >= 2) return load_ends<uint16_t>(src, bytes);
  return load_as<uint8_t>(src);
}

UZIP_INLINE void store_few(char* dst, uint64_t bits, size_t bytes) {
  if (bytes >= 4) {
    store_ends<uint32_t>(dst, bits, bytes);
  } else if (bytes >= 2) {
    store_ends<uint16_t>(dst, bits, bytes);
  } else {
    store_as<uint8_t>(dst, bits);
  }
}

[[gnu::noinline, maybe_unused]] Words load_part(const void* src, size_t bytes) {
  const char* from = static_cast<const char*>(src);
  Lanes<uint64_t> lanes{};
#pragma GCC unroll 4
  for (size_t i = 0; i < kVectorBytes / 8; ++i) {
    if (bytes >= 8 * (i + 1)) {
      lanes[i] = load_as<uint64_t>(from + 8 * i);
    } else if (bytes > 8 * i) {
      lanes[i] = load_few(from + 8 * i, bytes - 8 * i);
    }
  }
  return Words(lanes);
}

[[gnu::noinline, maybe_unused]] void store_part(void* dst, Words words, size_t bytes) {
  char* to = static_cast<char*>(dst);
  const Lanes<uint64_t> lanes = Lanes<uint64_t>(words);
#pragma GCC unroll 4
  for (size_t i = 0; i < kVectorBytes / 8; ++i) {
    if (bytes >= 8 * (i + 1)) {
      store_as<uint64_t>(to + 8 * i, lanes[i]);
    } else if (bytes > 8 * i) {
      store_few(to + 8 * i, lanes[i], bytes - 8 * i);
    }
  }
}
#endif

}  // namespace
}  // namespace uzip
