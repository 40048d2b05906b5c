// Small calls between ranks: one kernel stores this rank's bytes into the others' memory, takes
// theirs as they arrive, and reduces. Every 8 bytes travel as two words, each with a flag beside
// it, so that no other synchronization is needed. The protocol is NCCL's LL: halves of 16 bytes are
// stored whole.
#pragma once

#include "gpu/emit.hpp"
#include "gpu/peer_layout.hpp"
#include "gpu/peer_words.hpp"

#include <type_traits>
#include <utility>

namespace uzip::gpu {

inline constexpr unsigned kSmallThreads = 256;

struct SmallPort {
  uint4* out;             ///< slot in the other's memory; null: nothing is sent there
  const uint4* in;        ///< slot in this rank's memory; null: nothing comes from there
  uint64_t* credit;       ///< the other's word for what this rank has taken
  uint64_t out_sequence;  ///< counts from 1; its lower half is the flag
  uint64_t in_sequence;
};

struct SmallArgs {
  SmallPort ports[kMostPeerRanks];
  const uint64_t* credits;  ///< this rank's, by rank
  const uint8_t* src;
  uint8_t* dst;
  uint64_t bytes;       ///< from each rank to each
  uint64_t src_stride;  ///< between what goes to one rank and to the next
  uint64_t dst_stride;  ///< between what comes from one rank and from the next
  uint64_t average_over;
  uint64_t deadline_ns;
  CallEnd end;
  uint32_t op;
  bool reduces;  ///< else dst + rank * dst_stride gets what comes from that rank
};

/// Eight bytes at `offset` of `bytes`; zeros behind the end.
UZIP_DEVICE uint2 load_unit(const uint8_t* src, uint64_t offset, uint64_t bytes) {
  const uint8_t* const at = src + offset;
  if (offset + 8 <= bytes && reinterpret_cast<uintptr_t>(at) % 8 == 0)
    return *reinterpret_cast<const uint2*>(at);
  uint32_t word[2] = {0, 0};
  const unsigned count = offset + 8 <= bytes ? 8 : static_cast<unsigned>(bytes - offset);
  UZIP_UNROLL
  for (unsigned i = 0; i < 8; ++i)
    if (i < count) word[i / 4] |= static_cast<uint32_t>(at[i]) << (8 * (i % 4));
  return make_uint2(word[0], word[1]);
}

UZIP_DEVICE void store_unit(uint8_t* dst, uint64_t offset, uint64_t bytes, uint2 unit) {
  uint8_t* const at = dst + offset;
  if (offset + 8 <= bytes && reinterpret_cast<uintptr_t>(at) % 8 == 0) {
    *reinterpret_cast<uint2*>(at) = unit;
    return;
  }
  const unsigned count = offset + 8 <= bytes ? 8 : static_cast<unsigned>(bytes - offset);
  UZIP_UNROLL
  for (unsigned i = 0; i < 8; ++i)
    if (i < count) at[i] = static_cast<uint8_t>((i < 4 ? unit.x : unit.y) >> (8 * (i % 4)));
}

template <int kType>
class SmallExchange {
 public:
  using Accumulator = typename AccumulatorOf<kType>::Type;
  using Bits = typename Accumulator::Bits;
  using UnsignedBits = std::make_unsigned_t<Bits>;
  static constexpr unsigned kElements = 8 / sizeof(Bits);

  UZIP_DEVICE explicit SmallExchange(const SmallArgs& args)
      : args_(args),
        rank_(args.end.rank),
        ranks_(args.end.ranks),
        patience_(args.deadline_ns, args.end.given_up[args.end.rank]) {}

  UZIP_DEVICE void run() {
    if (slots_are_free()) exchange();
    const uint64_t failure = sync_or(patience_.has_ended()) ? uint64_t{kGaveUp} : 0;
    if (thread_index() == 0) end_call(args_.end, failure, [&] { give_back_slots(); });
  }

 private:
  UZIP_DEVICE void exchange() {
    const uint64_t units = (args_.bytes + 7) / 8;
    const uint64_t first = static_cast<uint64_t>(block_index()) * kSmallThreads + thread_index();
    const uint64_t step = static_cast<uint64_t>(grid_size()) * kSmallThreads;
    for (uint64_t unit = first; unit < units; unit += step) send(unit);
    for (uint64_t unit = first; unit < units; unit += step)
      args_.reduces ? reduce(unit, std::make_index_sequence<kElements>{}) : take(unit);
  }

  /// False when the call has failed: then nothing may be stored.
  UZIP_DEVICE bool slots_are_free() {
    const unsigned rank = thread_index();
    if (rank == rank_) patience_.look();
    if (rank < ranks_ && args_.ports[rank].out != nullptr) {
      const uint64_t sequence = args_.ports[rank].out_sequence;
      if (sequence > kSmallSlots)
        while (load_shared_word(args_.credits + rank) + kSmallSlots < sequence)
          if (patience_.is_over()) break;
    }
    return !sync_or(patience_.has_ended());
  }

  UZIP_DEVICE void send(uint64_t unit) {
    for (unsigned i = 1; i < ranks_; ++i) {
      const unsigned rank = (rank_ + i) % ranks_;
      const SmallPort& port = args_.ports[rank];
      if (port.out == nullptr) continue;
      const uint2 data = load_unit(args_.src + rank * args_.src_stride, unit * 8, args_.bytes);
      store_flagged(port.out + unit, data, static_cast<uint32_t>(port.out_sequence));
    }
  }

  UZIP_DEVICE uint2 receive(unsigned rank, uint64_t unit) {
    const SmallPort& port = args_.ports[rank];
    const auto flag = static_cast<uint32_t>(port.in_sequence);
    uint4 words;
    do {
      words = load_flagged(port.in + unit);
    } while ((words.y != flag || words.w != flag) && !patience_.is_over());
    return make_uint2(words.x, words.z);
  }

  UZIP_DEVICE void take(uint64_t unit) {
    for (unsigned rank = 0; rank < ranks_; ++rank) {
      uint8_t* const dst = args_.dst + rank * args_.dst_stride;
      if (rank != rank_) {
        if (args_.ports[rank].in != nullptr)
          store_unit(dst, unit * 8, args_.bytes, receive(rank, unit));
      } else if (args_.dst_stride != 0 && dst != args_.src) {
        store_unit(dst, unit * 8, args_.bytes, load_unit(args_.src, unit * 8, args_.bytes));
      }
    }
  }

  UZIP_DEVICE uint2 value_of(unsigned rank, uint64_t unit) {
    return rank == rank_
               ? load_unit(args_.src + rank * args_.src_stride, unit * 8, args_.bytes)
               : receive(rank, unit);
  }
  static UZIP_DEVICE Bits element(uint2 unit, unsigned index) {
    const uint64_t all = static_cast<uint64_t>(unit.y) << 32 | unit.x;
    return static_cast<Bits>(all >> (8 * sizeof(Bits) * index % 64));
  }

  /// In rank order, whatever arrives first.
  template <size_t... kIndex>
  UZIP_DEVICE void reduce(uint64_t unit, std::index_sequence<kIndex...>) {
    const uint2 first = value_of(0, unit);
    if constexpr (kCombinesWords<kType, false> && kCombinesWords<kType, true>)
      if (ranks_ == 2 && is_pair_sum(args_.op, args_.average_over)) {
        const uint2 second = value_of(1, unit);
        const uint2 result =
            is_pair_average(args_.op, args_.average_over)
                ? make_uint2(combine_word<kType, true>(first.x, second.x),
                             combine_word<kType, true>(first.y, second.y))
                : make_uint2(combine_word<kType, false>(first.x, second.x),
                             combine_word<kType, false>(first.y, second.y));
        return store_unit(args_.dst, unit * 8, args_.bytes, result);
      }
    Accumulator accumulators[kElements] = {{args_.op, element(first, kIndex)}...};
    for (unsigned rank = 1; rank < ranks_; ++rank) {
      const uint2 next = value_of(rank, unit);
      (accumulators[kIndex].next(element(next, kIndex)), ...);
    }
    uint64_t all = 0;
    ((all |= static_cast<uint64_t>(
                 static_cast<UnsignedBits>(accumulators[kIndex].result(args_.average_over)))
             << (8 * sizeof(Bits) * kIndex)),
     ...);
    store_unit(args_.dst, unit * 8, args_.bytes,
               make_uint2(static_cast<uint32_t>(all), static_cast<uint32_t>(all >> 32)));
  }

  /// Says to the others that what they sent is taken.
  UZIP_DEVICE void give_back_slots() const {
    for (unsigned rank = 0; rank < ranks_; ++rank)
      if (args_.ports[rank].in != nullptr)
        store_for_all(args_.ports[rank].credit, args_.ports[rank].in_sequence);
  }

  const SmallArgs& args_;
  const uint32_t rank_;
  const uint32_t ranks_;
  Patience patience_;
};

}  // namespace uzip::gpu
