// From values to the sections of a block: zeros out, delta, planes, then each plane as its record
// says.
#include "codec/block_encoder.hpp"

#include "codec/block_sample.hpp"
#include "codec/sequence.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace uzip {
namespace {

constexpr size_t kMaxRecordBytes = 8 + 4 * kMaxLevels + kMaxSymbols;

size_t pad_with_zeros(uint8_t* part, size_t bytes) {
  const size_t total = padded(bytes, kBlockAlignment);
  if (part != nullptr && total > bytes) std::memset(part + bytes, 0, total - bytes);
  return total;
}

unsigned low_mask(unsigned shift) { return (1u << shift) - 1; }

}  // namespace

PartSizes BlockEncoder::max_sizes(const LevTraits& traits, size_t count) {
  PartSizes sizes;
  sizes.plain = count * (traits.size - 1) + packed_bytes(count, traits.top_shift) +
                (count % 64 == 0 ? 0 : kRounding);
  sizes.coded = packed_bytes(count, 8 - traits.top_shift) + kRounding + max_descriptor(traits);
  return sizes;
}

size_t BlockEncoder::max_descriptor(const LevTraits& traits) {
  return 24 + (traits.size + 2) * kMaxRecordBytes;
}

PartSizes BlockEncoder::encode(const uint8_t* src, size_t count, size_t after, uint8_t* plain,
                               uint8_t* coded) {
  planner_.plan(kernels_, src, count, after, &block_);
  if (block_.kind == BlockKind::kConstant)
    return {0, coded == nullptr ? 0 : write_constant(src, coded)};
  prepare_values(src, count);
  PartSizes sizes;
  if (plain != nullptr && coded != nullptr && fits_top_kernels() &&
      write_fused(plain, coded, &sizes))
    return sizes;
  sizes.plain = pad_with_zeros(plain, write_plain(plain, coded != nullptr));
  if (coded != nullptr) sizes.coded = pad_with_zeros(coded, write_coded(coded));
  return sizes;
}

/// True when one kernel can do the whole block: nothing but a level-coded top plane, and another
/// one as it is.
bool BlockEncoder::fits_top_kernels() const {
  return kernels_.top != nullptr && traits_.size <= 2 && rotation_ == 1 && !block_.delta &&
         layout_is_known() && block_.planes[top()].levels > 0 &&
         block_.planes[top()].shift == traits_.top_shift &&
         kernels_.top->encode[traits_.size_class][block_.planes[top()].widths[0]] != nullptr;
}

/// Writes what write_plain() and write_coded() would, in one pass. False: the levels don't pay, and
/// nothing is final.
bool BlockEncoder::write_fused(uint8_t* plain, uint8_t* coded, PartSizes* sizes) {
  place_top();
  SequenceRecord& record = block_.planes[top()];
  const size_t count = block_.kept;
  const size_t begin = write_zero_bits(coded);
  const size_t low_bytes = record.stored_bytes(count);
  uint8_t* const other = plain + low_bytes;
  const size_t other_bytes = traits_.size == 1 ? 0 : padded(count, 8);
  if (other_bytes > 0) std::memset(other + other_bytes - 8, 0, 8);
  uint8_t* const words = coded + begin;
  const CodeTable table(record.symbols.data(), record.widths[0]);
  const TopPlane plane{record.shift, words, plain, other};
  const size_t escaped = kernels_.top->encode[traits_.size_class][record.widths[0]](
      values_, count, table.codes, plane, scratch_.escapes[0]);
  const size_t fields = encode_further_levels(kernels_, count, escaped, scratch_, &record, words);
  if (fields == SIZE_MAX) return false;
  write_descriptor(block_, traits_.size, reinterpret_cast<std::byte*>(coded));
  sizes->plain = pad_with_zeros(plain, low_bytes + other_bytes);
  sizes->coded = pad_with_zeros(coded, begin + fields);
  return true;
}

size_t BlockEncoder::write_constant(const uint8_t* src, uint8_t* coded) {
  const size_t size = traits_.size;
  const size_t total = padded(constant_block_bytes(block_, size), kBlockAlignment);
  std::memset(coded, 0, total);
  size_t at = write_descriptor(block_, size, reinterpret_cast<std::byte*>(coded));
  uint8_t* values = coded + at + padded(2 * size_t{block_.exceptions}, 8);
  for (size_t i = 0, left = block_.exceptions; left > 0; ++i) {
    if (std::memcmp(src + i * size, &block_.constant, size) == 0) continue;
    const auto position = static_cast<uint16_t>(i);
    std::memcpy(coded + at, &position, sizeof position);
    at += sizeof position;
    std::memcpy(values, src + i * size, size);
    values += size;
    --left;
  }
  return total;
}

bool BlockEncoder::remove_zeros(size_t count) {
  const size_t kept = kernels_.remove_zeros[traits_.size_class](
      values_, count, scratch_.values, scratch_.kept_bits, scratch_.sign_bits);
  const size_t gone = count - kept;
  // The bits must not need more room than the zeros' own top plane did.
  if (gone * (7 - traits_.top_shift) < count + 8 * kRounding) return false;
  const size_t minus = kernels_.count_ones(scratch_.sign_bits, gone);
  block_.zero_sign = minus == 0      ? ZeroSign::kPlus
                     : minus == gone ? ZeroSign::kMinus
                                     : ZeroSign::kBoth;
  block_.kept = static_cast<uint32_t>(kept);
  values_ = scratch_.values;
  return true;
}

void BlockEncoder::plan_bits(const uint8_t* bytes, size_t count, SequenceRecord* record) {
  uint8_t all_or = 0;
  uint8_t all_and = 0;
  kernels_.bit_range(bytes, count, &all_or, &all_and);
  plan_sequence(bytes, count, level_, all_or, all_and, record);
  record->place = kStoredInCoded | kFieldsInCoded;
}

void BlockEncoder::plan_zero_bits() {
  plan_bits(scratch_.kept_bits, block_.kept_bits_bytes(), &block_.kept_bits);
  if (block_.has_signs()) plan_bits(scratch_.sign_bits, block_.sign_bits_bytes(), &block_.sign_bits);
  planner_.memory().amend_bits(block_);
}

void BlockEncoder::prepare_values(const uint8_t* src, size_t count) {
  values_ = src;
  if (block_.zeros) {
    block_.zeros = remove_zeros(count);
    if (block_.zeros && !planner_.memory().recall_bits(&block_)) plan_zero_bits();
  }
  rotation_ = block_.rotation + (block_.delta ? 0u : 1u);
}

void BlockEncoder::split_planes(const std::array<uint8_t*, kMaxTypeSize>& planes) {
  if (std::all_of(planes.begin(), planes.end(), [](uint8_t* p) { return p == nullptr; })) return;
  if (!block_.delta) {
    kernels_.split[traits_.size_class](values_, block_.kept, rotation_, planes.data());
    return;
  }
  // In pieces, so that differences stay in the cache.
  const size_t size = traits_.size;
  const size_t piece = CodecScratch::State::kPieceBytes / size;
  std::array<uint8_t*, kMaxTypeSize> to = planes;
  uint64_t base = block_.base;
  for (size_t at = 0; at < block_.kept; at += piece) {
    const size_t here = std::min<size_t>(piece, block_.kept - at);
    const uint8_t* const src = values_ + at * size;
    kernels_.delta[traits_.size_class](src, here, base, scratch_.piece);
    kernels_.split[traits_.size_class](scratch_.piece, here, rotation_, to.data());
    base = rotated_value(src + (here - 1) * size, size);
    for (uint8_t*& plane : to)
      if (plane != nullptr) plane += here;
  }
}

/// True when the plain part's layout doesn't depend on what the planes turn out to hold, so that
/// one pass over the values is enough.
bool BlockEncoder::layout_is_known() const {
  const SequenceRecord& record = block_.planes[top()];
  if (!record.has_fields() || record.stored != low_mask(record.shift)) return false;
  for (size_t p = 0; p < top(); ++p)
    if (!is_direct(p)) return false;
  return true;
}

/// Makes a record that was planned from a sample fit all bytes of its plane.
void BlockEncoder::refine(size_t plane) {
  SequenceRecord& record = block_.planes[plane];
  const size_t count = block_.kept;
  if (count == 0) {
    record = SequenceRecord{};
    return;
  }
  const unsigned below = low_mask(record.shift);
  if (record.stored == below) return;
  uint8_t all_or = 0;
  uint8_t all_and = 0;
  kernels_.bit_range(scratch_.planes[plane], count, &all_or, &all_and);
  const unsigned vary = all_or & ~all_and & below;
  if (!record.has_fields() && (vary & ~record.stored) != 0) {
    plan_sequence(scratch_.planes[plane], count, level_, all_or, all_and, &record);
    planner_.memory().amend_plane(plane, record);
    return;
  }
  record.stored = static_cast<uint8_t>(vary);
  record.value = static_cast<uint8_t>(all_and & below);
  const bool packs = packed_bytes(count, std::popcount(vary)) < padded(count, 8);
  if (record.has_fields() || packs) return;
  record.stored = 0xff;
  record.value = 0;
}

/// The top plane's fields go into the coded part, and of its other bits only what max_sizes() says
/// into the plain part.
void BlockEncoder::place_top() {
  SequenceRecord& record = block_.planes[top()];
  if (!record.has_fields() && record.stored == 0xff) {
    record.shift = static_cast<uint8_t>(traits_.top_shift);
    record.stored = static_cast<uint8_t>(low_mask(record.shift));
    record.drop_levels();
  }
  record.place = kFieldsInCoded;
  if (record.shift > traits_.top_shift) record.place |= kStoredInCoded;
}

size_t BlockEncoder::write_plain_plane(size_t plane, uint8_t* plain, size_t at) {
  SequenceRecord& record = block_.planes[plane];
  const uint8_t* bytes = scratch_.planes[plane];
  const size_t count = block_.kept;
  if ((record.place & kStoredInCoded) == 0) {
    if (plain != nullptr) encode_stored(kernels_, record, bytes, count, plain + at);
    at += record.stored_bytes(count);
  }
  if (!record.has_fields() || (record.place & kFieldsInCoded) != 0) return at;
  // The second stage repeats the work to learn the numbers of escapes.
  uint8_t* const dst = plain != nullptr ? plain + at : scratch_.discarded;
  return at + write_record(record, bytes, count, dst);
}

size_t BlockEncoder::write_plain(uint8_t* plain, bool top_needed) {
  std::array<uint8_t*, kMaxTypeSize> first{};
  std::array<uint8_t*, kMaxTypeSize> later{};
  std::array<bool, kMaxTypeSize> direct{};
  const size_t direct_bytes = padded(block_.kept, 8);
  const auto place = [&](size_t at) {
    std::memset(plain + at + direct_bytes - 8, 0, direct_bytes == 0 ? 0 : 8);
    return plain + at;
  };
  const bool known = layout_is_known();
  if (known) place_top();
  const SequenceRecord& record = block_.planes[top()];
  const bool top_in_plain = known && (record.place & kStoredInCoded) == 0 && record.stored != 0;
  if (!known || top_needed || top_in_plain) first[top()] = scratch_.planes[top()];
  // One pass is enough for planes with a known place: what is above them takes a known room. Without a shift the top
  // plane takes none in the plain part.
  bool fixed = known || traits_.top_shift == 0;
  size_t at = top_in_plain ? record.stored_bytes(block_.kept) : 0;
  for (size_t p = top(); p-- > 0;) {
    direct[p] = is_direct(p);
    fixed = fixed && direct[p];
    if (!direct[p]) first[p] = scratch_.planes[p];
    if (fixed && plain != nullptr) first[p] = place(at);
    at += direct_bytes;
  }
  split_planes(first);
  if (!known) {
    for (size_t p = 0; p < traits_.size; ++p)
      if (!direct[p]) refine(p);
    place_top();
  }
  at = write_plain_plane(top(), plain, 0);
  for (size_t p = top(); p-- > 0;) {
    if (!direct[p]) {
      at = write_plain_plane(p, plain, at);
      continue;
    }
    if (first[p] == nullptr && plain != nullptr) later[p] = place(at);
    at += direct_bytes;
  }
  split_planes(later);
  return at;
}

/// Writes the fields of a record, as they are when the levels would take more.
size_t BlockEncoder::write_record(SequenceRecord& record, const uint8_t* bytes, size_t count,
                                  uint8_t* dst) {
  size_t written = encode_fields(kernels_, bytes, count, scratch_, &record, dst);
  if (written != SIZE_MAX) return written;
  record.drop_levels();
  return encode_fields(kernels_, bytes, count, scratch_, &record, dst);
}

/// Writes a sequence of the coded part and moves *at behind it. False: its levels didn't pay, which changes the
/// descriptor's length, so everything begins again.
bool BlockEncoder::write_sequence(SequenceRecord& record, const uint8_t* bytes, size_t count,
                                  uint8_t* coded, size_t* at) {
  if ((record.place & kStoredInCoded) != 0)
    *at += encode_stored(kernels_, record, bytes, count, coded + *at);
  if (!record.has_fields()) return true;
  const unsigned levels = record.levels;
  *at += write_record(record, bytes, count, coded + *at);
  return record.levels == levels;
}

/// Leaves room for the descriptor and writes where zeros were and their signs; returns where the next section begins.
size_t BlockEncoder::write_zero_bits(uint8_t* coded) {
  for (;;) {
    size_t at = descriptor_bytes(block_, traits_.size);
    if (!block_.zeros) return at;
    if (!write_sequence(block_.kept_bits, scratch_.kept_bits, block_.kept_bits_bytes(), coded, &at))
      continue;
    if (block_.has_signs() &&
        !write_sequence(block_.sign_bits, scratch_.sign_bits, block_.sign_bits_bytes(), coded, &at))
      continue;
    return at;
  }
}

size_t BlockEncoder::write_coded(uint8_t* coded) {
  for (;;) {
    size_t at = write_zero_bits(coded);
    if (!write_sequence(block_.planes[top()], scratch_.planes[top()], block_.kept, coded, &at))
      continue;
    write_descriptor(block_, traits_.size, reinterpret_cast<std::byte*>(coded));
    return at;
  }
}

}  // namespace uzip
