// perf/allgather: measures and checks uzip_allgather().
#include "bench_operation.hpp"

namespace {

perf::Layout layout(size_t count, int rank, int ranks) {
  const size_t own = static_cast<size_t>(rank) * count;
  return {.count = count,
          .send = count,
          .receive = static_cast<size_t>(ranks) * count,
          .source_first = own,
          .in_place_source = own};
}

double bus_factor(int ranks) { return static_cast<double>(ranks - 1) / ranks; }

}  // namespace

int main(int argc, char** argv) {
  return perf::bench_main({.kind = perf::OperationKind::kAllgather,
.name = "allgather",
                           .does = "collects a block of each rank on every rank",
                           .reduces = false,
                           .has_in_place = true,
                           .has_algorithms = true,
                           .same_everywhere = true,
                           .count = perf::count_per_rank,
                           .layout = layout,
                           .bus_factor = bus_factor,
                           .run = perf::run_collective<UZIP_ALLGATHER>,
                           .start = perf::start_collective<UZIP_ALLGATHER>},
                          argc, argv);
}
