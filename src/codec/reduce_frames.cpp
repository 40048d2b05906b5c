// Walks through all operands in pieces of one block.
#include "codec/reduce_frames.hpp"

#include "base/crc32c.hpp"
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

constexpr size_t kFrameBytes = padded(sizeof(OpenFrame), 64);

size_t piece_bytes(DataType type) { return kMaxBlockValues * datatype_size(type) + 64; }

/// What reduce() is given for one operand: where its elements from `begin` on are.
class Operand {
 public:
  /// `memory` is kFrameBytes + piece_bytes for a coded frame.
  Status open(const ReduceOperand& operand, DataType type, size_t count, std::byte* memory) {
    size_ = datatype_size(type);
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
    return frame_->reader.open(header, operand.plain, operand.coded);
  }

  /// Decodes until the values up to `end` are there; a piece begins at a block of every frame.
  /// Meanwhile brings what is at `ahead` into the cache.
  Status advance(size_t begin, size_t end, const uint8_t* ahead, CodecScratch::State& scratch,
                 const void** at) {
    if (frame_ == nullptr) {
      *at = elements_ + begin * size_;
      return checksum(*at, begin, end);
    }
    while (frame_->decoded < end) {
      uint8_t* const dst = piece_ + (frame_->decoded - begin) * size_;
      UZIP_RETURN_IF_ERROR(frame_->reader.next(scratch, {dst, ahead}));
      frame_->decoded =
          std::min(frame_->decoded + frame_->reader.block_values(), frame_->reader.count());
    }
    *at = piece_;
    return checksum(*at, begin, end);
  }

  size_t block_values() const { return frame_ == nullptr ? 0 : frame_->reader.block_values(); }

 private:
  /// Goes on with the frame's checksum, and compares it after the last element.
  Status checksum(const void* at, size_t begin, size_t end) {
    if (header_ == nullptr || (header_->flags & kFrameHasChecksum) == 0) return {};
    checksum_ = crc32c({static_cast<const std::byte*>(at), (end - begin) * size_}, checksum_);
    return end == header_->count ? check_checksum(*header_, checksum_) : Status();
  }

  size_t size_ = 0;
  const FrameHeader* header_ = nullptr;
  uint32_t checksum_ = 0;
  const uint8_t* elements_ = nullptr;
  OpenFrame* frame_ = nullptr;
  uint8_t* piece_ = nullptr;
};

/// The elements of the first operand that is not a frame; null: all are.
const void* first_elements(std::span<const ReduceOperand> operands) {
  for (const ReduceOperand& operand : operands)
    if (operand.elements != nullptr) return operand.elements;
  return nullptr;
}

/// Elements that are reduced in one go when no frame says otherwise.
constexpr size_t kPlainPiece = size_t{1} << 14;

}  // namespace

size_t reduce_frames_bytes(DataType type, size_t frames) {
  // The table of operands is small and made for all that a call may have besides.
  return 64 + frames * (kFrameBytes + padded(piece_bytes(type), 64));
}

Status reduce_frames(ReduceOp op, DataType type, void* dst, std::span<const ReduceOperand> operands,
                     size_t count, size_t average_over, std::span<std::byte> work,
                     CodecScratch& scratch) {
  constexpr size_t kMostOperands = 64;
  if (operands.empty() || operands.size() > kMostOperands)
    return error(UZIP_ERR_INVALID, "reduce_frames: %zu operands, 1 to %zu are allowed",
                 operands.size(), kMostOperands);
  std::array<Operand, kMostOperands> open;
  std::array<const void*, kMostOperands> sources;
  void* aligned = work.data();
  size_t room = work.size();
  if (std::align(64, 0, aligned, room) == nullptr) room = 0;
  auto* memory = static_cast<std::byte*>(aligned);
  const size_t each = kFrameBytes + padded(piece_bytes(type), 64);
  size_t piece = 0;
  for (size_t i = 0; i < operands.size(); ++i) {
    const bool coded = operands[i].elements == nullptr && operands[i].header->codec != kCodecRaw;
    if (coded && room < each)
      return error(UZIP_ERR_INVALID, "reduce_frames: %zu bytes to work in", work.size());
    UZIP_RETURN_IF_ERROR(open[i].open(operands[i], type, count, memory));
    piece = std::max(piece, open[i].block_values());
    if (!coded) continue;
    memory += each;
    room -= each;
  }
  if (piece == 0) piece = kPlainPiece;
  const size_t size = datatype_size(type);
  auto* out = static_cast<uint8_t*>(dst);
  // Decoding leaves the memory idle, so it fetches what the reduction reads next.
  const auto* ahead = static_cast<const uint8_t*>(first_elements(operands));
  if (ahead == nullptr) ahead = out;
  for (size_t begin = 0; begin < count; begin += piece) {
    const size_t end = std::min(begin + piece, count);
    for (size_t i = 0; i < operands.size(); ++i)
      UZIP_RETURN_IF_ERROR(open[i].advance(begin, end, ahead + begin * size, scratch.state(), &sources[i]));
    reduce(op, type, out + begin * size, {sources.data(), operands.size()},
           end - begin, average_over);
  }
  return {};
}

}  // namespace uzip
