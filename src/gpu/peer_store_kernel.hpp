// Calls of middle size, and large ones that are not coded: one kernel stores tiles straight into
// the others' memory, reduces what arrives, and stores the results. Each thread block works for
// itself, with its own ring of tiles to and from the same block of each other rank; words beside
// the tiles say that one has arrived, or may be overwritten.
//
// A block goes through its tiles in steps: in step i it pushes tile i, combines tile i - 1 and
// pulls tile i - 2. What it waits for others do in earlier steps, so nobody waits in a circle;
// kStoreDepth tiles of a ring are enough.
#pragma once

#include "gpu/peer_tiles.hpp"

namespace uzip::gpu {

inline constexpr unsigned kStoreThreads = 512;

struct StorePort {
  TileRing push;     ///< this rank's tiles to the other's pair ring; null: none
  TileRing take;     ///< its tiles to this rank
  TileRing share;    ///< results to the other's share ring
  TileRing collect;  ///< its results
};

struct StoreArgs {
  StorePort ports[kMostPeerRanks];
  StoreChunk
      chunks[kMostPeerRanks];  ///< in src of what is pushed to a rank, in dst of what it shares
  const uint8_t* src;
  uint8_t* dst;
  uint8_t* own_result;  ///< of a reduction
  const uint8_t* own;   ///< this rank's chunk in src
  uint64_t tile_bytes;
  uint64_t slot_bytes;  ///< from one tile of a ring to the next
  uint32_t rounds;      ///< tiles of each block, some of them empty
  uint32_t op;
  bool pushes;
  bool combines;
  bool pulls;
  uint64_t average_over;
  uint64_t deadline_ns;
  CallEnd end;
};

/// Where the tiles of a step are, by rank.
struct StepTiles {
  uint8_t* push[kMostPeerRanks];
  uint8_t* take[kMostPeerRanks];
  uint8_t* share[kMostPeerRanks];
  uint8_t* collect[kMostPeerRanks];
};

/// `kReduces`: else `kType` means nothing.
template <int kType, bool kReduces>
class StoreExchange {
 public:
  UZIP_DEVICE explicit StoreExchange(const StoreArgs& args, StepTiles& tiles)
      : args_(args),
        tiles_(tiles),
        rank_(args.end.rank),
        ranks_(args.end.ranks),
        patience_(args.deadline_ns, args.end.given_up[args.end.rank]) {}

  UZIP_DEVICE void run() {
    if (thread_index() == 0) patience_.look();
    bool lasts = true;
    for (uint32_t i = 0; lasts && i < args_.rounds + 2; ++i) {
      if (args_.pushes && i < args_.rounds) lasts = push(i);
      if (lasts && args_.combines && i >= 1 && i - 1 < args_.rounds) lasts = combine(i - 1);
      if (lasts && args_.pulls && i >= 2) lasts = pull(i - 2);
    }
    sync();
    if (thread_index() == 0) end_call(args_.end, lasts ? 0 : uint64_t{kGaveUp}, [] {});
  }

 private:
  /// Where a tile of a chunk is; empty behind its end.
  UZIP_DEVICE StoreChunk tile(const StoreChunk& chunk, uint32_t round) const {
    const uint64_t at =
        (static_cast<uint64_t>(round) * grid_size() + block_index()) * args_.tile_bytes;
    if (at >= chunk.bytes) return {0, 0};
    const uint64_t left = chunk.bytes - at;
    return {chunk.begin + at, left < args_.tile_bytes ? left : args_.tile_bytes};
  }
  UZIP_DEVICE uint64_t slot(const TileRing& ring, uint32_t round) const {
    return block_index() * kStoreDepth + (ring.sequence + round) % kStoreDepth;
  }
  /// Null if there is no such ring.
  UZIP_DEVICE uint8_t* memory(const TileRing& ring, uint32_t round) const {
    return ring.tiles == nullptr ? nullptr : ring.tiles + slot(ring, round) * args_.slot_bytes;
  }

  // ---- Words -------------------------------------------------------------------------------------

  UZIP_DEVICE void wait_for(const uint64_t* word, uint64_t value) {
    while (load_from_others(word) < value)
      if (patience_.is_over()) return;
  }
  /// One thread for each other rank.
  template <class Action>
  UZIP_DEVICE void each_rank(Action action) {
    const unsigned rank = thread_index();
    if (rank < ranks_ && rank != rank_) action(args_.ports[rank], rank);
  }
  UZIP_DEVICE void wait_for_room(const TileRing& ring, uint32_t round) {
    const uint64_t sequence = ring.sequence + round;
    if (ring.tiles != nullptr && sequence >= kStoreDepth)
      wait_for(ring.returned + slot(ring, round), sequence - kStoreDepth + 1);
  }
  UZIP_DEVICE void wait_for_tile(const TileRing& ring, uint32_t round) {
    if (ring.tiles != nullptr)
      wait_for(ring.arrived + slot(ring, round), ring.sequence + round + 1);
  }
  /// After waits, a barrier. False when one of them, of any thread, has ended without what it waited
  /// for: then nothing may be stored or announced any more.
  UZIP_DEVICE bool is_there() { return !sync_or(patience_.has_ended()); }
  /// After a barrier, so that it stands for what all threads have stored.
  UZIP_DEVICE void say(const TileRing& ring, uint64_t* words, uint32_t round) {
    if (ring.tiles == nullptr) return;
    store_for_all(words + slot(ring, round), ring.sequence + round + 1);
  }

  // ---- Steps -------------------------------------------------------------------------------------

  // Each is false when the call has failed.

  UZIP_DEVICE bool push(uint32_t round) {
    each_rank([&](const StorePort& port, unsigned rank) {
      tiles_.push[rank] = memory(port.push, round);
      wait_for_room(port.push, round);
    });
    if (!is_there()) return false;
    for (unsigned i = 1; i < ranks_; ++i) {
      const unsigned rank = (rank_ + i) % ranks_;
      const StoreChunk part = tile(args_.chunks[rank], round);
      if (tiles_.push[rank] != nullptr)
        move_bytes<kStoreThreads>(tiles_.push[rank], args_.src + part.begin, part.bytes, false);
    }
    sync();
    each_rank([&](const StorePort& port, unsigned) { say(port.push, port.push.arrived, round); });
    return true;
  }

  /// This rank's chunk: reduces what arrived, or takes it, and shares the result, or what it has.
  UZIP_DEVICE bool combine(uint32_t round) {
    each_rank([&](const StorePort& port, unsigned rank) {
      tiles_.take[rank] = memory(port.take, round);
      tiles_.share[rank] = memory(port.share, round);
      wait_for_tile(port.take, round);
      wait_for_room(port.share, round);
    });
    if (!is_there()) return false;
    const StoreChunk part = tile({0, args_.chunks[rank_].bytes}, round);
    if constexpr (kReduces)
      TileReducer<kType, kStoreThreads>(args_.end, args_.op, args_.average_over, tiles_.take,
                                        tiles_.share)
          .reduce(args_.own + part.begin, args_.own_result + part.begin, part.bytes);
    else
      pass_on(part);
    sync();
    each_rank([&](const StorePort& port, unsigned) {
      say(port.take, port.take.returned, round);
      say(port.share, port.share.arrived, round);
    });
    return true;
  }

  UZIP_DEVICE void pass_on(const StoreChunk& part) {
    for (unsigned i = 1; i < ranks_; ++i) {
      const unsigned rank = (rank_ + i) % ranks_;
      if (tiles_.share[rank] != nullptr)
        move_bytes<kStoreThreads>(tiles_.share[rank], args_.own + part.begin, part.bytes, false);
      if (tiles_.take[rank] != nullptr)
        move_bytes<kStoreThreads>(args_.dst + part.begin, tiles_.take[rank], part.bytes, true);
    }
    if (args_.own_result != nullptr && args_.own_result != args_.own)
      move_bytes<kStoreThreads>(args_.own_result + part.begin, args_.own + part.begin, part.bytes, false);
  }

  /// The others' chunks.
  UZIP_DEVICE bool pull(uint32_t round) {
    each_rank([&](const StorePort& port, unsigned rank) {
      tiles_.collect[rank] = memory(port.collect, round);
      wait_for_tile(port.collect, round);
    });
    if (!is_there()) return false;
    for (unsigned i = 1; i < ranks_; ++i) {
      const unsigned rank = (rank_ + i) % ranks_;
      const StoreChunk part = tile(args_.chunks[rank], round);
      if (tiles_.collect[rank] != nullptr)
        move_bytes<kStoreThreads>(args_.dst + part.begin, tiles_.collect[rank], part.bytes, true);
    }
    sync();
    each_rank(
        [&](const StorePort& port, unsigned) { say(port.collect, port.collect.returned, round); });
    return true;
  }

  const StoreArgs& args_;
  StepTiles& tiles_;
  const uint32_t rank_;
  const uint32_t ranks_;
  Patience patience_;
};

}  // namespace uzip::gpu
