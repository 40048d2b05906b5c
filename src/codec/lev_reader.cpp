// Checks the table and every descriptor of a lev frame, then decodes its blocks.
#include "codec/lev_reader.hpp"

#include "codec/sequence.hpp"

#include <algorithm>
#include <cstring>

namespace uzip {
namespace {

Status corrupt(const char* what, unsigned long long value, unsigned long long expected) {
  return error(UZIP_ERR_CORRUPT, "lev frame: %s is %llu, not %llu", what, value, expected);
}

LevTableEntry table_entry(std::span<const std::byte> coded, size_t index) {
  LevTableEntry result;
  std::memcpy(&result, coded.data() + sizeof(LevHead) + index * sizeof result, sizeof result);
  return result;
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

/// Where the sections of records stand; both ends move on.
struct Cursor {
  const uint8_t* plain;
  const uint8_t* coded;

  struct Sections {
    const uint8_t* stored;
    const uint8_t* fields;
  };
  Sections take(const SequenceRecord& record, size_t count) {
    const uint8_t*& stored_part = (record.place & kStoredInCoded) != 0 ? coded : plain;
    const uint8_t* stored = stored_part;
    stored_part += record.stored_bytes(count);
    const uint8_t*& field_part = (record.place & kFieldsInCoded) != 0 ? coded : plain;
    const uint8_t* fields = field_part;
    field_part += record.field_bytes(count);
    return {stored, fields};
  }
};

/// Decodes the blocks that hold planes.
class PlaneDecoder {
 public:
  PlaneDecoder(const CodecKernels& kernels, const LevTraits& traits,
               const BlockDescriptor& descriptor, Cursor cursor, CodecScratch::State& scratch)
      : kernels_(kernels),
        traits_(traits),
        block_(descriptor),
        cursor_(cursor),
        scratch_(scratch) {}

  Status decode(const Output& dst) {
    const uint8_t* kept_bits = nullptr;
    const uint8_t* sign_bits = nullptr;
    if (block_.zeros) UZIP_RETURN_IF_ERROR(read_bits(&kept_bits, &sign_bits));
    std::array<const uint8_t*, kMaxTypeSize> planes{};
    for (size_t p = traits_.size; p-- > 0;)
      UZIP_RETURN_IF_ERROR(read(block_.planes[p], block_.kept, scratch_.planes[p], &planes[p]));
    const unsigned rotation = block_.rotation + (block_.delta ? 0u : 1u);
    uint8_t* const values = block_.zeros ? scratch_.values[0] : dst.values;
    kernels_.merge[traits_.size_class](planes.data(), block_.kept, rotation, {values, dst.ahead});
    if (block_.delta)
      kernels_.undelta[traits_.size_class](values, block_.kept, block_.base, values);
    if (block_.zeros)
      kernels_.insert_zeros[traits_.size_class](values, kept_bits, sign_bits, block_.values, dst.values);
    return {};
  }

  /// For the blocks that fit the fused kernels.
  Status decode_top(const Output& dst) {
    const SequenceRecord& record = block_.planes[traits_.size - 1];
    const size_t count = block_.kept;
    const Cursor::Sections top = cursor_.take(record, count);
    ConstTopPlane plane{record.shift, nullptr, top.stored, nullptr};
    if (traits_.size == 2) plane.other = cursor_.take(block_.planes[0], count).stored;
    const uint8_t* escapes = nullptr;
    UZIP_RETURN_IF_ERROR(decode_further_levels(kernels_, record, count, top.fields, scratch_,
                                               &plane.words, &escapes));
    const size_t used = kernels_.top->decode[traits_.size_class][record.widths[0]](
        plane, count, SymbolTable(record, 0).symbols, escapes, dst);
    if (used != record.escapes[0]) return corrupt("number of escapes", used, record.escapes[0]);
    return {};
  }

 private:
  Status read(const SequenceRecord& record, size_t count, uint8_t* dst, const uint8_t** result) {
    const Cursor::Sections at = cursor_.take(record, count);
    return decode_sequence(kernels_, record, count, at.stored, at.fields, scratch_, dst, result);
  }

  Status read_bits(const uint8_t** kept_bits, const uint8_t** sign_bits) {
    const size_t bytes = block_.kept_bits_bytes();
    UZIP_RETURN_IF_ERROR(read(block_.kept_bits, bytes, scratch_.kept_bits, kept_bits));
    const size_t kept = kernels_.count_ones(*kept_bits, block_.values);
    if (kept != block_.kept) return corrupt("number of kept values", kept, block_.kept);
    const size_t sign_bytes = block_.sign_bits_bytes();
    if (block_.has_signs())
      return read(block_.sign_bits, sign_bytes, scratch_.sign_bits, sign_bits);
    std::memset(scratch_.sign_bits, block_.zero_sign == ZeroSign::kMinus ? 0xff : 0, sign_bytes);
    *sign_bits = scratch_.sign_bits;
    return {};
  }

  const CodecKernels& kernels_;
  const LevTraits& traits_;
  const BlockDescriptor& block_;
  Cursor cursor_;
  CodecScratch::State& scratch_;
};

}  // namespace

Status LevReader::open(const FrameHeader& header, std::span<const std::byte> plain,
                       std::span<const std::byte> coded) {
  const auto type = static_cast<DataType>(header.type);
  if (!is_datatype(type) || !is_float(type) || header.count == 0 || header.count > SIZE_MAX / 16)
    return error(UZIP_ERR_CORRUPT, "lev frame: %llu elements of type %u",
                 static_cast<unsigned long long>(header.count), header.type);
  if (plain.size() != header.plain_bytes)
    return corrupt("plain part", plain.size(), header.plain_bytes);
  if (coded.size() != header.coded_bytes)
    return corrupt("coded part", coded.size(), header.coded_bytes);
  kernels_ = &codec_kernels();
  traits_ = lev_traits(type);
  count_ = header.count;
  plain_ = plain;
  coded_ = coded;
  UZIP_RETURN_IF_ERROR(check_table());
  size_t plain_begin = 0;
  size_t coded_begin = lev_first_block(blocks_);
  for (size_t b = 0; b < blocks_; ++b) {
    const Block here = block(b, plain_begin, coded_begin);
    BlockDescriptor descriptor;
    size_t bytes = 0;
    UZIP_RETURN_IF_ERROR(read_descriptor(here.coded, here.plain.size(), here.values, traits_.size,
                                         &descriptor, &bytes));
    plain_begin += here.plain.size();
    coded_begin += here.coded.size();
  }
  next_ = 0;
  plain_begin_ = 0;
  coded_begin_ = lev_first_block(blocks_);
  return {};
}

Status LevReader::check_table() {
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
    const LevTableEntry sizes = table_entry(coded_, b);
    if ((sizes.plain | sizes.coded) % kBlockAlignment != 0)
      return corrupt("remainder of a block's size", (sizes.plain | sizes.coded) % kBlockAlignment,
                     0);
    plain += sizes.plain;
    coded += sizes.coded;
  }
  if (plain != plain_.size()) return corrupt("plain part", plain_.size(), plain);
  if (coded != coded_.size()) return corrupt("coded part", coded_.size(), coded);
  return {};
}

LevReader::Block LevReader::block(size_t index, size_t plain_begin, size_t coded_begin) const {
  const LevTableEntry sizes = table_entry(coded_, index);
  const size_t first = index << log2_;
  return {plain_.subspan(plain_begin, sizes.plain), coded_.subspan(coded_begin, sizes.coded),
          std::min(block_values(), count_ - first)};
}

Status LevReader::next(CodecScratch::State& scratch, const Output& dst) {
  const Block here = block(next_, plain_begin_, coded_begin_);
  ++next_;
  plain_begin_ += here.plain.size();
  coded_begin_ += here.coded.size();
  return decode_block(here, scratch, dst);
}

/// True for the blocks that BlockEncoder::write_fused() makes, from whatever encoder.
bool LevReader::fits_top_kernels(const BlockDescriptor& descriptor) const {
  const SequenceRecord& top = descriptor.planes[traits_.size - 1];
  if (kernels_->top == nullptr || traits_.size > 2 || descriptor.delta || descriptor.zeros ||
      descriptor.rotation != 0)
    return false;
  if (traits_.size == 2 && descriptor.planes[0].stored != 0xff) return false;
  return top.levels > 0 && top.stored == (1u << top.shift) - 1 &&
         kernels_->top->decode[traits_.size_class][top.widths[0]] != nullptr;
}

Status LevReader::decode_block(const Block& block, CodecScratch::State& scratch,
                               const Output& dst) {
  BlockDescriptor descriptor;
  size_t described = 0;
  UZIP_RETURN_IF_ERROR(read_descriptor(block.coded, block.plain.size(), block.values, traits_.size,
                                       &descriptor, &described));
  const Cursor cursor{reinterpret_cast<const uint8_t*>(block.plain.data()),
                      reinterpret_cast<const uint8_t*>(block.coded.data()) + described};
  if (descriptor.kind == BlockKind::kConstant) {
    decode_constant(cursor.coded, descriptor, traits_.size, dst.values);
    return {};
  }
  PlaneDecoder decoder(*kernels_, traits_, descriptor, cursor, scratch);
  return fits_top_kernels(descriptor) ? decoder.decode_top(dst) : decoder.decode(dst);
}

}  // namespace uzip
