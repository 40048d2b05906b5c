// A tile on its way between ranks: coded in shared memory, or decoded there and reduced. Used by
// the kernel that stores coded tiles into other ranks' memory.
#pragma once

#include "gpu/decode_kernel.hpp"
#include "gpu/formats.hpp"
#include "gpu/peer_tiles.hpp"
#include "gpu/tile_encoder.hpp"

namespace uzip::gpu {

/// The slots that a tile takes.
template <class Format>
inline constexpr uint32_t kTileSlots =
    (Format::plain_bytes(Format::kTileValues) + kImageBytes<Format> + kCodedSlotBytes - 1) / kCodedSlotBytes;

/// How tiles are decoded, in shared memory, where calls read it faster than from the kernel's arguments.
struct CodedDecoding {
  alignas(8) uint8_t bytes[3][sizeof(DecodeArgs)];  ///< shared memory can't hold what has a constructor

  /// By all threads that code; a barrier must follow.
  UZIP_DEVICE void copy(const DecodeArgs& combining, const DecodeArgs& pulling,
                        const DecodeArgs& spreading) {
    constexpr unsigned kWords = sizeof(DecodeArgs) / 8;
    static_assert(3 * kWords <= kThreads && sizeof(DecodeArgs) % 8 == 0);
    const unsigned which = thread_index() / kWords;
    if (which > 2) return;
    const DecodeArgs* const from = which == 0 ? &combining : which == 1 ? &pulling : &spreading;
    const unsigned word = thread_index() % kWords;
    reinterpret_cast<uint64_t*>(bytes[which])[word] = reinterpret_cast<const uint64_t*>(from)[word];
  }
  UZIP_DEVICE const DecodeArgs& combining() const { return args(0); }
  UZIP_DEVICE const DecodeArgs& pulling() const { return args(1); }
  UZIP_DEVICE const DecodeArgs& spreading() const { return args(2); }

 private:
  UZIP_DEVICE const DecodeArgs& args(unsigned which) const {
    return *reinterpret_cast<const DecodeArgs*>(bytes[which]);
  }
};

/// What is in `out`.
struct LeavingTile {
  uint64_t tile;
  uint32_t to;           ///< CodedRings::Leaving::to
  uint32_t coded_bytes;  ///< 0: there are elements
  uint32_t plain_bytes;
};

/// What the threads of a block share.
template <class Format>
struct CodedShared {
  TileSlot<Format> out;    ///< a tile that leaves, or its elements
  DecodeStage<Format> in;  ///< one that has come
  EncodeWork<Format> coding;       ///< its list is the decoder's memory, too
  ScanSums sums;           ///< of the decoder
  CodeTables tables;
  BulkBarrier in_there;
  CodedDecoding decoding;
  LeavingTile leaving;
  uint64_t failure;  ///< a PeerEnd, or 0, when the block has come to its end
  uint64_t word;     ///< that announced the tile in `in`; 0: there is none, the call has failed
  uint32_t failed;   ///< some thread's waiting has ended
  uint32_t fetched;  ///< tiles that were brought to `in`, or are on their way there
  uint8_t* taken[kMostPeerRanks];
  uint8_t* shared[kMostPeerRanks];  ///< nulls
};

/// What a word beside a slot says: the number of the tile's first slot, from 1, and the coded bytes
/// in units of 16. None: the slot has the elements as they are.
UZIP_DEVICE uint64_t coded_word(uint64_t sequence, uint32_t coded_bytes) {
  return (sequence + 1) << 16 | coded_bytes / 16;
}
UZIP_DEVICE uint64_t sequence_of(uint64_t word) { return word >> 16; }
UZIP_DEVICE uint32_t coded_bytes_of(uint64_t word) {
  return static_cast<uint32_t>(word & 0xffffu) * 16;
}

template <int kType>
class TileCodec {
 public:
  using Format = typename FormatOf<kType>::Type;
  using Shared = CodedShared<Format>;
  static constexpr unsigned kSize = Format::kSize;

  /// Codes a tile into `out`, which is free; `index` alternates, and says which bins are clear. Begins
  /// behind a barrier, and ends before one. A call, as is unpack(): a kernel has several of each.
  template <bool kWhole>
  static UZIP_DEVICE_CALL CodedTile encode(Shared& shared, uint32_t levels, const uint8_t* src,
                                           unsigned values, unsigned index) {
    EncodeWork<Format>& work = shared.coding;
    uint32_t* const bins = work.bins[index];
    if constexpr (!kWhole) {
      if (thread_index() == 0) work.samples = 0;
      sync_coders();
    }
    TileEncoder<Format, kWhole, false> encoder(src, values);
    const auto publish = [](unsigned) {};
    if (!encoder.read(bins, &work.samples, shared.out.plain))
      return code_constant_tile(encoder, shared.out, publish);
    if (group_index() == 0) {
      const uint32_t samples = kWhole ? kSamples : work.samples;
      const LevelPlan plan = plan_levels<Format::kFieldBits>(bins, samples, levels);
      if (lane_index() == 0) work.plan = pack_plan(plan);
    }
    sync_coders();
    return code_tile(encoder, unpack_plan(work.plan), work, shared.out, publish);
  }

  /// Decodes a tile in `in`, or takes its elements from the slot.
  UZIP_DEVICE static DecodeFault unpack(Shared& shared, const DecodeArgs& decoding,
                                        const uint8_t* slot, uint64_t at, unsigned values,
                                        uint32_t coded_bytes) {
    BlockView view{};
    view.plain = shared.in.plain;
    view.coded = shared.in.image;
    view.plain_bytes = Format::plain_bytes(values);
    view.coded_bytes = coded_bytes;
    view.first = at;
    view.values = values;
    view.aligned =
        is_aligned(decoding.dst + at * kSize) &&
        (decoding.operand == nullptr || is_aligned(decoding.operand + at * kSize));
    view.right = true;
    view.whole = values == Format::kTileValues && view.aligned &&
                 (decoding.operand == nullptr || is_pair_sum(decoding.op, decoding.average_over));
    if (coded_bytes > kDecodeImageBytes<Format>) return DecodeFault::kTable;
    if (coded_bytes == 0) {
      take_elements(shared, decoding, view, slot);
      return DecodeFault::kNone;
    }
    return view.whole ? decode_whole(shared, decoding, view) : decode_odd(shared, decoding, view);
  }

 private:
  static UZIP_DEVICE_CALL DecodeFault decode_whole(Shared& shared, const DecodeArgs& decoding,
                                                   BlockView view) {
    const FastMemory memory{shared.in.image, shared.in.plain, shared.coding.list};
    const FastResult result =
        FastDecoder<Format, kType, true>(decoding, view, memory, shared.tables, shared.sums)
            .decode();
    if (result == FastResult::kDone) return DecodeFault::kNone;
    if (result == FastResult::kWrongEscapes) return DecodeFault::kEscapes;
    return decode_odd(shared, decoding, view);
  }

  /// Tiles at the end of a chunk, elements that are not aligned, and constant tiles.
  static UZIP_DEVICE_CALL DecodeFault decode_odd(Shared& shared, const DecodeArgs& decoding,
                                                 BlockView view) {
    const FastMemory memory{shared.in.image, shared.in.plain, shared.coding.list};
    const FastResult result =
        FastDecoder<Format, kType, false, true>(decoding, view, memory, shared.tables, shared.sums)
            .decode();
    if (result == FastResult::kDone) return DecodeFault::kNone;
    if (result == FastResult::kWrongEscapes) return DecodeFault::kEscapes;
    // Ranks send no blocks but those that a device writes.
    return decode_constant<kType, kSize>(decoding, view);
  }

  /// Elements as they are.
  static UZIP_DEVICE_CALL void take_elements(Shared& shared, const DecodeArgs& decoding,
                                             BlockView view, const uint8_t* slot) {
    if (decoding.operand == nullptr)
      return move_bytes<kThreads>(decoding.dst + view.first * kSize, slot, view.values * kSize,
                                  true);
    auto* const here = reinterpret_cast<uint8_t*>(&shared.in);
    static_assert(sizeof(DecodeStage<Format>) >= Format::kTileValues * kSize);
    move_bytes<kThreads>(here, slot, view.values * kSize, true);
    sync_coders();
    for (unsigned first = thread_index() * kSegmentValues; first < view.values;
         first += kThreads * kSegmentValues)
      emit<kType, kSize>(decoding, view.first + first, view.values - first, view.aligned,
                         load_values<kSize>(here + first * kSize));
    hand_over();  // `in` was written
  }
};

}  // namespace uzip::gpu
