// A sample of a block's values, in short runs, because neighbours tell whether differences are
// small.
#pragma once

#include "codec/level.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace uzip {

inline constexpr size_t kMaxSamples = 1024;

/// Where samples are taken: `runs` runs of `length` neighbours, `stride` values apart.
struct SamplePlaces {
  size_t runs;
  size_t length;
  size_t stride;
};
/// Values as the format sees them first: rotated left by one.
struct BlockSample {
  std::array<uint64_t, kMaxSamples> values;
  std::array<uint64_t, kMaxSamples> derived;  ///< see add_differences() and add_kept()
  std::array<uint64_t, kMaxSamples> rotated;  ///< room for a view
  size_t count = 0;
  const uint8_t* src = nullptr;  ///< where it was taken
  SamplePlaces places{};
  size_t equal = 0;  ///< values that equal the middle one
  size_t zeros = 0;  ///< of either sign
  size_t minus_zeros = 0;
};

/// What planes are cut from, and the bits that occur in it.
struct SampleView {
  const uint64_t* values;
  size_t count;
  uint64_t any;
  uint64_t every;

  uint64_t varying() const { return any & ~every; }
};

/// The places for about `wanted` (at most kMaxSamples) of `count` values.
SamplePlaces sample_places(size_t count, size_t wanted);

/// `src` must stay until add_differences().
void take_sample(const uint8_t* src, const SamplePlaces& places, size_t size, BlockSample* sample);

/// Derives the differences (zigzag, to the value before) of all values.
void add_differences(size_t size, BlockSample* sample);
/// Derives the values that are not zero; returns how many there are.
size_t add_kept(BlockSample* sample);

SampleView view_sample(const uint64_t* values, size_t count);
/// The view of values of `size` bytes rotated left by `rotation` more, which are put into `room`.
SampleView rotate_view(const SampleView& view, size_t size, unsigned rotation, uint64_t* room);

/// About what a difference takes, in bits times 16, from a quarter of the sample: the entropy of the
/// place of its highest bit, and all bits below.
uint64_t rough_cost_of_differences(size_t size, const BlockSample& sample);

/// Histogram of byte `plane` of every `step`-th value.
void count_plane(const SampleView& view, size_t plane, size_t step, ByteHistogram* histogram);

/// Values that plane_looks_random() looks at.
inline constexpr size_t kRandomSamples = 256;

/// True when kRandomSamples of the bytes that count_plane() would count are as different as random
/// ones. Much cheaper than a histogram; may only be wrong about bytes that hold little.
bool plane_looks_random(const SampleView& view, size_t plane);

/// True when kRandomSamples values at these places are as different as random ones: in every plane,
/// and in the lengths of their differences. The top plane is looked at first, since it nearly
/// always decides.
bool values_look_random(const uint8_t* src, const SamplePlaces& places, size_t size);

/// True when the top bytes of some neighbours lie close together, as random ones hardly ever do.
bool run_is_narrow(const uint8_t* src, size_t size);

/// As plane_looks_random() for kRandomSamples bytes that are `step` apart.
bool bytes_look_random(const uint8_t* bytes, size_t step);

/// The value rotated left by one, as samples hold it.
uint64_t rotated_value(const uint8_t* src, size_t size);

}  // namespace uzip
