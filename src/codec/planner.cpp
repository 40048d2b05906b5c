// Plans blocks from samples: constant, or planes of the values, of the values without zeros, or of
// differences, whichever the sample says is smallest.
#include "codec/planner.hpp"

#include "codec/block_sample.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace uzip {
namespace {

constexpr size_t kSmallestCodedCount = 96;  ///< below, a frame's own tables would eat the gain

/// What a level may spend time on.
struct Effort {
  size_t samples;
  unsigned levels;
  unsigned shifts;  ///< of a plane's field that are tried
  bool differences;
};

Effort effort_of(CodecLevel level) {
  switch (level) {
    case CodecLevel::kFastest:
      return {512, 1, 1, false};
    case CodecLevel::kBalanced:
      return {512, 2, 3, true};
    default:
      return {1024, 4, 6, true};
  }
}

uint64_t load_value(const uint8_t* src, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, src, size);
  return value;
}

uint64_t rotate_left_by_one(uint64_t value, size_t size) {
  const unsigned bits = 8 * static_cast<unsigned>(size);
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return (value << 1 | value >> (bits - 1)) & mask;
}

/// Few values differ from one that all others have: a constant with exceptions.
bool plan_constant(const CodecKernels& kernels, size_t size, const uint8_t* src, size_t count,
                   BlockDescriptor* plan) {
  const uint64_t candidate = load_value(src + count / 2 * size, size);
  const size_t most = count / 64;
  uint32_t exceptions = 0;
  size_t at = 0;
  while (at < count) {
    const uint8_t* here = src + at * size;
    if (load_value(here, size) == candidate) {
      at += kernels.repeat_length(here, (count - at) * size, static_cast<unsigned>(size)) / size;
      continue;
    }
    if (++exceptions > most) return false;
    ++at;
  }
  plan->kind = BlockKind::kConstant;
  plan->constant = candidate;
  plan->exceptions = exceptions;
  return true;
}

/// One way to see a block: the values or the differences, all or without zeros.
struct View {
  const std::array<uint64_t, kMaxSamples>* values;
  size_t samples;
  unsigned rotation;
  bool skip_zeros;
  size_t count;  ///< values of the block that go into the planes
};

/// Plans all planes and returns their cost.
uint64_t plan_planes(const LevTraits& traits, const Effort& effort, const View& view,
                     BlockDescriptor* plan) {
  uint64_t cost = 0;
  for (size_t p = traits.size; p-- > 0;) {
    ByteHistogram histogram;
    add_plane(*view.values, view.samples, traits.size, view.rotation, p, view.skip_zeros,
              &histogram);
    ShiftRange shifts{0, effort.shifts - 1, false};
    if (p == traits.size - 1 && traits.top_shift > 0)
      shifts = {traits.top_shift, traits.top_shift, true};
    cost += choose_record(histogram, view.count, effort.levels, shifts, &plan->planes[p]);
  }
  plan->rotation = static_cast<uint8_t>(view.rotation);
  return cost;
}

/// Plans the planes without zeros, if these are many. Returns the cost, bitmaps included.
uint64_t plan_without_zeros(const LevTraits& traits, const Effort& effort,
                            const BlockSample& sample, size_t count, BlockDescriptor* plan) {
  if (sample.zeros == sample.count || sample.zeros * 5 < sample.count) return UINT64_MAX;
  const size_t kept = std::max<size_t>(1, count * (sample.count - sample.zeros) / sample.count);
  plan->zeros = true;
  const bool both_signs = sample.minus_zeros > 0 && sample.minus_zeros < sample.zeros;
  const uint64_t bitmaps = (count + (both_signs ? count - kept : 0)) * kCostUnit;
  return bitmaps + plan_planes(traits, effort, {&sample.values, sample.count, 0, true, kept}, plan);
}

/// Plans differences, if they are small. Returns the cost.
uint64_t plan_differences(const LevTraits& traits, const Effort& effort, const BlockSample& sample,
                          size_t count, uint64_t to_beat, BlockDescriptor* plan) {
  uint64_t significant = 0;
  for (size_t i = 0; i < sample.count; ++i)
    significant += static_cast<uint64_t>(std::bit_width(sample.differences[i]));
  // Below its highest bit a difference is random; where that bit is costs a bit or more.
  if (significant * count / sample.count * kCostUnit >= to_beat) return UINT64_MAX;
  plan->delta = true;
  uint64_t lowest = UINT64_MAX;
  BlockDescriptor best;
  for (unsigned rotation : {0u, 3u, 5u}) {
    const uint64_t cost = plan_planes(
        traits, effort, {&sample.differences, sample.count, rotation, false, count}, plan);
    if (cost >= lowest) continue;
    lowest = cost;
    best = *plan;
  }
  *plan = best;
  return lowest;
}

/// Plans the planes of a block that is not constant; returns the cost in bits times kCostUnit.
uint64_t plan_values(const LevTraits& traits, const Effort& effort, const BlockSample& sample,
                     size_t count, BlockDescriptor* plan) {
  const BlockDescriptor empty = *plan;
  uint64_t cost =
      plan_planes(traits, effort, {&sample.values, sample.count, 0, false, count}, plan);
  auto consider = [&](uint64_t other_cost, const BlockDescriptor& other) {
    if (other_cost == UINT64_MAX || other_cost + other_cost / 64 >= cost) return;
    cost = other_cost;
    *plan = other;
  };
  BlockDescriptor other = empty;
  consider(plan_without_zeros(traits, effort, sample, count, &other), other);
  if (plan->zeros || !effort.differences || traits.top_shift > 0) return cost;
  other = empty;
  consider(plan_differences(traits, effort, sample, count, cost, &other), other);
  return cost;
}

}  // namespace

LevTraits lev_traits(DataType type) {
  const DataTypeInfo& info = datatype_info(type);
  LevTraits traits{info.size, static_cast<unsigned>(std::countr_zero(info.size)), 0};
  if (type == UZIP_FP16 || type == UZIP_FP8_E4M3FN) traits.top_shift = 3;
  if (type == UZIP_FP8_E5M2) traits.top_shift = 2;
  return traits;
}

unsigned block_log2(DataType, CodecLevel, size_t count) {
  unsigned log2 = 14;
  while (log2 > kMinBlockLog2 && (size_t{1} << (log2 - 1)) >= count) --log2;
  return log2;
}

void plan_block(const CodecKernels& kernels, DataType type, CodecLevel level, const uint8_t* src,
                size_t count, BlockDescriptor* plan) {
  const LevTraits traits = lev_traits(type);
  const Effort effort = effort_of(level);
  *plan = BlockDescriptor{};
  plan->values = plan->kept = static_cast<uint32_t>(count);
  BlockSample sample;
  take_sample(src, count, traits.size, effort.samples, effort.differences, &sample);
  if (sample.equal * 16 >= sample.count * 15 &&
      plan_constant(kernels, traits.size, src, count, plan))
    return;
  plan_values(traits, effort, sample, count, plan);
  if (plan->delta) plan->base = rotate_left_by_one(load_value(src, traits.size), traits.size);
}

bool coding_pays(DataType type, CodecLevel level, const uint8_t* src, size_t count) {
  if (count < kSmallestCodedCount) return false;
  constexpr size_t kProbeBytes = size_t{2} << 20;
  constexpr size_t kMostProbes = 4;
  const LevTraits traits = lev_traits(type);
  const Effort effort = effort_of(level);
  auto pays = [&](const uint8_t* from, size_t values) {
    BlockSample sample;
    take_sample(from, values, traits.size, effort.samples / 2, effort.differences, &sample);
    if (sample.equal * 2 > sample.count) return true;
    BlockDescriptor plan;
    const uint64_t raw = 8 * traits.size * kCostUnit * values;
    return plan_values(traits, effort, sample, values, &plan) < raw - raw / 64;
  };
  if (pays(src, count)) return true;
  // The whole may look random where its parts do not.
  const size_t block = size_t{1} << block_log2(type, level, count);
  const size_t probes = std::min(count * traits.size / kProbeBytes, kMostProbes);
  for (size_t probe = 0; probe < probes; ++probe)
    if (pays(src + probe * (count / probes) * traits.size, block)) return true;
  return false;
}

void plan_sequence(const uint8_t* bytes, size_t count, CodecLevel level, SequenceRecord* record) {
  const Effort effort = effort_of(level);
  ByteHistogram histogram;
  for (size_t i = 0; i < count; ++i) histogram.add(bytes[i]);
  choose_record(histogram, count, effort.levels, {0, effort.shifts - 1, false}, record);
}

}  // namespace uzip
