// perf/sendrecv: measures and checks point-to-point messages. Every rank sends to the next one and
// receives from the one before it.
#include "ring_messages.hpp"

namespace {

constexpr int kTag = 1;

size_t count(size_t elements, size_t, int) { return elements; }

perf::Layout layout(size_t count, int rank, int ranks) {
  return {.count = count,
          .send = count,
          .receive = count,
          .source_first = static_cast<size_t>(rank) * count,
          .result_first = static_cast<size_t>((rank + ranks - 1) % ranks) * count};
}

uzip_status_t run(const perf::Call& call) {
  uzip_request_t requests[2] = {UZIP_REQUEST_NULL, UZIP_REQUEST_NULL};
  uzip_status_t status = perf::start_receive(call, call.dst, perf::rank_before(call), kTag, &requests[0]);
  if (status != UZIP_OK) return status;
  status = perf::start_send(call, call.src, perf::rank_after(call), kTag, call.info, &requests[1]);
  if (status != UZIP_OK) return status;
  return uzip_waitall(2, requests, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  return perf::bench_main(
      perf::message_operation(perf::OperationKind::kSendrecv, "sendrecv",
                              "sends to the next rank while receiving from the previous one", count, layout, run),
      argc, argv);
}
