// perf/sendrecv: measures and checks point-to-point messages. Every rank sends to the next one and
// receives from the one before it.
#include "bench_operation.hpp"

namespace {

constexpr int kTag = 1;

int previous(int rank, int ranks) { return (rank + ranks - 1) % ranks; }

size_t count(size_t elements, size_t, int) { return elements; }

perf::Layout layout(size_t count, int rank, int ranks) {
  return {.count = count,
          .send = count,
          .receive = count,
          .source_first = static_cast<size_t>(rank) * count,
          .result_first = static_cast<size_t>(previous(rank, ranks)) * count};
}

double bus_factor(int) { return 1; }

uzip_status_t run(const perf::Call& call) {
  uzip_request_t requests[2] = {UZIP_REQUEST_NULL, UZIP_REQUEST_NULL};
  uzip_status_t status =
      uzip_irecv_options(call.dst, call.count, call.type, previous(call.rank, call.ranks), kTag,
                         call.comm, call.options, nullptr, &requests[0]);
  if (status != UZIP_OK) return status;
  status = uzip_isend_options(call.src, call.count, call.type, (call.rank + 1) % call.ranks, kTag,
                              call.comm, call.options, call.info, &requests[1]);
  if (status != UZIP_OK) return status;
  return uzip_waitall(2, requests, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  return perf::bench_main({.kind = perf::OperationKind::kSendrecv,
.name = "sendrecv",
                           .does = "sends to the next rank while receiving from the previous one",
                           .reduces = false,
                           .has_in_place = false,
                           .has_algorithms = false,
                           .same_everywhere = false,
                           .count = count,
                           .layout = layout,
                           .bus_factor = bus_factor,
                           .run = run},
                          argc, argv);
}
