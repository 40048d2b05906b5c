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

template <class T>
void take_run(const uint8_t* src, size_t first, size_t length, bool differences,
              BlockSample* sample) {
  size_t out = sample->count;
  T previous = std::rotl(load<T>(src + (first == 0 ? 0 : first - 1) * sizeof(T)), 1);
  for (size_t i = 0; i < length; ++i, ++out) {
    const T value = std::rotl(load<T>(src + (first + i) * sizeof(T)), 1);
    sample->values[out] = value;
    sample->zeros += value <= 1;
    sample->minus_zeros += value == 1;
    if (differences) sample->differences[out] = zigzag<T>(static_cast<T>(value - previous));
    previous = value;
  }
  sample->count = out;
}

template <class T>
void take(const uint8_t* src, size_t count, size_t wanted, bool differences, BlockSample* sample) {
  sample->count = sample->equal = sample->zeros = sample->minus_zeros = 0;
  if (count <= wanted) {
    take_run<T>(src, 0, count, differences, sample);
  } else {
    const size_t runs = std::max<size_t>(1, wanted / kRun);
    const size_t stride = (count - kRun) / std::max<size_t>(1, runs - 1);
    for (size_t run = 0; run < runs; ++run)
      take_run<T>(src, run * stride, kRun, differences, sample);
  }
  const uint64_t middle = sample->values[sample->count / 2];
  for (size_t i = 0; i < sample->count; ++i) sample->equal += sample->values[i] == middle;
}

}  // namespace

void take_sample(const uint8_t* src, size_t count, size_t size, size_t wanted, bool differences,
                 BlockSample* sample) {
  wanted = std::min(wanted, kMaxSamples);
  switch (size) {
    case 1:
      return take<uint8_t>(src, count, wanted, differences, sample);
    case 2:
      return take<uint16_t>(src, count, wanted, differences, sample);
    case 4:
      return take<uint32_t>(src, count, wanted, differences, sample);
    default:
      return take<uint64_t>(src, count, wanted, differences, sample);
  }
}

void add_plane(const std::array<uint64_t, kMaxSamples>& values, size_t count, size_t size,
               unsigned rotation, size_t plane, bool skip_zeros, ByteHistogram* histogram) {
  // Rotated left, byte `plane` holds the bits that stand `rotation` lower; they wrap within the
  // type.
  const unsigned bits = 8 * static_cast<unsigned>(size);
  const unsigned down = (8 * static_cast<unsigned>(plane) + bits - rotation) % bits;
  for (size_t i = 0; i < count; ++i) {
    const uint64_t value = values[i];
    if (skip_zeros && value <= 1) continue;
    const uint64_t byte = down + 8 <= bits ? value >> down : value >> down | value << (bits - down);
    histogram->add(static_cast<uint8_t>(byte));
  }
}

}  // namespace uzip
