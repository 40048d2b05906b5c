// usage: gpu_peer_bench PLUGIN TENSORS MODE [NAME=VALUE ...]
//
// Collectives between processes of one host, each with a GPU, over memory that the GPUs open to one
// another. PLUGIN is libuzipcoll_cuda.so, TENSORS the folder tests/data/tensors. Starts the
// processes itself. Built and run by tools/gpu-check.
//
//   check   every call, several types and sizes, against reductions on the CPU: all bits
//   speed   times beside NCCL's, when libnccl.so.2 is found (NCCL=path), in the same processes and
//           in turn; all with data that is not in the caches
//   death   a rank ends in the middle of a call: the others must get an error in time
//   late    a rank comes to a call when the others have given it up: all must get an error
//   damage  a rank sends frames of another type: all whose result has to do with them must get an error
//
//   ranks=2 piece=0 most=0 stored=0 fused=0 (KiB) depth=0 memory=403 blocks=0 levels=1 rounds=7
//   sizes=... calls=... type=bfloat16 op=sum
//   json=PATH; of death and late: bytes=134217728 compress=0
#include "base/datatype.hpp"
#include "base/reduce.hpp"

#include "gpu_peer_failures.hpp"

#include <cuda_runtime.h>
#include <dlfcn.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <vector>

namespace {

using namespace uzip;
using namespace uzip::gpu;
// ---- NCCL, as far as it is needed ------------------------------------------------------------------

struct Nccl {
  struct Id {
    char bytes[128];
  };
  using Comm = void*;
  int (*get_id)(Id*) = nullptr;
  int (*init)(Comm*, int, Id, int) = nullptr;
  int (*all_reduce)(const void*, void*, size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*all_gather)(const void*, void*, size_t, int, Comm, cudaStream_t) = nullptr;
  int (*reduce)(const void*, void*, size_t, int, int, int, Comm, cudaStream_t) = nullptr;
  int (*reduce_scatter)(const void*, void*, size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*send)(const void*, size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*recv)(void*, size_t, int, int, Comm, cudaStream_t) = nullptr;
  int (*begin)() = nullptr;
  int (*end)() = nullptr;
  Comm comm = nullptr;

  bool load() {
    const char* const path = std::getenv("NCCL");
    void* const library = dlopen(path != nullptr ? path : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) return false;
    auto find = [&](auto* function, const char* name) {
      *reinterpret_cast<void**>(function) = dlsym(library, name);
      return *function != nullptr;
    };
    return find(&get_id, "ncclGetUniqueId") && find(&init, "ncclCommInitRank") &&
           find(&all_reduce, "ncclAllReduce") && find(&all_gather, "ncclAllGather") &&
           find(&reduce, "ncclReduce") && find(&reduce_scatter, "ncclReduceScatter") && find(&send, "ncclSend") &&
           find(&recv, "ncclRecv") && find(&begin, "ncclGroupStart") && find(&end, "ncclGroupEnd");
  }
  void connect() {
    if (own_rank == 0) {
      Id id;
      require(get_id(&id) == 0, "NCCL", "no id");
      std::memcpy(shared->nccl_id, id.bytes, sizeof id.bytes);
    }
    barrier();
    Id id;
    std::memcpy(id.bytes, shared->nccl_id, sizeof id.bytes);
    require(init(&comm, rank_count, id, own_rank) == 0, "NCCL", "no communicator");
  }
};

// ---- Data ------------------------------------------------------------------------------------------

std::vector<uint8_t> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::vector<uint8_t>(std::istreambuf_iterator<char>(file), {});
}

// ---- check -----------------------------------------------------------------------------------------

void check_call(PeerGroup* group, cudaStream_t stream, int coll, DataType type, uint8_t op,
                size_t count, bool compress, bool in_place) {
  const size_t size = datatype_size(type);
  const auto ranks = static_cast<size_t>(rank_count);
  const size_t inputs = coll == 1 ? count * ranks : count;
  const size_t outputs = coll == 2 ? count * ranks : count;
  std::vector<std::vector<uint8_t>> all;
  for (int rank = 0; rank < rank_count; ++rank)
    all.push_back(random_bytes(type, inputs, 100 * static_cast<unsigned>(count % 1000) + rank));
  std::vector<uint8_t> expected(outputs * size);
  const size_t block = count * size;
  if (coll == 2)
    for (size_t r = 0; r < ranks; ++r) std::memcpy(&expected[r * block], all[r].data(), block);
  if (coll == 3) expected = all[own_rank & ~1];
  if (coll == kExchange) expected = all[own_rank ^ 1];
  if (coll < 2 || coll == kReduce) {
    std::vector<const void*> sources;
    for (auto& values : all) sources.push_back(values.data() + (coll == 1 ? own_rank * block : 0));
    reduce(static_cast<ReduceOp>(op), type, expected.data(), sources, count,
           op == UZIP_AVG ? ranks : 0);
  }
  // One element from the beginning: nothing is aligned by luck.
  DeviceBuffer src(inputs * size + 2 * 256);
  DeviceBuffer dst(outputs * size + 2 * 256);
  check(cudaMemset(dst.data, 0xee, dst.bytes), "clear");
  src.put(all[own_rank], 256);
  const uint8_t* from = static_cast<uint8_t*>(src.data) + 256;
  uint8_t* to = static_cast<uint8_t*>(dst.data) + 256;
  if (in_place && (coll == 0 || coll == kReduce)) from = to, dst.put(all[own_rank], 256);
  if (in_place && coll == 2)
    from = to + own_rank * block, dst.put(all[own_rank], 256 + own_rank * block);
  check(cudaDeviceSynchronize(), "copy");  // which may be under way when its call returns
  PeerCall call = make_call(coll, type, count, from, to);
  call.op = op;
  call.average_over = op == UZIP_AVG ? ranks : 0;
  call.compress = compress;
  PeerTicket ticket{};
  start_call(group, coll, call, stream, &ticket);
  char name[160];
  std::snprintf(name, sizeof name, "%s %s op %d count %zu%s%s", kCollNames[coll],
                datatype_info(type).name, op, count, compress ? " compressed" : "",
                in_place ? " in place" : "");
  require(wait_for(group, ticket.number, 10), name, api->last_error());
  wait_stream(group, coll, stream);
  if (coll == 3 && own_rank % 2 == 0) return;
  if (coll == kReduce && own_rank != rank_count - 1) {
    if (!in_place) expected.assign(expected.size(), 0xee);
    else expected = all[own_rank];
  }
  const std::vector<uint8_t> result = dst.get(dst.bytes);
  for (size_t i = 0; i < result.size(); ++i) {
    const bool inside = i >= 256 && i - 256 < expected.size();
    const uint8_t wanted = inside ? expected[i - 256] : 0xee;
    if (result[i] == wanted) continue;
    std::snprintf(name + std::strlen(name), 80, ": byte %zd is %02x, not %02x",
                  static_cast<ssize_t>(i) - 256, result[i], wanted);
    require(false, name, "wrong");
  }
}

void check_all(const Settings& settings) {
  PeerGroup* const group = make_group(settings);
  cudaStream_t stream;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "stream");
  int devices = 1;
  check(cudaGetDeviceCount(&devices), "devices");
  const bool few = rank_count > devices;  // that share a GPU take turns, which is slow
  int cases = 0;
  const size_t small[] = {1, 3, 4, 100, 4095, 16384};
  const size_t large[] = {131073, 200000, 1000003, 4 * kMiB + 8, 11 * kMiB + 17};
  for (int coll = 0; coll < kColls; ++coll) {
    if ((coll == 3 || coll == kExchange) && rank_count % 2 != 0) continue;
    for (const size_t count : small)
      for (const DataType type : {UZIP_BF16, UZIP_FP32, UZIP_FP64, UZIP_INT8, UZIP_FP8_E4M3FN})
        for (const uint8_t op : {UZIP_SUM, UZIP_MAX, UZIP_AVG}) {
          if (coll > 1 && coll != kReduce && op != UZIP_SUM) continue;
          if (few && (count % 3 != 0 || type == UZIP_INT8 || op != UZIP_SUM)) continue;
          check_call(group, stream, coll, type, op, count, false, count % 2 == 0), ++cases;
        }
    for (const size_t count : large)
      for (const DataType type : {UZIP_BF16, UZIP_FP32, UZIP_FP16, UZIP_FP8_E5M2, UZIP_INT32})
        for (const bool compress : {false, true}) {
          if (compress && type == UZIP_INT32) continue;
          if (few && (count > 2 * kMiB || type == UZIP_FP16 || type == UZIP_INT32)) continue;
          if (count > 3 * kMiB && type != UZIP_BF16) continue;
          const uint8_t op = coll < 2 && count == 200000 ? UZIP_AVG : UZIP_SUM;
          check_call(group, stream, coll, type, op, count, compress, count % 2 == 0), ++cases;
        }
  }
  barrier();
  if (own_rank == 0) std::printf("check: %d ranks, %d cases right\n", rank_count, cases);
  barrier();
  api->peers()->destroy(group);
}

// ---- speed -----------------------------------------------------------------------------------------

struct Speed {
  PeerGroup* group;
  Nccl nccl;
  bool has_nccl;
  cudaStream_t stream;
  DeviceBuffer src;
  DeviceBuffer dst;
  int levels;
  DataType type;
  ReduceOp op;

  /// One call on `bytes` (the whole vector's) of set `turn`.
  void start(int variant, int coll, size_t bytes, size_t turn) {
    const size_t room = std::max(bytes, size_t{64});
    const size_t sets = std::min<size_t>(src.bytes / room, 64);
    auto* const from = static_cast<uint8_t*>(src.data) + turn % sets * room;
    auto* const to = static_cast<uint8_t*>(dst.data) + turn % sets * room;
    const size_t count =
        bytes / datatype_size(type) / (coll == 1 || coll == 2 ? rank_count : 1);
    if (variant == 0) {
      // Of fp16, bf16, fp32, fp64, fp8_e4m3fn, fp8_e5m2; sum and average.
      constexpr int kTypes[] = {6, 9, 7, 8, 10, 11};
      const int nccl_type = kTypes[type - UZIP_FP16];
      const int nccl_op = op == UZIP_AVG ? 4 : 0;
      int failed = 0;
      if (coll == 0) failed = nccl.all_reduce(from, to, count, nccl_type, nccl_op, nccl.comm, stream);
      if (coll == kReduce)
        failed = nccl.reduce(from, to, count, nccl_type, nccl_op, rank_count - 1, nccl.comm, stream);
      if (coll == 1)
        failed = nccl.reduce_scatter(from, to, count, nccl_type, nccl_op, nccl.comm, stream);
      if (coll == 2) failed = nccl.all_gather(from, to, count, nccl_type, nccl.comm, stream);
      if (coll == 3)
        failed = own_rank == 0 ? nccl.send(from, count, nccl_type, 1, nccl.comm, stream)
                               : nccl.recv(to, count, nccl_type, 0, nccl.comm, stream);
      if (coll == kExchange)
        failed = nccl.begin() | nccl.send(from, count, nccl_type, own_rank ^ 1, nccl.comm, stream) |
                 nccl.recv(to, count, nccl_type, own_rank ^ 1, nccl.comm, stream) | nccl.end();
      require(failed == 0, "NCCL", kCollNames[coll]);
      return;
    }
    PeerCall call = make_call(coll, type, count, from, to);
    call.op = op;
    call.average_over = op == UZIP_AVG ? static_cast<uint64_t>(rank_count) : 0;
    call.compress = variant == 2;
    call.levels = levels;
    start_call(group, coll, call, stream, &last_ticket);
  }
  PeerTicket last_ticket{};
};

/// Seconds of one call, the slowest rank's.
double time_calls(Speed& speed, int variant, int coll, size_t bytes, size_t calls) {
  check(cudaStreamSynchronize(speed.stream), "wait");
  barrier();
  const double begin = now();
  for (size_t i = 0; i < calls; ++i) speed.start(variant, coll, bytes, i);
  wait_stream(speed.group, variant == 0 ? 0 : coll, speed.stream);
  shared->seconds[own_rank] = (now() - begin) / static_cast<double>(calls);
  if (variant != 0 && !wait_for(speed.group, speed.last_ticket.number, 10))
    require(false, kCollNames[coll], api->last_error());
  barrier();
  return *std::max_element(shared->seconds, shared->seconds + rank_count);
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

DataType type_named(const std::string& name) {
  const DataTypeInfo* const info = find_datatype(name);
  require(info != nullptr && is_float(info->type), name.c_str(), "no float type");
  return info->type;
}

void measure(const Settings& settings, const std::string& tensors) {
  const size_t most = static_cast<size_t>(settings.number("most_size", 1024)) * kMiB;
  Speed speed{make_group(settings),
              {},
              false,
              nullptr,
              DeviceBuffer(2 * most),
              DeviceBuffer(2 * most),
              static_cast<int>(settings.number("levels", 1)),
              type_named(settings.text("type", datatype_info(UZIP_BF16).name)),
              settings.text("op", "sum") == "avg" ? UZIP_AVG : UZIP_SUM};
  check(cudaStreamCreateWithFlags(&speed.stream, cudaStreamNonBlocking), "stream");
  speed.has_nccl = settings.number("nccl", 1) != 0 && speed.nccl.load();
  if (speed.has_nccl) speed.nccl.connect();
  std::vector<uint8_t> pattern =
      read_file(tensors + "/" + settings.text("tensor", "weight_bf16.bin"));
  if (pattern.empty()) pattern = random_bytes(speed.type, 4 * kMiB, 7);
  while (pattern.size() < 32 * kMiB) pattern.insert(pattern.end(), pattern.begin(), pattern.end());
  pattern.resize(32 * kMiB);
  for (size_t at = 0; at < speed.src.bytes; at += pattern.size()) speed.src.put(pattern, at);

  const std::string calls = settings.text("calls", "allreduce,reduce_scatter,allgather,sendrecv,exchange,reduce");
  std::string sizes = settings.text(
      "sizes", "8,1024,65536,262144,1048576,4194304,16777216,67108864,268435456,1073741824");
  const auto rounds = static_cast<size_t>(settings.number("rounds", 7));
  std::ofstream json;
  if (own_rank == 0 && settings.values.count("json") != 0)
    json.open(settings.text("json", ""), std::ios::app);
  if (own_rank == 0)
    std::printf("%-14s %11s %10s %10s %10s   GB/s: %7s %7s %7s  plain/nccl lev/nccl\n", "call",
                "bytes", "nccl us", "plain us", "lev us", "nccl", "plain", "lev");
  for (int coll = 0; coll < kColls; ++coll) {
    if (("," + calls + ",").find(std::string(",") + kCollNames[coll] + ",") == std::string::npos)
      continue;
    for (size_t at = 0; at < sizes.size();) {
      const size_t bytes = std::strtoull(&sizes[at], nullptr, 10);
      at = std::min(sizes.find(',', at), sizes.size() - 1) + 1;
      if (bytes > most) continue;
      const size_t each = std::clamp<size_t>(2048 * kMiB / bytes, 4, 50);
      std::vector<double> times[3];
      for (size_t round = 0; round < rounds + 1; ++round)
        for (int variant = speed.has_nccl ? 0 : 1; variant < 3; ++variant) {
          const double t = time_calls(speed, variant, coll, bytes, each);
          if (round > 0) times[variant].push_back(t);
        }
      double t[3] = {};
      for (int v = 0; v < 3; ++v) t[v] = times[v].empty() ? 0 : median(times[v]);
      if (own_rank != 0) continue;
      const auto speed_of = [&](double s) {
        return s > 0 ? static_cast<double>(bytes) / s / 1e9 : 0;
      };
      std::printf("%-14s %11zu %10.1f %10.1f %10.1f         %7.1f %7.1f %7.1f  %6.2f %6.2f\n",
                  kCollNames[coll], bytes, t[0] * 1e6, t[1] * 1e6, t[2] * 1e6, speed_of(t[0]),
                  speed_of(t[1]), speed_of(t[2]), t[0] / t[1], t[0] / t[2]);
      std::fflush(stdout);
      json << "{\"call\":\"" << kCollNames[coll] << "\",\"bytes\":" << bytes
           << ",\"nccl_us\":" << t[0] * 1e6 << ",\"plain_us\":" << t[1] * 1e6
           << ",\"lev_us\":" << t[2] * 1e6 << "}\n";
    }
  }
  barrier();
  api->peers()->destroy(speed.group);
}

void run_rank(const std::string& plugin, const std::string& tensors, const std::string& mode,
              const Settings& settings) {
  int devices = 0;
  check(cudaGetDeviceCount(&devices), "no GPU");
  check(cudaSetDevice(own_rank % devices), "device");
  check(cudaFree(nullptr), "device");
  const auto opened = open_plugin(plugin.c_str());
  require(opened.ok(), "plugin", opened.ok() ? "" : opened.status().message().c_str());
  api = *opened;
  if (mode == "check") check_all(settings);
  if (mode == "speed") measure(settings, tensors);
  if (mode == "death") die(settings);
  if (mode == "late") come_late(settings);
  if (mode == "damage") send_damage(settings);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(stderr, "usage: gpu_peer_bench PLUGIN TENSORS MODE [NAME=VALUE ...]\n");
    return 2;
  }
  Settings settings;
  for (int i = 4; i < argc; ++i) {
    const std::string argument = argv[i];
    const size_t at = argument.find('=');
    if (at != std::string::npos) settings.values[argument.substr(0, at)] = argument.substr(at + 1);
  }
  rank_count = static_cast<int>(settings.number("ranks", 2));
  shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  if (shared == MAP_FAILED || rank_count < 2 || rank_count > kMostRanks) return 2;
  std::vector<pid_t> children;
  for (int rank = 0; rank < rank_count; ++rank) {
    const pid_t child = fork();
    if (child != 0) {
      children.push_back(child);
      continue;
    }
    own_rank = rank;
    run_rank(argv[1], argv[2], argv[3], settings);
    std::fflush(stdout);
    _exit(0);
  }
  int failed = 0;
  for (size_t left = children.size(); left > 0; --left) {  // whoever ends first: the others may wait for it
    int status = 0;
    waitpid(-1, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) shared->failed = failed = 1;
  }
  return failed;
}
