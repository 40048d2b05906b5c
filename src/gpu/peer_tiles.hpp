// What the kernels that store tiles into other ranks' memory share: the rings of tiles, moving
// bytes, and reducing a tile of each rank.
#pragma once

#include "gpu/emit.hpp"
#include "gpu/peer_layout.hpp"
#include "gpu/peer_words.hpp"

#include <type_traits>
#include <utility>

namespace uzip::gpu {

/// The ring of tiles between two ranks, as one end sees it. The words and tiles of block b begin at
/// b * kStoreDepth.
struct TileRing {
  uint8_t* tiles;
  uint64_t* arrived;   ///< the sender writes, the receiver waits
  uint64_t* returned;  ///< the receiver writes, the sender waits
  uint64_t sequence;   ///< of the first tile of this call, counted from 0
};

/// A part of a vector, in bytes.
struct StoreChunk {
  uint64_t begin;
  uint64_t bytes;
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

UZIP_DEVICE bool is_unit_aligned(const void* address) {
  return reinterpret_cast<uintptr_t>(address) % 16 == 0;
}
UZIP_DEVICE uint4 load_unit_of(const uint4* src, bool fresh) {
  return fresh ? load_fresh(src) : *src;
}

/// By all of the block's kThreadCount threads. `fresh`: others may have written it meanwhile.
template <unsigned kThreadCount>
UZIP_DEVICE void move_bytes(uint8_t* dst, const uint8_t* src, uint64_t bytes, bool fresh) {
  constexpr unsigned kUnroll = 4;  // units of 16 bytes that a thread has on the way at a time
  uint64_t done = 0;
  if (is_unit_aligned(dst) && is_unit_aligned(src)) {
    auto* const to = reinterpret_cast<uint4*>(dst);
    const auto* const from = reinterpret_cast<const uint4*>(src);
    const uint64_t units = bytes / 16;
    uint64_t i = thread_index();
    for (; i + (kUnroll - 1) * kThreadCount < units; i += kUnroll * kThreadCount) {
      uint4 words[kUnroll];
      UZIP_UNROLL
      for (unsigned k = 0; k < kUnroll; ++k)
        words[k] = load_unit_of(from + i + k * kThreadCount, fresh);
      UZIP_UNROLL
      for (unsigned k = 0; k < kUnroll; ++k) to[i + k * kThreadCount] = words[k];
    }
    for (; i < units; i += kThreadCount) to[i] = load_unit_of(from + i, fresh);
    done = units * 16;
  }
  for (uint64_t i = done + thread_index(); i < bytes; i += kThreadCount)
    dst[i] = *reinterpret_cast<const volatile uint8_t*>(src + i);
}

/// Reduces a tile of each rank in rank order, whatever has arrived first.
template <int kType, unsigned kThreadCount>
class TileReducer {
 public:
  using Accumulator = typename AccumulatorOf<kType>::Type;
  using Bits = typename Accumulator::Bits;
  static constexpr unsigned kReduceUnroll = sizeof(Bits) == 1 ? 2 : 4;

  /// `taken`: the others' tiles, by rank. `shared`: where the result goes, too, by rank, or nulls.
  UZIP_DEVICE TileReducer(const CallEnd& call, uint32_t op, uint64_t average_over,
                          uint8_t* const* taken, uint8_t* const* shared)
      : rank_(call.rank),
        ranks_(call.ranks),
        op_(op),
        average_over_(average_over),
        taken_(taken),
        shared_(shared) {}

  /// `own` has this rank's elements.
  UZIP_DEVICE void reduce(const uint8_t* own, uint8_t* result, uint64_t bytes) const {
    uint64_t done = 0;
    if (is_unit_aligned(own) && is_unit_aligned(result)) {
      const uint64_t units = bytes / 16;
      uint64_t i = thread_index();
      for (; i + (kReduceUnroll - 1) * kThreadCount < units; i += kReduceUnroll * kThreadCount)
        reduce_units(i, own, result, std::make_index_sequence<kReduceUnroll>{});
      for (; i < units; i += kThreadCount)
        reduce_units(i, own, result, std::make_index_sequence<1>{});
      done = units * 16;
    }
    // The rest, and what is not aligned, element by element.
    for (uint64_t at = done + thread_index() * sizeof(Bits); at < bytes;
         at += kThreadCount * sizeof(Bits))
      reduce_element(at, own, result);
  }

 private:
  template <size_t... kBatch>
  UZIP_DEVICE void reduce_units(uint64_t first, const uint8_t* own, uint8_t* result,
                                std::index_sequence<kBatch...> batch) const {
    if constexpr (kCombinesWords<kType, false>)
      if (ranks_ == 2 && is_pair_sum(op_, average_over_)) {
        if (!is_pair_average(op_, average_over_))
          return combine_units<false>(first, own, result, batch);
        if constexpr (kCombinesWords<kType, true>)
          return combine_units<true>(first, own, result, batch);
      }
    reduce_any_units(first, own, result, batch);
  }

  /// Of two ranks; their order makes no difference.
  template <bool kAverage, size_t... kBatch>
  UZIP_DEVICE void combine_units(uint64_t first, const uint8_t* own, uint8_t* result,
                                 std::index_sequence<kBatch...>) const {
    const uint4 a[] = {reinterpret_cast<const uint4*>(own)[first + kBatch * kThreadCount]...};
    const uint4 b[] = {load_fresh(reinterpret_cast<const uint4*>(taken_[1 - rank_]) + first +
                                  kBatch * kThreadCount)...};
    const uint4 results[] = {combine_unit<kType, kAverage>(a[kBatch], b[kBatch])...};
    ((reinterpret_cast<uint4*>(result)[first + kBatch * kThreadCount] = results[kBatch]), ...);
    auto* const shared = reinterpret_cast<uint4*>(shared_[1 - rank_]);
    if (shared != nullptr) ((shared[first + kBatch * kThreadCount] = results[kBatch]), ...);
  }

  /// In rank order, whatever arrived first.
  template <size_t... kBatch>
  UZIP_DEVICE void reduce_any_units(uint64_t first, const uint8_t* own, uint8_t* result,
                                    std::index_sequence<kBatch...>) const {
    const auto value_of = [&](unsigned rank, uint64_t unit) {
      return rank == rank_ ? reinterpret_cast<const uint4*>(own)[unit]
                           : load_fresh(reinterpret_cast<const uint4*>(taken_[rank]) + unit);
    };
    const uint4 operands[] = {value_of(0, first + kBatch * kThreadCount)...};
    UnitAccumulator<Accumulator> sums[] = {{op_, operands[kBatch]}...};
    for (unsigned rank = 1; rank < ranks_; ++rank) {
      const uint4 next[] = {value_of(rank, first + kBatch * kThreadCount)...};
      (sums[kBatch].next(next[kBatch]), ...);
    }
    const uint4 results[] = {sums[kBatch].result(average_over_)...};
    ((reinterpret_cast<uint4*>(result)[first + kBatch * kThreadCount] = results[kBatch]), ...);
    for (unsigned i = 1; i < ranks_; ++i) {
      auto* const shared = reinterpret_cast<uint4*>(shared_[(rank_ + i) % ranks_]);
      if (shared != nullptr) ((shared[first + kBatch * kThreadCount] = results[kBatch]), ...);
    }
  }

  UZIP_DEVICE void reduce_element(uint64_t at, const uint8_t* own, uint8_t* result) const {
    const auto value_of = [&](unsigned rank) {
      return static_cast<Bits>(load_bits((rank == rank_ ? own : taken_[rank]) + at));
    };
    Accumulator accumulator(op_, value_of(0));
    for (unsigned rank = 1; rank < ranks_; ++rank) accumulator.next(value_of(rank));
    const Bits bits = accumulator.result(average_over_);
    store_bits(result + at, bits);
    for (unsigned i = 1; i < ranks_; ++i) {
      uint8_t* const shared = shared_[(rank_ + i) % ranks_];
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

  uint32_t rank_;
  uint32_t ranks_;
  uint32_t op_;
  uint64_t average_over_;
  uint8_t* const* taken_;
  uint8_t* const* shared_;
};

}  // namespace uzip::gpu
