// Walks through all operands in pieces of one block.
#include "codec/reduce_frames.hpp"

#include "base/crc32c.hpp"
#include "base/float_environment.hpp"
#include "codec/lev.hpp"
#include "codec/lev_reader.hpp"
#include "codec/raw.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

namespace uzip {
namespace {

/// A frame's reader, made in the caller's memory, and room for one piece of its values.
struct OpenFrame {
  LevReader reader;
  size_t decoded = 0;  ///< values so far
};

/// Decoded and reduced at a time: they and what they are reduced with fit into the first cache.
constexpr size_t kStepBytes = size_t{8} << 10;

constexpr size_t kFrameBytes = padded(sizeof(OpenFrame), 64);

size_t piece_bytes(DataType type) { return kMaxBlockValues * datatype_size(type) + 64; }

/// What reduce() is given for one operand: where its elements from `begin` on are.
class Operand {
 public:
  /// `memory` is kFrameBytes + piece_bytes for a coded frame; `kept` as in LevReader::open().
  Status open(const ReduceOperand& operand, DataType type, size_t count, std::byte* memory,
              std::span<BlockSections> kept) {
    size_ = datatype_size(type);
    count_ = count;
    header_ = operand.header;
    elements_ = static_cast<const uint8_t*>(operand.elements);
    if (elements_ != nullptr) return {};
    const FrameHeader& header = *operand.header;
    if (header.type != static_cast<uint8_t>(type) || header.count != count)
      return error(UZIP_ERR_CORRUPT,
                   "frame to reduce: %llu elements of type %u, not %zu of type %u",
                   static_cast<unsigned long long>(header.count), header.type, count,
                   static_cast<unsigned>(type));
    if (header.codec == kCodecRaw) {
      if (operand.plain.size() != count * size_ || !operand.coded.empty())
        return error(UZIP_ERR_CORRUPT, "frame to reduce: %zu raw bytes, not %zu",
                     operand.plain.size(), count * size_);
      elements_ = reinterpret_cast<const uint8_t*>(operand.plain.data());
      return {};
    }
    frame_ = new (memory) OpenFrame;
    piece_ = reinterpret_cast<uint8_t*>(memory + kFrameBytes);
    return frame_->reader.open(header, operand.plain, operand.coded, kept);
  }

  /// Everything that could still turn out to be wrong. For a checksum all has to be decoded.
  Status check(CodecScratch::State& scratch) {
    const bool sums = header_ != nullptr && (header_->flags & kFrameHasChecksum) != 0;
    if (frame_ != nullptr && !sums) return frame_->reader.check_codes(scratch);
    if (!sums) return {};
    uint32_t sum = 0;
    const auto go_on = [&](const uint8_t* values, size_t count) {
      sum = crc32c({reinterpret_cast<const std::byte*>(values), count * size_}, sum);
    };
    if (frame_ == nullptr) go_on(elements_, count_);
    for (size_t done = 0; frame_ != nullptr && done < count_; done += block_values()) {
      UZIP_RETURN_IF_ERROR(frame_->reader.next(scratch, {piece_, piece_}));
      go_on(piece_, std::min(block_values(), count_ - done));
    }
    if (frame_ != nullptr) frame_->reader.rewind();
    return check_checksum(*header_, sum);
  }

  /// Decodes until the values up to `end` are there; a piece begins at a block of every frame.
  /// Meanwhile brings what is at `ahead` into the cache.
  Status advance(size_t begin, size_t end, const uint8_t* ahead, CodecScratch::State& scratch,
                 const void** at) {
    if (frame_ == nullptr) {
      *at = elements_ + begin * size_;
      return {};
    }
    while (frame_->decoded < end) {
      uint8_t* const dst = piece_ + (frame_->decoded - begin) * size_;
      UZIP_RETURN_IF_ERROR(frame_->reader.next(scratch, {dst, ahead}));
      frame_->decoded =
          std::min(frame_->decoded + frame_->reader.block_values(), frame_->reader.count());
    }
    *at = piece_;
    return {};
  }

  /// For coded frames: begins the next block after the end of one.
  Status start_block(CodecScratch::State& scratch) {
    return block().left() > 0 ? Status() : frame_->reader.start_block(scratch, piece_);
  }
  BlockDecoder& block() { return frame_->reader.block(); }
  /// Decodes the next few values of a block, at most *count; *count becomes their number.
  const void* step(const uint8_t* ahead, size_t* count) {
    *count = std::min({*count, block().left(), kStepBytes / size_});
    return block().take(*count, {piece_, ahead});
  }

  /// Null: a coded frame.
  const uint8_t* elements() const { return elements_; }
  size_t block_values() const { return frame_ == nullptr ? 0 : frame_->reader.block_values(); }

 private:
  size_t size_ = 0;
  size_t count_ = 0;
  const FrameHeader* header_ = nullptr;
  const uint8_t* elements_ = nullptr;
  OpenFrame* frame_ = nullptr;
  uint8_t* piece_ = nullptr;
};

bool is_coded(const ReduceOperand& operand) {
  return operand.elements == nullptr && operand.header->codec != kCodecRaw;
}

/// The elements of the first operand that is not a frame; null: all are.
const void* first_elements(std::span<const ReduceOperand> operands) {
  for (const ReduceOperand& operand : operands)
    if (operand.elements != nullptr) return operand.elements;
  return nullptr;
}

/// Elements that are reduced in one go when no frame says otherwise.
constexpr size_t kPlainPiece = size_t{1} << 14;

/// One reduction: its operands, opened, and the walk through them.
class FrameReduction {
 public:
  FrameReduction(ReduceOp op, DataType type, size_t average_over, CodecScratch& scratch)
      : op_(op),
        type_(type),
        average_over_(average_over),
        scratch_(scratch.state()) {}

  /// Everything that can be wrong is found here.
  Status open(std::span<const ReduceOperand> operands, size_t count, std::span<std::byte> work) {
    if (operands.empty() || operands.size() > kMostReduceOperands)
      return error(UZIP_ERR_INVALID, "reduce_frames: %zu operands, 1 to %zu are allowed",
                   operands.size(), kMostReduceOperands);
    void* aligned = work.data();
    size_t room = work.size();
    if (std::align(64, 0, aligned, room) == nullptr) room = 0;
    auto* memory = static_cast<std::byte*>(aligned);
    const size_t each = kFrameBytes + padded(piece_bytes(type_), 64);
    const auto frames = std::count_if(operands.begin(), operands.end(), is_coded);
    const auto kept = frames == 1 ? std::span(scratch_.sections) : std::span<BlockSections>();
    for (const ReduceOperand& operand : operands) {
      const bool coded = is_coded(operand);
      if (coded && room < each)
        return error(UZIP_ERR_INVALID, "reduce_frames: %zu bytes to work in", work.size());
      Operand& opened = operands_[operand_count_++];
      UZIP_RETURN_IF_ERROR(opened.open(operand, type_, count, memory, kept));
      piece_ = std::max(piece_, opened.block_values());
      if (!coded) continue;
      stepped_ = &opened;
      memory += each;
      room -= each;
    }
    for (size_t i = 0; i < operand_count_; ++i)
      UZIP_RETURN_IF_ERROR(operands_[i].check(scratch_));
    if (piece_ == 0) piece_ = kPlainPiece;
    return {};
  }

  /// `ahead`: what the processor should fetch while it decodes.
  Status run(uint8_t* dst, size_t count, const uint8_t* ahead) {
    const size_t size = datatype_size(type_);
    sums_ = kernels_sum(dst);
    for (size_t begin = 0; begin < count; begin += piece_) {
      const size_t end = std::min(begin + piece_, count);
      for (size_t i = 0; i < operand_count_; ++i)
        if (&operands_[i] != stepped_)
          UZIP_RETURN_IF_ERROR(
              operands_[i].advance(begin, end, ahead + begin * size, scratch_, &sources_[i]));
      for (size_t at = begin; at < end;) {
        size_t here = end - at;
        UZIP_RETURN_IF_ERROR(reduce_some(dst + at * size, ahead + at * size, &here));
        for (size_t i = 0; i < operand_count_; ++i)
          if (&operands_[i] != stepped_)
            sources_[i] = static_cast<const uint8_t*>(sources_[i]) + here * size;
        at += here;
      }
    }
    return {};
  }

 private:
  /// The next few values, at most *count; *count becomes their number. Those of the last frame go no
  /// farther than registers, or the first cache.
  Status reduce_some(uint8_t* dst, const uint8_t* ahead, size_t* count) {
    if (stepped_ == nullptr) {
      reduce(op_, type_, dst, {sources_.data(), operand_count_}, *count, average_over_);
      return {};
    }
    UZIP_RETURN_IF_ERROR(stepped_->start_block(scratch_));
    BlockDecoder& block = stepped_->block();
    const size_t whole = std::min(*count, block.left()) & ~size_t{63};
    if (sums_ && whole > 0 && block.ends_in_kernel()) {
      add_frame(block, dst, whole);
      *count = whole;
    } else {
      sources_[stepped_index()] = stepped_->step(ahead, count);
      reduce(op_, type_, dst, {sources_.data(), operand_count_}, *count, average_over_);
    }
    return block.left() == 0 ? block.finish() : Status();
  }

  /// The kernel that decodes adds, too: memory is then asked for all the time.
  void add_frame(BlockDecoder& block, uint8_t* dst, size_t count) {
    std::array<const uint8_t*, kMostReduceOperands> others;
    size_t other_count = 0;
    for (size_t i = 0; i < operand_count_; ++i)
      if (i != stepped_index()) others[other_count++] = static_cast<const uint8_t*>(sources_[i]);
    const Sum sum{type_, others.data(), stepped_index(), other_count};
    const DefaultFloatEnvironment shield;
    block.take(count, {dst, dst, false, &sum});
  }

  /// Whether kernels should add what they decode.
  bool kernels_sum(const uint8_t* dst) const {
    if (operand_count_ < 2 || (op_ != UZIP_SUM && (op_ != UZIP_AVG || average_over_ != 0)))
      return false;
    const bool in_place = std::any_of(operands_.begin(), operands_.begin() + operand_count_,
                                      [=](const Operand& o) { return o.elements() == dst; });
    const CodecKernels& kernels = codec_kernels();
    return ((in_place ? kernels.sums_in_place : kernels.sums) >> type_ & 1) != 0;
  }

  size_t stepped_index() const { return static_cast<size_t>(stepped_ - operands_.data()); }

  ReduceOp op_;
  DataType type_;
  size_t average_over_;
  CodecScratch::State& scratch_;
  std::array<Operand, kMostReduceOperands> operands_;
  std::array<const void*, kMostReduceOperands> sources_{};
  bool sums_ = false;  ///< kernels add what they decode
  size_t operand_count_ = 0;
  size_t piece_ = 0;            ///< values in a block of every frame
  Operand* stepped_ = nullptr;  ///< the last coded frame
};

}  // namespace

size_t reduce_frames_bytes(DataType type, size_t frames) {
  return 64 + frames * (kFrameBytes + padded(piece_bytes(type), 64));
}

Status reduce_frames(ReduceOp op, DataType type, void* dst, std::span<const ReduceOperand> operands,
                     size_t count, size_t average_over, std::span<std::byte> work,
                     CodecScratch& scratch) {
  FrameReduction reduction(op, type, average_over, scratch);
  UZIP_RETURN_IF_ERROR(reduction.open(operands, count, work));
  const void* elements = first_elements(operands);
  return reduction.run(static_cast<uint8_t*>(dst), count,
                       static_cast<const uint8_t*>(elements != nullptr ? elements : dst));
}

}  // namespace uzip
