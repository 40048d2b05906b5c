// Decodes a frame, block after block, and reduces on the way if asked to. The blocks that a device
// writes, and those of CPUs that look like them, take a fast way; all others the general one.
// Instantiated by kernels_*.cu.
#pragma once

#include "codec/lev_layout.hpp"
#include "gpu/fast_decoder.hpp"
#include "gpu/general_decoder.hpp"

namespace uzip::gpu {

/// A block's coded bytes and, of some types, its plain bytes, which are brought here while the
/// block before is decoded.
template <class Format>
struct DecodeStage {
  alignas(16) uint8_t image[kDecodeImageBytes];
  alignas(16) uint8_t plain[kStagesPlain<Format> ? Format::plain_bytes(kTileValues) : 16];
};

/// The general decoder takes the stage of its own block, whose descriptor it has read, and `work`.
template <class Format>
struct DecodeBuffers {
  static constexpr size_t kStageBytes = sizeof(DecodeStage<Format>);
  static constexpr size_t kGeneralBytes = sizeof(GeneralBuffers<Format::kSize>);
  static constexpr size_t kWorkBytes =
      kGeneralBytes > kStageBytes + kTileValues ? (kGeneralBytes - kStageBytes + 15) / 16 * 16
                                                : kTileValues;
  DecodeStage<Format> first;
  alignas(16) uint8_t work[kWorkBytes];
  DecodeStage<Format> second;

  UZIP_DEVICE DecodeStage<Format>& stage(unsigned index) { return index == 0 ? first : second; }
  UZIP_DEVICE GeneralBuffers<Format::kSize>& general(unsigned index) {
    return *reinterpret_cast<GeneralBuffers<Format::kSize>*>(index == 0 ? first.image : work);
  }
};

struct DecodeCommon {
  ScanSums sums;
  FastBlock block;
  GeneralBlock general;
  alignas(8) uint8_t header[sizeof(FrameHeader)];  ///< shared memory can't hold what has a constructor
  uint32_t fault;
  uint64_t group_plain[kGroups];
  uint64_t group_coded[kGroups];
};

template <int kType, unsigned kSize>
UZIP_DEVICE DecodeFault decode_constant(const DecodeArgs& args, const BlockView& view) {
  if (view.coded_bytes < 24) return DecodeFault::kDescriptor;
  const auto* const head = reinterpret_cast<const uint32_t*>(view.coded);
  const uint64_t value = head[2] | static_cast<uint64_t>(head[3]) << 32;
  const uint32_t exceptions = head[4];
  if (head[0] != static_cast<uint32_t>(BlockKind::kConstant) || head[1] != view.values ||
      (kSize < 8 && value >> (8 * kSize % 64) != 0) || exceptions >= view.values || head[5] != 0)
    return DecodeFault::kDescriptor;
  const uint32_t position_bytes = (2 * exceptions + 7) / 8 * 8;
  if (24 + position_bytes + static_cast<uint64_t>(exceptions) * kSize > view.coded_bytes)
    return DecodeFault::kSections;
  const auto* const positions = reinterpret_cast<const uint16_t*>(view.coded + 24);
  const uint8_t* const others = view.coded + 24 + position_bytes;
  bool wrong = false;
  for (uint32_t e = thread_index(); e < exceptions; e += kThreads)
    wrong |= positions[e] >= view.values || (e > 0 && positions[e] <= positions[e - 1]);
  if (sync_or(wrong)) return DecodeFault::kDescriptor;

  using Bits = typename AccumulatorOf<kType>::Type::Bits;
  for (uint32_t first = thread_index() * kSegmentValues; first < view.values;
       first += kThreads * kSegmentValues) {
    uint32_t next = 0;  // the first exception from here on
    for (uint32_t end = exceptions; next < end;) {
      const uint32_t middle = (next + end) / 2;
      if (positions[middle] < first)
        next = middle + 1;
      else
        end = middle;
    }
    Words<kSize> words{};
    UZIP_UNROLL
    for (unsigned k = 0; k < kSegmentValues; ++k) {
      uint64_t own = value;
      if (next < exceptions && positions[next] == first + k)
        own = load_value<kSize>(others + kSize * next++);
      put_element<Bits>(words, k, static_cast<Bits>(own));
    }
    const unsigned count = view.values - first;
    emit<kType, kSize>(args, view.first + first, count, view.aligned, words);
  }
  return DecodeFault::kNone;
}

/// Decodes a block that the fast way does not know. Its first bytes are in stage `index`.
template <class Format, int kType>
UZIP_DEVICE_CALL DecodeFault decode_other(const DecodeArgs& args, BlockView view,
                                          DecodeBuffers<Format>& buffers, unsigned index,
                                          DecodeCommon& common) {
  constexpr unsigned kSize = Format::kSize;
  const uint8_t* const image = buffers.stage(index).image;
  if (image[0] == static_cast<uint8_t>(BlockKind::kConstant))
    return decode_constant<kType, kSize>(args, view);
  if (thread_index() == 0)
    common.fault = static_cast<uint32_t>(read_general_block(
        image, view.coded_bytes < kDecodeImageBytes ? view.coded_bytes : kDecodeImageBytes,
        view.plain, view.plain_bytes, view.coded, view.coded_bytes, view.values, kSize,
        &common.general));
  sync();
  const auto fault = static_cast<DecodeFault>(common.fault);
  if (fault != DecodeFault::kNone) return fault;
  GeneralDecoder<kType, kSize> decoder(args, common.general, buffers.general(index), common.sums,
                                       view.aligned);
  return decoder.decode(view.first);
}

/// Decodes a block at the end of a frame, to any address, or with any operation.
template <class Format, int kType>
UZIP_DEVICE_CALL DecodeFault decode_odd(const DecodeArgs& args, BlockView view,
                                        DecodeBuffers<Format>& buffers, unsigned index,
                                        DecodeCommon& common) {
  if (view.values <= kTileValues) {
    const FastMemory memory{buffers.stage(index).image, view.plain, buffers.work};
    const FastResult result =
        FastDecoder<Format, kType, false>(args, view, memory, common.block, common.sums).decode();
    if (result == FastResult::kDone) return DecodeFault::kNone;
    if (result == FastResult::kWrongEscapes) return DecodeFault::kEscapes;
  }
  return decode_other<Format, kType>(args, view, buffers, index, common);
}

template <class Format, int kType>
class FrameDecoder {
 public:
  static constexpr unsigned kSize = Format::kSize;

  UZIP_DEVICE FrameDecoder(const DecodeArgs& args, DecodeBuffers<Format>& buffers,
                           DecodeCommon& common)
      : args_(args), buffers_(buffers), common_(common) {
    aligned_ = is_aligned<kSize>(args.dst) &&
               (args.operand == nullptr || is_aligned<kSize>(args.operand));
  }

  UZIP_DEVICE void decode() {
    const auto* const words = reinterpret_cast<const uint32_t*>(
        args_.device_header != nullptr ? args_.device_header : &args_.header);
    if (thread_index() < sizeof(FrameHeader) / 4)
      reinterpret_cast<uint32_t*>(common_.header)[thread_index()] = words[thread_index()];
    sync();
    const FrameHeader& header = frame_header();
    if (!header_is_right(header)) return report(DecodeFault::kHeader, 0);
    if (header.codec == kCodecRaw) return copy_raw();
    if (!heads_are_right(header)) return report(DecodeFault::kTable, 0);
    const uint64_t begin = static_cast<uint64_t>(blocks_) * block_index() / grid_size();
    const uint64_t end = static_cast<uint64_t>(blocks_) * (block_index() + 1) / grid_size();
    if (begin == end) return;
    if (!sum_table(static_cast<uint32_t>(begin))) return report(DecodeFault::kTable, 0);
    decode_blocks(static_cast<uint32_t>(begin), static_cast<uint32_t>(end));
  }

 private:
  UZIP_DEVICE void report(DecodeFault fault, uint32_t block) const {
    if (thread_index() == 0)
      atomic_max(args_.fault, static_cast<uint64_t>(fault) << 32 | block);
  }

  UZIP_DEVICE const FrameHeader& frame_header() const {
    return *reinterpret_cast<const FrameHeader*>(common_.header);
  }

  UZIP_DEVICE bool header_is_right(const FrameHeader& header) const {
    const uint64_t most = args_.count * kSize + 1024 + args_.count / 64;
    if (header.magic != kFrameMagic || header.version != kFrameVersion || header.codec > 1 ||
        header.type != args_.type || header.count != args_.count ||
        (header.reserved[0] | header.reserved[1] | header.reserved[2]) != 0)
      return false;
    if (header.codec == kCodecRaw)
      return header.plain_bytes == args_.count * kSize && header.coded_bytes == 0 &&
             header.plain_bytes <= args_.plain_room;
    return args_.count > 0 && header.plain_bytes <= most && header.coded_bytes <= most &&
           header.plain_bytes <= args_.plain_room &&
           (header.coded_bytes <= args_.coded_room || args_.coded_rest != nullptr);
  }

  UZIP_DEVICE bool heads_are_right(const FrameHeader& header) {
    if (header.coded_bytes < sizeof(LevHead)) return false;
    const auto* const head = reinterpret_cast<const uint32_t*>(args_.coded);
    log2_ = head[0];
    if (log2_ < kMinBlockLog2 || log2_ > kMaxBlockLog2) return false;
    const uint64_t blocks = ((args_.count - 1) >> log2_) + 1;
    blocks_ = head[1];
    if (blocks_ != blocks) return false;
    const uint64_t first = lev_first_block(blocks_);
    return first <= header.coded_bytes && first <= args_.coded_room;
  }

  UZIP_DEVICE const uint2* table() const {
    return reinterpret_cast<const uint2*>(args_.coded + sizeof(LevHead));
  }

  /// Where the first of this thread block's frame blocks begins.
  UZIP_DEVICE bool sum_table(uint32_t blocks) {
    uint64_t plain = 0;
    uint64_t coded = 0;
    for (uint32_t i = thread_index(); i < blocks; i += kThreads) {
      const uint2 sizes = table()[i];
      plain += sizes.x;
      coded += sizes.y;
    }
    UZIP_UNROLL
    for (unsigned distance = kGroupLanes / 2; distance > 0; distance /= 2) {
      plain += shuffle64(plain, lane_index() ^ distance);
      coded += shuffle64(coded, lane_index() ^ distance);
    }
    if (lane_index() == 0) {
      common_.group_plain[group_index()] = plain;
      common_.group_coded[group_index()] = coded;
    }
    sync();
    plain_at_ = 0;
    coded_at_ = lev_first_block(blocks_);
    for (unsigned g = 0; g < kGroups; ++g) {
      plain_at_ += common_.group_plain[g];
      coded_at_ += common_.group_coded[g];
    }
    return plain_at_ % kBlockAlignment == 0 && coded_at_ % kBlockAlignment == 0 &&
           plain_at_ <= frame_header().plain_bytes && coded_at_ <= frame_header().coded_bytes;
  }

  static UZIP_DEVICE uint64_t shuffle64(uint64_t value, unsigned lane) {
    const uint32_t low = shuffle(static_cast<uint32_t>(value), lane);
    const uint32_t high = shuffle(static_cast<uint32_t>(value >> 32), lane);
    return static_cast<uint64_t>(high) << 32 | low;
  }

  /// Each block is decoded while the next one is brought to shared memory.
  UZIP_DEVICE void decode_blocks(uint32_t begin, uint32_t end) {
    uint2 sizes = table()[begin];
    BlockView view;
    if (!view_block(begin, sizes, &view)) return report(DecodeFault::kTable, begin);
    bring(view, buffers_.first);
    commit_copies();
    unsigned index = 0;
    if (begin + 1 < end) sizes = table()[begin + 1];
    for (uint32_t b = begin; b < end; ++b, index ^= 1) {
      BlockView next{};
      const bool last = b + 1 == end;
      const bool right = last || view_block(b + 1, sizes, &next);
      if (b + 2 < end) sizes = table()[b + 2];
      if (!last && right) bring(next, buffers_.stage(index ^ 1));
      commit_copies();
      wait_copies<1>();
      sync();
      const DecodeFault fault = decode_block(view, index);
      if (fault != DecodeFault::kNone) return report(fault, b);
      if (!right) return report(DecodeFault::kTable, b + 1);
      view = next;
      sync();  // the stage has been read
    }
    if (end == blocks_ && (plain_at_ != frame_header().plain_bytes ||
                           coded_at_ != frame_header().coded_bytes))
      report(DecodeFault::kTable, blocks_);
  }

  /// The next block, of which the table says `sizes`. False: these are wrong.
  UZIP_DEVICE bool view_block(uint32_t block, uint2 sizes, BlockView* view) {
    if ((sizes.x | sizes.y) % kBlockAlignment != 0 ||
        sizes.x > frame_header().plain_bytes - plain_at_ ||
        sizes.y > frame_header().coded_bytes - coded_at_ || sizes.y < kBlockAlignment)
      return false;
    const bool here = coded_at_ + sizes.y <= args_.coded_room;
    view->plain = args_.plain + plain_at_;
    view->coded = (here ? args_.coded : args_.coded_rest) + coded_at_;
    view->plain_bytes = sizes.x;
    view->coded_bytes = sizes.y;
    view->first = static_cast<uint64_t>(block) << log2_;
    const uint64_t left = args_.count - view->first;
    view->values = left < (uint64_t{1} << log2_) ? static_cast<uint32_t>(left) : 1u << log2_;
    view->aligned = aligned_;
    plain_at_ += sizes.x;
    coded_at_ += sizes.y;
    return true;
  }

  UZIP_DEVICE bool is_whole(const BlockView& view) const {
    return view.values == kTileValues && view.aligned &&
           view.plain_bytes >= Format::plain_bytes(kTileValues) &&
           (args_.operand == nullptr || args_.op == UZIP_SUM);
  }

  UZIP_DEVICE void bring(const BlockView& view, DecodeStage<Format>& stage) const {
    const unsigned bytes =
        view.coded_bytes < kDecodeImageBytes ? view.coded_bytes : kDecodeImageBytes;
    for (unsigned at = 16 * thread_index(); at < bytes; at += 16 * kThreads)
      copy_16_async(stage.image + at, view.coded + at);
    if constexpr (kStagesPlain<Format>) {
      if (!is_whole(view)) return;
      UZIP_UNROLL
      for (unsigned at = 0; at < Format::plain_bytes(kTileValues); at += 16 * kThreads)
        if (at + 16 * thread_index() < Format::plain_bytes(kTileValues))
          copy_16_async(stage.plain + at + 16 * thread_index(),
                        view.plain + at + 16 * thread_index());
    }
  }

  UZIP_DEVICE DecodeFault decode_block(const BlockView& view, unsigned index) {
    if (!is_whole(view)) return decode_odd<Format, kType>(args_, view, buffers_, index, common_);
    DecodeStage<Format>& stage = buffers_.stage(index);
    const FastMemory memory{stage.image, kStagesPlain<Format> ? stage.plain : view.plain,
                            buffers_.work};
    const FastResult result =
        FastDecoder<Format, kType, true>(args_, view, memory, common_.block, common_.sums).decode();
    if (result == FastResult::kDone) return DecodeFault::kNone;
    if (result == FastResult::kWrongEscapes) return DecodeFault::kEscapes;
    return decode_other<Format, kType>(args_, view, buffers_, index, common_);
  }

  // ---- Raw frames ---------------------------------------------------------------------------------

  UZIP_DEVICE void copy_raw() {
    const bool aligned = aligned_ && is_aligned<kSize>(args_.plain);
    const uint64_t step = static_cast<uint64_t>(grid_size()) * kThreads * kSegmentValues;
    for (uint64_t first =
             (static_cast<uint64_t>(block_index()) * kThreads + thread_index()) * kSegmentValues;
         first < args_.count; first += step) {
      const uint64_t left = args_.count - first;
      const unsigned count = left < kSegmentValues ? static_cast<unsigned>(left) : kSegmentValues;
      const uint8_t* const src = args_.plain + first * kSize;
      const Words<kSize> words = aligned && count == kSegmentValues
                                     ? load_values<kSize>(src)
                                     : load_some_values<kSize>(src, count, 0);
      emit<kType, kSize>(args_, first, count, aligned, words);
    }
  }

  const DecodeArgs& args_;
  DecodeBuffers<Format>& buffers_;
  DecodeCommon& common_;
  bool aligned_ = false;
  unsigned log2_ = 0;
  uint32_t blocks_ = 0;
  // The next block.
  uint64_t plain_at_ = 0;
  uint64_t coded_at_ = 0;
};

}  // namespace uzip::gpu
