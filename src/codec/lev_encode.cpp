// Encodes a lev frame: the table and the blocks, in one pass or in two stages.
#include "codec/block_encoder.hpp"
#include "codec/lev.hpp"
#include "codec/lev_layout.hpp"
#include "codec/raw.hpp"

#include <algorithm>
#include <cstring>

namespace uzip {
namespace {

size_t most_blocks(DataType type, size_t count) {
  size_t blocks = 0;
  for (CodecLevel level : {CodecLevel::kFastest, CodecLevel::kBalanced, CodecLevel::kSmallest})
    blocks = std::max(blocks, lev_block_count(count, block_log2(type, level, count)));
  return blocks;
}

/// Writes blocks one after another into the two parts. In one pass both parts share a buffer: the
/// coded part begins where the plain part is expected to end, and is moved when that turns out
/// wrong.
class FrameWriter {
 public:
  FrameWriter(LevStage stage, DataType type, CodecLevel level, size_t count,
              std::span<std::byte> body, CodecScratch& scratch)
      : stage_(stage),
        type_(type),
        count_(count),
        body_(reinterpret_cast<uint8_t*>(body.data())),
        log2_(block_log2(type, level, count)),
        blocks_(lev_block_count(count, log2_)),
        coded_bytes_(lev_first_block(blocks_)),
        encoder_(type, level, scratch.state()) {
    if (stage != LevStage::kBoth) return;
    // Exact for ordinary elements in whole groups; else there is no telling.
    const size_t most =
        padded(BlockEncoder::max_sizes(lev_traits(type), count).plain, kBlockAlignment);
    coded_begin_ = count % 64 == 0 ? most : lev_bound(type, count).plain;
  }

  /// False: the frame is better sent raw, and nothing was written.
  bool write(const uint8_t* src) {
    if (!encoder_.begin(src, count_)) return false;
    const size_t size = lev_traits(type_).size;
    if (stage_ != LevStage::kPlain) write_head();
    for (size_t b = 0; b < blocks_; ++b) {
      const size_t begin = b << log2_;
      const size_t values = std::min(size_t{1} << log2_, count_ - begin);
      write_block(b, src + begin * size, values);
    }
    if (stage_ == LevStage::kBoth) move_coded(plain_bytes_);
    return true;
  }

  size_t plain_bytes() const { return plain_bytes_; }
  size_t coded_bytes() const { return coded_bytes_; }

 private:
  void write_head() {
    LevHead head;
    head.block_log2 = static_cast<uint8_t>(log2_);
    head.blocks = static_cast<uint32_t>(blocks_);
    std::memset(body_ + coded_begin_, 0, coded_bytes_);
    std::memcpy(body_ + coded_begin_, &head, sizeof head);
  }

  void write_block(size_t index, const uint8_t* src, size_t values) {
    uint8_t* plain = stage_ == LevStage::kCoded ? nullptr : body_ + plain_bytes_;
    uint8_t* coded = stage_ == LevStage::kPlain ? nullptr : body_ + coded_begin_ + coded_bytes_;
    if (stage_ == LevStage::kBoth) {
      const PartSizes most = BlockEncoder::max_sizes(lev_traits(type_), values);
      if (plain_bytes_ + padded(most.plain, kBlockAlignment) > coded_begin_) {
        move_coded(lev_bound(type_, count_).plain);
        coded = body_ + coded_begin_ + coded_bytes_;
      }
    }
    const PartSizes sizes =
        encoder_.encode(src, values, count_ - (index << log2_) - values, plain, coded);
    plain_bytes_ += sizes.plain;
    if (coded == nullptr) return;
    const LevTableEntry entry{static_cast<uint32_t>(sizes.plain),
                              static_cast<uint32_t>(sizes.coded)};
    std::memcpy(body_ + coded_begin_ + sizeof(LevHead) + index * sizeof entry, &entry,
                sizeof entry);
    coded_bytes_ += sizes.coded;
  }

  void move_coded(size_t begin) {
    if (begin == coded_begin_) return;
    std::memmove(body_ + begin, body_ + coded_begin_, coded_bytes_);
    coded_begin_ = begin;
  }

  LevStage stage_;
  DataType type_;
  size_t count_;
  uint8_t* body_;
  unsigned log2_;
  size_t blocks_;
  size_t coded_begin_ = 0;
  size_t plain_bytes_ = 0;
  size_t coded_bytes_;
  BlockEncoder encoder_;
};

Status check_room(LevStage stage, DataType type, size_t count, size_t room) {
  const EncodedSizes bound = lev_bound(type, count);
  const size_t needed = stage == LevStage::kPlain   ? bound.plain
                        : stage == LevStage::kCoded ? bound.coded
                                                    : bound.plain + bound.coded;
  if (room >= needed) return {};
  return error(UZIP_ERR_INVALID, "lev: %zu bytes for a part of %zu elements, %zu are needed", room,
               count, needed);
}

}  // namespace

EncodedSizes lev_bound(DataType type, size_t count) {
  if (!is_float(type) || count == 0) return {count * datatype_size(type), 0};
  const LevTraits traits = lev_traits(type);
  const PartSizes sizes = BlockEncoder::max_sizes(traits, count);
  const size_t blocks = most_blocks(type, count);
  return {sizes.plain + blocks * kBlockAlignment,
          sizes.coded + (blocks - 1) * BlockEncoder::max_descriptor(traits) +
              blocks * kBlockAlignment + lev_first_block(blocks)};
}

Status lev_encode(LevStage stage, DataType type, CodecLevel level, const void* src, size_t count,
                  std::span<std::byte> body, CodecScratch& scratch, FrameHeader& header) {
  const auto* bytes = static_cast<const uint8_t*>(src);
  if (!is_float(type) || count == 0) {
    make_raw(type, count, header);
    return {};
  }
  UZIP_RETURN_IF_ERROR(check_room(stage, type, count, body.size()));
  FrameWriter writer(stage, type, level, count, body, scratch);
  if (!writer.write(bytes)) {
    make_raw(type, count, header);
    return {};
  }
  header.codec = kLevCodec.id;
  header.type = static_cast<uint8_t>(type);
  header.count = count;
  if (stage != LevStage::kCoded) header.plain_bytes = writer.plain_bytes();
  if (stage != LevStage::kPlain) header.coded_bytes = writer.coded_bytes();
  if (stage == LevStage::kBoth &&
      writer.plain_bytes() + writer.coded_bytes() >= count * datatype_size(type))
    make_raw(type, count, header);
  return {};
}

}  // namespace uzip
