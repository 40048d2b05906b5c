// perf/reduce_scatter: measures and checks uzip_reduce_scatter().
#include "bench_operation.hpp"

namespace {

perf::Layout layout(size_t count, int rank, int ranks) {
  const size_t own = static_cast<size_t>(rank) * count;
  return {.count = count,
          .send = static_cast<size_t>(ranks) * count,
          .receive = count,
          .result_first = own,
          .in_place_result = own};
}

double bus_factor(int ranks) { return static_cast<double>(ranks - 1) / ranks; }

}  // namespace

int main(int argc, char** argv) {
  return perf::bench_main(
      {.kind = perf::OperationKind::kReduceScatter,
.name = "reduce_scatter",
       .does = "reduces arrays element by element, a block of the result on each rank",
       .reduces = true,
       .has_in_place = true,
       .has_algorithms = true,
       .same_everywhere = false,
       .count = perf::count_per_rank,
       .layout = layout,
       .bus_factor = bus_factor,
       .run = perf::run_collective<UZIP_REDUCE_SCATTER>,
                           .start = perf::start_collective<UZIP_REDUCE_SCATTER>},
      argc, argv);
}
