// Compares a plan's expectations with a small sample. A plan that fits badly is found at once; one
// that fits a little worse is replaced soon anyway.
#include "codec/plan_memory.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

namespace uzip {
namespace {

constexpr size_t kRuns = 16;
constexpr size_t kLength = 4;

template <class T>
T rotated(const uint8_t* src) {
  T value;
  std::memcpy(&value, src, sizeof value);
  return std::rotl(value, 1);
}

template <class T>
unsigned length_of_difference(T value, T previous) {
  const auto difference = static_cast<T>(value - previous);
  const auto sign = static_cast<T>(T{0} - (difference >> (8 * sizeof(T) - 1)));
  return static_cast<unsigned>(
      std::bit_width(static_cast<T>(static_cast<T>(difference << 1) ^ sign)));
}

/// True when a * share is near b * other_share: within so many sixteenths, or the slack.
bool near(uint64_t a, uint64_t share, uint64_t b, uint64_t other_share, uint64_t sixteenths,
          uint64_t slack) {
  const uint64_t left = a * share * 16;
  const uint64_t right = b * other_share;
  return left <= right * (16 + sixteenths) + 2 * slack &&
         left + 2 * slack >= right * (16 - sixteenths);
}

/// Whatever the bytes are, the record can hold them.
bool holds_anything(const SequenceRecord& record) {
  return record.has_fields() ? record.stored == (1u << record.shift) - 1 : record.stored == 0xff;
}

constexpr uint64_t kWhole = 64;  ///< shares are parts of it
uint64_t kept_share(const BlockDescriptor& block) {
  return (kWhole * block.kept + block.values / 2) / block.values;
}

}  // namespace

void PlanMemory::price_fields(const SequenceRecord& top) {
  bits_.fill(0);
  unsigned bits = 0;
  for (unsigned l = 0; l < top.levels; ++l) bits += top.widths[l];
  if (top.levels > 0) bits_.fill(static_cast<uint8_t>(bits + 8));
  size_t symbol = 0;
  bits = 0;
  for (unsigned l = 0; l < top.levels; ++l) {
    bits += top.widths[l];
    for (unsigned i = 0; i < (1u << top.widths[l]) - 1; ++i) {
      uint8_t& cost = bits_[top.symbols[symbol++]];
      cost = std::min(cost, static_cast<uint8_t>(bits));
    }
  }
}

uint64_t PlanMemory::turned(uint64_t value) const {
  if (rotation_ == 0) return value;
  const unsigned bits = 8 * static_cast<unsigned>(type_size_);
  return (value << rotation_ | value >> (bits - rotation_)) & ~uint64_t{0} >> (64 - bits);
}

void PlanMemory::remember(const BlockDescriptor& plan, const BlockSample& sample, size_t type_size,
                          unsigned uses) {
  const SequenceRecord& top = plan.planes[type_size - 1];
  plan_ = plan;
  has_bits_ = false;
  type_size_ = type_size;
  uses_ = uses;
  rotation_ = plan.delta ? 0 : plan.rotation;
  field_begin_ = static_cast<unsigned>(8 * type_size - 8) + (top.shift & 7u);
  varying_ = 0;
  for (size_t p = 0; p < type_size && !plan.delta; ++p)
    if (plan.planes[p].stored == 0xff) varying_ |= uint64_t{0xff} << (8 * p);
  price_fields(top);
  expected_ = Signs{};
  // An odd step: it meets every place of a run, of which the first may be the start of a row.
  const size_t step = sample.count / 256 | 1;
  for (size_t i = 0; i < sample.count; i += step) {
    const uint64_t value = sample.values[i];
    ++expected_.values;
    expected_.zeros += value <= 1;
    if (value > 1) expected_.bits += bits_[turned(value) >> field_begin_];
  }
  if (plan.delta) expect_lengths(sample);
}

/// A few differences are much shorter or longer, such as those at the ends of rows. They change
/// little about a plan, and are in some samples and not in others.
unsigned PlanMemory::near_usual(unsigned length) const {
  constexpr unsigned kNear = 4;
  return std::min(std::max(length + kNear, usual_length_), usual_length_ + 2 * kNear);
}

void PlanMemory::expect_lengths(const BlockSample& sample) {
  const auto length = [&](size_t i) {
    return static_cast<unsigned>(std::bit_width(sample.derived[i]));
  };
  uint64_t sum = 0;
  for (size_t i = 0; i < sample.count; ++i) sum += length(i);
  usual_length_ = static_cast<unsigned>(sum / sample.count);
  for (size_t i = 0; i < sample.count; ++i) expected_.lengths += near_usual(length(i));
  expected_.differences = sample.count;
}

template <class T>
PlanMemory::Signs PlanMemory::look_at_differences(const uint8_t* src, size_t runs,
                                                  size_t step) const {
  Signs seen;
  for (size_t run = 0; run < runs; ++run, src += step * sizeof(T))
    for (size_t i = 1; i < kLength; ++i)
      seen.lengths += near_usual(length_of_difference(rotated<T>(src + i * sizeof(T)),
                                                      rotated<T>(src + (i - 1) * sizeof(T))));
  seen.differences = runs * (kLength - 1);
  return seen;
}

template <class T>
PlanMemory::Signs PlanMemory::look(const uint8_t* src, size_t runs, size_t step) const {
  if (plan_.delta) return look_at_differences<T>(src, runs, step);
  Signs seen;
  for (size_t run = 0; run < runs; ++run, src += step * sizeof(T)) {
    for (size_t i = 0; i < kLength; ++i) {
      const T value = rotated<T>(src + i * sizeof(T));
      const bool zero = value <= 1;
      const T bits = std::rotl(value, static_cast<int>(rotation_));
      seen.any |= zero ? 0 : bits;
      seen.every &= zero ? ~uint64_t{0} : bits;
      seen.zeros += zero;
      seen.bits += zero ? 0 : bits_[bits >> field_begin_];
    }
  }
  seen.values = runs * kLength;
  return seen;
}

bool PlanMemory::fits(const Signs& seen) const {
  if (plan_.delta) {
    // Within three quarters of a bit in the mean.
    const uint64_t left = seen.lengths * expected_.differences * 4;
    const uint64_t right = expected_.lengths * seen.differences * 4;
    const uint64_t slack = 3 * seen.differences * expected_.differences;
    return left <= right + slack && right <= left + slack;
  }
  if (plan_.zeros) {
    // A quarter of the values more or less.
    const uint64_t left = seen.zeros * expected_.values * 4;
    const uint64_t right = expected_.zeros * seen.values * 4;
    const uint64_t slack = seen.values * expected_.values;
    if (left > right + slack || right > left + slack) return false;
  } else if (seen.zeros * 6 > seen.values) {
    return false;
  }
  const size_t kept = seen.values - seen.zeros;
  if (kept < kLength) return plan_.zeros;
  // Bits that look constant in too few values may be chance.
  if (kept >= 32 && (seen.any & ~seen.every & varying_) != varying_) return false;
  // Two standard deviations of the bits of 64 fields, or of 16: a narrower one threw away every
  // sixth plan by chance.
  const uint64_t sixteenths = kept < 48 ? 6 : 3;
  return near(seen.bits, expected_.values - expected_.zeros, expected_.bits, kept, sixteenths,
              8 * (expected_.values - expected_.zeros));
}

bool PlanMemory::recall(const uint8_t* src, size_t count, const SamplePlaces& places,
                        BlockDescriptor* plan) {
  if (uses_ == 0 || places.runs < kRuns) return false;
  // Differences of neighbours are much alike, and among many zeros there are few other values: it
  // takes more runs to know them.
  const size_t runs = plan_.delta || plan_.zeros ? places.runs : kRuns;
  const size_t step = places.runs / runs * places.stride;
  // Memory is waited for once, not run by run.
  for (size_t run = 0; run < runs; ++run) __builtin_prefetch(src + run * step * type_size_);
  const Signs seen = type_size_ == 1   ? look<uint8_t>(src, runs, step)
                     : type_size_ == 2 ? look<uint16_t>(src, runs, step)
                     : type_size_ == 4 ? look<uint32_t>(src, runs, step)
                                       : look<uint64_t>(src, runs, step);
  if (!fits(seen)) {
    uses_ = 0;
    return false;
  }
  --uses_;
  *plan = plan_;
  plan->values = plan->kept = static_cast<uint32_t>(count);
  if (plan->delta) plan->base = rotated_value(src, type_size_);
  return true;
}

void PlanMemory::amend_plane(size_t plane, const SequenceRecord& record) {
  if (holds_anything(record)) plan_.planes[plane] = record;
}

void PlanMemory::amend_bits(const BlockDescriptor& block) {
  has_bits_ =
      holds_anything(block.kept_bits) && (!block.has_signs() || holds_anything(block.sign_bits));
  kept_share_ = kept_share(block);
  plan_.zero_sign = block.zero_sign;
  plan_.kept_bits = block.kept_bits;
  plan_.sign_bits = block.sign_bits;
}

bool PlanMemory::recall_bits(BlockDescriptor* block) const {
  if (!has_bits_ || plan_.zero_sign != block->zero_sign) return false;
  const uint64_t share = kept_share(*block);
  if (share > kept_share_ + 1 || share + 1 < kept_share_) return false;
  block->kept_bits = plan_.kept_bits;
  block->sign_bits = plan_.sign_bits;
  return true;
}

}  // namespace uzip
