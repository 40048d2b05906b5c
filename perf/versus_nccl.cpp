#include "versus_nccl.hpp"

#include "together.hpp"

#include <dlfcn.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <future>
#include <optional>
#include <thread>
#include <type_traits>

namespace perf {
namespace {

using std::chrono::steady_clock;

// Nothing of NCCL's is waited for longer: as the library waits where that is limited, otherwise a minute.
std::chrono::duration<double> limit() {
  const char* const given = std::getenv("UZIP_TIMEOUT_LIMIT");
  const double seconds = given != nullptr ? std::strtod(given, nullptr) : 0;
  return std::chrono::duration<double>(seconds > 0 && seconds < 1e6 ? seconds : 60);
}

// NCCL's interface, as its documentation has it.
struct UniqueId {
  char bytes[128];
};
using Communicator = void*;
using Stream = void*;
enum NcclType : int {
  kInt8 = 0,
  kUint8 = 1,
  kInt32 = 2,
  kUint32 = 3,
  kInt64 = 4,
  kUint64 = 5,
  kFloat16 = 6,
  kFloat32 = 7,
  kFloat64 = 8,
  kBfloat16 = 9,
  kFloat8E4m3 = 10,
  kFloat8E5m2 = 11
};
enum NcclOp : int { kSum = 0, kProd = 1, kMax = 2, kMin = 3, kAvg = 4 };
static_assert(sizeof(UniqueId) == 128 && alignof(UniqueId) == 1 && sizeof(UniqueId) % sizeof(uint64_t) == 0);
static_assert(sizeof(NcclType) == sizeof(int) && sizeof(NcclOp) == sizeof(int) && sizeof(size_t) == 8);

constexpr int kFirstWithFloat8 = 22400;

/// NCCL's type and, where it has none, an integer of the same width.
struct Stand {
  NcclType type;
  const char* stands_in;
};

Stand nccl_type(uzip_dtype_t type, int version) {
  // clang-format off
  switch (type) {
    case UZIP_INT8: return {kInt8, nullptr};
    case UZIP_UINT8: return {kUint8, nullptr};
    case UZIP_INT32: return {kInt32, nullptr};
    case UZIP_UINT32: return {kUint32, nullptr};
    case UZIP_INT64: return {kInt64, nullptr};
    case UZIP_UINT64: return {kUint64, nullptr};
    case UZIP_FP16: return {kFloat16, nullptr};
    case UZIP_BF16: return {kBfloat16, nullptr};
    case UZIP_FP32: return {kFloat32, nullptr};
    case UZIP_FP64: return {kFloat64, nullptr};
    case UZIP_FP8_E4M3FN: if (version >= kFirstWithFloat8) return {kFloat8E4m3, nullptr}; break;
    case UZIP_FP8_E5M2: if (version >= kFirstWithFloat8) return {kFloat8E5m2, nullptr}; break;
  }
  // clang-format on
  return {kInt8, "ncclInt8"};
}

NcclOp nccl_op(uzip_op_t op) {
  // clang-format off
  switch (op) {
    case UZIP_PROD: return kProd;
    case UZIP_MIN: return kMin;
    case UZIP_MAX: return kMax;
    case UZIP_AVG: return kAvg;
    case UZIP_SUM:
    case UZIP_OP_USER: break;  // which none of these programs measures
  }
  // clang-format on
  return kSum;
}

const char* function_name(OperationKind kind) {
  // clang-format off
  switch (kind) {
    case OperationKind::kAllreduce: return "ncclAllReduce";
    case OperationKind::kReduceScatter: return "ncclReduceScatter";
    case OperationKind::kAllgather: return "ncclAllGather";
    case OperationKind::kBcast: return "ncclBroadcast";
    case OperationKind::kReduce: return "ncclReduce";
    case OperationKind::kAlltoall:
    case OperationKind::kHalo:
    case OperationKind::kSendrecv: break;
  }
  // clang-format on
  return "ncclSend and ncclRecv";
}

}  // namespace

struct NcclApi {
  const char* (*error_text)(int error) = nullptr;
  int (*get_version)(int* version) = nullptr;
  int (*get_unique_id)(UniqueId* id) = nullptr;
  int (*init_rank)(Communicator* comm, int ranks, UniqueId id, int rank) = nullptr;
  int (*destroy)(Communicator comm) = nullptr;
  int (*group_start)() = nullptr;
  int (*group_end)() = nullptr;
  int (*all_reduce)(const void* src, void* dst, size_t count, NcclType, NcclOp, Communicator, Stream) = nullptr;
  int (*reduce_scatter)(const void* src, void* dst, size_t count, NcclType, NcclOp, Communicator, Stream) = nullptr;
  int (*all_gather)(const void* src, void* dst, size_t count, NcclType, Communicator, Stream) = nullptr;
  int (*broadcast)(const void* src, void* dst, size_t count, NcclType, int root, Communicator, Stream) = nullptr;
  int (*reduce)(const void* src, void* dst, size_t count, NcclType, NcclOp, int root, Communicator, Stream) = nullptr;
  int (*send)(const void* src, size_t count, NcclType, int peer, Communicator, Stream) = nullptr;
  int (*receive)(void* dst, size_t count, NcclType, int peer, Communicator, Stream) = nullptr;

  const std::chrono::duration<double> longest = limit();
  int version = 0;
  Communicator comm = nullptr;
  std::optional<DeviceRuntime> device;
  std::optional<DeviceStream> stream;
  mutable bool usable = true;  ///< false: something has failed, and to free the communicator might wait for ever

  void require_ok(int error, const char* what) const {
    if (error == 0) return;
    usable = false;
    throw Failure(kExitWrong, std::string("--versus nccl: ") + what + ": " + error_text(error) +
                                  "; NCCL_DEBUG=WARN in the environment shows more");
  }

  void load() {
    const char* const given = std::getenv("NCCL");
    const std::string name = given != nullptr && *given != '\0' ? given : "libnccl.so.2";
    void* const library = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      throw Failure(kExitUsage, std::string("--versus nccl: ") + dlerror() +
                                    "; install NCCL, or set LD_LIBRARY_PATH to where it is, or NCCL to its file");
    }
    const auto find = [&](auto& function, const char* symbol) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, symbol));
      if (function == nullptr) throw Failure(kExitUsage, "--versus nccl: " + name + " has no function " + symbol);
    };
    find(error_text, "ncclGetErrorString");
    find(get_version, "ncclGetVersion");
    find(get_unique_id, "ncclGetUniqueId");
    find(init_rank, "ncclCommInitRank");
    find(destroy, "ncclCommDestroy");
    find(group_start, "ncclGroupStart");
    find(group_end, "ncclGroupEnd");
    find(all_reduce, "ncclAllReduce");
    find(reduce_scatter, "ncclReduceScatter");
    find(all_gather, "ncclAllGather");
    find(broadcast, "ncclBroadcast");
    find(reduce, "ncclReduce");
    find(send, "ncclSend");
    find(receive, "ncclRecv");
    require_ok(get_version(&version), "ncclGetVersion");
  }

  // All ranks meet in it, so it has a thread that is left behind if one of them does not come.
  void connect(const World& world, UniqueId id) {
    struct Outcome {
      int error = 0;
      Communicator comm = nullptr;
    };
    std::packaged_task<Outcome()> task([init = init_rank, ranks = world.ranks(), rank = world.rank(), id] {
      const DeviceRuntime current(MemoryKind::kCuda, rank);  // of this thread
      Outcome outcome;
      outcome.error = init(&outcome.comm, ranks, id, rank);
      return outcome;
    });
    std::future<Outcome> done = task.get_future();
    std::thread(std::move(task)).detach();
    if (done.wait_for(longest) != std::future_status::ready) fail_late("ncclCommInitRank");
    const Outcome outcome = done.get();
    require_ok(outcome.error, "ncclCommInitRank");
    comm = outcome.comm;
  }

  void wait(const char* what) const {
    const steady_clock::time_point start = steady_clock::now();
    while (!stream->is_done())
      if (steady_clock::now() - start > longest) fail_late(what);
  }

  [[noreturn]] void fail_late(const char* what) const {
    usable = false;
    throw Failure(kExitWrong, std::string("--versus nccl: ") + what + " has not ended after " +
                                  std::to_string(std::lround(longest.count())) +
                                  " seconds; NCCL_DEBUG=INFO in the environment shows what it waits for");
  }
};

namespace {

std::string version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

std::string describe_call(const NcclApi& api, const Case& bench) {
  std::string text = std::string(function_name(bench.operation.kind)) + " of NCCL " + version_text(api.version);
  const char* stands_in = nccl_type(bench.type.type, api.version).stands_in;
  if (stands_in != nullptr) text += std::string(", ") + stands_in + " for " + bench.type.name;
  return text;
}

class NcclPeer : public Peer {
 public:
  NcclPeer(const NcclApi& api, const Case& bench)
      : Peer(PeerKind::kNccl, describe_call(api, bench)),
        api_(api),
        bench_(bench),
        type_(nccl_type(bench.type.type, api.version).type),
        op_(nccl_op(bench.op)) {}

  // A rank whose stream is done needs nothing more of the others, so there is no barrier of NCCL's.
  void run(const Layout& layout) override {
    const Buffers& buffers = bench_.buffers;
    const char* const name = function_name(bench_.operation.kind);
    api_.require_ok(call(buffers.source.passed(bench_.source(layout, false)),
                         buffers.result.passed(bench_.result(layout, false)), layout.count),
                    name);
    api_.wait(name);
  }

 private:
  int call(std::byte* src, std::byte* dst, size_t count) const {
    const bool is_root = bench_.world.rank() == 0;
    const Communicator comm = api_.comm;
    const Stream stream = api_.stream->handle();
    switch (bench_.operation.kind) {
      case OperationKind::kAllreduce:
        return api_.all_reduce(src, dst, count, type_, op_, comm, stream);
      case OperationKind::kReduceScatter:
        return api_.reduce_scatter(src, dst, count, type_, op_, comm, stream);
      case OperationKind::kAllgather:
        return api_.all_gather(src, dst, count, type_, comm, stream);
      case OperationKind::kBcast:  // which has one buffer: the source at the root, the destination elsewhere
        return api_.broadcast(is_root ? src : dst, is_root ? src : dst, count, type_, 0, comm, stream);
      case OperationKind::kReduce:
        return api_.reduce(src, dst, count, type_, op_, 0, comm, stream);
      case OperationKind::kAlltoall:
      case OperationKind::kHalo:
      case OperationKind::kSendrecv: break;
    }
    int error = api_.group_start();
    if (error != 0) return error;
    error = exchange(src, dst, count);
    const int ended = api_.group_end();
    return error != 0 ? error : ended;
  }

  // Messages between the same two ranks are matched in the order in which they are given. Halos, as perf/halo has
  // them: the first half goes to the rank before this one, the second to the next.
  int exchange(std::byte* src, std::byte* dst, size_t count) const {
    const int rank = bench_.world.rank(), ranks = bench_.world.ranks();
    const int before = (rank + ranks - 1) % ranks, after = (rank + 1) % ranks;
    const size_t bytes = count * bench_.type.size;
    int error = 0;
    const auto send = [&](const std::byte* from, int to) {
      if (error == 0) error = api_.send(from, count, type_, to, api_.comm, api_.stream->handle());
    };
    const auto receive = [&](std::byte* to, int from) {
      if (error == 0) error = api_.receive(to, count, type_, from, api_.comm, api_.stream->handle());
    };
    if (bench_.operation.kind == OperationKind::kAlltoall) {
      for (int peer = 0; peer < ranks; ++peer) {
        send(src + static_cast<size_t>(peer) * bytes, peer);
        receive(dst + static_cast<size_t>(peer) * bytes, peer);
      }
    } else if (bench_.operation.kind == OperationKind::kHalo) {
      send(src, before);
      send(src + bytes, after);
      receive(dst + bytes, after);
      receive(dst, before);
    } else {
      send(src, after);
      receive(dst, before);
    }
    return error;
  }

  const NcclApi& api_;
  const Case& bench_;
  NcclType type_;
  NcclOp op_;
};

}  // namespace

NcclJob::NcclJob(const World& world) : api_(std::make_unique<NcclApi>()) {
  std::array<uint64_t, sizeof(UniqueId) / sizeof(uint64_t)> words{};
  UniqueId id{};
  do_together(world, [&] {
    api_->load();
    api_->device.emplace(MemoryKind::kCuda, world.rank());
    api_->stream.emplace();
    if (world.is_root()) api_->require_ok(api_->get_unique_id(&id), "ncclGetUniqueId");
  });
  std::memcpy(words.data(), id.bytes, sizeof id.bytes);
  std::memcpy(id.bytes, world.gather(words).data(), sizeof id.bytes);  // rank 0's
  do_together(world, [&] { api_->connect(world, id); });
}

NcclJob::~NcclJob() {
  if (api_->comm != nullptr && api_->usable) api_->destroy(api_->comm);
}

std::unique_ptr<NcclJob> make_nccl_job(const World& world) { return std::make_unique<NcclJob>(world); }

std::unique_ptr<Peer> make_nccl_peer(const NcclJob& job, const Case& bench) {
  return std::make_unique<NcclPeer>(job.api(), bench);
}

}  // namespace perf
