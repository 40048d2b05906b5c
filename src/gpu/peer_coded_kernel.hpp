// Large calls with the codec: one kernel codes tiles of 8192 values, stores them straight into the
// others' memory, takes theirs, decodes and reduces, codes the results and stores them. So the
// codec's work and the link's go on at the same time, and no size goes to a host.
//
// Between two ranks there are rings of slots, one for what only the other needs and one for what
// all need. Tile t of a chunk goes through the ring's next slot but t; it belongs to thread block t
// modulo their number, on each rank, whatever that number is there. Words beside the slots say that
// a tile has arrived, with the size of its coded part, or that a slot may be overwritten.
//
// A thread block has 256 threads that code, and a group of lanes that stores and announces what they
// have coded.
//
// A block goes through its tiles in steps, as in peer_store_kernel.hpp: in step i it pushes its
// tile i, combines its tile i - 1 and pulls its tile i - 2. What it waits for others do in earlier
// steps as long as a ring has more slots than a rank has thread blocks.
#pragma once

#include "gpu/peer_coded_rings.hpp"

namespace uzip::gpu {

/// Steps after which a block looks for what others send it in the same step.
inline constexpr uint32_t kCodedLag = 1;

template <int kType>
class CodedExchange : private CodedRings<kType> {
 public:
  using Rings = CodedRings<kType>;
  using typename Rings::Codec;
  using typename Rings::Format;
  using typename Rings::Shared;
  using Rings::kPlainRoom;
  using Rings::kSize;
  using Rings::kSlots;

  UZIP_DEVICE CodedExchange(const CodedArgs& args, Shared& shared) : Rings(args, shared) {}

  UZIP_DEVICE void run() {
    if (group_index() == kGroups) {
      this->store_tiles();
      // All others are done.
      if (lane_index() != 0) return;
      static_cast<void>(atomic_add(args_.coded_units, this->coded_units_));
      return end_call(args_.end, shared_.failure, [this] { say_coded_bytes(); });
    }
    begin_in_turn();
    shared_.tables.make();
    shared_.decoding.copy(args_.combining, args_.pulling, args_.spreading);
    clear_bins(0);
    if (thread_index() < kMostPeerRanks) shared_.shared[thread_index()] = nullptr;
    if (thread_index() == 0) {
      prepare(shared_.in_there);
      patience_.look();
      shared_.failed = patience_.has_ended() ? 1 : 0;
      shared_.fetched = 0;
    }
    sync_coders();
    bool lasts = shared_.failed == 0;
    if (lasts && block_index() == 0) this->give_back_left_out();
    for (uint32_t i = 0; lasts && i < args_.rounds + 2 * kCodedLag; ++i) {
      if (args_.pushes) push(tile_of(i), tile_of(i - kCodedLag));
      if (args_.combines && i >= kCodedLag)
        lasts = combine(tile_of(i - kCodedLag), tile_of(i - 2 * kCodedLag));
      if (lasts && args_.pulls && i >= 2 * kCodedLag) lasts = pull(tile_of(i - 2 * kCodedLag));
    }
    sync_coders();
    // What is on its way must have come before shared memory is given up.
    if (shared_.fetched > takes_) wait_bulk(shared_.in_there, takes_ % 2);
    end(lasts);
  }

 private:
  using Rings::args_;
  using Rings::patience_;
  using Rings::rank_;
  using Rings::ranks_;
  using Rings::shared_;
  using typename Rings::Leaving;

  /// Thread blocks of a processor begin one after another. Else all would code, and then all wait for
  /// the link, in time with one another, and each would be idle half of the time.
  UZIP_DEVICE void begin_in_turn() const {
    if (thread_index() != 0) return;
    const uint64_t wait = block_index() / args_.turn_blocks * args_.turn_ns;
    for (const uint64_t begin = device_time_ns(); device_time_ns() - begin < wait;) {
    }
  }

  UZIP_DEVICE void end(bool lasts) {
    Rings::wait_until_free();
    if (thread_index() == 0)
      shared_.failure = damaged_                        ? uint64_t{kDamaged}
                        : !lasts || shared_.failed != 0 ? uint64_t{kGaveUp}
                                                        : 0;
    this->leave({0, Rings::kToNobody}, 0, 0);
  }
  UZIP_DEVICE void say_coded_bytes() const {
    const uint64_t units = *static_cast<volatile uint32_t*>(args_.coded_units);
    *args_.coded_units = 0;
    *args_.coded_bytes = 16 * units;
  }
  UZIP_DEVICE uint64_t tile_of(uint32_t round) const {
    return static_cast<uint64_t>(static_cast<int32_t>(round)) * grid_size() + block_index();
  }
  /// The values of a tile of a chunk; 0 behind its end.
  UZIP_DEVICE static unsigned values_of(const CodedChunk& chunk, uint64_t tile) {
    const uint64_t first = tile << Format::kTileLog2;
    if (first >= chunk.count) return 0;
    return chunk.count - first < Format::kTileValues ? static_cast<unsigned>(chunk.count - first)
                                             : Format::kTileValues;
  }
  /// The group of lanes that sees to what comes. Not the one that plans.
  UZIP_DEVICE static bool fetches() { return group_index() == kGroups - 1; }

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
      send({tile, rank}, args_.src + (chunk.begin + (tile << Format::kTileLog2)) * kSize, values);
    }
  }

  /// This rank's chunk: reduces what arrived, or takes it, and shares the result, or what it has.
  /// `coming` is the tile that is pulled next.
  UZIP_DEVICE bool combine(uint64_t tile, uint64_t coming) {
    const unsigned values = values_of(args_.chunks[rank_], tile);
    if (values == 0) return true;
    const uint64_t first = tile << Format::kTileLog2;
    const uint8_t* const own = args_.own + first * kSize;
    uint8_t* const result = args_.own_result + first * kSize;
    if (args_.reduces && ranks_ == 2) {
      if (!take(args_.ports[1 - rank_].take, tile, shared_.decoding.combining(), first, values, true))
        return false;
    } else if (args_.reduces) {
      if (!reduce_all(tile, own, result, values)) return false;
    } else {
      for (unsigned i = 1; i < ranks_; ++i) {
        const TileRing& ring = args_.ports[(rank_ + i) % ranks_].take;
        if (ring.tiles != nullptr && !take(ring, tile, shared_.decoding.pulling(), first, values, true))
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
    send({tile, Rings::kToAll}, args_.reduces ? result : own, values);
    return true;
  }

  UZIP_DEVICE bool reduce_all(uint64_t tile, const uint8_t* own, uint8_t* result, unsigned values) {
    // Elements are decoded to the slots that their code came in, and so these are the operands.
    for (unsigned i = 1; i < ranks_; ++i) {
      const unsigned rank = (rank_ + i) % ranks_;
      const TileRing& ring = args_.ports[rank].take;
      uint8_t* const slot = this->memory(ring, tile);
      if (thread_index() == 0) shared_.taken[rank] = slot;
      const auto at = static_cast<uint64_t>(slot - args_.spreading.dst) / kSize;
      if (!take(ring, tile, shared_.decoding.spreading(), at, values, false)) return false;
    }
    TileReducer<kType, kThreads>(args_.end, args_.op, args_.average_over, shared_.taken,
                                 shared_.shared)
        .reduce(own, result, values * kSize);
    sync_coders();
    const unsigned rank = thread_index();
    if (rank < ranks_ && rank != rank_) this->give_back(args_.ports[rank].take, tile);
    return true;
  }

  /// The others' chunks.
  UZIP_DEVICE bool pull(uint64_t tile) {
    for (unsigned i = 1; i < ranks_; ++i) {
      const unsigned rank = (rank_ + i) % ranks_;
      const CodedChunk& chunk = args_.chunks[rank];
      const unsigned values = values_of(chunk, tile);
      if (values == 0) continue;
      if (!take(args_.ports[rank].collect, tile, shared_.decoding.pulling(), chunk.begin + (tile << Format::kTileLog2),
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

  /// Codes a tile, and leaves it to the group that stores.
  UZIP_DEVICE void send(Leaving leaving, const uint8_t* src, unsigned values) {
    Rings::wait_until_free();
    const unsigned index = turn_++ % 2;
    clear_bins(index ^ 1);
    const CodedTile coded =
        values == Format::kTileValues && is_unit_aligned(src)
            ? Codec::template encode<true>(shared_, args_.levels, src, values, index)
            : Codec::template encode<false>(shared_, args_.levels, src, values, index);
    const uint32_t plain = coded.constant ? 0 : Format::plain_bytes(coded.values);
    const bool shrinks = coded.coded_bytes + plain < values * kSize;
    if (shrinks) return this->leave(leaving, coded.coded_bytes, plain);
    sync_coders();
    move_bytes<kThreads>(reinterpret_cast<uint8_t*>(&shared_.out), src, values * kSize, false);
    this->leave(leaving, 0, values * kSize);
  }

  // What comes.

  /// Has a rank's tile brought to `in`, by one group, when `in` is free. If it has not come: waits
  /// for it if it `must`, else leaves it for later.
  UZIP_DEVICE void fetch(const TileRing& ring, uint64_t tile, unsigned values, bool must) {
    if (shared_.fetched == takes_ + 1 || values == 0) return;
    const uint64_t number = this->sequence(ring, tile);
    uint64_t word = 0;
    if (lane_index() == 0) {
      do {
        word = load_from_others(ring.arrived + this->slot(number));
      } while (sequence_of(word) < number + 1 && must && !this->is_over());
      if (sequence_of(word) < number + 1) word = 0;
      if (must && word == 0) shared_.failed = 1;
    }
    const bool here = shuffle(word != 0 ? 1 : 0, 0) != 0;
    if (!here && !must) return;
    uint32_t bytes = shuffle(coded_bytes_of(word), 0);
    if (bytes > kDecodeImageBytes<Format>) bytes = 0;
    const uint32_t plain = bytes > 0 ? Format::plain_bytes(values) : 0;
    if (lane_index() == 0) {
      shared_.word = word;
      shared_.fetched = takes_ + 1;
      take_over();
      expect_bulk(shared_.in_there, bytes + plain);
    }
    if (bytes == 0) return;
    const uint8_t* const from = this->memory(ring, tile);
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
    if (coded_bytes != 0 && ends) this->give_back(ring, tile);
    const DecodeFault fault =
        Codec::unpack(shared_, decoding, this->memory(ring, tile), at, values, coded_bytes);
    sync_coders();
    if (coded_bytes == 0 && ends) this->give_back(ring, tile);
    if (fault == DecodeFault::kNone) return true;
    damaged_ = true;
    if (thread_index() == 0)
      store_for_all(args_.end.fault,
                    static_cast<uint64_t>(fault) << 32 | static_cast<uint32_t>(tile));
    return false;
  }

  bool damaged_ = false;  ///< a tile was no tile
  unsigned turn_ = 0;     ///< tiles that were coded
  unsigned takes_ = 0;    ///< tiles that were taken
};

}  // namespace uzip::gpu
