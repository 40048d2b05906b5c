// Decodes a lev frame: checks its table and every descriptor, then block after block.
#include "codec/lev.hpp"
#include "codec/lev_layout.hpp"
#include "codec/planner.hpp"
#include "codec/scratch.hpp"
#include "codec/sequence.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

namespace uzip {
namespace {

Status corrupt(const char* what, unsigned long long value, unsigned long long expected) {
  return error(UZIP_ERR_CORRUPT, "lev frame: %s is %llu, not %llu", what, value, expected);
}

class FrameReader {
 public:
  FrameReader(const FrameHeader& header, std::span<const std::byte> plain,
              std::span<const std::byte> coded, uint8_t* dst, CodecScratch& scratch)
      : kernels_(codec_kernels()),
        traits_(lev_traits(static_cast<DataType>(header.type))),
        count_(header.count),
        plain_(plain),
        coded_(coded),
        dst_(dst),
        scratch_(scratch.state()) {}

  /// Checks everything but the codes themselves.
  Status check() {
    UZIP_RETURN_IF_ERROR(check_table());
    return for_each_block([this](const Block& block) {
      BlockDescriptor descriptor;
      size_t bytes = 0;
      return read_descriptor(block.coded, block.plain.size(), block.values, traits_.size,
                             &descriptor, &bytes);
    });
  }

  Status decode() {
    return for_each_block([this](const Block& block) { return decode_block(block); });
  }

 private:
  struct Block {
    std::span<const std::byte> plain;
    std::span<const std::byte> coded;
    size_t first = 0;
    size_t values = 0;
  };

  LevTableEntry entry(size_t index) const {
    LevTableEntry result;
    std::memcpy(&result, coded_.data() + sizeof(LevHead) + index * sizeof result, sizeof result);
    return result;
  }

  Status check_table() {
    LevHead head;
    if (coded_.size() < sizeof head) return corrupt("coded part", coded_.size(), sizeof head);
    std::memcpy(&head, coded_.data(), sizeof head);
    if (head.block_log2 < kMinBlockLog2 || head.block_log2 > kMaxBlockLog2)
      return corrupt("block_log2", head.block_log2, kMinBlockLog2);
    for (uint8_t byte : head.reserved)
      if (byte != 0) return corrupt("reserved", byte, 0);
    log2_ = head.block_log2;
    blocks_ = lev_block_count(count_, log2_);
    if (head.blocks != blocks_) return corrupt("number of blocks", head.blocks, blocks_);
    if (lev_first_block(blocks_) > coded_.size())
      return corrupt("coded part", coded_.size(), lev_first_block(blocks_));
    size_t plain = 0;
    size_t coded = lev_first_block(blocks_);
    for (size_t b = 0; b < blocks_; ++b) {
      const LevTableEntry sizes = entry(b);
      if (sizes.plain % kBlockAlignment != 0 || sizes.coded % kBlockAlignment != 0)
        return corrupt("remainder of a block's size", (sizes.plain | sizes.coded) % kBlockAlignment,
                       0);
      plain += sizes.plain;
      coded += sizes.coded;
    }
    if (plain != plain_.size()) return corrupt("plain part", plain_.size(), plain);
    if (coded != coded_.size()) return corrupt("coded part", coded_.size(), coded);
    return {};
  }

  template <class Visit>
  Status for_each_block(Visit visit) {
    size_t plain = 0;
    size_t coded = lev_first_block(blocks_);
    for (size_t b = 0; b < blocks_; ++b) {
      const LevTableEntry sizes = entry(b);
      const size_t first = b << log2_;
      UZIP_RETURN_IF_ERROR(
          visit(Block{plain_.subspan(plain, sizes.plain), coded_.subspan(coded, sizes.coded), first,
                      std::min(size_t{1} << log2_, count_ - first)}));
      plain += sizes.plain;
      coded += sizes.coded;
    }
    return {};
  }

  Status decode_block(const Block& block);
  bool fits_top_kernels(const BlockDescriptor& descriptor) const;
  Status decode_fused(const BlockDescriptor& descriptor, const uint8_t* plain, const uint8_t* coded,
                      uint8_t* dst);
  void decode_constant(const uint8_t* sections, const BlockDescriptor& descriptor, uint8_t* dst);
  Status decode_kept_bits(const BlockDescriptor& descriptor, const uint8_t* sections);
  Status decode_sign_bits(const BlockDescriptor& descriptor, const uint8_t* sections);

  struct Sections {
    const uint8_t* stored;
    const uint8_t* fields;
  };
  /// The sections of the next record, at *plain and *coded, which move on.
  static Sections take_sections(const SequenceRecord& record, size_t count, const uint8_t** plain,
                                const uint8_t** coded) {
    const uint8_t** stored_part = (record.place & kStoredInCoded) != 0 ? coded : plain;
    const uint8_t* stored = *stored_part;
    *stored_part += record.stored_bytes(count);
    const uint8_t** field_part = (record.place & kFieldsInCoded) != 0 ? coded : plain;
    const uint8_t* fields = *field_part;
    *field_part += record.field_bytes(count);
    return {stored, fields};
  }

  Status read_sequence(const SequenceRecord& record, size_t count, const uint8_t** plain,
                       const uint8_t** coded, uint8_t* dst, const uint8_t** result) {
    const Sections at = take_sections(record, count, plain, coded);
    return decode_sequence(kernels_, record, count, at.stored, at.fields, scratch_, dst, result);
  }

  const CodecKernels& kernels_;
  LevTraits traits_;
  size_t count_;
  std::span<const std::byte> plain_;
  std::span<const std::byte> coded_;
  uint8_t* dst_;
  CodecScratch::State& scratch_;
  unsigned log2_ = 0;
  size_t blocks_ = 0;
};

void FrameReader::decode_constant(const uint8_t* sections, const BlockDescriptor& descriptor,
                                  uint8_t* dst) {
  const size_t size = traits_.size;
  for (size_t i = 0; i < descriptor.values; ++i)
    std::memcpy(dst + i * size, &descriptor.constant, size);
  const uint8_t* values = sections + padded(2 * size_t{descriptor.exceptions}, 8);
  for (size_t e = 0; e < descriptor.exceptions; ++e) {
    uint16_t position;
    std::memcpy(&position, sections + 2 * e, sizeof position);
    std::memcpy(dst + position * size, values + e * size, size);
  }
}

}  // namespace

/// True for the blocks that BlockEncoder::write_fused() makes, from whatever encoder.
bool FrameReader::fits_top_kernels(const BlockDescriptor& descriptor) const {
  const SequenceRecord& top = descriptor.planes[traits_.size - 1];
  if (kernels_.top == nullptr || traits_.size > 2 || descriptor.delta || descriptor.zeros ||
      descriptor.rotation != 0)
    return false;
  if (traits_.size == 2 && descriptor.planes[0].stored != 0xff) return false;
  return top.levels > 0 && top.stored == (1u << top.shift) - 1;
}

Status FrameReader::decode_fused(const BlockDescriptor& descriptor, const uint8_t* plain,
                                 const uint8_t* coded, uint8_t* dst) {
  const SequenceRecord& record = descriptor.planes[traits_.size - 1];
  const size_t count = descriptor.kept;
  const Sections top = take_sections(record, count, &plain, &coded);
  ConstTopPlane plane{record.shift, nullptr, top.stored, nullptr};
  if (traits_.size == 2)
    plane.other = take_sections(descriptor.planes[0], count, &plain, &coded).stored;
  const uint8_t* escapes = nullptr;
  UZIP_RETURN_IF_ERROR(
      decode_further_levels(kernels_, record, count, top.fields, scratch_, &plane.words, &escapes));
  const size_t used = kernels_.top->decode[traits_.size_class][record.widths[0]](
      plane, count, SymbolTable(record, 0).symbols, escapes, dst);
  if (used != record.escapes[0]) return corrupt("number of escapes", used, record.escapes[0]);
  return {};
}

Status FrameReader::decode_block(const Block& block) {
  BlockDescriptor descriptor;
  size_t described = 0;
  UZIP_RETURN_IF_ERROR(read_descriptor(block.coded, block.plain.size(), block.values, traits_.size,
                                       &descriptor, &described));
  uint8_t* const dst = dst_ + block.first * traits_.size;
  const auto* plain = reinterpret_cast<const uint8_t*>(block.plain.data());
  const auto* coded = reinterpret_cast<const uint8_t*>(block.coded.data()) + described;
  if (descriptor.kind == BlockKind::kConstant) {
    decode_constant(coded, descriptor, dst);
    return {};
  }
  if (fits_top_kernels(descriptor)) return decode_fused(descriptor, plain, coded, dst);
  const uint8_t* kept_bits = nullptr;
  const uint8_t* sign_bits = nullptr;
  if (descriptor.zeros) {
    const size_t bytes = descriptor.kept_bits_bytes();
    UZIP_RETURN_IF_ERROR(
        read_sequence(descriptor.kept_bits, bytes, &plain, &coded, scratch_.kept_bits, &kept_bits));
    size_t kept = 0;
    for (size_t i = 0; i < bytes; i += 8) {
      uint64_t word;
      std::memcpy(&word, kept_bits + i, 8);
      if (descriptor.values - 8 * i < 64) word &= (uint64_t{1} << (descriptor.values - 8 * i)) - 1;
      kept += static_cast<size_t>(std::popcount(word));
    }
    if (kept != descriptor.kept) return corrupt("number of kept values", kept, descriptor.kept);
    const size_t sign_bytes = descriptor.sign_bits_bytes();
    sign_bits = scratch_.sign_bits;
    if (descriptor.has_signs()) {
      UZIP_RETURN_IF_ERROR(read_sequence(descriptor.sign_bits, sign_bytes, &plain, &coded,
                                         scratch_.sign_bits, &sign_bits));
    } else {
      std::memset(scratch_.sign_bits, descriptor.zero_sign == ZeroSign::kMinus ? 0xff : 0,
                  sign_bytes);
    }
  }
  std::array<const uint8_t*, kMaxTypeSize> planes{};
  for (size_t p = traits_.size; p-- > 0;)
    UZIP_RETURN_IF_ERROR(read_sequence(descriptor.planes[p], descriptor.kept, &plain, &coded,
                                       scratch_.planes[p], &planes[p]));
  const unsigned rotation = descriptor.rotation + (descriptor.delta ? 0u : 1u);
  uint8_t* const values = descriptor.zeros ? scratch_.values[0] : dst;
  kernels_.merge[traits_.size_class](planes.data(), descriptor.kept, rotation, values);
  if (descriptor.delta)
    kernels_.undelta[traits_.size_class](values, descriptor.kept, descriptor.base, values);
  if (descriptor.zeros)
    kernels_.insert_zeros[traits_.size_class](values, kept_bits, sign_bits, descriptor.values, dst);
  return {};
}

Status lev_decode(const FrameHeader& header, std::span<const std::byte> plain,
                  std::span<const std::byte> coded, std::span<std::byte> dst,
                  CodecScratch& scratch) {
  const auto type = static_cast<DataType>(header.type);
  if (!is_datatype(type) || !is_float(type))
    return error(UZIP_ERR_CORRUPT, "lev frame: type is %u", header.type);
  const size_t size = datatype_size(type);
  if (header.count == 0 || header.count > dst.size() / size)
    return error(UZIP_ERR_CORRUPT, "lev frame: %llu elements, room for %zu",
                 static_cast<unsigned long long>(header.count), dst.size() / size);
  if (plain.size() != header.plain_bytes)
    return corrupt("plain part", plain.size(), header.plain_bytes);
  if (coded.size() != header.coded_bytes)
    return corrupt("coded part", coded.size(), header.coded_bytes);
  FrameReader reader(header, plain, coded, reinterpret_cast<uint8_t*>(dst.data()), scratch);
  UZIP_RETURN_IF_ERROR(reader.check());
  return reader.decode();
}

}  // namespace uzip
