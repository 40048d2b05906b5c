// Van de Geijn's broadcast with a direct all-gather: the root sends every other rank a share, and
// each sends its share to all others.
//   M. Barnett, S. Gupta, D. G. Payne, L. Shuler, R. van de Geijn, J. Watts: Interprocessor
//   Collective Communication Library (InterCom), SHPCC 1994.
// Steps: 2 hops. Messages: P-1 at the root, P-2 at the others. Bytes sent: n at the root,
// (P-2)/(P-1) n at the others. Every share is encoded once, at the root; its owner passes the frame
// on. Scratch: none.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

#include <algorithm>

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const int size = shape.size;
  const int root = shape.root;
  ScheduleBuilder builder(shape, rank);
  const Slice output{Slot::kOutput, 0, shape.total()};
  const Slice input{Slot::kInput, 0, shape.total()};
  if (size == 1) {
    builder.copy(input, output);
    return builder.finish();
  }

  // Share i belongs to the rank i + 1 places after the root.
  const std::vector<size_t> lengths = even_shares(shape.total(), size - 1);
  std::vector<Slice> shares;
  for (size_t begin = 0; size_t length : lengths) {
    shares.push_back({rank == root ? Slot::kInput : Slot::kOutput, begin, length});
    begin += length;
  }
  const auto owner = [&](int share) { return rank_after(root, share + 1, size); };
  if (rank == root) {
    for (int i = 0; i < size - 1; ++i) builder.send(shares[i], owner(i));
    builder.copy(input, output);
    return builder.finish();
  }
  const int own = rank_after(rank, -root - 1, size);
  builder.recv(root, shares[own]);
  for (int i = 1; i < size - 1; ++i) builder.send(shares[own], owner((own + i) % (size - 1)));
  for (int i = 1; i < size - 1; ++i) {
    const int other = (own + size - 1 - i) % (size - 1);
    builder.recv(owner(other), shares[other]);
  }
  return builder.finish();
}

/// Of so many rounds half of what each would take alone is hidden behind others.
constexpr double kHiddenRounds = 50;

double cost(const Shape& shape, double bytes, const CostModel& model) {
  const double others = std::max(shape.size - 1, 1);
  // The last share is passed on when the root has sent all of its round; of many rounds most of that is hidden.
  const double tail = kHiddenRounds / (kHiddenRounds + rounds_of(shape, bytes, model)) * (others - 1) / others;
  const Work work = {.hops = 2, .messages = 1.5 * (others - 1), .wire = bytes * (1 + 1 / others + tail),
                     .coded = bytes};
  return time_of(work, shape, bytes, model);
}

}  // namespace

extern const Algorithm bcast_scatter_allgather = {
    "scatter_allgather",
    Coll::kBcast,
    "the root gives every rank a share, encoded once, that it passes on to all: two hops and about "
    "n bytes at every rank; for large vectors where all ranks reach each other equally well",
    [](const Shape& shape) { return shape.coll == Coll::kBcast; },
    build,
    cost,
};

}  // namespace uzip
