// perf/halo: measures and checks the exchange of borders between neighbours. The ranks form a ring, each owns a part of
// a domain, and sends the two borders of its part to the ranks before and after it.
#include "ring_messages.hpp"

namespace {

constexpr int kDown = 1;  // tags: to the rank before, to the rank after
constexpr int kUp = 2;

int before(int rank, int ranks) { return (rank + ranks - 1) % ranks; }
int after(int rank, int ranks) { return (rank + 1) % ranks; }

// Two borders, each a multiple of 16 bytes.
size_t count(size_t elements, size_t element_size, int) {
  const size_t step = 16 / element_size;
  return elements / 2 / step * step;
}

// The sequence has both borders of rank 0, then those of rank 1, ... What comes from the rank before is
// that rank's second border, what comes from the rank after its first.
perf::Layout layout(size_t count, int rank, int ranks) {
  const auto from_before = static_cast<ptrdiff_t>(2 * static_cast<size_t>(before(rank, ranks)) + 1);
  const auto from_after = static_cast<ptrdiff_t>(2 * static_cast<size_t>(after(rank, ranks)));
  return {.count = count,
          .send = 2 * count,
          .receive = 2 * count,
          .source_first = 2 * static_cast<size_t>(rank) * count,
          .result_first = static_cast<size_t>(from_before) * count,
          .pieces = 2,
          .piece_distance = (from_after - from_before) * static_cast<ptrdiff_t>(count)};
}

uzip_status_t run(const perf::Call& call) {
  const size_t border = call.count * uzip_dtype_size(call.type);
  const auto* out = static_cast<const std::byte*>(call.src);
  auto* in = static_cast<std::byte*>(call.dst);
  const int down = perf::rank_before(call), up = perf::rank_after(call);
  uzip_request_t requests[4] = {};
  // One info for both messages: their bytes are added up.
  uzip_coll_info_t other = {sizeof other, nullptr, nullptr, 0, 0, 0};
  uzip_status_t status = perf::start_receive(call, in, down, kUp, &requests[0]);
  if (status == UZIP_OK) status = perf::start_receive(call, in + border, up, kDown, &requests[1]);
  if (status == UZIP_OK) status = perf::start_send(call, out, down, kDown, call.info, &requests[2]);
  if (status == UZIP_OK) status = perf::start_send(call, out + border, up, kUp, &other, &requests[3]);
  if (status != UZIP_OK) return status;
  status = uzip_waitall(4, requests, nullptr);
  if (call.info != nullptr) {
    call.info->payload_bytes += other.payload_bytes;
    call.info->wire_bytes += other.wire_bytes;
  }
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  return perf::bench_main(perf::message_operation(perf::OperationKind::kHalo, "halo",
                                                  "exchanges borders with the ranks before and after", count, layout,
                                                  run),
                          argc, argv);
}
