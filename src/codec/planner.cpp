// Plans blocks from samples.
#include "codec/planner.hpp"

#include "codec/level.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace uzip {
namespace {

constexpr size_t kSmallestCodedCount = 96;  ///< below, a frame's own tables would eat the gain
constexpr size_t kSamples = 1024;

uint64_t load_value(const uint8_t* src, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, src, size);
  return value;
}

uint64_t rotate_left(uint64_t value, unsigned rotation, size_t size) {
  const unsigned bits = 8 * static_cast<unsigned>(size);
  rotation %= bits;
  if (rotation == 0) return value;
  const uint64_t mask = bits == 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
  return (value << rotation | value >> (bits - rotation)) & mask;
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
    if (load_value(here, size) != candidate) {
      if (++exceptions > most) return false;
      ++at;
      continue;
    }
    at += kernels.repeat_length(here, (count - at) * size, static_cast<unsigned>(size)) / size;
  }
  plan->kind = BlockKind::kConstant;
  plan->constant = candidate;
  plan->exceptions = exceptions;
  return true;
}

/// Every byte plane as it is.
void plan_raw_planes(size_t size, BlockDescriptor* plan) {
  for (size_t p = 0; p < size; ++p) {
    plan->planes[p] = SequenceRecord{};
    plan->planes[p].stored = 0xff;
  }
}

}  // namespace

LevTraits lev_traits(DataType type) {
  const DataTypeInfo& info = datatype_info(type);
  LevTraits traits{info.size, static_cast<unsigned>(std::countr_zero(info.size)), 0};
  if (type == UZIP_FP16 || type == UZIP_FP8_E4M3FN) traits.top_shift = 3;
  if (type == UZIP_FP8_E5M2) traits.top_shift = 2;
  return traits;
}

unsigned max_levels(CodecLevel level) {
  switch (level) {
    case CodecLevel::kFastest:
      return 1;
    case CodecLevel::kBalanced:
      return 2;
    default:
      return kMaxLevels;
  }
}

unsigned block_log2(DataType, CodecLevel, size_t count) {
  unsigned log2 = 14;
  while (log2 > kMinBlockLog2 && (size_t{1} << (log2 - 1)) >= count) --log2;
  return log2;
}

void plan_block(const CodecKernels& kernels, DataType type, CodecLevel level, const uint8_t* src,
                size_t count, BlockDescriptor* plan) {
  const LevTraits traits = lev_traits(type);
  *plan = BlockDescriptor{};
  plan->values = plan->kept = static_cast<uint32_t>(count);
  if (plan_constant(kernels, traits.size, src, count, plan)) return;
  plan_raw_planes(traits.size, plan);
  FieldHistogram histogram;
  SequenceRecord& top = plan->planes[traits.size - 1];
  const size_t step = std::max<size_t>(1, count / kSamples) | 1;
  for (size_t i = 0; i < count; i += step) {
    const uint64_t value =
        rotate_left(load_value(src + i * traits.size, traits.size), 1, traits.size);
    ++histogram.counts[value >> (8 * traits.size - 8) >> traits.top_shift];
    ++histogram.total;
  }
  top.shift = static_cast<uint8_t>(traits.top_shift);
  top.stored = static_cast<uint8_t>((1u << traits.top_shift) - 1);
  top.place = kFieldsInCoded;
  const uint64_t cost = choose_levels(histogram, count, max_levels(level), &top);
  if (cost >= count * (8 - traits.top_shift) * kCostUnit) top.drop_levels();
}

bool coding_pays(const CodecKernels& kernels, DataType type, CodecLevel level, const uint8_t* src,
                 size_t count) {
  if (count < kSmallestCodedCount) return false;
  const size_t size = datatype_size(type);
  const size_t piece = std::min<size_t>(count, kMaxBlockValues);
  for (size_t begin = 0; begin < count; begin += std::max(piece, count / 4)) {
    BlockDescriptor plan;
    plan_block(kernels, type, level, src + begin * size, std::min(piece, count - begin), &plan);
    if (plan.kind == BlockKind::kConstant || plan.planes[size - 1].levels > 0) return true;
  }
  return false;
}

void plan_sequence(const uint8_t* bytes, size_t count, unsigned max_levels,
                   SequenceRecord* record) {
  FieldHistogram histogram;
  for (size_t i = 0; i < count; ++i) ++histogram.counts[bytes[i]];
  histogram.total = static_cast<uint32_t>(count);
  record->shift = 0;
  record->stored = 0;
  record->value = 0;
  const uint64_t cost = choose_levels(histogram, count, max_levels, record);
  if (cost < 8 * count * kCostUnit) return;
  record->shift = 8;
  record->stored = 0xff;
  record->drop_levels();
}

}  // namespace uzip
