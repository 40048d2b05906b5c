// perf/reduce: measures and checks uzip_reduce() to rank 0.
#include "bench_operation.hpp"

namespace {

size_t count(size_t elements, size_t, int) { return elements; }

perf::Layout layout(size_t count, int rank, int) {
  return {.count = count, .send = count, .receive = rank == 0 ? count : 0};
}

double bus_factor(int) { return 1; }

}  // namespace

int main(int argc, char** argv) {
  return perf::bench_main({.kind = perf::OperationKind::kReduce,
                           .name = "reduce",
                           .does = "reduces arrays element by element, the result on rank 0",
                           .reduces = true,
                           .has_in_place = true,
                           .has_algorithms = true,
                           .same_everywhere = false,
                           .count = count,
                           .layout = layout,
                           .bus_factor = bus_factor,
                           .run = perf::run_collective<UZIP_REDUCE>,
                           .start = perf::start_collective<UZIP_REDUCE>},
                          argc, argv);
}
