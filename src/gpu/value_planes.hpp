// Eight values cut into byte planes and put together again, in registers. The planes are those of
// FORMAT.md, section 3.3, for values rotated left by one. Used by the encode and decode kernels.
#pragma once

#include "gpu/cooperative.hpp"

namespace uzip::gpu {

/// Bytes of `count` things of `width` bits.
constexpr UZIP_HOST_DEVICE unsigned packed_bytes(unsigned count, unsigned width) {
  return (count + 63) / 64 * 8 * width;
}

/// What is fixed for a type: bytes of a value, and bits below the level-coded field of the top
/// plane. The field is the exponent, or its upper 8 bits.
template <unsigned kBytes, unsigned kShift>
struct ValueFormat {
  static constexpr unsigned kSize = kBytes;
  static constexpr unsigned kFieldShift = kShift;
  static constexpr unsigned kFieldBits = 8 - kShift;
  static constexpr unsigned kLowMask = (1u << kShift) - 1;
  static constexpr unsigned kLowerPlanes = kBytes - 1;
  static constexpr unsigned kWords = 2 * kBytes;  ///< of eight values
  static constexpr unsigned kTileLog2 = tile_log2(kBytes);
  static constexpr unsigned kTileValues = 1u << kTileLog2;

  /// Plain bytes of a block: the bits below the field, then the lower planes.
  static constexpr UZIP_HOST_DEVICE unsigned low_bytes(unsigned values) {
    return packed_bytes(values, kShift);
  }
  static constexpr UZIP_HOST_DEVICE unsigned plane_bytes(unsigned values) {
    return (values + 7) / 8 * 8;
  }
  /// Of fields that are stored as they are.
  static constexpr UZIP_HOST_DEVICE unsigned field_bytes(unsigned values) {
    return kShift == 0 ? plane_bytes(values) : packed_bytes(values, kFieldBits);
  }
  static constexpr UZIP_HOST_DEVICE unsigned plain_bytes(unsigned values) {
    return (low_bytes(values) + kLowerPlanes * plane_bytes(values) + 15) / 16 * 16;
  }
};

/// Which of a tile's values a thread has, in segments of eight; see cooperative.hpp. `kWhole`: the tile has all it can have.
template <class Format, bool kWhole>
class ThreadSegments {
 public:
  UZIP_DEVICE ThreadSegments(unsigned thread, unsigned values)
      : first_(first_value(thread, 0)), values_(values) {}

  /// Of the tile.
  UZIP_DEVICE unsigned values() const { return kWhole ? Format::kTileValues : values_; }
  UZIP_DEVICE unsigned first_of(unsigned segment) const {
    return first_ + segment * (kGroupLanes * kSegmentValues);
  }
  /// Which values of the segment from `first` on exist.
  UZIP_DEVICE uint32_t valid(unsigned first) const {
    return kWhole ? 0xffu : valid_bits(first, values_);
  }

 private:
  unsigned first_;
  unsigned values_;
};

/// Plane p of eight values: two words, the earlier values first.
template <unsigned kSize>
struct Planes {
  uint32_t plane[kSize][2];
};

/// Eight values as they are in memory.
template <unsigned kSize>
struct Words {
  uint32_t word[2 * kSize];
};

namespace detail {

UZIP_DEVICE void transpose_bytes(uint32_t a, uint32_t b, uint32_t c, uint32_t d, uint32_t* out,
                                 unsigned stride) {
  const uint32_t ab_low = byte_permute(a, b, 0x5140);
  const uint32_t ab_high = byte_permute(a, b, 0x7362);
  const uint32_t cd_low = byte_permute(c, d, 0x5140);
  const uint32_t cd_high = byte_permute(c, d, 0x7362);
  out[0] = byte_permute(ab_low, cd_low, 0x5410);
  out[stride] = byte_permute(ab_low, cd_low, 0x7632);
  out[2 * stride] = byte_permute(ab_high, cd_high, 0x5410);
  out[3 * stride] = byte_permute(ab_high, cd_high, 0x7632);
}

UZIP_DEVICE uint32_t rotate_left(uint32_t word) { return word << 1 | word >> 31; }
UZIP_DEVICE uint32_t rotate_right(uint32_t word) { return word >> 1 | word << 31; }

}  // namespace detail

template <unsigned kSize>
UZIP_DEVICE Planes<kSize> split_values(const Words<kSize>& words) {
  Planes<kSize> planes;
  UZIP_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    const uint32_t* w = words.word + half * kSize;
    if constexpr (kSize == 1) {
      planes.plane[0][half] = select_bits<0x01010101u>(w[0] >> 7, w[0] << 1);
    } else if constexpr (kSize == 2) {
      const uint32_t a = w[0] << 1;
      const uint32_t b = w[1] << 1;
      planes.plane[0][half] =
          select_bits<0x01010101u>(signs_of_halves(w[0], w[1]), byte_permute(a, b, 0x6420));
      planes.plane[1][half] = byte_permute(a, b, 0x7531);
    } else if constexpr (kSize == 4) {
      detail::transpose_bytes(detail::rotate_left(w[0]), detail::rotate_left(w[1]),
                              detail::rotate_left(w[2]), detail::rotate_left(w[3]),
                              &planes.plane[0][half], 2);
    } else {
      uint32_t low[4];
      uint32_t high[4];
      UZIP_UNROLL
      for (unsigned i = 0; i < 4; ++i) {
        low[i] = w[2 * i] << 1 | w[2 * i + 1] >> 31;
        high[i] = w[2 * i + 1] << 1 | w[2 * i] >> 31;
      }
      detail::transpose_bytes(low[0], low[1], low[2], low[3], &planes.plane[0][half], 2);
      detail::transpose_bytes(high[0], high[1], high[2], high[3], &planes.plane[4][half], 2);
    }
  }
  return planes;
}

template <unsigned kSize>
UZIP_DEVICE Words<kSize> merge_values(const Planes<kSize>& planes) {
  Words<kSize> words;
  UZIP_UNROLL
  for (unsigned half = 0; half < 2; ++half) {
    uint32_t* w = words.word + half * kSize;
    if constexpr (kSize == 1) {
      const uint32_t r = planes.plane[0][half];
      w[0] = select_bits<0x80808080u>(r << 7, r >> 1);
    } else if constexpr (kSize == 2) {
      const uint32_t a = byte_permute(planes.plane[0][half], planes.plane[1][half], 0x5140);
      const uint32_t b = byte_permute(planes.plane[0][half], planes.plane[1][half], 0x7362);
      w[0] = select_bits<0x80008000u>(a << 15, a >> 1);
      w[1] = select_bits<0x80008000u>(b << 15, b >> 1);
    } else if constexpr (kSize == 4) {
      uint32_t out[4];
      detail::transpose_bytes(planes.plane[0][half], planes.plane[1][half], planes.plane[2][half],
                              planes.plane[3][half], out, 1);
      UZIP_UNROLL
      for (unsigned i = 0; i < 4; ++i) w[i] = detail::rotate_right(out[i]);
    } else {
      uint32_t low[4];
      uint32_t high[4];
      detail::transpose_bytes(planes.plane[0][half], planes.plane[1][half], planes.plane[2][half],
                              planes.plane[3][half], low, 1);
      detail::transpose_bytes(planes.plane[4][half], planes.plane[5][half], planes.plane[6][half],
                              planes.plane[7][half], high, 1);
      UZIP_UNROLL
      for (unsigned i = 0; i < 4; ++i) {
        w[2 * i] = low[i] >> 1 | high[i] << 31;
        w[2 * i + 1] = high[i] >> 1 | low[i] << 31;
      }
    }
  }
  return words;
}

// ---- Memory -----------------------------------------------------------------------------------

/// Eight values from memory that is aligned to 16 bytes (8-bit types: to 8).
template <unsigned kSize>
UZIP_DEVICE Words<kSize> load_values(const uint8_t* src) {
  Words<kSize> words;
  if constexpr (kSize == 1) {
    const uint2 v = *reinterpret_cast<const uint2*>(src);
    words.word[0] = v.x;
    words.word[1] = v.y;
  } else {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSize / 2; ++i) {
      const uint4 v = reinterpret_cast<const uint4*>(src)[i];
      words.word[4 * i] = v.x;
      words.word[4 * i + 1] = v.y;
      words.word[4 * i + 2] = v.z;
      words.word[4 * i + 3] = v.w;
    }
  }
  return words;
}

template <unsigned kSize>
UZIP_DEVICE void store_values(uint8_t* dst, const Words<kSize>& words) {
  if constexpr (kSize == 1) {
    *reinterpret_cast<uint2*>(dst) = make_uint2(words.word[0], words.word[1]);
  } else {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSize / 2; ++i)
      reinterpret_cast<uint4*>(dst)[i] = make_uint4(words.word[4 * i], words.word[4 * i + 1],
                                                    words.word[4 * i + 2], words.word[4 * i + 3]);
  }
}

/// The same by all lanes of a group: the two of each pair exchange halves of sectors, 32 bytes, so that each store writes whole
/// ones. The second-level cache takes two halves for two sectors.
template <unsigned kSize>
UZIP_DEVICE void store_sectors(uint8_t* dst, const Words<kSize>& words) {
  constexpr unsigned kBytes = kSegmentValues * kSize;
  static_assert(kBytes % 32 == 0);
  const bool odd = lane_index() % 2 != 0;
  uint8_t* const lower = dst - (odd ? kBytes : 0) + (odd ? 16 : 0);
  UZIP_UNROLL
  for (unsigned s = 0; s < kBytes / 32; ++s) {
    uint32_t own[4];
    uint32_t other[4];
    UZIP_UNROLL
    for (unsigned w = 0; w < 4; ++w) {
      const uint32_t low = words.word[8 * s + w];
      const uint32_t high = words.word[8 * s + 4 + w];
      own[w] = odd ? high : low;
      other[w] = shuffle(odd ? low : high, lane_index() ^ 1);
    }
    const uint4 mine = make_uint4(own[0], own[1], own[2], own[3]);
    const uint4 theirs = make_uint4(other[0], other[1], other[2], other[3]);
    *reinterpret_cast<uint4*>(lower + 32 * s) = odd ? theirs : mine;
    *reinterpret_cast<uint4*>(lower + kBytes + 32 * s) = odd ? mine : theirs;
  }
}

/// Whether load_values() and store_values(), or load_sliced() and store_sliced(), may be used on a block of this address.
UZIP_DEVICE bool is_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}

/// The same for memory of any alignment, of which `count` values exist, 8 at most. What does not
/// exist is filled up with `filler`, the bits of a value. Calls, and by value: the fast ways around
/// them keep their registers.
template <unsigned kSize>
UZIP_DEVICE_CALL Words<kSize> load_some_values(const uint8_t* src, unsigned count,
                                               uint64_t filler) {
  Words<kSize> words;
  for (unsigned i = 0; i < 2 * kSize; ++i) words.word[i] = 0;
  for (unsigned i = 0; i < kSegmentValues * kSize; ++i) {
    const uint32_t byte =
        i < count * kSize ? src[i] : static_cast<uint32_t>(filler >> (8 * (i % kSize)) & 0xffu);
    words.word[i / 4] |= byte << (8 * (i % 4));
  }
  return words;
}

template <unsigned kSize>
UZIP_DEVICE_CALL void store_some_values(uint8_t* dst, unsigned count, Words<kSize> words) {
  for (unsigned i = 0; i < count * kSize; ++i)
    dst[i] = static_cast<uint8_t>(words.word[i / 4] >> (8 * (i % 4)));
}

/// One value of any alignment.
template <unsigned kSize>
UZIP_DEVICE uint64_t load_value(const uint8_t* src) {
  uint64_t value = 0;
  UZIP_UNROLL
  for (unsigned i = 0; i < kSize; ++i) value |= static_cast<uint64_t>(src[i]) << (8 * i);
  return value;
}

}  // namespace uzip::gpu
