// perf/allreduce: measures and checks uzip_allreduce().
#include "bench_operation.hpp"

namespace {

size_t count(size_t elements, size_t, int) { return elements; }

perf::Layout layout(size_t count, int, int) {
  return {.count = count, .send = count, .receive = count};
}

// Each element is sent to a reducer and comes back: n - 1 of n shares, twice.
double bus_factor(int ranks) { return 2.0 * (ranks - 1) / ranks; }

}  // namespace

int main(int argc, char** argv) {
  return perf::bench_main({.kind = perf::OperationKind::kAllreduce,
.name = "allreduce",
                           .does = "reduces arrays element by element, the result on every rank",
                           .reduces = true,
                           .has_in_place = true,
                           .has_algorithms = true,
                           .same_everywhere = true,
                           .count = count,
                           .layout = layout,
                           .bus_factor = bus_factor,
                           .run = perf::run_collective<UZIP_ALLREDUCE>,
                           .start = perf::start_collective<UZIP_ALLREDUCE>},
                          argc, argv);
}
