// A sample of a block's values, in short runs, because neighbours tell whether differences are
// small.
#pragma once

#include "codec/level.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace uzip {

inline constexpr size_t kMaxSamples = 1024;

/// Values as the format sees them first: rotated left by one.
struct BlockSample {
  std::array<uint64_t, kMaxSamples> values;
  std::array<uint64_t, kMaxSamples>
      differences;  ///< zigzag, to the value before; only in a full sample
  size_t count = 0;
  size_t equal = 0;  ///< values that equal the middle one
  size_t zeros = 0;  ///< of either sign
  size_t minus_zeros = 0;
};

/// Where samples are taken: `runs` runs of `length` neighbours, `stride` values apart.
struct SamplePlaces {
  size_t runs;
  size_t length;
  size_t stride;
};
/// The places for about `wanted` (at most kMaxSamples) of `count` values.
SamplePlaces sample_places(size_t count, size_t wanted);

void take_sample(const uint8_t* src, const SamplePlaces& places, size_t size, bool differences,
                 BlockSample* sample);

/// Histogram of byte `plane` of the values, rotated left by `rotation` more. With `skip_zeros` only
/// values that are not zero count.
void count_plane(const std::array<uint64_t, kMaxSamples>& values, size_t count, size_t size,
                 unsigned rotation, size_t plane, bool skip_zeros, ByteHistogram* histogram);

/// Values that plane_looks_random() looks at.
inline constexpr size_t kRandomSamples = 256;

/// True when kRandomSamples of the bytes that count_plane() would count are as different as random
/// ones. Much cheaper than a histogram; may only be wrong about bytes that hold little.
bool plane_looks_random(const std::array<uint64_t, kMaxSamples>& values, size_t count, size_t size,
                        unsigned rotation, size_t plane);

/// The same for kRandomSamples bytes that are `step` apart.
bool bytes_look_random(const uint8_t* bytes, size_t step);

/// The value rotated left by one, as samples hold it.
uint64_t rotated_value(const uint8_t* src, size_t size);

}  // namespace uzip
