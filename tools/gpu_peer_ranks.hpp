// Processes of one host, each a rank with a GPU, that tools/gpu_peer_bench.cu starts: what they share,
// how they meet, and calls between them. Everything ends the process when it fails.
#pragma once

#include "gpu/plugin_loader.hpp"

#include "base/datatype.hpp"

#include <cuda_runtime.h>
#include <unistd.h>

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace uzip::gpu {

inline constexpr int kMostRanks = 8;
inline constexpr size_t kMiB = size_t{1} << 20;

/// What the processes share.
struct Shared {
  std::atomic<int> arrived;
  std::atomic<int> turn;
  std::atomic<int> failed;
  PeerHandle handles[kMostRanks];
  char nccl_id[128];
  double seconds[kMostRanks];
};

struct Settings {
  std::map<std::string, std::string> values;
  long number(const char* name, long otherwise) const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : std::atol(found->second.c_str());
  }
  std::string text(const char* name, const char* otherwise) const {
    const auto found = values.find(name);
    return found == values.end() ? otherwise : found->second;
  }
};

inline Shared* shared = nullptr;
inline const PluginApi* api = nullptr;
inline int own_rank = 0;
inline int rank_count = 2;

inline void require(bool right, const char* what, const char* why) {
  if (right) return;
  std::printf("rank %d: %s: %s\n", own_rank, what, why);
  std::fflush(stdout);
  shared->failed = 1;
  _exit(1);
}
inline void check(cudaError_t error, const char* what) {
  require(error == cudaSuccess, what, cudaGetErrorString(error));
}
inline void check(int failed, const char* what) { require(failed == 0, what, api->last_error()); }

inline void barrier() {
  const int turn = shared->turn;
  if (shared->arrived.fetch_add(1) + 1 == rank_count) {
    shared->arrived = 0;
    shared->turn = turn + 1;
    return;
  }
  while (shared->turn == turn)
    if (shared->failed != 0) _exit(1);
}

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

// ---- Data ------------------------------------------------------------------------------------------

/// Floats whose exponents are distributed as in practice, about, and some of any bits.
inline std::vector<uint8_t> random_bytes(DataType type, size_t count, unsigned seed) {
  const size_t size = datatype_size(type);
  std::vector<uint8_t> result(count * size);
  std::mt19937_64 random(seed);
  for (size_t i = 0; i < count; ++i) {
    uint64_t bits = random();
    const auto exponent = static_cast<uint64_t>(120 - std::countr_zero(bits >> 40 | 1u << 14));
    if (i % 1024 != 0 && type == UZIP_BF16) bits = (bits & 0x807f) | exponent << 7;
    if (i % 1024 != 0 && type == UZIP_FP32) bits = (bits & 0x807fffff) | exponent << 23;
    std::memcpy(&result[i * size], &bits, size);
  }
  return result;
}

struct DeviceBuffer {
  explicit DeviceBuffer(size_t size) : bytes(size) { check(cudaMalloc(&data, size), "memory"); }
  ~DeviceBuffer() { cudaFree(data); }
  DeviceBuffer(const DeviceBuffer&) = delete;
  DeviceBuffer& operator=(const DeviceBuffer&) = delete;
  void put(const std::vector<uint8_t>& values, size_t offset = 0) {
    check(cudaMemcpy(static_cast<uint8_t*>(data) + offset, values.data(), values.size(),
                     cudaMemcpyHostToDevice),
          "copy");
  }
  std::vector<uint8_t> get(size_t size) const {
    std::vector<uint8_t> result(size);
    check(cudaMemcpy(result.data(), data, size, cudaMemcpyDeviceToHost), "copy");
    return result;
  }
  void* data = nullptr;
  size_t bytes;
};

// ---- Calls -----------------------------------------------------------------------------------------

/// Exchange: both ranks of a pair send and receive at the same time. Reduce: to the last rank.
inline const char* const kCollNames[] = {"allreduce", "reduce_scatter", "allgather", "sendrecv",
                                         "exchange",  "reduce"};
inline constexpr int kColls = 6;
inline constexpr int kExchange = 4;
inline constexpr int kReduce = 5;

inline PeerCall make_call(int coll, DataType type, size_t count, const void* src, void* dst) {
  PeerCall call{};
  call.coll = static_cast<PeerColl>(coll);
  if (coll == kReduce) {
    call.coll = PeerColl::kReduce;
    call.peer = rank_count - 1;
  } else if (coll >= 3) {
    call.coll = own_rank % 2 == 0 ? PeerColl::kSend : PeerColl::kRecv;
    call.peer = own_rank ^ 1;
  }
  call.type = static_cast<uint8_t>(type);
  call.op = UZIP_SUM;
  call.levels = 1;
  call.count = count;
  call.src = src;
  call.dst = dst;
  return call;
}

/// On `stream`; the two messages of an exchange on the group's own.
inline void start_call(PeerGroup* group, int coll, PeerCall call, cudaStream_t stream,
                       PeerTicket* ticket) {
  if (coll != kExchange)
    return check(api->peers()->start(group, &call, stream, ticket), kCollNames[coll]);
  for (const PeerColl way : {PeerColl::kRecv, PeerColl::kSend}) {
    call.coll = way;
    check(api->peers()->start(group, &call, api->peers()->stream_of(group, way), ticket),
          kCollNames[coll]);
  }
}

/// Waits for what the calls of a kind are on.
inline void wait_stream(PeerGroup* group, int coll, cudaStream_t stream) {
  if (coll != kExchange) return check(cudaStreamSynchronize(stream), kCollNames[coll]);
  for (const PeerColl way : {PeerColl::kRecv, PeerColl::kSend})
    check(cudaStreamSynchronize(static_cast<cudaStream_t>(api->peers()->stream_of(group, way))),
          kCollNames[coll]);
}

/// Polls until the call is done; false, with a sentence in last_error(), when it fails.
inline bool wait_for(PeerGroup* group, uint64_t ticket, double seconds) {
  const double begin = now();
  bool aborted = false;
  for (;;) {
    bool done = false;
    if (api->peers()->query(group, ticket, &done) != 0) return false;
    if (done) return true;
    if (now() - begin < seconds) continue;
    if (aborted && now() - begin > seconds + 5) require(false, "abort", "the call does not end");
    if (!aborted) std::printf("rank %d gives up\n", own_rank), std::fflush(stdout);
    api->peers()->give_up(group);
    aborted = true;
    usleep(1000);
  }
}

inline PeerGroup* make_group(const Settings& settings) {
  PeerOptions options{};
  options.rank = own_rank;
  options.ranks = rank_count;
  options.most_bytes = settings.number("memory", 403) * 1000 * 1000;
  options.deadline_ns = 5'000'000'000;
  options.blocks = static_cast<unsigned>(settings.number("blocks", 0));
  options.depth = static_cast<unsigned>(settings.number("depth", 0));
  options.least_piece = settings.number("piece", 0) << 10;
  options.most_stored = static_cast<uint64_t>(settings.number("stored", 0)) << 10;
  options.most_coded_here = static_cast<uint64_t>(settings.number("fused", 0)) << 10;
  options.most_piece = settings.number("most", 0) << 10;
  PeerGroup* group = nullptr;
  check(api->peers()->create(&options, &group, &shared->handles[own_rank]), "group");
  barrier();
  check(api->peers()->connect(group, shared->handles), "connect");
  barrier();
  return group;
}

}  // namespace uzip::gpu
