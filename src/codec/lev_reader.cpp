// Checks the table and every descriptor of a lev frame, then decodes its blocks.
#include "codec/lev_reader.hpp"

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

}  // namespace

Status LevReader::open(const FrameHeader& header, std::span<const std::byte> plain,
                       std::span<const std::byte> coded, std::span<BlockSections> kept) {
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
  rewind();
  kept_ = kept;
  for (size_t b = 0; b < blocks_; ++b)
    UZIP_RETURN_IF_ERROR(read_block(b < kept.size() ? &kept[b] : &block_));
  rewind();
  return {};
}

Status LevReader::check_codes(CodecScratch::State& scratch) {
  for (size_t b = 0; b < blocks_; ++b) {
    const BlockSections* block = nullptr;
    UZIP_RETURN_IF_ERROR(next_block(&block));
    UZIP_RETURN_IF_ERROR(check_block_codes(*kernels_, traits_, *block, scratch));
  }
  rewind();
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

void LevReader::rewind() {
  next_ = 0;
  plain_begin_ = 0;
  coded_begin_ = lev_first_block(blocks_);
}

void LevReader::pass_block(LevTableEntry sizes) {
  ++next_;
  plain_begin_ += sizes.plain;
  coded_begin_ += sizes.coded;
}

Status LevReader::read_block(BlockSections* block) {
  const LevTableEntry sizes = table_entry(coded_, next_);
  const std::span<const std::byte> plain = plain_.subspan(plain_begin_, sizes.plain);
  const std::span<const std::byte> coded = coded_.subspan(coded_begin_, sizes.coded);
  const size_t values = std::min(block_values(), count_ - (next_ << log2_));
  pass_block(sizes);
  size_t described = 0;
  UZIP_RETURN_IF_ERROR(
      read_descriptor(coded, plain.size(), values, traits_.size, &block->descriptor, &described));
  block->plain = reinterpret_cast<const uint8_t*>(plain.data());
  block->coded = reinterpret_cast<const uint8_t*>(coded.data()) + described;
  return {};
}

/// After open(): from what it kept, if that is there.
Status LevReader::next_block(const BlockSections** block) {
  if (next_ >= kept_.size()) {
    *block = &block_;
    return read_block(&block_);
  }
  *block = &kept_[next_];
  pass_block(table_entry(coded_, next_));
  return {};
}

Status LevReader::start_block(CodecScratch::State& scratch, uint8_t* room) {
  const BlockSections* block = nullptr;
  UZIP_RETURN_IF_ERROR(next_block(&block));
  return decoder_.start(*kernels_, traits_, *block, scratch, room);
}

Status LevReader::next(CodecScratch::State& scratch, const Output& dst) {
  UZIP_RETURN_IF_ERROR(start_block(scratch, dst.values));
  decoder_.take(decoder_.left(), dst);
  return decoder_.finish();
}

}  // namespace uzip
