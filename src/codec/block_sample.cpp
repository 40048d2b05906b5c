// Takes samples in runs of sixteen neighbours, at equal distances.
#include "codec/block_sample.hpp"

// At its usual level this compiler leaves loops of unknown length alone.
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

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

/// Takes values one after another, those of whole runs many at once, in whatever registers the
/// processor has.
template <class T>
class SampleTaker {
 public:
  SampleTaker(T middle, uint64_t* values) : middle_(middle), values_(values) {}

  void take_one(const uint8_t* src) {
    const T value = std::rotl(load<T>(src), 1);
    equal_ += value == middle_;
    zeros_ += value <= 1;
    minus_zeros_ += value == 1;
    *values_++ = value;
  }
  void take_run(const uint8_t* src) {
    // Few processors compare words of eight bytes in vectors without a detour.
    if constexpr (sizeof(T) == 8) {
      for (size_t i = 0; i < kRun; ++i) take_one(src + i * sizeof(T));
      return;
    }
    std::array<T, kRun> run;
    for (size_t i = 0; i < kRun; i += kLanes) {
      const auto bits = load<Lanes>(src + i * sizeof(T));
      const Lanes value = bits << 1 | bits >> (8 * sizeof(T) - 1);
      // A comparison gives -1 where it holds.
      equal_lanes_ -= Lanes(value == middle_);
      zero_lanes_ -= Lanes(value >> 1 == 0);
      minus_lanes_ -= Lanes(value == 1);
      std::memcpy(&run[i], &value, sizeof value);
    }
    for (size_t i = 0; i < kRun; ++i) values_[i] = run[i];
    values_ += kRun;
  }
  void finish(BlockSample* sample) const {
    sample->equal = equal_ + sum(equal_lanes_);
    sample->zeros = zeros_ + sum(zero_lanes_);
    sample->minus_zeros = minus_zeros_ + sum(minus_lanes_);
  }

 private:
  using Lanes [[gnu::vector_size(16)]] = T;
  static constexpr size_t kLanes = 16 / sizeof(T);
  static_assert(static_cast<T>(kMaxSamples / kLanes) == kMaxSamples / kLanes);
  static size_t sum(Lanes lanes) {
    size_t result = 0;
    for (size_t i = 0; i < kLanes; ++i) result += lanes[i];
    return result;
  }

  T middle_;
  uint64_t* values_;
  size_t equal_ = 0;
  size_t zeros_ = 0;
  size_t minus_zeros_ = 0;
  Lanes equal_lanes_{};
  Lanes zero_lanes_{};
  Lanes minus_lanes_{};
};

template <class T>
void take(BlockSample* sample) {
  const SamplePlaces& places = sample->places;
  const size_t half = places.runs * places.length / 2;
  const size_t middle = half / places.length * places.stride + half % places.length;
  SampleTaker<T> taker(std::rotl(load<T>(sample->src + middle * sizeof(T)), 1),
                       sample->values.data());
  for (size_t run = 0; run < places.runs; ++run) {
    const uint8_t* here = sample->src + run * places.stride * sizeof(T);
    if (places.length == kRun)
      taker.take_run(here);
    else
      for (size_t i = 0; i < places.length; ++i) taker.take_one(here + i * sizeof(T));
  }
  taker.finish(sample);
  sample->count = places.runs * places.length;
}

/// Calls visit(index, difference) for the values of every `step`-th run.
template <class T, class Visit>
void for_each_difference(const BlockSample& sample, size_t step, Visit visit) {
  const SamplePlaces& places = sample.places;
  for (size_t run = 0; run < places.runs; run += step) {
    const uint8_t* here = sample.src + run * places.stride * sizeof(T);
    T before = std::rotl(load<T>(run == 0 ? here : here - sizeof(T)), 1);
    const size_t first = run * places.length;
    for (size_t i = first; i < first + places.length; ++i) {
      const auto value = static_cast<T>(sample.values[i]);
      visit(i, zigzag<T>(static_cast<T>(value - before)));
      before = value;
    }
  }
}

/// 16 * log2(x) within 1.5, x > 0.
uint64_t rough_log2(uint64_t x) {
  const auto whole = static_cast<unsigned>(std::bit_width(x)) - 1;
  return 16 * whole + (16 * x >> whole) - 16;
}

template <class T>
uint64_t rough_cost(const BlockSample& sample) {
  std::array<uint16_t, 8 * sizeof(T) + 1> lengths{};
  for_each_difference<T>(sample, 4, [&](size_t, T difference) {
    ++lengths[static_cast<size_t>(std::bit_width(difference))];
  });
  uint64_t count = 0;
  uint64_t cost = 0;
  for (size_t length = 0; length < lengths.size(); ++length) {
    if (lengths[length] == 0) continue;
    count += lengths[length];
    const uint64_t below = 16 * (length - (length > 0));
    cost += lengths[length] * (below + 16 * 10 - rough_log2(lengths[length]));
  }
  return cost / count - (16 * 10 - rough_log2(count));
}

/// Calls `act` with a value of the type of this size.
template <class Act>
auto with_type(size_t size, Act act) {
  switch (size) {
    case 1:
      return act(uint8_t{});
    case 2:
      return act(uint16_t{});
    case 4:
      return act(uint32_t{});
    default:
      return act(uint64_t{});
  }
}

/// Which bytes occurred.
class ByteSet {
 public:
  void add(uint8_t byte) { seen_[byte] = 1; }
  /// Of 256 random bytes 162 are different, give or take 6; with half a bit less in them, 137. Of 64 it is 57, give or
  /// take 2; with a bit and a half less, 46.
  bool looks_random(size_t count) const {
    const int fewest = count == kRandomSamples ? 146 : 47;
    // Eight sums of bytes that are at most 32, then four that are at most 64.
    uint64_t sums = 0;
    for (size_t i = 0; i < seen_.size(); i += 8) sums += load<uint64_t>(&seen_[i]);
    const uint64_t halves = (sums & 0x00ff00ff00ff00ffu) + (sums >> 8 & 0x00ff00ff00ff00ffu);
    return static_cast<int>(halves * 0x0001000100010001u >> 48) >= fewest;
  }

 private:
  std::array<uint8_t, 256> seen_{};
};

template <class T>
bool top_looks_random(const uint8_t* src, const SamplePlaces& places) {
  ByteSet top;
  for (size_t run = 0; run < places.runs; ++run) {
    const uint8_t* here = src + run * places.stride * sizeof(T);
    for (size_t i = 0; i < kRun; ++i)
      top.add(
          static_cast<uint8_t>(std::rotl(load<T>(here + i * sizeof(T)), 1) >> (8 * sizeof(T) - 8)));
  }
  return top.looks_random(kRandomSamples);
}

/// Some are enough: the mean length of random ones is one bit less than the type has, and among 64
/// off by 0.2.
template <class T>
bool differences_look_random(const uint8_t* src, const SamplePlaces& places) {
  size_t significant = 0;
  size_t count = 0;
  for (size_t run = 0; run < places.runs; run += 4, count += kRun) {
    const uint8_t* here = src + run * places.stride * sizeof(T);
    T before = std::rotl(load<T>(run == 0 ? here : here - sizeof(T)), 1);
    for (size_t i = 0; i < kRun; ++i) {
      const T value = std::rotl(load<T>(here + i * sizeof(T)), 1);
      significant += static_cast<size_t>(std::bit_width(zigzag<T>(static_cast<T>(value - before))));
      before = value;
    }
  }
  return significant + 3 * count >= 8 * sizeof(T) * count;
}

template <class T>
bool values_look_random(const uint8_t* src, const SamplePlaces& places) {
  if (!top_looks_random<T>(src, places)) return false;
  if constexpr (sizeof(T) == 1) return true;
  // Of many planes one must hold much less to be worth its time: fewer values tell.
  constexpr size_t kStep = sizeof(T) > 2 ? 4 : 1;
  std::array<ByteSet, sizeof(T) - 1> planes;
  for (size_t run = 0; run < places.runs; run += kStep) {
    const uint8_t* here = src + run * places.stride * sizeof(T);
    for (size_t i = 0; i < kRun; ++i) {
      const T value = std::rotl(load<T>(here + i * sizeof(T)), 1);
      for (size_t p = 0; p < planes.size(); ++p)
        planes[p].add(static_cast<uint8_t>(value >> (8 * p)));
    }
  }
  for (const ByteSet& plane : planes)
    if (!plane.looks_random(kRandomSamples / kStep)) return false;
  return differences_look_random<T>(src, places);
}

template <class T>
bool run_is_narrow(const uint8_t* src) {
  // Numbers of about 1 are in the middle of a quarter of all top bytes.
  constexpr unsigned kMiddle = 0x20;
  const auto top = [=](size_t i) {
    return (std::rotl(load<T>(src + i * sizeof(T)), 1) >> (8 * sizeof(T) - 8)) + kMiddle;
  };
  uint64_t differing = 0;
  for (size_t i = 1; i < kRun / 2; ++i) differing |= top(i) ^ top(0);
  return (differing & 0xc0) == 0;
}

}  // namespace

SamplePlaces sample_places(size_t count, size_t wanted) {
  wanted = std::min(wanted, kMaxSamples);
  if (count <= wanted) return {1, count, count};
  const size_t runs = std::max<size_t>(1, wanted / kRun);
  // Odd, or else the rows of an array could be met at the same place every time.
  return {runs, kRun, ((count - kRun) / std::max<size_t>(1, runs - 1) - 1) | 1};
}

void take_sample(const uint8_t* src, const SamplePlaces& places, size_t size, BlockSample* sample) {
  sample->src = src;
  sample->places = places;
  with_type(size, [=](auto type) { take<decltype(type)>(sample); });
}

void add_differences(size_t size, BlockSample* sample) {
  with_type(size, [=](auto type) {
    for_each_difference<decltype(type)>(
        *sample, 1, [=](size_t i, uint64_t difference) { sample->derived[i] = difference; });
  });
}

size_t add_kept(BlockSample* sample) {
  size_t kept = 0;
  for (size_t i = 0; i < sample->count; ++i) {
    sample->derived[kept] = sample->values[i];
    kept += sample->values[i] > 1;
  }
  return kept;
}

SampleView view_sample(const uint64_t* values, size_t count) {
  SampleView view{values, count, 0, ~uint64_t{0}};
  for (size_t i = 0; i < count; ++i) {
    view.any |= values[i];
    view.every &= values[i];
  }
  return view;
}

SampleView rotate_view(const SampleView& view, size_t size, unsigned rotation, uint64_t* room) {
  if (rotation == 0) return view;
  const unsigned bits = 8 * static_cast<unsigned>(size);
  const uint64_t all = ~uint64_t{0} >> (64 - bits);
  const auto rotated = [=](uint64_t value) {
    return (value << rotation | value >> (bits - rotation)) & all;
  };
  for (size_t i = 0; i < view.count; ++i) room[i] = rotated(view.values[i]);
  return {room, view.count, rotated(view.any), rotated(view.every)};
}

uint64_t rough_cost_of_differences(size_t size, const BlockSample& sample) {
  return with_type(size, [&](auto type) { return rough_cost<decltype(type)>(sample); });
}

void count_plane(const SampleView& view, size_t plane, size_t step, ByteHistogram* histogram) {
  const auto* const bytes = reinterpret_cast<const uint8_t*>(view.values) + plane;
  const size_t stride = step * sizeof(uint64_t);
  const size_t count = (view.count + step - 1) / step;
  HistogramBuilder builder;
  size_t i = 0;
  for (; i + 4 <= count; i += 4)
    for (size_t k = 0; k < 4; ++k) builder.add(bytes[(i + k) * stride], k);
  for (; i < count; ++i) builder.add(bytes[i * stride], i);
  builder.finish(histogram);
}

bool plane_looks_random(const SampleView& view, size_t plane) {
  if (view.count < kRandomSamples) return false;
  return bytes_look_random(reinterpret_cast<const uint8_t*>(view.values) + plane,
                           view.count / kRandomSamples * sizeof(uint64_t));
}

bool bytes_look_random(const uint8_t* bytes, size_t step) {
  ByteSet seen;
  for (size_t i = 0; i < kRandomSamples; ++i) seen.add(bytes[i * step]);
  return seen.looks_random(kRandomSamples);
}

bool values_look_random(const uint8_t* src, const SamplePlaces& places, size_t size) {
  if (places.length != kRun || places.runs * kRun < kRandomSamples) return false;
  return with_type(size,
                   [&](auto type) { return values_look_random<decltype(type)>(src, places); });
}

bool run_is_narrow(const uint8_t* src, size_t size) {
  return with_type(size, [=](auto type) { return run_is_narrow<decltype(type)>(src); });
}

uint64_t rotated_value(const uint8_t* src, size_t size) {
  return with_type(size,
                   [=](auto type) -> uint64_t { return std::rotl(load<decltype(type)>(src), 1); });
}

}  // namespace uzip
