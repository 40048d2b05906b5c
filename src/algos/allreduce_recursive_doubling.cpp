// Recursive-doubling all-reduce: pairs at distance 1, 2, 4, ... exchange what they have and reduce
// it. For other numbers of ranks than powers of two, the first ranks pair up before and share the
// result afterwards.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005.
// Steps: ceil(log2 P) hops, and one more if P is no power of two. Bytes sent per rank: n for each
// hop. The lower rank's operand stands first on both sides, so that all ranks get the same bits.
// Scratch: two vectors, one being received while the other is reduced.
#include "algos/algorithm.hpp"
#include "algos/folded_ranks.hpp"
#include "algos/pipeline_costs.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

#include <algorithm>
#include <array>

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const FoldedRanks ranks(shape.size);
  const Slice input{Slot::kInput, 0, shape.total()};
  const Slice output{Slot::kOutput, 0, shape.total()};
  ScheduleBuilder builder(shape, rank);

  if (ranks.is_extra(rank)) {
    builder.send(input, rank + 1);
    builder.recv(rank + 1, output);
    return builder.finish();
  }
  if (shape.size == 1) builder.copy(input, output);

  Slice value = input;  // reduced so far
  std::vector<Slice> arrivals;
  for (int i = 0; i < std::min(2, doubling_rounds(shape.size)); ++i) {
    arrivals.push_back(builder.scratch(input.length));
  }
  int hop = 0;
  const auto reduce_with = [&](int peer, bool last) {
    const Slice arrival = arrivals[hop++ % 2];
    builder.recv(peer, arrival);
    builder.reduce(peer < rank ? std::array{arrival, value} : std::array{value, arrival}, output,
                   last);
    value = output;
  };

  if (ranks.stands_for_two(rank)) reduce_with(rank - 1, false);
  for (int distance = 1; distance < ranks.active; distance *= 2) {
    const int peer = ranks.rank_of(ranks.number_of(rank) ^ distance);
    builder.send(value, peer);
    reduce_with(peer, 2 * distance == ranks.active);
  }
  if (ranks.stands_for_two(rank)) builder.send(output, rank - 1);
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const FoldedRanks ranks(shape.size);
  const int hops = doubling_rounds(ranks.active) + (ranks.extra > 0 ? 2 : 0);
  return doubling_cost(shape, bytes, model, hops, {.steps = 1, .wire = bytes, .operands = 2 * bytes, .coded = bytes});
}

}  // namespace

extern const Algorithm allreduce_recursive_doubling = {
    "recursive_doubling",
    Coll::kAllreduce,
    "pairs at distance 1, 2, 4, ... exchange and reduce whole vectors: log2(P) hops of n bytes; "
    "for "
    "small vectors on many ranks",
    [](const Shape& shape) { return shape.coll == Coll::kAllreduce; },
    build,
    cost,
    Order::kFixed,
    /*in_rank_order=*/true,
};

}  // namespace uzip
