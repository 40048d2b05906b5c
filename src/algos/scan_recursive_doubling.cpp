// Recursive-doubling prefix reductions (scan and exclusive scan): at distance 1, 2, 4, ... every rank
// sends what it has to the rank so far after it; what it has covers twice as many ranks each time.
//   W. D. Hillis, G. L. Steele Jr.: Data Parallel Algorithms, Comm. ACM 29(12), 1986.
// Steps: ceil(log2 P) hops, for any P. Bytes sent: n a hop, at most ceil(log2 P) n. The operands
// stand in rank order; how they are grouped depends on the rank. Scratch: one vector for each hop's
// arrival; for the exclusive scan, one more.
#include "algos/algorithm.hpp"
#include "algos/pipeline_costs.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

#include <array>

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const bool inclusive = shape.coll == Coll::kScan;
  const size_t length = shape.total();
  const Slice output{Slot::kOutput, 0, length};
  ScheduleBuilder builder(shape, rank);
  Slice value{Slot::kInput, 0, length};  // of the last ranks up to this one
  Slice before{};                        // the same without this one
  const Slice exclusive = builder.scratch(!inclusive && rank > 1 ? length : 0);

  for (int distance = 1; distance < shape.size; distance *= 2) {
    if (rank + distance < shape.size) builder.send(value, rank + distance);
    if (rank < distance) continue;
    const Slice arrival = builder.scratch(length);
    builder.recv(rank - distance, arrival);
    if (!inclusive) {
      if (before.length > 0) {
        builder.reduce(std::array{arrival, before}, exclusive, false);
        before = exclusive;
      } else {
        before = arrival;
      }
    }
    // An exclusive scan needs the own elements only for those whom it still sends to.
    if (inclusive || rank + 2 * distance < shape.size) {
      const Slice sum = inclusive ? output : builder.scratch(length);
      builder.reduce(std::array{arrival, value}, sum, false);
      value = sum;
    }
  }
  if (inclusive) {
    builder.copy(value, output);
  } else if (before.length > 0) {
    builder.copy(before, output);
  }
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const int hops = doubling_rounds(shape.size), largest = host_sizes(shape).count > 1 ? host_sizes(shape).largest : 1;
  // The first ranks send all they have at once, and others wait for their turn in the ports. At distance d so many ranks
  // of a host send to the next one.
  double busy = 0;
  for (int hop = 0; hop < hops; ++hop)
    busy += std::max(alone_per_byte(model) / model.seconds_per_byte, std::min(1 << hop, largest) * 1.0 / largest);
  const double moved = bytes * std::max(hops, 2 * hops - 2);
  const Work work = {.hops = 1.0 * doubling_depth(shape.size), .steps = 1.0 * hops,
                     .wire = moved * busy / std::max(hops, 1), .operands = 2 * bytes * hops, .coded = bytes * hops};
  return time_of(work, shape, bytes, model);
}

constexpr const char* kSummary =
    "at distance 1, 2, 4, ... every rank sends what it has to the rank after it: log2(P) hops of n "
    "bytes; for small vectors";

}  // namespace

extern const Algorithm scan_recursive_doubling = {
    "recursive_doubling",
    Coll::kScan,
    kSummary,
    [](const Shape& shape) { return shape.coll == Coll::kScan; },
    build,
    cost,
    Order::kFixed,
    /*in_rank_order=*/true,
};

extern const Algorithm exscan_recursive_doubling = {
    "recursive_doubling",
    Coll::kExscan,
    kSummary,
    [](const Shape& shape) { return shape.coll == Coll::kExscan; },
    build,
    cost,
    Order::kFixed,
    /*in_rank_order=*/true,
};

}  // namespace uzip
