// perf/alltoall: measures and checks uzip_alltoall().
#include "bench_operation.hpp"

namespace {

// Sources that begin a block apart make every result one stretch of elements.
perf::Layout layout(size_t count, int rank, int ranks) {
  const size_t own = static_cast<size_t>(rank) * count;
  const size_t all = static_cast<size_t>(ranks) * count;
  return {.count = count, .send = all, .receive = all, .source_first = own, .result_first = own};
}

double bus_factor(int ranks) { return static_cast<double>(ranks - 1) / ranks; }

}  // namespace

int main(int argc, char** argv) {
  return perf::bench_main({.kind = perf::OperationKind::kAlltoall,
                           .name = "alltoall",
                           .does = "exchanges a block of each rank with each rank",
                           .reduces = false,
                           .has_in_place = true,
                           .has_algorithms = true,
                           .same_everywhere = false,
                           .count = perf::count_per_rank,
                           .layout = layout,
                           .bus_factor = bus_factor,
                           .run = perf::run_collective<UZIP_ALLTOALL>,
                           .start = perf::start_collective<UZIP_ALLTOALL>},
                          argc, argv);
}
