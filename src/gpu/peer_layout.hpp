// Where things stand in the memory that a GPU opens to the other ranks of its host, and how a large
// vector is cut: chunks by rank, pieces in time. Host code without a GPU runtime; used by the peer
// collectives and their tests.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace uzip::gpu {

inline constexpr int kMostPeerRanks = 16;
/// Small messages on their way between two ranks, each way.
inline constexpr unsigned kSmallSlots = 2;
/// Most bytes that all others together send a rank by small messages, in a call.
inline constexpr uint64_t kMostSmallBytes = 1 << 20;
/// In front of a frame's parts in a slot.
inline constexpr uint64_t kFrameRoom = 256;

/// Slots between two ranks, each way, at most.
inline constexpr unsigned kMostDepth = 8;
/// As many as suit the memory of a group: pieces of a few MB cost too much, so where there is little memory there are
/// fewer slots. Both as measured on two H200.
inline unsigned suitable_depth(int ranks, uint64_t most_bytes) {
  constexpr uint64_t kEnough = 256 << 20;
  return most_bytes / (static_cast<uint64_t>(ranks) - 1) < kEnough ? 4 : 6;
}

/// The two rings of tiles of a store kernel between any two ranks, each way.
enum PeerRing : uint8_t {
  kPairRing,   ///< for one rank alone: shares of a reduction, messages
  kShareRing,  ///< the same for all ranks
  kPeerRings,
};
/// Thread blocks of a store kernel, each with a ring of its own of so many tiles to each rank.
inline constexpr unsigned kStoreBlocks = 128;
inline constexpr unsigned kStoreDepth = 4;
inline constexpr uint64_t kMostStoreTile = 32 << 10;

/// Slots of the kernel that codes and stores tiles, in rings between any two ranks as above: as large
/// as what a tile of 16-bit values takes at most. Larger values take several.
inline constexpr uint64_t kCodedSlotBytes = 16640;
inline constexpr uint64_t kMostCodedSlots = 1024;

/// Why calls have failed, in PeerFlags::given_up.
enum PeerEnd : uint64_t {
  kGaveUp = 1,  ///< a rank's waiting has ended
  kDamaged,     ///< a rank got a frame that is not what it expects
};

/// Words that peers write and that streams and kernels of this rank wait for. Each is of one slot,
/// and holds the number of the last piece in it, counted from 1.
struct PeerFlags {
  uint64_t ready[kMostPeerRanks][kMostDepth];   ///< pieces from a rank that are here
  uint64_t credit[kMostPeerRanks][kMostDepth];  ///< pieces from here that a rank is done with
  uint64_t small_credit[kMostPeerRanks];        ///< small messages that a rank is done with
  /// A PeerEnd, or any value but 0, when this rank's calls have failed. Whoever fails writes it on all ranks before anything
  /// else that they may see, and every call looks at it when all that it took has come.
  uint64_t given_up;
};

/// Right behind the flags, so that `given_up` and `decode` are copied together; written by this
/// rank's own work.
struct PeerFaults {
  uint64_t decode;  ///< DecodeRequest::fault of any frame
  uint64_t spare;
};

/// A region of memory of one rank: flags, small slots, tiles of store kernels, and slots for pieces
/// of large calls. The same on all ranks of a group.
///
/// For each other rank there is a ring of slots, each with an inbox, for what arrives, and behind
/// it an outbox, where frames are made that leave. So that many are on their way, an inbox has room
/// for what a frame usually takes only; the rest of one that takes more is read from the outbox.
/// Pieces that are not coded need no outbox, and are as large as both together.
class PeerLayout {
 public:
  PeerLayout() = default;
  /// `depth` slots a ring; as large as `most_bytes` allow, at most `most_slot_bytes`.
  PeerLayout(int ranks, unsigned depth, uint64_t most_bytes, uint64_t most_slot_bytes)
      : ranks_(ranks), depth_(depth) {
    // A quarter for the tiles of store kernels.
    const uint64_t tiles = others() * kPeerRings * kStoreBlocks * kStoreDepth;
    store_tile_ =
        std::bit_floor(std::clamp(most_bytes / 4 / tiles, kLeastStoreTile, kMostStoreTile));
    // Another one for coded tiles.
    coded_slots_ = std::bit_floor(std::clamp<uint64_t>(
        most_bytes / 4 / (others() * kPeerRings * kCodedSlotBytes), 2, kMostCodedSlots));
    const uint64_t fixed = slots_at();
    most_bytes = most_bytes / kGranularity * kGranularity;
    const uint64_t room = most_bytes > fixed ? most_bytes - fixed : 0;
    unit_ = std::min(room / units(), most_slot_bytes / kInboxUnits) / kAlignment * kAlignment;
  }

  unsigned depth() const { return depth_; }
  uint64_t inbox_bytes() const { return kInboxUnits * unit_; }
  uint64_t outbox_bytes() const { return kOutboxUnits * unit_; }
  uint64_t slot_bytes() const { return inbox_bytes() + outbox_bytes(); }
  uint64_t bytes() const {
    return (slots_at() + units() * unit_ + kGranularity - 1) / kGranularity * kGranularity;
  }

  static constexpr uint64_t faults_at() { return sizeof(PeerFlags); }
  /// Most bytes of a small message.
  uint64_t small_bytes() const { return kMostSmallBytes / others() / kAlignment * kAlignment; }
  /// Where rank `owner` finds the small message `sequence` of rank `from`: two bytes for each.
  uint64_t small_at(int owner, int from, uint64_t sequence) const {
    return kAlignment +
           (place_of(owner, from) * kSmallSlots + sequence % kSmallSlots) * (2 * small_bytes());
  }
  /// What a thread block of rank `from` stores for `owner`, and the words that say so.
  uint64_t store_tile_bytes() const { return store_tile_; }
  uint64_t store_tiles_at(PeerRing ring, int owner, int from) const {
    return stores_at() + store_place(ring, owner, from) * store_tile_;
  }
  uint64_t store_ready_at(PeerRing ring, int owner, int from) const {
    return store_words_at() + store_place(ring, owner, from) * sizeof(uint64_t);
  }
  uint64_t store_credit_at(PeerRing ring, int owner, int from) const {
    return store_ready_at(ring, owner, from) + store_places() * sizeof(uint64_t);
  }
  /// The slots of a ring of coded tiles, and the words beside them.
  uint64_t coded_slots() const { return coded_slots_; }
  uint64_t coded_at(PeerRing ring, int owner, int from) const {
    return coded_rings_at() + coded_place(ring, owner, from) * kCodedSlotBytes;
  }
  uint64_t coded_ready_at(PeerRing ring, int owner, int from) const {
    return coded_words_at() + coded_place(ring, owner, from) * sizeof(uint64_t);
  }
  uint64_t coded_credit_at(PeerRing ring, int owner, int from) const {
    return coded_ready_at(ring, owner, from) + coded_places() * sizeof(uint64_t);
  }
  /// Slots of rank `owner` for piece `sequence` from or to another one.
  uint64_t inbox_at(int owner, int other, uint64_t sequence) const {
    return slots_at() + (place_of(owner, other) * depth_ + sequence % depth_) * slot_bytes();
  }
  uint64_t outbox_at(int owner, int other, uint64_t sequence) const {
    return inbox_at(owner, other, sequence) + inbox_bytes();
  }
  /// Of more than two ranks: for frames that leave for all, and for decoded elements of a rank that
  /// are then reduced.
  uint64_t shared_outbox_at(uint64_t sequence) const {
    return slots_at() + others() * depth_ * slot_bytes() + sequence % depth_ * outbox_bytes();
  }
  uint64_t scratch_at(int owner, int from) const {
    return shared_outbox_at(0) + (depth_ + place_of(owner, from)) * outbox_bytes();
  }

 private:
  static constexpr uint64_t kAlignment = 16 << 10;
  /// Of the region's size. One that is no multiple of 64 KiB seems to be mapped by small pages in other
  /// processes: copies to it are slower, by a quarter when kernels are at work.
  static constexpr uint64_t kGranularity = 2 << 20;
  static constexpr uint64_t kLeastStoreTile = 1 << 10;
  static constexpr uint64_t kInboxUnits = 16;
  static constexpr uint64_t kOutboxUnits = 23;
  static_assert(sizeof(PeerFlags) + sizeof(PeerFaults) <= kAlignment);

  uint64_t others() const { return static_cast<uint64_t>(ranks_) - 1; }
  /// The others of a rank, numbered.
  static uint64_t place_of(int owner, int other) {
    return static_cast<uint64_t>(other < owner ? other : other - 1);
  }
  /// Of all slots together.
  uint64_t units() const {
    const uint64_t shared = ranks_ > 2 ? depth_ + others() : 0;
    return others() * depth_ * (kInboxUnits + kOutboxUnits) + shared * kOutboxUnits;
  }
  uint64_t store_place(PeerRing ring, int owner, int from) const {
    return (ring * others() + place_of(owner, from)) * kStoreBlocks * kStoreDepth;
  }
  uint64_t store_places() const { return kPeerRings * others() * kStoreBlocks * kStoreDepth; }
  uint64_t store_words_at() const {
    return kAlignment + others() * kSmallSlots * (2 * small_bytes());
  }
  uint64_t stores_at() const {
    return aligned(store_words_at() + 2 * store_places() * sizeof(uint64_t));
  }
  uint64_t coded_place(PeerRing ring, int owner, int from) const {
    return (ring * others() + place_of(owner, from)) * coded_slots_;
  }
  uint64_t coded_places() const { return kPeerRings * others() * coded_slots_; }
  uint64_t coded_words_at() const { return stores_at() + store_places() * store_tile_; }
  uint64_t coded_rings_at() const { return aligned(coded_words_at() + 2 * coded_places() * sizeof(uint64_t)); }
  uint64_t slots_at() const { return aligned(coded_rings_at() + coded_places() * kCodedSlotBytes); }
  static uint64_t aligned(uint64_t at) { return (at + kAlignment - 1) / kAlignment * kAlignment; }
  int ranks_ = 0;
  unsigned depth_ = 0;
  uint64_t store_tile_ = 0;
  uint64_t coded_slots_ = 0;
  uint64_t unit_ = 0;
};

/// Elements of a run.
struct ElementRange {
  uint64_t first = 0;
  uint64_t count = 0;
};

/// The share of a vector that a rank reduces: whole tiles of the codec, as even as these allow.
inline ElementRange chunk_of(uint64_t count, int ranks, int rank, uint64_t tile) {
  const uint64_t tiles = (count + tile - 1) / tile;
  const auto n = static_cast<uint64_t>(ranks);
  const auto r = static_cast<uint64_t>(rank);
  const uint64_t begin = std::min(count, tiles * r / n * tile);
  const uint64_t end = std::min(count, tiles * (r + 1) / n * tile);
  return {begin, end - begin};
}

/// How a chunk is cut: pieces grow from `least`, so that the first is soon on its way, and become
/// small again, so that little is left to do after the last has arrived.
struct PieceSizes {
  uint64_t least;  ///< elements; a multiple of `tile`
  uint64_t most;   ///< at least `least`
  uint64_t tile;

  /// The piece behind the first `done` elements of `count`; empty behind the last.
  ElementRange at(uint64_t done, uint64_t count) const {
    const uint64_t left = count - done;
    const uint64_t wanted = std::clamp(std::min(done, left / 2), least, most);
    return {done, std::min(left, (wanted + tile - 1) / tile * tile)};
  }
};

}  // namespace uzip::gpu
