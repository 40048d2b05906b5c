// Takes samples in runs of sixteen neighbours, at equal distances.
#include "codec/block_sample.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace uzip {
namespace {

constexpr size_t kRun = 16;

template <class T>
T load(const uint8_t* src) {
  T value;
  std::memcpy(&value, src, sizeof value);
  return value;
}

template <class T>
uint64_t zigzag(T difference) {
  using Signed = std::make_signed_t<T>;
  const auto sign = static_cast<T>(static_cast<Signed>(difference) >> (8 * sizeof(T) - 1));
  return static_cast<T>(static_cast<T>(difference << 1) ^ sign);
}

/// kLength: the places' length, if it is known.
template <class T, size_t kLength>
void take_runs(const uint8_t* src, const SamplePlaces& places, bool differences,
               BlockSample* sample) {
  const size_t length = kLength != 0 ? kLength : places.length;
  uint64_t* const values = sample->values.data();
  uint64_t* const all_differences = sample->differences.data();
  size_t out = 0;
  for (size_t run = 0; run < places.runs; ++run) {
    const uint8_t* here = src + run * places.stride * sizeof(T);
    for (size_t i = 0; i < length; ++i)
      values[out + i] = std::rotl(load<T>(here + i * sizeof(T)), 1);
    if (differences) {
      const T before = std::rotl(load<T>(run == 0 ? here : here - sizeof(T)), 1);
      all_differences[out] = zigzag<T>(static_cast<T>(values[out] - before));
      for (size_t i = 1; i < length; ++i)
        all_differences[out + i] = zigzag<T>(static_cast<T>(values[out + i] - values[out + i - 1]));
    }
    out += length;
  }
  sample->count = out;
}

template <class T>
void take(const uint8_t* src, const SamplePlaces& places, bool differences, BlockSample* sample) {
  if (places.length == kRun)
    take_runs<T, kRun>(src, places, differences, sample);
  else
    take_runs<T, 0>(src, places, differences, sample);
}

/// Adds the bytes value >> down, or with `wraps` rotated within `bits`.
template <bool kSkipZeros, bool kWraps>
void count_bytes(const uint64_t* values, size_t count, unsigned down, unsigned bits,
                 HistogramBuilder& builder) {
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = values[i];
    if (kSkipZeros && value <= 1) continue;
    const uint64_t byte = kWraps ? value >> down | value << (bits - down) : value >> down;
    builder.add(static_cast<uint8_t>(byte), i);
  }
}

}  // namespace

SamplePlaces sample_places(size_t count, size_t wanted) {
  wanted = std::min(wanted, kMaxSamples);
  if (count <= wanted) return {1, count, count};
  const size_t runs = std::max<size_t>(1, wanted / kRun);
  return {runs, kRun, (count - kRun) / std::max<size_t>(1, runs - 1)};
}

void take_sample(const uint8_t* src, const SamplePlaces& places, size_t size, bool differences,
                 BlockSample* sample) {
  switch (size) {
    case 1:
      take<uint8_t>(src, places, differences, sample);
      break;
    case 2:
      take<uint16_t>(src, places, differences, sample);
      break;
    case 4:
      take<uint32_t>(src, places, differences, sample);
      break;
    default:
      take<uint64_t>(src, places, differences, sample);
  }
  size_t equal = 0;
  size_t zeros = 0;
  size_t minus_zeros = 0;
  const uint64_t middle = sample->values[sample->count / 2];
  for (size_t i = 0, count = sample->count; i < count; ++i) {
    const uint64_t value = sample->values[i];
    equal += value == middle;
    zeros += value <= 1;
    minus_zeros += value == 1;
  }
  sample->equal = equal;
  sample->zeros = zeros;
  sample->minus_zeros = minus_zeros;
}

void count_plane(const std::array<uint64_t, kMaxSamples>& values, size_t count, size_t size,
                 unsigned rotation, size_t plane, bool skip_zeros, ByteHistogram* histogram) {
  // Rotated left, byte `plane` holds the bits that stand `rotation` lower; they wrap within the
  // type.
  const unsigned bits = 8 * static_cast<unsigned>(size);
  const unsigned down = (8 * static_cast<unsigned>(plane) + bits - rotation) % bits;
  HistogramBuilder builder;
  if (down + 8 > bits)
    count_bytes<false, true>(values.data(), count, down, bits, builder);
  else if (skip_zeros)
    count_bytes<true, false>(values.data(), count, down, bits, builder);
  else
    count_bytes<false, false>(values.data(), count, down, bits, builder);
  builder.finish(histogram);
}

bool plane_looks_random(const std::array<uint64_t, kMaxSamples>& values, size_t count, size_t size,
                        unsigned rotation, size_t plane) {
  if (count < kRandomSamples) return false;
  const size_t step = count / kRandomSamples;
  if (rotation == 0)
    return bytes_look_random(reinterpret_cast<const uint8_t*>(values.data()) + plane,
                             step * sizeof(uint64_t));
  const unsigned bits = 8 * static_cast<unsigned>(size);
  const unsigned down = (8 * static_cast<unsigned>(plane) + bits - rotation) % bits;
  const unsigned up = (bits - down) % bits;
  std::array<uint8_t, kRandomSamples> bytes;
  for (size_t i = 0; i < kRandomSamples; ++i) {
    const uint64_t value = values[i * step];
    bytes[i] = static_cast<uint8_t>(value >> down | value << up);
  }
  return bytes_look_random(bytes.data(), 1);
}

bool bytes_look_random(const uint8_t* bytes, size_t step) {
  // Of 256 random bytes 162 are different, give or take 6; with half a bit less in them, 137.
  constexpr int kFewest = 146;
  std::array<uint8_t, 256> seen{};
  for (size_t i = 0; i < kRandomSamples; ++i) seen[bytes[i * step]] = 1;
  // Eight sums of bytes that are at most 32, then four that are at most 64.
  uint64_t sums = 0;
  for (size_t i = 0; i < seen.size(); i += 8) sums += load<uint64_t>(&seen[i]);
  const uint64_t halves = (sums & 0x00ff00ff00ff00ffu) + (sums >> 8 & 0x00ff00ff00ff00ffu);
  const auto different = static_cast<int>(halves * 0x0001000100010001u >> 48);
  return different >= kFewest;
}

uint64_t rotated_value(const uint8_t* src, size_t size) {
  switch (size) {
    case 1:
      return std::rotl(load<uint8_t>(src), 1);
    case 2:
      return std::rotl(load<uint16_t>(src), 1);
    case 4:
      return std::rotl(load<uint32_t>(src), 1);
    default:
      return std::rotl(load<uint64_t>(src), 1);
  }
}

}  // namespace uzip
