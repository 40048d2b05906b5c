// Recursive-doubling all-reduce: pairs at distance 1, 2, 4, ... exchange what they have and reduce
// it. For other numbers of ranks than powers of two, the first ranks pair up before and share the
// result afterwards.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005.
// Steps: ceil(log2 P) hops, and one more if P is no power of two. Bytes sent per rank: n for each
// hop. The lower rank's operand stands first on both sides, so that all ranks get the same bits.
// Scratch: two vectors, one being received while the other is reduced.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

#include <algorithm>
#include <array>

namespace uzip {
namespace {

// The ranks that take part in the exchange: a power of two. Below 2 * extra, the odd ranks take
// part, each for its even neighbour too.
struct Exchange {
  explicit Exchange(int size) {
    while (2 * active <= size) active *= 2;
    extra = size - active;
  }
  bool is_extra(int rank) const { return rank < 2 * extra && rank % 2 == 0; }
  int number_of(int rank) const { return rank < 2 * extra ? rank / 2 : rank - extra; }
  int rank_of(int number) const { return number < extra ? 2 * number + 1 : number + extra; }

  int active = 1;
  int extra = 0;
};

Schedule build(const Shape& shape, int rank) {
  const Exchange exchange(shape.size);
  const Slice input{Slot::kInput, 0, shape.total()};
  const Slice output{Slot::kOutput, 0, shape.total()};
  ScheduleBuilder builder(shape, rank);

  if (exchange.is_extra(rank)) {
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

  if (rank < 2 * exchange.extra) reduce_with(rank - 1, false);
  for (int distance = 1; distance < exchange.active; distance *= 2) {
    const int peer = exchange.rank_of(exchange.number_of(rank) ^ distance);
    builder.send(value, peer);
    reduce_with(peer, 2 * distance == exchange.active);
  }
  if (rank < 2 * exchange.extra) builder.send(output, rank - 1);
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const Exchange exchange(shape.size);
  const int hops = doubling_rounds(exchange.active) + (exchange.extra > 0 ? 2 : 0);
  return hops * (model.latency + bytes * (model.ratio * model.seconds_per_byte +
                                          model.reduce_per_byte + model.codec_per_byte));
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
};

}  // namespace uzip
