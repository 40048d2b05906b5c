// What ranks get when another one fails in the middle of a call: a mode of tools/gpu_peer_bench.cu each.
#pragma once

#include "gpu_peer_ranks.hpp"

namespace uzip::gpu {

inline cudaStream_t make_stream() {
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  return stream;
}

/// The call must have failed, in at most so many seconds.
inline void expect_failure(const char* mode, PeerGroup* group, const PeerTicket& ticket,
                           cudaStream_t stream, double seconds) {
  const double begin = now();
  const bool done = wait_for(group, ticket.number, seconds);
  std::printf("%s: rank %d after %.2f s: %s\n", mode, own_rank, now() - begin,
              done ? "DONE, which is wrong" : api->last_error());
  std::fflush(stdout);
  check(cudaStreamSynchronize(stream), "after the end");
  require(!done, mode, "no error");
}

/// The call of the modes: all-reduce, small, by a kernel or by the pipeline, as they say.
inline PeerCall failing_call(const Settings& settings, const DeviceBuffer& src,
                             const DeviceBuffer& dst) {
  const size_t bytes = static_cast<size_t>(settings.number("bytes", 128 << 20));
  require(bytes <= src.bytes, "bytes", "too many");
  PeerCall call = make_call(0, UZIP_BF16, bytes / 2, src.data, dst.data);
  call.compress = settings.number("compress", 0) != 0;
  return call;
}

/// Rank 1 ends: the others must get an error in time.
inline void die(const Settings& settings) {
  PeerGroup* const group = make_group(settings);
  cudaStream_t const stream = make_stream();
  DeviceBuffer src(256 * kMiB);
  DeviceBuffer dst(256 * kMiB);
  check(cudaMemset(src.data, 0, src.bytes), "clear");
  check(cudaDeviceSynchronize(), "clear");
  barrier();
  if (own_rank == 1) _exit(0);
  const PeerCall call = failing_call(settings, src, dst);
  PeerTicket ticket{};
  const double begin = now();
  check(api->peers()->start(group, &call, stream, &ticket), "start");
  std::printf("death: rank %d has started after %.2f s\n", own_rank, now() - begin);
  expect_failure("death", group, ticket, stream, 2);
}

/// Rank 1 comes when the others have given up: it must get an error, too.
inline void come_late(const Settings& settings) {
  PeerGroup* const group = make_group(settings);
  cudaStream_t const stream = make_stream();
  DeviceBuffer src(256 * kMiB);
  DeviceBuffer dst(256 * kMiB);
  check(cudaMemset(src.data, 0, src.bytes), "clear");
  check(cudaDeviceSynchronize(), "clear");
  for (const bool late : {false, true}) {
    barrier();
    if ((own_rank == 1) != late) continue;
    const PeerCall call = failing_call(settings, src, dst);
    PeerTicket ticket{};
    check(api->peers()->start(group, &call, stream, &ticket), "start");
    expect_failure("late", group, ticket, stream, late ? 10 : 0.5);
  }
  barrier();
  api->peers()->destroy(group);
}

/// Rank 0 reduces frames that are damaged. Rank 1 does by messages what its part of an all-reduce is, but
/// sends frames of another type: not only rank 0 must get an error, but also who takes its result.
inline void send_damage(Settings settings) {
  require(rank_count == 2, "damage", "is for two ranks");
  settings.values.emplace("fused", "4000000");  // messages, too, by the kernel of the all-reduce
  PeerGroup* const group = make_group(settings);
  cudaStream_t const stream = make_stream();
  DeviceBuffer src(4 * kMiB);
  DeviceBuffer dst(4 * kMiB);
  src.put(random_bytes(UZIP_BF16, 2 * kMiB, 1));
  check(cudaDeviceSynchronize(), "copy");
  barrier();
  const size_t half = kMiB;
  PeerTicket ticket{};
  const auto start = [&](PeerColl coll, DataType type, size_t count) {
    PeerCall call = make_call(0, type, count, src.data, dst.data);
    call.coll = coll;
    call.peer = 1 - own_rank;
    call.compress = true;
    check(api->peers()->start(group, &call, stream, &ticket), "start");
  };
  if (own_rank == 0) {
    start(PeerColl::kAllreduce, UZIP_BF16, 2 * half);
  } else {
    start(PeerColl::kRecv, UZIP_BF16, half);
    start(PeerColl::kSend, UZIP_FP16, half);
    start(PeerColl::kRecv, UZIP_BF16, half);  // the result
    const PeerTicket result = ticket;
    start(PeerColl::kSend, UZIP_BF16, half);
    ticket = result;
  }
  expect_failure("damage", group, ticket, stream, 10);
  barrier();
  api->peers()->destroy(group);
}

}  // namespace uzip::gpu
