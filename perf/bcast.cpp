// perf/bcast: measures and checks uzip_bcast() from rank 0.
#include "bench_operation.hpp"

namespace {

size_t count(size_t elements, size_t, int) { return elements; }

perf::Layout layout(size_t count, int rank, int) {
  return {.count = count, .send = rank == 0 ? count : 0, .receive = count};
}

double bus_factor(int) { return 1; }

}  // namespace

int main(int argc, char** argv) {
  return perf::bench_main({.kind = perf::OperationKind::kBcast,
                           .name = "bcast",
                           .does = "copies an array of rank 0 to every rank",
                           .reduces = false,
                           .has_in_place = true,
                           .has_algorithms = true,
                           .same_everywhere = true,
                           .count = count,
                           .layout = layout,
                           .bus_factor = bus_factor,
                           .run = perf::run_collective<UZIP_BCAST>,
                           .start = perf::start_collective<UZIP_BCAST>},
                          argc, argv);
}
