// Rabenseifner's all-reduce: pairs at distance P/2, P/4, ... exchange halves of what they have and
// reduce them (recursive halving), until each rank has reduced one share; then the results come
// together the other way (recursive doubling). For other numbers of ranks than powers of two, the
// first ranks pair up before and share the result afterwards.
//   R. Rabenseifner: Optimization of Collective Reduction Operations, ICCS 2004.
// Steps: 2 log2 P hops, and two more if P is no power of two. Bytes sent: 2 (P-1)/P n, the minimum;
// n more if pairs were formed. Messages: log2 P, then one for each share, which is encoded by the
// rank that reduced it and passed on as it is. The lower rank's operand stands first on both sides.
// Scratch: half a vector for the first half that arrives, a quarter for the next, ...
#include "algos/algorithm.hpp"
#include "algos/folded_ranks.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

#include <array>

namespace uzip {
namespace {

// The shares of the ranks that take part, and ranges of them.
class Shares {
 public:
  Shares(size_t total, int count) {
    starts_.push_back(0);
    for (size_t share : even_shares(total, count)) starts_.push_back(starts_.back() + share);
  }
  Slice range(Slot slot, int first, int end) const {
    const size_t begin = starts_[static_cast<size_t>(first)];
    return {slot, begin, starts_[static_cast<size_t>(end)] - begin};
  }

 private:
  std::vector<size_t> starts_;
};

Schedule build(const Shape& shape, int rank) {
  const FoldedRanks ranks(shape.size);
  const Shares shares(shape.total(), ranks.active);
  const Slice input{Slot::kInput, 0, shape.total()};
  const Slice output{Slot::kOutput, 0, shape.total()};
  ScheduleBuilder builder(shape, rank);
  if (ranks.is_extra(rank)) {
    builder.send(input, rank + 1);
    for (int i = 0; i < ranks.active; ++i) builder.recv(rank + 1, shares.range(Slot::kOutput, i, i + 1));
    return builder.finish();
  }
  if (shape.size == 1) builder.copy(input, output);

  Slot value = Slot::kInput;  // where the reduction so far is
  const auto reduce_with = [&](int peer, int first, int end, bool last) {
    const Slice result = shares.range(Slot::kOutput, first, end);
    const Slice mine{value, result.offset, result.length};
    const Slice theirs = builder.scratch(result.length);
    builder.recv(peer, theirs);
    builder.reduce(peer < rank ? std::array{theirs, mine} : std::array{mine, theirs}, result, last);
  };
  if (ranks.stands_for_two(rank)) {
    reduce_with(rank - 1, 0, ranks.active, ranks.active == 1);
    value = Slot::kOutput;
  }

  const int number = ranks.number_of(rank);
  for (int distance = ranks.active / 2; distance > 0; distance /= 2) {
    const int peer = ranks.rank_of(number ^ distance);
    const int kept = number & ~(distance - 1);
    const int sent = kept ^ distance;
    builder.send(shares.range(value, sent, sent + distance), peer);
    reduce_with(peer, kept, kept + distance, distance == 1);
    value = Slot::kOutput;
  }
  for (int distance = 1; distance < ranks.active; distance *= 2) {
    const int peer = ranks.rank_of(number ^ distance);
    // Beginning with the own share, so that all ranks do the same as seen from where they stand.
    for (int i = 0; i < distance; ++i) {
      const int mine = number ^ i, theirs = mine ^ distance;
      builder.send(shares.range(Slot::kOutput, mine, mine + 1), peer);
      builder.recv(peer, shares.range(Slot::kOutput, theirs, theirs + 1));
    }
  }
  if (ranks.stands_for_two(rank)) {
    for (int i = 0; i < ranks.active; ++i) builder.send(shares.range(Slot::kOutput, i, i + 1), rank - 1);
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const FoldedRanks ranks(shape.size);
  const double folded = ranks.extra > 0 ? 1 : 0, hops = doubling_rounds(ranks.active);
  const double moved = bytes * (ranks.active - 1) / ranks.active + folded * bytes;
  const Work work = {.hops = 2 * (hops + folded), .messages = ranks.active - 1.0, .steps = hops + folded,
                     .wire = 2 * moved, .operands = 2 * moved, .coded = 2 * moved};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm allreduce_rabenseifner = {
    "rabenseifner",
    Coll::kAllreduce,
    "pairs exchange and reduce halves, quarters, ..., and the results come together the other way: "
    "2 log2(P) hops and the fewest bytes; for medium vectors on many ranks, best a power of two",
    [](const Shape& shape) { return shape.coll == Coll::kAllreduce; },
    build,
    cost,
    Order::kFixed,
};

}  // namespace uzip
