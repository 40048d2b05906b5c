// Plans blocks from samples: constant, or planes of the values, of the values without zeros, or of
// differences, whichever the sample says is smallest.
#include "codec/planner.hpp"

#include "codec/block_sample.hpp"
#include "codec/difference_lengths.hpp"

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
  size_t reuse_bytes;  ///< elements after which a plan is made anew
};

Effort effort_of(CodecLevel level) {
  switch (level) {
    case CodecLevel::kFastest:
      return {256, 1, 1, false, size_t{1} << 20};
    case CodecLevel::kBalanced:
      return {512, 2, 3, true, size_t{1} << 19};
    default:
      return {1024, 4, 6, true, size_t{1} << 19};
  }
}

uint64_t load_value(const uint8_t* src, size_t size) {
  uint64_t value = 0;
  std::memcpy(&value, src, size);
  return value;
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

/// Plans the planes of one view of a block, of which it has `count` values. Costs are in bits times
/// kCostUnit.
class PlanesPlanner {
 public:
  PlanesPlanner(const LevTraits& traits, const Effort& effort, const SampleView& view,
                unsigned rotation, size_t count, BlockDescriptor* plan)
      : traits_(traits), effort_(effort), view_(view), count_(count), plan_(*plan) {
    plan->rotation = static_cast<uint8_t>(rotation);
  }

  void plan_all() {
    for (size_t p = traits_.size; p-- > 0;)
      if (is_top(p) || !store(p)) plan_plane(p);
  }
  /// The same in two steps. First what takes little time, and estimates of the other planes below
  /// the top one.
  void begin() {
    plan_plane(traits_.size - 1);
    for (size_t p = traits_.size - 1; p-- > 0;) {
      open_[p] = !store(p);
      if (!open_[p]) continue;
      ByteHistogram histogram;
      count_plane(view_, p, std::max<size_t>(1, view_.count / kRandomSamples), &histogram);
      SequenceRecord record;
      costs_[p] = std::min(costs_[p], choose_record(histogram, count_, 1, {0, 0, false}, &record));
    }
  }
  void finish() {
    for (size_t p = 0; p + 1 < traits_.size; ++p)
      if (open_[p]) plan_plane(p);
  }
  uint64_t cost() const {
    uint64_t sum = 0;
    for (uint64_t cost : costs_) sum += cost;
    return sum;
  }
  /// What codes save in planes below the top one.
  uint64_t low_gain() const {
    uint64_t gain = 0;
    for (size_t p = 0; p + 1 < traits_.size; ++p) {
      const auto varying = static_cast<uint8_t>(view_.varying() >> (8 * p));
      gain += static_cast<uint64_t>(std::popcount(varying)) * kCostUnit * count_ - costs_[p];
    }
    return gain;
  }

 private:
  bool is_top(size_t p) const { return p == traits_.size - 1; }
  /// Stores the bits that vary; true when there is nothing better.
  bool store(size_t p) {
    const auto varying = static_cast<uint8_t>(view_.varying() >> (8 * p));
    SequenceRecord& record = plan_.planes[p];
    record = SequenceRecord{};
    record.stored = varying;
    record.value = static_cast<uint8_t>(view_.every >> (8 * p) & ~uint64_t{varying});
    const auto bits = static_cast<unsigned>(std::popcount(varying));
    costs_[p] = bits * kCostUnit * count_;
    return bits < 2 || (bits == 8 && plane_looks_random(view_, p));
  }
  void plan_plane(size_t p) {
    ShiftRange shifts{0, effort_.shifts - 1, false};
    if (is_top(p) && traits_.top_shift > 0) shifts = {traits_.top_shift, traits_.top_shift, true};
    ByteHistogram histogram;
    count_plane(view_, p, 1, &histogram);
    costs_[p] = choose_record(histogram, count_, effort_.levels, shifts, &plan_.planes[p]);
  }

  const LevTraits& traits_;
  const Effort& effort_;
  SampleView view_;
  size_t count_;
  BlockDescriptor& plan_;
  std::array<uint64_t, kMaxTypeSize> costs_{};
  std::array<bool, kMaxTypeSize> open_{};
};

/// The rotation of values as they are. An exponent of more than 8 bits shares its low ones with the mantissa; if its
/// highest bits never change they go to the other end, and the others have a plane of their own.
unsigned value_rotation(const LevTraits& traits, const SampleView& view) {
  if (traits.wide_exponent == 0) return 0;
  const bool fixed = view.varying() >> (8 * traits.size - traits.wide_exponent) == 0;
  return fixed ? traits.wide_exponent : 0;
}

/// Plans the planes without zeros. Returns the cost, bitmaps included.
uint64_t plan_without_zeros(const LevTraits& traits, const Effort& effort, BlockSample& sample,
                            size_t count, BlockDescriptor* plan) {
  const size_t kept = std::max<size_t>(1, count * (sample.count - sample.zeros) / sample.count);
  plan->zeros = true;
  const bool both_signs = sample.minus_zeros > 0 && sample.minus_zeros < sample.zeros;
  const uint64_t bitmaps = (count + (both_signs ? count - kept : 0)) * kCostUnit;
  const size_t samples = add_kept(&sample);
  const SampleView view = view_sample(sample.derived.data(), samples);
  const unsigned rotation = value_rotation(traits, view);
  PlanesPlanner planes(traits, effort,
                       rotate_view(view, traits.size, rotation, sample.rotated.data()), rotation,
                       kept, plan);
  planes.plan_all();
  return bitmaps + planes.cost();
}

/// Plans differences, in the best of a few rotations. Returns the cost.
uint64_t plan_differences(const LevTraits& traits, const Effort& effort, BlockSample& sample,
                          unsigned rotation, size_t count, BlockDescriptor* plan) {
  plan->delta = true;
  const SampleView view = view_sample(sample.derived.data(), sample.count);
  PlanesPlanner planes(traits, effort,
                       rotate_view(view, traits.size, rotation, sample.rotated.data()), rotation,
                       count, plan);
  planes.plan_all();
  return planes.cost();
}

/// Differences take twice the time: more than this share of the cost must be in them.
constexpr uint64_t kShareOfDifferences = 32;

/// What differences will take in the best of a few rotations, about; UINT64_MAX when that is more
/// than `to_beat`. `one_sign`: all values have the same, which differences don't store.
uint64_t estimate_differences(const LevTraits& traits, BlockSample& sample, size_t count,
                              bool one_sign, uint64_t to_beat, unsigned* rotation) {
  static_assert(kCostUnit == 16);
  // A first look, so that little time is lost where they are long.
  const uint64_t sign = one_sign ? kCostUnit : 0;
  const uint64_t rough = rough_cost_of_differences(traits.size, sample);
  if (rough * count > to_beat - to_beat / kShareOfDifferences + sign * count) return UINT64_MAX;
  add_differences(traits.size, &sample);
  DifferenceLengths lengths(traits.size);
  lengths.count(sample.derived.data(), sample.count);
  uint64_t lowest = UINT64_MAX;
  for (unsigned candidate : {0u, 3u, 5u}) {
    const uint64_t cost = lengths.cost(candidate, count);
    if (cost >= lowest) continue;
    lowest = cost;
    *rotation = candidate;
  }
  return lowest;
}

/// Keeps the other plan when it saves more than a share of the cost; returns the cost of what it
/// keeps.
uint64_t keep_better(uint64_t cost, uint64_t share, const BlockDescriptor& other,
                     uint64_t other_cost, BlockDescriptor* plan) {
  if (other_cost + other_cost / share >= cost) return cost;
  *plan = other;
  return other_cost;
}

/// Plans the planes of a block that is not constant; returns the cost in bits times kCostUnit.
uint64_t plan_values(const LevTraits& traits, const Effort& effort, BlockSample& sample,
                     size_t count, BlockDescriptor* plan) {
  // Many zeros of many bits are better taken out, whatever the others are.
  const bool some_zeros = sample.zeros < sample.count && sample.zeros * 5 >= sample.count;
  if (some_zeros && traits.size > 2 && sample.zeros * 4 >= sample.count)
    return plan_without_zeros(traits, effort, sample, count, plan);
  const BlockDescriptor empty = *plan;
  const SampleView view = view_sample(sample.values.data(), sample.count);
  const unsigned rotation = value_rotation(traits, view);
  PlanesPlanner planes(traits, effort,
                       rotate_view(view, traits.size, rotation, sample.rotated.data()), rotation,
                       count, plan);
  BlockDescriptor other = empty;
  if (some_zeros || !effort.differences || traits.top_shift > 0) {
    planes.plan_all();
    if (!some_zeros) return planes.cost();
    const uint64_t other_cost = plan_without_zeros(traits, effort, sample, count, &other);
    return keep_better(planes.cost(), 64, other, other_cost, plan);
  }
  planes.begin();
  // What low bits gain is in the differences, too, but not in the first looks at them.
  const uint64_t to_beat = planes.cost() + planes.low_gain();
  unsigned other_rotation = 0;
  const bool one_sign = (view.varying() & 1) == 0;
  const uint64_t estimate =
      estimate_differences(traits, sample, count, one_sign, to_beat, &other_rotation);
  if (estimate < planes.cost() && estimate + estimate / 16 < planes.cost()) {
    *plan = empty;
    return plan_differences(traits, effort, sample, other_rotation, count, plan);
  }
  planes.finish();
  if (estimate >= to_beat) return planes.cost();
  const uint64_t other_cost =
      plan_differences(traits, effort, sample, other_rotation, count, &other);
  return keep_better(planes.cost(), kShareOfDifferences, other, other_cost, plan);
}

}  // namespace

LevTraits lev_traits(DataType type) {
  const DataTypeInfo& info = datatype_info(type);
  LevTraits traits{info.size, static_cast<unsigned>(std::countr_zero(info.size)), 0, 0};
  if (type == UZIP_FP16 || type == UZIP_FP8_E4M3FN) traits.top_shift = 3;
  if (type == UZIP_FP8_E5M2) traits.top_shift = 2;
  if (type == UZIP_FP64) traits.wide_exponent = 3;
  return traits;
}

unsigned block_log2(DataType type, CodecLevel level, size_t count) {
  // Smaller blocks follow the data, larger ones waste less on descriptors.
  const bool small = level == CodecLevel::kSmallest;
  const size_t size = lev_traits(type).size;
  unsigned log2 = size == 1 ? (small ? 15 : 16) : size == 2 ? (small ? 14 : 15) : 14;
  while (log2 > kMinBlockLog2 && (size_t{1} << (log2 - 1)) >= count) --log2;
  return log2;
}

void plan_sequence(const uint8_t* bytes, size_t count, CodecLevel level, uint8_t all_or,
                   uint8_t all_and, SequenceRecord* record) {
  if (all_or == 0xff && all_and == 0 && count >= kRandomSamples &&
      bytes_look_random(bytes, count / kRandomSamples)) {
    const uint8_t place = record->place;
    *record = SequenceRecord{};
    record->stored = 0xff;
    record->place = place;
    return;
  }
  constexpr size_t kLooked = 2048;
  const Effort effort = effort_of(level);
  const size_t step = std::max<size_t>(1, count / kLooked);
  HistogramBuilder builder;
  for (size_t i = 0, n = 0; i < count; i += step, ++n) builder.add(bytes[i], n);
  ByteHistogram histogram;
  builder.finish(&histogram);
  histogram.all_or = all_or;
  histogram.all_and = all_and;
  choose_record(histogram, count, effort.levels, {0, effort.shifts - 1, false}, record);
}

Planner::Planner(DataType type, CodecLevel level)
    : type_(type), traits_(lev_traits(type)), level_(level) {}

bool Planner::begin(const uint8_t* src, size_t count) {
  if (count < kSmallestCodedCount) return false;
  constexpr size_t kProbeBytes = size_t{2} << 20;
  constexpr size_t kMostProbes = 4;
  if (probe(src, count, true)) return true;
  // The whole may look random where its parts do not.
  const size_t block = size_t{1} << block_log2(type_, level_, count);
  if (count <= block) return false;
  if (probe_narrow_runs(src, count, block)) return true;
  const size_t probes = std::min(count * traits_.size / kProbeBytes, kMostProbes);
  for (size_t i = 0; i < probes; ++i)
    if (probe(src + i * (count / probes) * traits_.size, block, false)) return true;
  return false;
}

/// Probes the blocks around the first few neighbours that are no random ones.
bool Planner::probe_narrow_runs(const uint8_t* src, size_t count, size_t block) {
  constexpr int kMostProbes = 2;
  const SamplePlaces places = sample_places(count, kRandomSamples);
  int probes = 0;
  for (size_t run = 0; run < places.runs && probes < kMostProbes; ++run) {
    const size_t at = run * places.stride;
    if (!run_is_narrow(src + at * traits_.size, traits_.size)) continue;
    const size_t begin = at / block * block;
    if (probe(src + begin * traits_.size, std::min(block, count - begin), false)) return true;
    ++probes;
  }
  return false;
}

bool Planner::probe(const uint8_t* src, size_t count, bool whole) {
  const SamplePlaces few = sample_places(count, kRandomSamples);
  prefetch(src, few);
  if (values_look_random(src, few, traits_.size)) return false;
  const Effort effort = effort_of(level_);
  take_sample(src, sample_places(count, effort.samples), traits_.size, &sample_);
  if (sample_.equal * 2 > sample_.count) return true;
  BlockDescriptor plan;
  const uint64_t raw = 8 * traits_.size * kCostUnit * count;
  if (plan_values(traits_, effort, sample_, count, &plan) >= raw - raw / 64) return false;
  if (!whole) return true;
  // What fits the whole is the first guess for the first blocks, and the plan of the only one.
  if (count <= size_t{1} << block_log2(type_, level_, count)) {
    only_block_ = plan;
    has_only_block_ = true;
  } else {
    remember(plan);
  }
  return true;
}

void Planner::plan(const CodecKernels& kernels, const uint8_t* src, size_t count, size_t after,
                   BlockDescriptor* plan) {
  if (after > 0)
    prefetch(src + count * traits_.size,
             sample_places(std::min(after, count), effort_of(level_).samples));
  if (has_only_block_) {
    *plan = only_block_;
    plan->values = plan->kept = static_cast<uint32_t>(count);
    if (plan->delta) plan->base = rotated_value(src, traits_.size);
    return;
  }
  const Effort effort = effort_of(level_);
  const SamplePlaces places = sample_places(count, effort.samples);
  if (memory_.recall(src, count, places, plan)) return;
  *plan = BlockDescriptor{};
  plan->values = plan->kept = static_cast<uint32_t>(count);
  take_sample(src, places, traits_.size, &sample_);
  if (sample_.equal * 16 >= sample_.count * 15 &&
      plan_constant(kernels, traits_.size, src, count, plan))
    return;
  plan_values(traits_, effort, sample_, count, plan);
  if (plan->delta) plan->base = rotated_value(src, traits_.size);
  remember(*plan);
}

void Planner::remember(const BlockDescriptor& plan) {
  const size_t block = traits_.size << block_log2(type_, level_, kMaxBlockValues);
  memory_.remember(plan, sample_, traits_.size,
                   static_cast<unsigned>(effort_of(level_).reuse_bytes / block));
}

/// Asks for the places of a sample, so that taking it doesn't wait for each of them.
void Planner::prefetch(const uint8_t* src, const SamplePlaces& places) const {
  for (size_t run = 0; run < places.runs; ++run) {
    const uint8_t* here = src + run * places.stride * traits_.size;
    __builtin_prefetch(here);
    if (traits_.size > 1) __builtin_prefetch(here + 64);
  }
}

}  // namespace uzip
