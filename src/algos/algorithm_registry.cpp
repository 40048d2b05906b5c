// The table of all algorithms. The order within a collective is the order of preference when costs
// are equal.
#include "algos/algorithm.hpp"

// One line for each algorithm: the name of the record in its file.
#define UZIP_ALGORITHMS(X)            \
  X(allreduce_two_shot)               \
  X(allreduce_ring)                   \
  X(allreduce_one_shot)               \
  X(allreduce_recursive_doubling)     \
  X(allreduce_rabenseifner)           \
  X(allreduce_hierarchical)           \
  X(reduce_scatter_two_shot)          \
  X(reduce_scatter_ring)              \
  X(reduce_scatter_recursive_halving) \
  X(reduce_scatter_hierarchical)      \
  X(allgather_two_shot)               \
  X(allgather_ring)                   \
  X(allgather_bruck)                  \
  X(allgather_hierarchical)           \
  X(barrier_dissemination)            \
  X(bcast_scatter_allgather)          \
  X(bcast_direct)                     \
  X(bcast_binomial)                   \
  X(bcast_chain)                      \
  X(bcast_double_tree)                \
  X(bcast_hierarchical)               \
  X(reduce_two_shot)                  \
  X(reduce_binomial)                  \
  X(reduce_chain)                     \
  X(reduce_double_tree)               \
  X(reduce_hierarchical)              \
  X(gather_direct)                    \
  X(gather_binomial)                  \
  X(scatter_direct)                   \
  X(scatter_binomial)                 \
  X(alltoall_pairwise)                \
  X(alltoall_bruck)                   \
  X(alltoallv_pairwise)               \
  X(scan_linear)                      \
  X(scan_recursive_doubling)          \
  X(exscan_linear)                    \
  X(exscan_recursive_doubling)

namespace uzip {

#define UZIP_DECLARE(record) extern const Algorithm record;
UZIP_ALGORITHMS(UZIP_DECLARE)

std::span<const Algorithm* const> algorithms() {
#define UZIP_ADDRESS(record) &record,
  static constexpr const Algorithm* kAlgorithms[] = {UZIP_ALGORITHMS(UZIP_ADDRESS)};
  return kAlgorithms;
}

const Algorithm* find_algorithm(Coll coll, std::string_view name) {
  for (const Algorithm* algorithm : algorithms()) {
    if (algorithm->coll == coll && algorithm->name == name) return algorithm;
  }
  return nullptr;
}

}  // namespace uzip
