// Large calls with the codec: one kernel codes tiles of 8192 values, stores them straight into the
// others' memory, takes theirs, decodes and reduces, codes the results and stores them. So the
// codec's work and the link's go on at the same time, and no size goes to a host.
//
// Between two ranks there are rings of slots, one for what only the other needs and one for what
// all need. Tile t of a chunk goes through the ring's next slot but t; it belongs to thread block t
// modulo their number, on each rank, whatever that number is there. Words beside the slots say that
// a tile has arrived, with the size of its coded part, or that a slot may be overwritten.
//
// A block goes through its tiles in steps, as in peer_store_kernel.hpp: in step i it pushes its
// tile i, combines its tile i - 1 and pulls its tile i - 2. What it waits for others do in earlier
// steps as long as a ring has more slots than a rank has thread blocks.
#pragma once

#include "gpu/peer_coded_tiles.hpp"

namespace uzip::gpu {

/// Steps after which a block looks for what others send it in the same step.
inline constexpr uint32_t kCodedLag = 1;

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
  uint64_t slots;   ///< of a ring
  uint32_t rounds;  ///< tiles of each block, at most
  uint32_t op;
  uint32_t levels;
  bool pushes;
  bool combines;
  bool pulls;
  bool reduces;
  uint64_t average_over;
  uint64_t deadline_ns;
  CallEnd end;
};

template <int kType>
class CodedExchange {
 public:
  using Codec = TileCodec<kType>;
  using Format = typename Codec::Format;
  using Shared = typename Codec::Shared;
  static constexpr unsigned kSize = Format::kSize;
  static constexpr uint32_t kSlots = kTileSlots<Format>;
  static constexpr uint32_t kPlainRoom = Format::plain_bytes(kTileValues);

  UZIP_DEVICE CodedExchange(const CodedArgs& args, Shared& shared)
      : args_(args),
        shared_(shared),
        rank_(args.end.rank),
        ranks_(args.end.ranks),
        patience_(args.deadline_ns, args.end.given_up[args.end.rank]) {}

  UZIP_DEVICE void run() {
    shared_.tables.make();
    clear_bins(0);
    if (thread_index() < kMostPeerRanks) shared_.shared[thread_index()] = nullptr;
    if (thread_index() == 0) {
      prepare(shared_.in_there);
      patience_.look();
      shared_.failed = patience_.has_ended() ? 1 : 0;
      shared_.fetched = 0;
    }
    sync();
    bool lasts = shared_.failed == 0;
    if (lasts && block_index() == 0) give_back_left_out();
    for (uint32_t i = 0; lasts && i < args_.rounds + 2 * kCodedLag; ++i) {
      if (args_.pushes) push(tile_of(i), tile_of(i - kCodedLag));
      if (args_.combines && i >= kCodedLag)
        lasts = combine(tile_of(i - kCodedLag), tile_of(i - 2 * kCodedLag));
      if (lasts && args_.pulls && i >= 2 * kCodedLag) lasts = pull(tile_of(i - 2 * kCodedLag));
    }
    sync();
    const bool failed = !lasts || shared_.failed != 0;
    if (thread_index() == 0)
      end_call(args_.end, damaged_ ? uint64_t{kDamaged} : failed ? uint64_t{kGaveUp} : 0, [] {});
  }

 private:
  UZIP_DEVICE uint64_t tile_of(uint32_t round) const {
    return static_cast<uint64_t>(static_cast<int32_t>(round)) * grid_size() + block_index();
  }
  /// The values of a tile of a chunk; 0 behind its end.
  UZIP_DEVICE static unsigned values_of(const CodedChunk& chunk, uint64_t tile) {
    const uint64_t first = tile << kTileLog2;
    if (first >= chunk.count) return 0;
    return chunk.count - first < kTileValues ? static_cast<unsigned>(chunk.count - first)
                                             : kTileValues;
  }
  UZIP_DEVICE static uint64_t sequence(const TileRing& ring, uint64_t tile) {
    return ring.sequence + tile * kSlots;
  }
  UZIP_DEVICE uint64_t slot(uint64_t sequence) const { return sequence % args_.slots; }
  UZIP_DEVICE uint8_t* memory(const TileRing& ring, uint64_t tile) const {
    return ring.tiles + slot(sequence(ring, tile)) * kCodedSlotBytes;
  }

  // ---- Words -------------------------------------------------------------------------------------

  /// The groups of lanes that see to what leaves and to what comes. Neither is the one that plans.
  UZIP_DEVICE static bool sends() { return group_index() == kGroups - 2; }
  UZIP_DEVICE static bool fetches() { return group_index() == kGroups - 1; }

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

  // ---- Steps; false when the call has failed -----------------------------------------------------
  //
  // What leaves goes nowhere then, but nobody waits long.

  /// `coming` is the tile that is combined next.
  UZIP_DEVICE void push(uint64_t tile, uint64_t coming) {
    for (unsigned i = 1; i < ranks_; ++i) {
      const unsigned rank = (rank_ + i) % ranks_;
      const CodedChunk& chunk = args_.chunks[rank];
      const unsigned values = values_of(chunk, tile);
      if (args_.ports[rank].push.tiles == nullptr || values == 0) continue;
      if (fetches() && args_.reduces)
        fetch(args_.ports[(rank_ + 1) % ranks_].take, coming,
              values_of(args_.chunks[rank_], coming), false);
      send({tile, rank}, args_.src + (chunk.begin + (tile << kTileLog2)) * kSize, values);
    }
  }

  /// This rank's chunk: reduces what arrived, or takes it, and shares the result, or what it has.
  /// `coming` is the tile that is pulled next.
  UZIP_DEVICE bool combine(uint64_t tile, uint64_t coming) {
    const unsigned values = values_of(args_.chunks[rank_], tile);
    if (values == 0) return true;
    const uint64_t first = tile << kTileLog2;
    const uint8_t* const own = args_.own + first * kSize;
    uint8_t* const result = args_.own_result + first * kSize;
    if (args_.reduces && ranks_ == 2) {
      if (!take(args_.ports[1 - rank_].take, tile, args_.combining, first, values, true))
        return false;
    } else if (args_.reduces) {
      if (!reduce_all(tile, own, result, values)) return false;
    } else {
      for (unsigned i = 1; i < ranks_; ++i) {
        const TileRing& ring = args_.ports[(rank_ + i) % ranks_].take;
        if (ring.tiles != nullptr && !take(ring, tile, args_.pulling, first, values, true))
          return false;
      }
      if (args_.own_result != nullptr && args_.own_result != args_.own)
        move_bytes<kThreads>(result, own, values * kSize, false);
    }
    if (!args_.pulls) return true;
    if (fetches()) {
      const unsigned rank = (rank_ + 1) % ranks_;
      fetch(args_.ports[rank].collect, coming, values_of(args_.chunks[rank], coming), false);
    }
    send({tile, kToAll}, args_.reduces ? result : own, values);
    return true;
  }

  UZIP_DEVICE bool reduce_all(uint64_t tile, const uint8_t* own, uint8_t* result, unsigned values) {
    // Elements are decoded to the slots that their code came in, and so these are the operands.
    for (unsigned i = 1; i < ranks_; ++i) {
      const unsigned rank = (rank_ + i) % ranks_;
      const TileRing& ring = args_.ports[rank].take;
      uint8_t* const slot = memory(ring, tile);
      if (thread_index() == 0) shared_.taken[rank] = slot;
      const auto at = static_cast<uint64_t>(slot - args_.spreading.dst) / kSize;
      if (!take(ring, tile, args_.spreading, at, values, false)) return false;
    }
    TileReducer<kType, kThreads>(args_.end, args_.op, args_.average_over, shared_.taken,
                                 shared_.shared)
        .reduce(own, result, values * kSize);
    sync();
    const unsigned rank = thread_index();
    if (rank < ranks_ && rank != rank_) give_back(args_.ports[rank].take, tile);
    return true;
  }

  /// The others' chunks.
  UZIP_DEVICE bool pull(uint64_t tile) {
    for (unsigned i = 1; i < ranks_; ++i) {
      const unsigned rank = (rank_ + i) % ranks_;
      const CodedChunk& chunk = args_.chunks[rank];
      const unsigned values = values_of(chunk, tile);
      if (values == 0) continue;
      if (!take(args_.ports[rank].collect, tile, args_.pulling, chunk.begin + (tile << kTileLog2),
                values, true))
        return false;
    }
    return true;
  }

  // ---- Tiles -------------------------------------------------------------------------------------

  UZIP_DEVICE void clear_bins(unsigned index) const {
    uint32_t* const bins = shared_.coding.bins[index];
    bins[thread_index()] = 0;
    if (thread_index() < kHistogramPadding) bins[kHistogramBins + thread_index()] = 0;
  }

  // What leaves. All of it begins and ends with a barrier that all threads have passed.

  /// A tile that leaves.
  struct Leaving {
    uint64_t tile;
    unsigned to;  ///< a rank, or kToAll
  };
  static constexpr unsigned kToAll = kMostPeerRanks;

  /// Null: it does not go to this rank.
  UZIP_DEVICE const TileRing* ring_of(const Leaving& leaving, unsigned rank) const {
    if (rank >= ranks_ || rank == rank_) return nullptr;
    if (leaving.to == kToAll) return &args_.ports[rank].share;
    return leaving.to == rank ? &args_.ports[rank].push : nullptr;
  }

  /// Codes a tile, and stores and announces it. What other threads do next hides how long that
  /// takes: only one group waits for it.
  UZIP_DEVICE void send(Leaving leaving, const uint8_t* src, unsigned values) {
    const TileRing* const ring = sends() ? ring_of(leaving, lane_index()) : nullptr;
    bool room = ring == nullptr || has_room(*ring, leaving.tile);
    const unsigned index = turn_++ % 2;
    clear_bins(index ^ 1);
    const CodedTile coded =
        values == kTileValues && is_unit_aligned(src)
            ? Codec::template encode<true>(shared_, args_.levels, src, values, index)
            : Codec::template encode<false>(shared_, args_.levels, src, values, index);
    hand_over();
    sync();
    if (sends()) {
      while (!room && !is_over()) room = has_room(*ring, leaving.tile);
      room = ballot(!room) == 0;
      if (!room && lane_index() == 0) shared_.failed = 1;
    }
    if (coded.coded_bytes + plain_bytes(coded) >= values * kSize)
      return send_elements(leaving, src, values);
    if (!sends() || !room) return;
    for (unsigned rank = 0; rank < ranks_; ++rank)
      if (const TileRing* const one = ring_of(leaving, rank))
        store(memory(*one, leaving.tile), coded);
    commit_bulk_stores();
    wait_bulk_stored();
    for (unsigned rank = 0; lane_index() == 0 && rank < ranks_; ++rank)
      if (const TileRing* const one = ring_of(leaving, rank))
        announce(*one, leaving.tile, coded.coded_bytes);
  }

  UZIP_DEVICE void send_elements(const Leaving& leaving, const uint8_t* src, unsigned values) {
    sync();
    if (shared_.failed != 0) return;
    for (unsigned rank = 0; rank < ranks_; ++rank)
      if (const TileRing* const ring = ring_of(leaving, rank))
        move_bytes<kThreads>(memory(*ring, leaving.tile), src, values * kSize, false);
    sync();
    const TileRing* const ring = sends() ? ring_of(leaving, lane_index()) : nullptr;
    if (ring != nullptr) announce(*ring, leaving.tile, 0);
  }

  UZIP_DEVICE static uint32_t plain_bytes(const CodedTile& coded) {
    return coded.constant ? 0 : Format::plain_bytes(coded.values);
  }

  /// By one group.
  UZIP_DEVICE void store(uint8_t* slot, const CodedTile& coded) const {
    store_bulk(slot, shared_.out.plain, plain_bytes(coded));
    store_bulk(slot + kPlainRoom, shared_.out.image, coded.coded_bytes);
  }

  // What comes.

  /// Has a rank's tile brought to `in`, by one group, when `in` is free. If it has not come: waits
  /// for it if it `must`, else leaves it for later.
  UZIP_DEVICE void fetch(const TileRing& ring, uint64_t tile, unsigned values, bool must) {
    if (shared_.fetched == takes_ + 1 || values == 0) return;
    const uint64_t number = sequence(ring, tile);
    uint64_t word = 0;
    if (lane_index() == 0) {
      do {
        word = load_from_others(ring.arrived + slot(number));
      } while (sequence_of(word) < number + 1 && must && !is_over());
      if (sequence_of(word) < number + 1) word = 0;
      if (must && word == 0) shared_.failed = 1;
    }
    const bool here = shuffle(word != 0 ? 1 : 0, 0) != 0;
    if (!here && !must) return;
    uint32_t bytes = shuffle(coded_bytes_of(word), 0);
    if (bytes > kDecodeImageBytes) bytes = 0;
    const uint32_t plain = bytes > 0 ? Format::plain_bytes(values) : 0;
    if (lane_index() == 0) {
      shared_.word = word;
      shared_.fetched = takes_ + 1;
      take_over();
      expect_bulk(shared_.in_there, bytes + plain);
    }
    if (bytes == 0) return;
    const uint8_t* const from = memory(ring, tile);
    load_bulk(shared_.in.image, from + kPlainRoom, bytes, shared_.in_there);
    load_bulk(shared_.in.plain, from, plain, shared_.in_there);
  }

  /// Waits for a rank's tile, and decodes it to value `at` of what `decoding` says. Says that the
  /// slot is free if `gives_back`. Begins and ends with a barrier that all threads have passed.
  UZIP_DEVICE bool take(const TileRing& ring, uint64_t tile, const DecodeArgs& decoding,
                        uint64_t at, unsigned values, bool gives_back) {
    if (fetches()) fetch(ring, tile, values, true);
    wait_bulk(shared_.in_there, takes_++ % 2);
    const uint64_t word = shared_.word;
    if (word == 0) return false;
    const uint32_t coded_bytes = coded_bytes_of(word);
    const bool ends = gives_back && fetches() && lane_index() == 0;
    if (coded_bytes != 0 && ends) give_back(ring, tile);
    const DecodeFault fault =
        Codec::unpack(shared_, decoding, memory(ring, tile), at, values, coded_bytes);
    sync();
    if (coded_bytes == 0 && ends) give_back(ring, tile);
    if (fault == DecodeFault::kNone) return true;
    damaged_ = true;
    if (thread_index() == 0)
      store_for_all(args_.end.fault,
                    static_cast<uint64_t>(fault) << 32 | static_cast<uint32_t>(tile));
    return false;
  }

  const CodedArgs& args_;
  Shared& shared_;
  const uint32_t rank_;
  const uint32_t ranks_;
  Patience patience_;
  bool damaged_ = false;  ///< a tile was no tile
  unsigned turn_ = 0;     ///< tiles that were coded
  unsigned takes_ = 0;    ///< tiles that were taken
};

}  // namespace uzip::gpu
