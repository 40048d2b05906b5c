// Calls of middle size, and large ones that are not coded: one kernel stores tiles straight into
// the others' memory, reduces what arrives, and stores the results. Each thread block works for
// itself, with its own ring of tiles to and from the same block of each other rank; words beside
// the tiles say that one has arrived, or may be overwritten.
//
// A block goes through its tiles in steps: in step i it pushes tile i, combines tile i - 1 and
// pulls tile i - 2. What it waits for others do in earlier steps, so nobody waits in a circle;
// kStoreDepth tiles of a ring are enough.
#pragma once

#include "gpu/emit.hpp"
#include "gpu/peer_layout.hpp"
#include "gpu/peer_words.hpp"

#include <type_traits>
#include <utility>

namespace uzip::gpu {

inline constexpr unsigned kStoreThreads = 512;

/// The ring of tiles between two ranks, as one end sees it. The words and tiles of block b begin at
/// b * kStoreDepth.
struct TileRing {
  uint8_t* tiles;
  uint64_t* arrived;   ///< the sender writes, the receiver waits
  uint64_t* returned;  ///< the receiver writes, the sender waits
  uint64_t sequence;   ///< of the first tile of this call, counted from 0
};

struct StorePort {
  TileRing push;     ///< this rank's tiles to the other's pair ring; null: none
  TileRing take;     ///< its tiles to this rank
  TileRing share;    ///< results to the other's share ring
  TileRing collect;  ///< its results
};

/// A part of a vector, in bytes.
struct StoreChunk {
  uint64_t begin;
  uint64_t bytes;
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
  bool reduces;
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

/// Reductions of the elements of 16 bytes.
template <class Accumulator>
class UnitAccumulator {
 public:
  using Bits = typename Accumulator::Bits;
  static constexpr unsigned kElements = 16 / sizeof(Bits);

  UZIP_DEVICE UnitAccumulator(uint32_t op, const uint4& unit)
      : UnitAccumulator(op, unit, std::make_index_sequence<kElements>{}) {}
  UZIP_DEVICE void next(const uint4& unit) {
    UZIP_UNROLL
    for (unsigned i = 0; i < kElements; ++i) accumulators_[i].next(element(unit, i));
  }
  UZIP_DEVICE uint4 result(uint64_t average_over) const {
    uint64_t words[2] = {0, 0};
    UZIP_UNROLL
    for (unsigned i = 0; i < kElements; ++i)
      words[2 * i / kElements] |= static_cast<uint64_t>(static_cast<std::make_unsigned_t<Bits>>(
                                      accumulators_[i].result(average_over)))
                                  << (8 * sizeof(Bits) * i % 64);
    return make_uint4(static_cast<uint32_t>(words[0]), static_cast<uint32_t>(words[0] >> 32),
                      static_cast<uint32_t>(words[1]), static_cast<uint32_t>(words[1] >> 32));
  }

 private:
  template <size_t... kIndex>
  UZIP_DEVICE UnitAccumulator(uint32_t op, const uint4& unit, std::index_sequence<kIndex...>)
      : accumulators_{{op, element(unit, kIndex)}...} {}
  static UZIP_DEVICE Bits element(const uint4& unit, unsigned index) {
    const uint64_t low = static_cast<uint64_t>(unit.y) << 32 | unit.x;
    const uint64_t high = static_cast<uint64_t>(unit.w) << 32 | unit.z;
    return static_cast<Bits>((index < kElements / 2 ? low : high) >>
                             (8 * sizeof(Bits) * index % 64));
  }

  Accumulator accumulators_[kElements];
};

template <int kType>
class StoreExchange {
 public:
  using Accumulator = typename AccumulatorOf<kType>::Type;
  using Bits = typename Accumulator::Bits;
  /// Units of 16 bytes that a thread has on the way at a time.
  static constexpr unsigned kUnroll = 4;
  static constexpr unsigned kReduceUnroll = sizeof(Bits) == 1 ? 2 : 4;

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
    if (thread_index() == 0) end_call(args_.end, !lasts, [] {});
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
        move(tiles_.push[rank], args_.src + part.begin, part.bytes, false);
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
    args_.reduces ? reduce(part) : pass_on(part);
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
        move(tiles_.share[rank], args_.own + part.begin, part.bytes, false);
      if (tiles_.take[rank] != nullptr)
        move(args_.dst + part.begin, tiles_.take[rank], part.bytes, true);
    }
    if (args_.own_result != nullptr && args_.own_result != args_.own)
      move(args_.own_result + part.begin, args_.own + part.begin, part.bytes, false);
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
        move(args_.dst + part.begin, tiles_.collect[rank], part.bytes, true);
    }
    sync();
    each_rank(
        [&](const StorePort& port, unsigned) { say(port.collect, port.collect.returned, round); });
    return true;
  }

  // ---- Bytes -------------------------------------------------------------------------------------

  static UZIP_DEVICE bool is_aligned(const void* address) {
    return reinterpret_cast<uintptr_t>(address) % 16 == 0;
  }
  static UZIP_DEVICE uint4 load(const uint4* src, bool fresh) {
    return fresh ? load_fresh(src) : *src;
  }

  UZIP_DEVICE void move(uint8_t* dst, const uint8_t* src, uint64_t bytes, bool fresh) {
    uint64_t done = 0;
    if (is_aligned(dst) && is_aligned(src)) {
      auto* const to = reinterpret_cast<uint4*>(dst);
      const auto* const from = reinterpret_cast<const uint4*>(src);
      const uint64_t units = bytes / 16;
      uint64_t i = thread_index();
      for (; i + (kUnroll - 1) * kStoreThreads < units; i += kUnroll * kStoreThreads) {
        uint4 words[kUnroll];
        UZIP_UNROLL
        for (unsigned k = 0; k < kUnroll; ++k) words[k] = load(from + i + k * kStoreThreads, fresh);
        UZIP_UNROLL
        for (unsigned k = 0; k < kUnroll; ++k) to[i + k * kStoreThreads] = words[k];
      }
      for (; i < units; i += kStoreThreads) to[i] = load(from + i, fresh);
      done = units * 16;
    }
    for (uint64_t i = done + thread_index(); i < bytes; i += kStoreThreads)
      dst[i] = *reinterpret_cast<const volatile uint8_t*>(src + i);
  }

  UZIP_DEVICE void reduce(const StoreChunk& part) {
    const uint8_t* const own = args_.own + part.begin;
    uint8_t* const result = args_.own_result + part.begin;
    uint64_t done = 0;
    if (is_aligned(own) && is_aligned(result)) {
      const uint64_t units = part.bytes / 16;
      uint64_t i = thread_index();
      for (; i + (kReduceUnroll - 1) * kStoreThreads < units; i += kReduceUnroll * kStoreThreads)
        reduce_units(i, own, result, std::make_index_sequence<kReduceUnroll>{});
      for (; i < units; i += kStoreThreads)
        reduce_units(i, own, result, std::make_index_sequence<1>{});
      done = units * 16;
    }
    // The rest, and what is not aligned, element by element.
    for (uint64_t at = done + thread_index() * sizeof(Bits); at < part.bytes;
         at += kStoreThreads * sizeof(Bits))
      reduce_element(at, own, result);
  }

  /// In rank order, whatever arrived first.
  template <size_t... kBatch>
  UZIP_DEVICE void reduce_units(uint64_t first, const uint8_t* own, uint8_t* result,
                                std::index_sequence<kBatch...>) {
    const auto value_of = [&](unsigned rank, uint64_t unit) {
      return rank == rank_
                 ? reinterpret_cast<const uint4*>(own)[unit]
                 : load_fresh(reinterpret_cast<const uint4*>(tiles_.take[rank]) + unit);
    };
    const uint4 operands[] = {value_of(0, first + kBatch * kStoreThreads)...};
    UnitAccumulator<Accumulator> sums[] = {{args_.op, operands[kBatch]}...};
    for (unsigned rank = 1; rank < ranks_; ++rank) {
      const uint4 next[] = {value_of(rank, first + kBatch * kStoreThreads)...};
      (sums[kBatch].next(next[kBatch]), ...);
    }
    const uint4 results[] = {sums[kBatch].result(args_.average_over)...};
    ((reinterpret_cast<uint4*>(result)[first + kBatch * kStoreThreads] = results[kBatch]), ...);
    for (unsigned i = 1; i < ranks_; ++i) {
      auto* const shared = reinterpret_cast<uint4*>(tiles_.share[(rank_ + i) % ranks_]);
      if (shared != nullptr) ((shared[first + kBatch * kStoreThreads] = results[kBatch]), ...);
    }
  }

  UZIP_DEVICE void reduce_element(uint64_t at, const uint8_t* own, uint8_t* result) {
    const auto value_of = [&](unsigned rank) {
      return static_cast<Bits>(load_bits((rank == rank_ ? own : tiles_.take[rank]) + at));
    };
    Accumulator accumulator(args_.op, value_of(0));
    for (unsigned rank = 1; rank < ranks_; ++rank) accumulator.next(value_of(rank));
    const Bits bits = accumulator.result(args_.average_over);
    store_bits(result + at, bits);
    for (unsigned i = 1; i < ranks_; ++i) {
      uint8_t* const shared = tiles_.share[(rank_ + i) % ranks_];
      if (shared != nullptr) store_bits(shared + at, bits);
    }
  }
  static UZIP_DEVICE uint64_t load_bits(const uint8_t* src) {
    uint64_t bits = 0;
    UZIP_UNROLL
    for (unsigned b = 0; b < sizeof(Bits); ++b)
      bits |= static_cast<uint64_t>(*reinterpret_cast<const volatile uint8_t*>(src + b)) << (8 * b);
    return bits;
  }
  static UZIP_DEVICE void store_bits(uint8_t* dst, Bits bits) {
    UZIP_UNROLL
    for (unsigned b = 0; b < sizeof(Bits); ++b)
      dst[b] = static_cast<uint8_t>(static_cast<uint64_t>(bits) >> (8 * b));
  }

  const StoreArgs& args_;
  StepTiles& tiles_;
  const uint32_t rank_;
  const uint32_t ranks_;
  Patience patience_;
};

}  // namespace uzip::gpu
