// How the ranks of a call by coded tiles meet: the rings between them, the words beside their slots,
// and the group of lanes of a thread block that stores what the others have coded. Used by the kernel
// in peer_coded_kernel.hpp.
#pragma once

#include "gpu/peer_coded_tiles.hpp"

namespace uzip::gpu {

struct CodedPort {
  TileRing push;     ///< this rank's tiles to the other's pair ring; null: none
  TileRing take;     ///< its tiles to this rank
  TileRing share;    ///< results to the other's share ring
  TileRing collect;  ///< its results
  /// The slot before the first one of this call was left out: tiles of two slots begin at even
  /// ones.
  bool take_skips;
  bool collect_skips;
};

/// A part of a vector, in values.
struct CodedChunk {
  uint64_t begin;
  uint64_t count;
};

struct CodedArgs {
  CodedPort ports[kMostPeerRanks];
  CodedChunk
      chunks[kMostPeerRanks];  ///< in src of what is pushed to a rank, in dst of what it shares
  const uint8_t* src;
  uint8_t* dst;
  uint8_t* own_result;   ///< of this rank's chunk
  const uint8_t* own;    ///< this rank's chunk in src
  DecodeArgs combining;  ///< dst and operand are those of this rank's chunk
  DecodeArgs pulling;    ///< dst is `dst`
  DecodeArgs
      spreading;    ///< dst is the region with the slots: elements take the place of their code
  uint64_t slots;   ///< of a ring: a power of two
  uint32_t rounds;  ///< tiles of each block, at most
  /// Thread blocks that begin at a time, and how long after the last ones: see begin_in_turn().
  uint32_t turn_blocks;
  uint32_t turn_ns;
  uint32_t op;
  uint32_t levels;
  bool pushes;
  bool combines;
  bool pulls;
  bool reduces;
  uint64_t average_over;
  uint64_t deadline_ns;
  uint32_t* coded_units;  ///< see PeerGroup::coded_units(); 16 bytes each
  uint64_t* coded_bytes;  ///< TicketWords::coded
  CallEnd end;
};

/// Threads of a block: those that code, and a group that stores.
inline constexpr unsigned kCodedThreads = kThreads + kGroupLanes;

/// What a thread block knows of a call.
template <int kType>
class CodedRings {
 public:
  using Codec = TileCodec<kType>;
  using Format = typename Codec::Format;
  using Shared = typename Codec::Shared;
  static constexpr unsigned kSize = Format::kSize;
  static constexpr uint32_t kSlots = kTileSlots<Format>;
  static constexpr uint32_t kPlainRoom = Format::plain_bytes(Format::kTileValues);

 protected:
  UZIP_DEVICE CodedRings(const CodedArgs& args, Shared& shared)
      : args_(args),
        shared_(shared),
        rank_(args.end.rank),
        ranks_(args.end.ranks),
        patience_(args.deadline_ns, args.end.given_up[args.end.rank]) {}

  // ---- Words -------------------------------------------------------------------------------------

  UZIP_DEVICE static uint64_t sequence(const TileRing& ring, uint64_t tile) {
    return ring.sequence + tile * kSlots;
  }
  UZIP_DEVICE uint64_t slot(uint64_t sequence) const { return sequence & (args_.slots - 1); }
  UZIP_DEVICE uint8_t* memory(const TileRing& ring, uint64_t tile) const {
    return ring.tiles + slot(sequence(ring, tile)) * kCodedSlotBytes;
  }
  UZIP_DEVICE bool is_over() {
    return patience_.is_over() || *static_cast<volatile uint32_t*>(&shared_.failed) != 0;
  }
  UZIP_DEVICE bool has_room(const TileRing& ring, uint64_t tile) const {
    bool room = true;
    UZIP_UNROLL
    for (uint32_t k = 0; k < kSlots; ++k) {
      const uint64_t number = sequence(ring, tile) + k;
      room = room && (number < args_.slots ||
                      load_from_others(ring.returned + slot(number)) >= number - args_.slots + 1);
    }
    return room;
  }
  /// After all that was stored can be seen.
  UZIP_DEVICE void announce(const TileRing& ring, uint64_t tile, uint32_t coded_bytes) const {
    const uint64_t number = sequence(ring, tile);
    store_for_all(ring.arrived + slot(number), coded_word(number, coded_bytes));
  }
  /// When all of the slot has been read.
  UZIP_DEVICE void give_back(const TileRing& ring, uint64_t tile) const {
    UZIP_UNROLL
    for (uint32_t k = 0; k < kSlots; ++k) give_back_slot(ring, sequence(ring, tile) + k);
  }
  UZIP_DEVICE void give_back_slot(const TileRing& ring, uint64_t number) const {
    store_word_for_others(ring.returned + slot(number), number + 1);
  }
  UZIP_DEVICE void give_back_left_out() const {
    const unsigned rank = thread_index();
    if (rank >= ranks_ || rank == rank_) return;
    const CodedPort& port = args_.ports[rank];
    if (port.take_skips) give_back_slot(port.take, port.take.sequence - 1);
    if (port.collect_skips) give_back_slot(port.collect, port.collect.sequence - 1);
  }

  // ---- What leaves -------------------------------------------------------------------------------
  //
  // Threads that code put a tile in `out` and say so at a barrier; the group that stores says at
  // another one that `out` may be written again, which is when it has been read, not when it has
  // arrived. So nobody who codes waits for the link, but for a tile that is still in `out`.

  /// A tile that leaves: to a rank, to all, or none: the end.
  struct Leaving {
    uint64_t tile;
    unsigned to;
  };
  static constexpr unsigned kToAll = kMostPeerRanks;
  static constexpr unsigned kToNobody = kMostPeerRanks + 1;

  /// By the threads that code, before they write to `out`.
  UZIP_DEVICE static void wait_until_free() { wait_at<kFreeBarrier, kCodedThreads>(); }
  /// By them, when it is written. `coded_bytes` 0: it has the elements as they are, of which there are
  /// `plain_bytes`.
  UZIP_DEVICE void leave(const Leaving& leaving, uint32_t coded_bytes, uint32_t plain_bytes) {
    if (thread_index() == 0)
      shared_.leaving = {leaving.tile, leaving.to, coded_bytes, (plain_bytes + 15) / 16 * 16};
    hand_over();
    arrive_at<kFullBarrier, kCodedThreads>();
  }

  /// By the group that stores, until the end.
  UZIP_DEVICE void store_tiles() {
    arrive_at<kFreeBarrier, kCodedThreads>();
    for (;;) {
      wait_at<kFullBarrier, kCodedThreads>();
      const LeavingTile tile = shared_.leaving;
      if (tile.to == kToNobody) return;
      const Leaving leaving = {tile.tile, tile.to};
      coded_units_ += (tile.coded_bytes + tile.plain_bytes) / 16;
      const bool room = wait_for_room(leaving);
      for (unsigned rank = 0; room && rank < ranks_; ++rank)
        if (const TileRing* const ring = ring_of(leaving, rank))
          store(memory(*ring, tile.tile), tile);
      commit_bulk_stores();
      wait_bulk_stores();
      sync_group();
      arrive_at<kFreeBarrier, kCodedThreads>();
      if (!room) continue;  // nobody waits long then
      wait_bulk_stored();
      for (unsigned rank = 0; lane_index() == 0 && rank < ranks_; ++rank)
        if (const TileRing* const ring = ring_of(leaving, rank))
          announce(*ring, tile.tile, tile.coded_bytes);
    }
  }

 private:
  static constexpr unsigned kFreeBarrier = 2;
  static constexpr unsigned kFullBarrier = 3;

  /// Null: it does not go to this rank.
  UZIP_DEVICE const TileRing* ring_of(const Leaving& leaving, unsigned rank) const {
    if (rank >= ranks_ || rank == rank_) return nullptr;
    if (leaving.to == kToAll) return &args_.ports[rank].share;
    return leaving.to == rank ? &args_.ports[rank].push : nullptr;
  }
  UZIP_DEVICE bool wait_for_room(const Leaving& leaving) {
    const TileRing* const ring = ring_of(leaving, lane_index());
    bool room = ring == nullptr || has_room(*ring, leaving.tile);
    while (!room && !is_over()) room = has_room(*ring, leaving.tile);
    // After one that had to wait too long nothing is stored any more.
    room = ballot(!room || *static_cast<volatile uint32_t*>(&shared_.failed) != 0) == 0;
    if (!room && lane_index() == 0) shared_.failed = 1;
    return room;
  }
  UZIP_DEVICE void store(uint8_t* slot, const LeavingTile& tile) const {
    static_assert(sizeof shared_.out >= Format::kTileValues * kSize);
    if (tile.coded_bytes == 0)
      return store_bulk(slot, &shared_.out, tile.plain_bytes);
    store_bulk(slot, shared_.out.plain, tile.plain_bytes);
    store_bulk(slot + kPlainRoom, shared_.out.image, tile.coded_bytes);
  }

 protected:
  const CodedArgs& args_;
  Shared& shared_;
  const uint32_t rank_;
  const uint32_t ranks_;
  Patience patience_;
  uint32_t coded_units_ = 0;  ///< of the group that stores: what tiles took, whatever to how many ranks
};

}  // namespace uzip::gpu
