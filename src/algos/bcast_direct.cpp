// Direct broadcast: the root sends the vector to all others.
//   R. Thakur, R. Rabenseifner, W. Gropp: Optimization of Collective Communication Operations in
//   MPICH, IJHPCA 19(1), 2005 (for the alternatives).
// Steps: 1 hop, P-1 messages from the root. Bytes sent by the root: (P-1) n. The vector is encoded once,
// and between ranks of one host all messages are one copy in memory that they share. Scratch: none.
#include "algos/algorithm.hpp"
#include "algos/rank_math.hpp"
#include "algos/schedule_builder.hpp"

#include <algorithm>

namespace uzip {
namespace {

Schedule build(const Shape& shape, int rank) {
  const Slice output{Slot::kOutput, 0, shape.total()};
  ScheduleBuilder builder(shape, rank);
  if (rank != shape.root) {
    builder.recv(shape.root, output);
    return builder.finish();
  }
  const Slice value{Slot::kInput, 0, shape.total()};
  for (int i = 1; i < shape.size; ++i) builder.send(value, rank_after(rank, i, shape.size));
  builder.copy(value, output);
  return builder.finish();
}

double cost(const Shape& shape, double bytes, const CostModel& model) {
  // Where cores carry the bytes it is the receivers', all at once; but what goes to another socket goes there for each of them.
  const CostModel near = of_one_rank(model);
  const double others = shape.size - 1;
  double sent = near.cores_carry ? 1 : others;
  if (near.cores_carry && near.ranks_per_socket > 0 && near.ranks_per_socket < shape.size)
    sent = std::max(sent, (shape.size - near.ranks_per_socket) * near.socket_seconds_per_byte / near.seconds_per_byte);
  return time_of({.messages = (others - 1) / 2, .wire = sent * bytes, .coded = bytes}, shape, bytes, near);
}

}  // namespace

extern const Algorithm bcast_direct = {
    "direct",
    Coll::kBcast,
    "the root sends the vector, encoded once, to every rank: one hop; for few ranks that share memory",
    [](const Shape& shape) { return shape.coll == Coll::kBcast; },
    build,
    cost,
    Order::kMoves,
    /*in_rank_order=*/false,
    /*one_hop=*/true,
};

}  // namespace uzip
