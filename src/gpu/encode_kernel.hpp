// Encodes a frame of the lev codec in one pass: each block of threads takes tiles of 8192 or 16384 values in
// turn, codes them in shared memory, learns where their bytes belong, and has them written there
// while it codes the next one. Instantiated by kernels_*.cu.
#pragma once

#include "codec/lev_layout.hpp"
#include "gpu/bulk_copy.hpp"
#include "gpu/tile_encoder.hpp"
#include "gpu/tile_places.hpp"

namespace uzip::gpu {

template <class Format>
struct EncodeShared {
  TileSlot<Format> slots[2];
  EncodeWork<Format> work;
  uint32_t next;    ///< tile
  uint64_t plains;  ///< before the tile that is placed
  uint64_t found[kGroups];
};

template <class Format, bool kWhole>
UZIP_DEVICE TileEncoder<Format, kWhole> encoder_of(const EncodeArgs& args, uint32_t tile) {
  const uint64_t begin = static_cast<uint64_t>(tile) << Format::kTileLog2;
  const uint64_t left = args.begin.count - begin;
  return {args.src + begin * Format::kSize,
          left < Format::kTileValues ? static_cast<unsigned>(left) : Format::kTileValues};
}

/// Reads, plans and codes a tile into slot `index`. All threads call `announce`, after a barrier and
/// before another.
template <class Format, bool kWhole, class Announce>
UZIP_DEVICE CodedTile encode_tile(const EncodeArgs& args, EncodeShared<Format>& shared,
                                  unsigned index, uint32_t epoch, uint32_t tile,
                                  const Announce& announce) {
  EncodeWork<Format>& work = shared.work;
  TileSlot<Format>& slot = shared.slots[index];
  auto encoder = encoder_of<Format, kWhole>(args, tile);
  const auto publish = [&](bool constant) {
    return [&args, epoch, tile, constant](unsigned coded_bytes) {
      if (thread_index() == 0)
        store_shared_word(args.words + tile,
                          word_of(epoch, kOwn, own_sums(args, constant, coded_bytes)));
    };
  };
  uint32_t* const bins = work.bins[index];
  uint8_t* const plain =
      kKeepsPlain<Format> || args.fixed_plain == 0
          ? nullptr
          : args.plain + static_cast<uint64_t>(tile) * Format::plain_bytes(Format::kTileValues);
  if (!encoder.read(bins, &work.samples, plain)) {
    announce();
    const CodedTile coded = code_constant_tile(encoder, slot, publish(true));
    sync();
    return coded;
  }
  if (group_index() == 0) {
    const uint32_t samples = kWhole ? kSamples : work.samples;
    const LevelPlan plan = plan_levels<Format::kFieldBits>(bins, samples, args.levels);
    if (lane_index() == 0) work.plan = pack_plan(plan);
  }
  announce();
  encoder.keep_plain(slot);
  sync();
  return code_tile(encoder, unpack_plan(work.plan), work, slot, publish(false));
}

/// For tiles at the end of a frame, and for elements that are not aligned: calls, so that the common
/// way keeps its registers.
template <class Format>
UZIP_DEVICE_CALL CodedTile encode_odd_tile(const EncodeArgs& args, EncodeShared<Format>& shared,
                                           unsigned index, uint32_t epoch, uint32_t tile) {
  return encode_tile<Format, false>(args, shared, index, epoch, tile, [] {});
}
template <class Format>
UZIP_DEVICE_CALL void copy_odd_plain(const EncodeArgs& args, uint32_t tile, uint8_t* plain) {
  encoder_of<Format, false>(args, tile).copy_plain(plain);
}

template <class Format>
class FrameEncoder {
 public:
  UZIP_DEVICE FrameEncoder(const EncodeArgs& args, EncodeShared<Format>& shared)
      : args_(args),
        shared_(shared),
        tiles_(static_cast<uint32_t>((args.begin.count + Format::kTileValues - 1) >> Format::kTileLog2)),
        helpers_(tiles_ > kDirectTiles ? 1 : 0),
        epoch_(args.state->epoch),
        aligned_(reinterpret_cast<uintptr_t>(args.src) % 16 == 0) {}

  UZIP_DEVICE void encode() {
    if (block_index() < helpers_)
      sum_tiles(args_.words, epoch_, tiles_, shared_.work.sums, shared_.found);
    else
      encode_tiles();
    if (moves() && lane_index() == 0) leave();
  }

 private:
  /// Whether this thread is of the group that moves tiles. It is not the one that plans.
  UZIP_DEVICE static bool moves() { return group_index() == kGroups - 1; }

  UZIP_DEVICE bool is_whole(uint32_t tile) const {
    return aligned_ && args_.begin.count >= (static_cast<uint64_t>(tile) + 1) << Format::kTileLog2;
  }

  UZIP_DEVICE void encode_tiles() {
    // Tiles are drawn when a block of threads runs, not dealt out before: a tile waits for those before
    // it, so these must not be of blocks that have not begun.
    if (moves() && lane_index() == 0) shared_.next = draw_tile();
    clear_bins(0);
    sync();
    uint32_t tile = shared_.next;
    if (tile >= tiles_) return;
    CodedTile waiting{};
    uint32_t waiting_tile = 0;
    unsigned turn = 0;
    for (; tile < tiles_; ++turn) {
      const unsigned index = turn % 2;
      clear_bins(index ^ 1);
      // The counter answers while the tile is read.
      uint32_t next = 0;
      if (moves() && lane_index() == 0) next = draw_tile();
      const auto announce = [&] {
        if (!moves() || lane_index() != 0) return;
        shared_.next = next;
        // Not where tiles are read again, of which there must be room in that cache.
        if (kKeepsPlain<Format> && is_whole(next))
          fetch_bulk(args_.src + (static_cast<uint64_t>(next) << Format::kTileLog2) * Format::kSize,
                     Format::kTileValues * Format::kSize);
      };
      CodedTile coded;
      if (is_whole(tile)) {
        coded = encode_tile<Format, true>(args_, shared_, index, epoch_, tile, announce);
      } else {
        if (thread_index() == 0) shared_.work.samples = 0;
        sync();
        announce();
        coded = encode_odd_tile<Format>(args_, shared_, index, epoch_, tile);
      }
      // As late as the next tile allows: the place is known by now, so that nobody waits.
      if (moves() && turn > 0) place(waiting_tile, waiting, shared_.slots[index ^ 1]);
      if (turn > 0) copy_left_out(waiting_tile, waiting);
      waiting = coded;
      waiting_tile = tile;
      tile = shared_.next;
      hand_over();
      if (moves()) wait_bulk_stores();
    }
    sync();
    if (moves()) place(waiting_tile, waiting, shared_.slots[turn % 2 ^ 1]);
    copy_left_out(waiting_tile, waiting);
    if (moves()) wait_bulk_stores();
  }

  UZIP_DEVICE uint32_t draw_tile() const { return atomic_add(&args_.state->ticket, 1); }

  UZIP_DEVICE void clear_bins(unsigned index) const {
    uint32_t* const bins = shared_.work.bins[index];
    static_assert(kHistogramBins == kThreads);
    bins[thread_index()] = 0;
    if (thread_index() < kHistogramPadding) bins[kHistogramBins + thread_index()] = 0;
  }

  /// Has a coded tile written to where it belongs; by one group.
  UZIP_DEVICE void place(uint32_t tile, const CodedTile& coded, const TileSlot<Format>& slot) const {
    const bool fixed = args_.fixed_plain != 0;
    const uint64_t before =
        sums_before(args_.words, epoch_, tiles_, tile,
                    own_sums(args_, coded.constant, coded.coded_bytes));
    const uint64_t units = before & kUnitMask;
    const uint64_t plains = fixed ? tile : before >> kUnitBits;
    const unsigned plain_bytes =
        coded.constant && !fixed ? 0 : Format::plain_bytes(coded.values);
    store_bulk(args_.coded + lev_first_block(tiles_) + units * 16, slot.image, coded.coded_bytes);
    if (kKeepsPlain<Format> && !coded.constant)
      store_bulk(args_.plain + plains * kPlainStride, slot.plain, plain_bytes);
    commit_bulk_stores();
    if (lane_index() != 0) return;
    if constexpr (!kKeepsPlain<Format>) shared_.plains = plains;
    reinterpret_cast<uint2*>(args_.coded + sizeof(LevHead))[tile] =
        make_uint2(plain_bytes, coded.coded_bytes);
    if (tile + 1 == tiles_)
      write_heads(plains * kPlainStride + plain_bytes,
                  lev_first_block(tiles_) + units * 16 + coded.coded_bytes);
  }

  /// Copies the plain bytes of a tile that is placed if that was not done before.
  UZIP_DEVICE void copy_left_out(uint32_t tile, const CodedTile& coded) const {
    if constexpr (!kKeepsPlain<Format>) {
      sync();  // the place is known
      if (coded.constant || args_.fixed_plain != 0) return;
      uint8_t* const plain = args_.plain + shared_.plains * kPlainStride;
      if (is_whole(tile))
        encoder_of<Format, true>(args_, tile).copy_plain(plain);
      else
        copy_odd_plain<Format>(args_, tile, plain);
    }
  }

  UZIP_DEVICE void write_heads(uint64_t plain_bytes, uint64_t coded_bytes) const {
    *reinterpret_cast<uint2*>(args_.coded) = make_uint2(Format::kTileLog2, tiles_);
    const uint64_t table_end =
        sizeof(LevHead) + static_cast<uint64_t>(tiles_) * sizeof(LevTableEntry);
    if (table_end < lev_first_block(tiles_))
      *reinterpret_cast<uint2*>(args_.coded + table_end) = make_uint2(0, 0);
    FrameHeader header = args_.begin;
    header.codec = 1;
    header.plain_bytes = plain_bytes;
    header.coded_bytes = coded_bytes;
    const uint64_t raw_bytes = args_.begin.count * Format::kSize;
    if (args_.may_be_raw != 0 && plain_bytes + coded_bytes >= raw_bytes) {
      header.codec = kCodecRaw;
      header.plain_bytes = raw_bytes;
      header.coded_bytes = 0;
    }
    *args_.header = header;
  }

  /// The last block of threads leaves the state as the next frame expects it.
  UZIP_DEVICE void leave() const {
    if (atomic_add(&args_.state->exited, 1) + 1 != grid_size()) return;
    args_.state->ticket = 0;
    args_.state->exited = 0;
    args_.state->epoch = (epoch_ + 1) % kEpochs;
    if (args_.state->epoch == 0)
      for (uint32_t i = 0; i < args_.state->word_count; ++i) args_.words[i] = 0;
  }

  static constexpr unsigned kPlainStride = Format::plain_bytes(Format::kTileValues);

  const EncodeArgs& args_;
  EncodeShared<Format>& shared_;
  uint32_t tiles_;
  uint32_t helpers_;  ///< blocks of threads that code nothing
  uint32_t epoch_;
  bool aligned_;
};

}  // namespace uzip::gpu
