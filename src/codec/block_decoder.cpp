// From the sections of a block to its values: planes as their records say, joined; then differences
// are summed up and zeros put back.
#include "codec/block_decoder.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace uzip {
namespace {

Status corrupt(const char* what, unsigned long long value, unsigned long long expected) {
  return error(UZIP_ERR_CORRUPT, "lev block: %s is %llu, not %llu", what, value, expected);
}

void decode_constant(const uint8_t* sections, const BlockDescriptor& descriptor, size_t size,
                     uint8_t* dst) {
  const size_t total = descriptor.values * size;
  std::memcpy(dst, &descriptor.constant, size);
  for (size_t done = size; done < total; done *= 2)
    std::memcpy(dst + done, dst, std::min(done, total - done));
  const uint8_t* values = sections + padded(2 * size_t{descriptor.exceptions}, 8);
  for (size_t e = 0; e < descriptor.exceptions; ++e) {
    uint16_t position;
    std::memcpy(&position, sections + 2 * e, sizeof position);
    std::memcpy(dst + position * size, values + e * size, size);
  }
}

}  // namespace

/// Walks through the sections in the order of their records.
class SectionReader {
 public:
  struct Sections {
    const uint8_t* stored;
    const uint8_t* fields;
  };

  SectionReader(const CodecKernels& kernels, const BlockSections& block,
                CodecScratch::State& scratch)
      : kernels_(kernels), plain_(block.plain), coded_(block.coded), scratch_(scratch) {}

  Sections take(const SequenceRecord& record, size_t count) {
    const uint8_t*& stored_part = (record.place & kStoredInCoded) != 0 ? coded_ : plain_;
    const uint8_t* stored = stored_part;
    stored_part += record.stored_bytes(count);
    const uint8_t*& field_part = (record.place & kFieldsInCoded) != 0 ? coded_ : plain_;
    const uint8_t* fields = field_part;
    field_part += record.field_bytes(count);
    return {stored, fields};
  }

  Status decode(const SequenceRecord& record, size_t count, uint8_t* dst, const uint8_t** result) {
    const Sections at = take(record, count);
    return decode_sequence(kernels_, record, count, at.stored, at.fields, scratch_, dst, result);
  }

  /// Where zeros stand and their signs.
  Status decode_zeros(const BlockDescriptor& block, const uint8_t** kept, const uint8_t** signs) {
    UZIP_RETURN_IF_ERROR(
        decode(block.kept_bits, block.kept_bits_bytes(), scratch_.kept_bits, kept));
    const size_t found = kernels_.count_ones(*kept, block.values);
    if (found != block.kept) return corrupt("number of kept values", found, block.kept);
    const size_t sign_bytes = block.sign_bits_bytes();
    if (block.has_signs()) return decode(block.sign_bits, sign_bytes, scratch_.sign_bits, signs);
    std::memset(scratch_.sign_bits, block.zero_sign == ZeroSign::kMinus ? 0xff : 0, sign_bytes);
    *signs = scratch_.sign_bits;
    return {};
  }

 private:
  const CodecKernels& kernels_;
  const uint8_t* plain_;
  const uint8_t* coded_;
  CodecScratch::State& scratch_;
};

Status check_block_codes(const CodecKernels& kernels, const LevTraits& traits,
                         const BlockSections& block, CodecScratch::State& scratch) {
  const BlockDescriptor& descriptor = block.descriptor;
  if (descriptor.kind == BlockKind::kConstant) return {};
  SectionReader sections(kernels, block, scratch);
  const uint8_t* kept = nullptr;
  const uint8_t* signs = nullptr;
  if (descriptor.zeros) UZIP_RETURN_IF_ERROR(sections.decode_zeros(descriptor, &kept, &signs));
  for (size_t p = traits.size; p-- > 0;) {
    const SequenceRecord& record = descriptor.planes[p];
    const uint8_t* fields = sections.take(record, descriptor.kept).fields;
    UZIP_RETURN_IF_ERROR(check_levels(kernels, record, descriptor.kept, fields));
  }
  return {};
}

Status BlockDecoder::start(const CodecKernels& kernels, const LevTraits& traits,
                           const BlockSections& block, CodecScratch::State& scratch,
                           uint8_t* room) {
  kernels_ = &kernels;
  traits_ = traits;
  left_ = block.descriptor.values;
  step_ = LastStep::kNone;
  whole_ = room;
  if (block.descriptor.kind == BlockKind::kConstant) {
    decode_constant(block.coded, block.descriptor, traits.size, room);
    return {};
  }
  if (block.descriptor.zeros) return decode_whole(block, scratch, room);
  if (!fits_top_kernels(block.descriptor)) return start_planes(block, scratch);
  SectionReader sections(kernels, block, scratch);
  step_ = LastStep::kTop;
  return start_top(block.descriptor, sections, scratch);
}

/// True for the planes that BlockEncoder::write_fused() makes, from whatever encoder.
bool BlockDecoder::fits_top_kernels(const BlockDescriptor& block) const {
  const SequenceRecord& top = block.planes[traits_.size - 1];
  if (kernels_->top == nullptr || traits_.size > 2 || block.delta || block.rotation != 0)
    return false;
  if (traits_.size == 2 && block.planes[0].stored != 0xff) return false;
  return top.levels > 0 && top.stored == (1u << top.shift) - 1 &&
         kernels_->top->decode[traits_.size_class][top.widths[0]] != nullptr;
}

Status BlockDecoder::start_top(const BlockDescriptor& descriptor, SectionReader& sections,
                               CodecScratch::State& scratch) {
  const SequenceRecord& record = descriptor.planes[traits_.size - 1];
  const size_t count = descriptor.kept;
  const SectionReader::Sections top = sections.take(record, count);
  top_ = {record.shift, nullptr, top.stored, nullptr};
  if (traits_.size == 2) top_.other = sections.take(descriptor.planes[0], count).stored;
  top_.words = top.fields;
  escapes_ = scratch.escapes[1];
  UZIP_RETURN_IF_ERROR(
      decode_further_levels(*kernels_, record, count, top.fields, scratch, scratch.escapes[1]));
  width_ = record.widths[0];
  symbols_ = SymbolTable(record, 0);
  escapes_used_ = 0;
  escapes_expected_ = record.escapes[0];
  return {};
}

Status BlockDecoder::start_planes(const BlockSections& block, CodecScratch::State& scratch) {
  const BlockDescriptor& descriptor = block.descriptor;
  SectionReader sections(*kernels_, block, scratch);
  for (size_t p = traits_.size; p-- > 0;) {
    const SequenceRecord& record = descriptor.planes[p];
    const SectionReader::Sections at = sections.take(record, descriptor.kept);
    UZIP_RETURN_IF_ERROR(planes_[p].start(*kernels_, record, descriptor.kept, at.stored, at.fields,
                                          scratch, scratch.planes[p]));
  }
  scratch_ = &scratch;
  rotation_ = descriptor.rotation + (descriptor.delta ? 0u : 1u);
  base_ = descriptor.base;
  step_ = descriptor.delta ? LastStep::kUndelta : LastStep::kMerge;
  return {};
}

/// Where zeros were taken out a piece of the planes is no piece of the values.
Status BlockDecoder::decode_whole(const BlockSections& block, CodecScratch::State& scratch,
                                  uint8_t* room) {
  const BlockDescriptor& descriptor = block.descriptor;
  SectionReader sections(*kernels_, block, scratch);
  const uint8_t* kept = nullptr;
  const uint8_t* signs = nullptr;
  UZIP_RETURN_IF_ERROR(sections.decode_zeros(descriptor, &kept, &signs));
  UZIP_RETURN_IF_ERROR(decode_kept(descriptor, sections, scratch));
  kernels_->insert_zeros[traits_.size_class](scratch.values, kept, signs, descriptor.values, room);
  return {};
}

/// The values between the zeros, to scratch.values.
Status BlockDecoder::decode_kept(const BlockDescriptor& descriptor, SectionReader& sections,
                                 CodecScratch::State& scratch) {
  uint8_t* const values = scratch.values;
  const size_t kept = descriptor.kept;
  if (fits_top_kernels(descriptor)) {
    UZIP_RETURN_IF_ERROR(start_top(descriptor, sections, scratch));
    take_top(kept, {values, values});
    return check_top();
  }
  std::array<const uint8_t*, kMaxTypeSize> planes{};
  for (size_t p = traits_.size; p-- > 0;)
    UZIP_RETURN_IF_ERROR(
        sections.decode(descriptor.planes[p], kept, scratch.planes[p], &planes[p]));
  const size_t size_class = traits_.size_class;
  kernels_->merge[size_class](planes.data(), kept,
                              descriptor.rotation + (descriptor.delta ? 0u : 1u), {values, values});
  if (descriptor.delta)
    kernels_->undelta[size_class](values, kept, descriptor.base, {values, values});
  return {};
}

const uint8_t* BlockDecoder::take(size_t count, const Output& dst) {
  left_ -= count;
  switch (step_) {
    case LastStep::kTop:
      take_top(count, dst);
      return dst.values;
    case LastStep::kMerge:
    case LastStep::kUndelta:
      take_planes(count, dst);
      return dst.values;
    default:
      return std::exchange(whole_, whole_ + count * traits_.size);
  }
}

void BlockDecoder::take_top(size_t count, const Output& dst) {
  const size_t used = kernels_->top->decode[traits_.size_class][width_](
      top_, count, symbols_.symbols, escapes_, dst);
  escapes_ += used;
  escapes_used_ += used;
  top_.words += packed_bytes(count, width_);
  top_.low_words += packed_bytes(count, top_.shift);
  if (top_.other != nullptr) top_.other += count;
}

/// In pieces that stay in the second cache; smaller ones would lose more by going from kernel to kernel.
void BlockDecoder::take_planes(size_t count, const Output& dst) {
  const size_t size = traits_.size;
  const size_t piece = CodecScratch::State::kPieceBytes / size;
  for (size_t at = 0; at < count; at += piece) {
    const size_t here = std::min(piece, count - at);
    Output output = dst;
    output.values += at * size;
    output.ahead += at * size;
    output.sum_begin += at * size;
    if (step_ == LastStep::kMerge) {
      merge_planes(here, output);
    } else {
      uint8_t* const differences = scratch_->piece;
      merge_planes(here, {differences, differences});
      base_ = kernels_->undelta[traits_.size_class](differences, here, base_, output);
    }
  }
}

/// The next `count` values of one piece from their planes.
void BlockDecoder::merge_planes(size_t count, const Output& dst) {
  const size_t size = traits_.size;
  const size_t room = CodecScratch::State::kPieceBytes / size + kKernelSlack;
  const auto merge_level = kernels_->merge_level[traits_.size_class];
  SequenceDecoder& top = planes_[size - 1];
  const bool has_level = merge_level != nullptr && top.is_level();
  std::array<const uint8_t*, kMaxTypeSize> planes{};
  for (size_t p = 0; p < (has_level ? size - 1 : size); ++p)
    planes[p] = planes_[p].take(count, scratch_->low, scratch_->piece_planes + p * room);
  if (has_level)
    top.took(count, merge_level(planes.data(), top.level(), count, rotation_, dst));
  else
    kernels_->merge[traits_.size_class](planes.data(), count, rotation_, dst);
}

Status BlockDecoder::check_top() const {
  if (escapes_used_ == escapes_expected_) return {};
  return corrupt("number of escapes", escapes_used_, escapes_expected_);
}

Status BlockDecoder::finish() const {
  if (step_ == LastStep::kTop) return check_top();
  if (step_ == LastStep::kMerge || step_ == LastStep::kUndelta)
    for (size_t p = 0; p < traits_.size; ++p) UZIP_RETURN_IF_ERROR(planes_[p].finish());
  return {};
}

}  // namespace uzip
