// Decodes a frame, block after block, and reduces on the way if asked to. The blocks that a device
// writes, and those of CPUs that look like them, take a fast way; all others the general one.
// Instantiated by kernels_*.cu.
#pragma once

#include "codec/lev_layout.hpp"
#include "gpu/bulk_copy.hpp"
#include "gpu/fast_decoder.hpp"
#include "gpu/general_decoder.hpp"

namespace uzip::gpu {

/// A block's coded bytes and, of some types, its plain bytes, which are brought here while the
/// block before is decoded.
template <class Format>
struct DecodeStage {
  alignas(16) uint8_t image[kDecodeImageBytes<Format>];
  alignas(16) uint8_t plain[kStagesPlain<Format> ? Format::plain_bytes(Format::kTileValues) : 16];
};

/// The general decoder takes the stage of its own block, whose descriptor it has read, and `work`.
template <class Format>
struct DecodeBuffers {
  static constexpr size_t kStageBytes = sizeof(DecodeStage<Format>);
  static constexpr size_t kGeneralBytes = sizeof(GeneralBuffers<Format::kSize>);
  static constexpr size_t kFastBytes = Format::kTileValues + 16;
  static constexpr size_t kWorkBytes = kGeneralBytes > kStageBytes + kFastBytes
                                           ? (kGeneralBytes - kStageBytes + 15) / 16 * 16
                                           : kFastBytes;
  DecodeStage<Format> first;
  alignas(16) uint8_t work[kWorkBytes];
  DecodeStage<Format> second;

  UZIP_DEVICE DecodeStage<Format>& stage(unsigned index) { return index == 0 ? first : second; }
  UZIP_DEVICE GeneralBuffers<Format::kSize>& general(unsigned index) {
    return *reinterpret_cast<GeneralBuffers<Format::kSize>*>(index == 0 ? first.image : work);
  }
};

/// Frame blocks are viewed 32 at a time, by a group, while others are still in use.
inline constexpr unsigned kViews = 2 * kGroupLanes;

struct DecodeCommon {
  ScanSums sums;
  CodeTables tables;
  BulkBarrier stage_there[2];
  BlockView views[kViews];  ///< of this thread block's frame blocks in turn
  uint64_t plain_at;        ///< of the block after these
  uint64_t coded_at;
  GeneralBlock general;
  alignas(8) uint8_t header[sizeof(FrameHeader)];  ///< shared memory can't hold what has a constructor
  uint32_t fault;
  uint32_t begin;  ///< the first of this thread block's frame blocks
  uint64_t group_plain[kGroups];
  uint64_t group_coded[kGroups];
};

template <class Format>
struct DecodeShared {
  DecodeBuffers<Format> buffers;
  DecodeCommon common;
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
  if (sync_coders_or(wrong)) return DecodeFault::kDescriptor;

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
UZIP_DEVICE_CALL DecodeFault decode_other(const DecodeArgs& args, const BlockView& view,
                                          DecodeBuffers<Format>& buffers, unsigned index,
                                          DecodeCommon& common) {
  constexpr unsigned kSize = Format::kSize;
  const uint8_t* const image = buffers.stage(index).image;
  if (image[0] == static_cast<uint8_t>(BlockKind::kConstant))
    return decode_constant<kType, kSize>(args, view);
  if (thread_index() == 0)
    common.fault = static_cast<uint32_t>(read_general_block(
        image, view.coded_bytes < kDecodeImageBytes<Format> ? view.coded_bytes : kDecodeImageBytes<Format>,
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
UZIP_DEVICE_CALL DecodeFault decode_odd(const DecodeArgs& args, const BlockView& view,
                                        DecodeBuffers<Format>& buffers, unsigned index,
                                        DecodeCommon& common) {
  if (view.values <= Format::kTileValues) {
    const FastMemory memory{buffers.stage(index).image, view.plain, buffers.work};
    const FastResult result =
        FastDecoder<Format, kType, false>(args, view, memory, common.tables, common.sums).decode();
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
    aligned_ = is_aligned(args.dst) &&
               (args.operand == nullptr || is_aligned(args.operand));
  }

  UZIP_DEVICE void decode() {
    const auto* const words = reinterpret_cast<const uint32_t*>(
        args_.device_header != nullptr ? args_.device_header : &args_.header);
    if (thread_index() < sizeof(FrameHeader) / 4)
      reinterpret_cast<uint32_t*>(common_.header)[thread_index()] = words[thread_index()];
    common_.tables.make();
    if (thread_index() == 0) {
      prepare(common_.stage_there[0]);
      prepare(common_.stage_there[1]);
    }
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
    // Two blocks a load, but for the first block; some loads at a time.
    if (thread_index() == 0 && blocks > 0) {
      plain = table()[0].x;
      coded = table()[0].y;
    }
    const auto* const pairs = reinterpret_cast<const uint4*>(table() + 1);
    constexpr uint32_t kAtATime = 4;
    for (uint32_t first = 1 + 2 * thread_index(); first < blocks; first += 2 * kAtATime * kThreads) {
      UZIP_UNROLL
      for (uint32_t k = 0; k < kAtATime; ++k) {
        const uint32_t i = first + 2 * k * kThreads;
        if (i >= blocks) continue;
        const uint4 sizes = pairs[i / 2];
        plain += sizes.x;
        coded += sizes.y;
        if (i + 1 >= blocks) continue;
        plain += sizes.z;
        coded += sizes.w;
      }
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
    plain = 0;
    coded = lev_first_block(blocks_);
    for (unsigned g = 0; g < kGroups; ++g) {
      plain += common_.group_plain[g];
      coded += common_.group_coded[g];
    }
    if (thread_index() == 0) {
      common_.plain_at = plain;
      common_.coded_at = coded;
    }
    sync();
    return plain % kBlockAlignment == 0 && coded % kBlockAlignment == 0 &&
           plain <= frame_header().plain_bytes && coded <= frame_header().coded_bytes;
  }

  static UZIP_DEVICE uint64_t shuffle64(uint64_t value, unsigned lane) {
    const uint32_t low = shuffle(static_cast<uint32_t>(value), lane);
    const uint32_t high = shuffle(static_cast<uint32_t>(value >> 32), lane);
    return static_cast<uint64_t>(high) << 32 | low;
  }

  /// Whether this thread is of the group that brings blocks.
  UZIP_DEVICE static bool moves() { return group_index() == kGroups - 1; }

  /// Each block is decoded while the next one is brought to shared memory. The first one's number is kept there, too, and
  /// nothing is counted twice: registers are scarce.
  UZIP_DEVICE void decode_blocks(uint32_t begin, uint32_t end) {
    if (thread_index() == 0) common_.begin = begin;
    if (moves()) {
      view_blocks(begin, end, 0);
      load(common_.views[0], 0);
    }
    sync();
    const uint32_t turns = end - begin;
    for (uint32_t turn = 0; turn < turns; turn = taken_anew(turn + 1)) {
      const BlockView& view = common_.views[turn % kViews];
      if (!view.right) return report(DecodeFault::kTable, common_.begin + turn);
      if (moves() && turn + 1 < turns) {
        const unsigned next = (turn + 1) % kViews;
        if (next % kGroupLanes == 0)
          view_blocks(common_.begin + turn + 1, common_.begin + turns, next);
        load(common_.views[next], turn % 2 ^ 1);
      }
      wait_bulk(common_.stage_there[turn % 2], turn / 2 % 2);
      const DecodeFault fault = decode_block(view, turn % 2);
      sync();  // the stage has been read, and the next view written
      if (fault == DecodeFault::kNone) continue;
      // What is on its way must have come before shared memory is given up.
      if (turn + 1 < turns && common_.views[(turn + 1) % kViews].right)
        wait_bulk(common_.stage_there[turn % 2 ^ 1], (turn + 1) / 2 % 2);
      return report(fault, common_.begin + turn);
    }
    if (common_.begin + turns == blocks_ && (common_.plain_at != frame_header().plain_bytes ||
                                             common_.coded_at != frame_header().coded_bytes))
      report(DecodeFault::kTable, blocks_);
  }

  /// The value, plus those of the lanes below.
  static UZIP_DEVICE uint64_t sum_to_lane(uint32_t value) {
    uint64_t sum = value;
    UZIP_UNROLL
    for (unsigned distance = 1; distance < kGroupLanes; distance *= 2) {
      const uint64_t below = shuffle64(sum, (lane_index() - distance) % kGroupLanes);
      if (lane_index() >= distance) sum += below;
    }
    return sum;
  }

  /// Views the blocks from `first` on, one for each lane of a group, into the places from `at` on. What comes behind a view
  /// that is not right means nothing.
  UZIP_DEVICE void view_blocks(uint32_t first, uint32_t end, unsigned at) const {
    const uint32_t block = first + lane_index();
    const uint2 sizes = block < end ? table()[block] : make_uint2(0, 0);
    const uint64_t plain_end = common_.plain_at + sum_to_lane(sizes.x);
    const uint64_t coded_end = common_.coded_at + sum_to_lane(sizes.y);
    BlockView view{};
    view.right = (sizes.x | sizes.y) % kBlockAlignment == 0 && sizes.y >= kBlockAlignment &&
                 plain_end <= frame_header().plain_bytes && coded_end <= frame_header().coded_bytes;
    view.plain = args_.plain + (plain_end - sizes.x);
    view.coded = (coded_end <= args_.coded_room ? args_.coded : args_.coded_rest) +
                 (coded_end - sizes.y);
    view.plain_bytes = sizes.x;
    view.coded_bytes = sizes.y;
    view.first = static_cast<uint64_t>(block) << log2_;
    const uint64_t left = args_.count - view.first;
    view.values = left < (uint64_t{1} << log2_) ? static_cast<uint32_t>(left) : 1u << log2_;
    view.aligned = aligned_;
    view.whole = is_whole(view);
    sync_group();  // all have read the sums
    common_.views[at + lane_index()] = view;
    if (lane_index() == kGroupLanes - 1) {
      common_.plain_at = plain_end;
      common_.coded_at = coded_end;
    }
    sync_group();
  }

  UZIP_DEVICE bool is_whole(const BlockView& view) const {
    return view.values == Format::kTileValues && view.aligned &&
           view.plain_bytes >= Format::plain_bytes(Format::kTileValues) &&
           (args_.operand == nullptr || is_pair_sum(args_.op, args_.average_over));
  }

  /// Brings a block to a stage, if its view is right. By one group.
  UZIP_DEVICE void load(const BlockView& view, unsigned index) const {
    if (!view.right) return;
    DecodeStage<Format>& stage = buffers_.stage(index);
    BulkBarrier& there = common_.stage_there[index];
    const unsigned bytes =
        view.coded_bytes < kDecodeImageBytes<Format> ? view.coded_bytes : kDecodeImageBytes<Format>;
    const unsigned plain_bytes =
        kStagesPlain<Format> && view.whole ? Format::plain_bytes(Format::kTileValues) : 0;
    if (lane_index() == 0) expect_bulk(there, bytes + plain_bytes);
    load_bulk(stage.image, view.coded, bytes, there);
    if (plain_bytes > 0) load_bulk(stage.plain, view.plain, plain_bytes, there);
  }

  UZIP_DEVICE DecodeFault decode_block(const BlockView& view, unsigned index) {
    DecodeFault fault;
    if (view.whole) {
      DecodeStage<Format>& stage = buffers_.stage(index);
      const FastMemory memory{stage.image, kStagesPlain<Format> ? stage.plain : view.plain,
                              buffers_.work};
      const FastResult result =
          FastDecoder<Format, kType, true>(args_, view, memory, common_.tables, common_.sums)
              .decode();
      if (result == FastResult::kDone) return DecodeFault::kNone;
      if (result == FastResult::kWrongEscapes) return DecodeFault::kEscapes;
      fault = decode_other<Format, kType>(args_, view, buffers_, index, common_);
    } else {
      fault = decode_odd<Format, kType>(args_, view, buffers_, index, common_);
    }
    hand_over();  // these write to the stage
    return fault;
  }

  // ---- Raw frames ---------------------------------------------------------------------------------

  UZIP_DEVICE void copy_raw() {
    const bool aligned = aligned_ && is_aligned(args_.plain);
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
};

}  // namespace uzip::gpu
