// Recursive-halving reduce-scatter: pairs at distance P/2, P/4, ... exchange the halves that the
// other side ends up with, and reduce them. For other numbers of ranks than powers of two, the first
// ranks pair up before and get their blocks afterwards.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005.
// Steps: log2 P hops, one message each, and two more if P is no power of two. Bytes sent: all blocks
// but one, the minimum; all blocks, or one, more if pairs were formed. What a rank sends at a hop is
// what it has reduced by then, a value that did not exist before, so it is encoded there, once, and
// no frame could be passed on. The lower rank's operand stands first on both sides.
// Blocks are collected in scratch, so that every message is one slice. Scratch: all blocks, and half
// of them for the first half that arrives, a quarter for the next, ...; all once more in a pair.
#include "algos/algorithm.hpp"
#include "algos/folded_ranks.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

#include <array>

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const FoldedRanks ranks(shape.size);
  ScheduleBuilder builder(shape, rank);
  const Slice result = builder.output_block(rank);
  if (shape.size == 1) {
    builder.copy(builder.input_block(rank), result);
    return builder.finish();
  }

  const Slice all = builder.scratch(shape.total());  // reduced so far, in rank order
  // Beginning with the own block, so that all ranks do the same as seen from where they stand.
  for (int i = 0; i < ranks.active; ++i) {
    const int number = ranks.number_of(rank) ^ i;
    for (int r = ranks.first_rank_of(number); r < ranks.first_rank_of(number + 1); ++r) {
      const Slice block = builder.input_block(r);
      builder.copy(block, {Slot::kScratch, all.offset + block.offset, block.length});
    }
  }
  if (ranks.is_extra(rank)) {
    builder.send(all, rank + 1);
    builder.recv(rank + 1, result);
    return builder.finish();
  }

  const auto reduce_with = [&](int peer, Slice mine, bool last) {
    const Slice theirs = builder.scratch(mine.length);
    builder.recv(peer, theirs);
    builder.reduce(peer < rank ? std::array{theirs, mine} : std::array{mine, theirs}, mine, last);
  };
  // The blocks of the ranks that the numbers from `first` to `end` - 1 stand for.
  const auto blocks = [&](int first, int end) {
    const size_t begin = shape.offset(ranks.first_rank_of(first));
    return Slice{Slot::kScratch, all.offset + begin,
                 shape.offset(ranks.first_rank_of(end)) - begin};
  };
  if (ranks.stands_for_two(rank)) reduce_with(rank - 1, all, ranks.active == 1);
  const int number = ranks.number_of(rank);
  for (int distance = ranks.active / 2; distance > 0; distance /= 2) {
    const int peer = ranks.rank_of(number ^ distance);
    const int kept = number & ~(distance - 1);
    const int sent = kept ^ distance;
    builder.send(blocks(sent, sent + distance), peer);
    reduce_with(peer, blocks(kept, kept + distance), distance == 1);
  }
  const auto reduced = [&](int r) {
    return Slice{Slot::kScratch, all.offset + shape.offset(r), shape.counts[static_cast<size_t>(r)]};
  };
  if (ranks.stands_for_two(rank)) builder.send(reduced(rank - 1), rank - 1);
  builder.copy(reduced(rank), result);
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const FoldedRanks ranks(shape.size);
  const double folded = ranks.extra > 0 ? 1 : 0, hops = doubling_rounds(ranks.active);
  const double moved = bytes * (ranks.active - 1) / ranks.active + folded * bytes;
  // Every block is copied into scratch.
  const Work work = {.hops = hops + 2 * folded, .steps = hops + folded + shape.size, .wire = moved,
                     .operands = 2 * moved + bytes, .coded = moved};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm reduce_scatter_recursive_halving = {
    "recursive_halving",
    Coll::kReduceScatter,
    "pairs at distance P/2, P/4, ... exchange and reduce halves: log2(P) hops and the fewest bytes; "
    "for small blocks on many ranks, best a power of two",
    [](const Shape& shape) { return shape.coll == Coll::kReduceScatter; },
    build,
    cost,
    Order::kFixed,
};

}  // namespace uzip
