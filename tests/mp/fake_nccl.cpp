// A GPU and NCCL without either, for perf_nccl_test.sh: those functions of CUDA's driver and of NCCL that the measuring
// programs call, over memory of the host. What NCCL is asked for is checked, and written to the file
// $FAKE_NCCL_LOG.<rank>; nothing moves. Work takes three looks at its stream, or for ever with FAKE_NCCL_HANGS=1.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace {

using Address = unsigned long long;
struct UniqueId {
  char bytes[128];
};

constexpr int kInvalidArgument = 4, kInvalidUsage = 5;  // of ncclResult_t
constexpr int kNotReady = 600;                          // of CUresult

std::mutex lock;
std::map<Address, size_t> allocated;
thread_local int current_device = -1;
int looks_left = 0;
int group_depth = 0;

struct Comm {
  int ranks, rank;
  std::FILE* log;
};

bool is_device_memory(const void* memory, size_t bytes) {
  const auto address = static_cast<Address>(reinterpret_cast<uintptr_t>(memory));
  const std::lock_guard guard(lock);
  auto after = allocated.upper_bound(address);
  if (after == allocated.begin()) return false;
  const auto& [start, size] = *--after;
  return address + bytes <= start + size;
}

size_t size_of(int type) {
  constexpr size_t kSizes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
  return type >= 0 && type < 12 ? kSizes[type] : size_t{1} << 60;
}

// One call: `sends` and `receives` in units of `count`; null memory is not looked at.
int call(const char* name, const void* src, size_t sends, const void* dst, size_t receives, size_t count, int type,
         int other, void* opaque, void* stream) {
  const auto* const comm = static_cast<const Comm*>(opaque);
  if (comm == nullptr || stream != &looks_left) return kInvalidUsage;
  const size_t bytes = count * size_of(type);
  if (src != nullptr && !is_device_memory(src, bytes * sends)) return kInvalidArgument;
  if (dst != nullptr && !is_device_memory(dst, bytes * receives)) return kInvalidArgument;
  std::fprintf(comm->log, "%s %zu %d %d%s\n", name, count, type, other, group_depth > 0 ? " grouped" : "");
  std::fflush(comm->log);
  looks_left = 3;
  return 0;
}

size_t ranks_of(void* comm) { return static_cast<size_t>(static_cast<const Comm*>(comm)->ranks); }
bool is_root(void* comm) { return static_cast<const Comm*>(comm)->rank == 0; }

}  // namespace

FAKE int cuInit(unsigned) { return 0; }
FAKE int cuDeviceGetCount(int* count) { return *count = 8, 0; }
FAKE int cuDeviceGet(int* device, int ordinal) { return *device = ordinal, 0; }
FAKE int cuDeviceGetName(char* name, int length, int) {
  std::snprintf(name, static_cast<size_t>(length), "fake");
  return 0;
}
FAKE int cuDevicePrimaryCtxRetain(void** context, int device) {
  *context = reinterpret_cast<void*>(static_cast<intptr_t>(device) + 1);
  return 0;
}
FAKE int cuCtxSetCurrent(void* context) {
  current_device = static_cast<int>(reinterpret_cast<intptr_t>(context)) - 1;
  return 0;
}
FAKE int cuMemAlloc_v2(Address* address, size_t bytes) {
  *address = static_cast<Address>(reinterpret_cast<uintptr_t>(std::malloc(bytes)));
  const std::lock_guard guard(lock);
  allocated[*address] = bytes;
  return *address == 0 ? 2 : 0;
}
FAKE int cuMemFree_v2(Address address) {
  const std::lock_guard guard(lock);
  allocated.erase(address);
  std::free(reinterpret_cast<void*>(static_cast<uintptr_t>(address)));
  return 0;
}
FAKE int cuMemAllocManaged(Address*, size_t, unsigned) { return 801; }
FAKE int cuMemAllocHost_v2(void**, size_t) { return 801; }
FAKE int cuMemFreeHost(void*) { return 801; }
FAKE int cuMemcpy(Address dst, Address src, size_t bytes) {
  std::memcpy(reinterpret_cast<void*>(static_cast<uintptr_t>(dst)),
              reinterpret_cast<const void*>(static_cast<uintptr_t>(src)), bytes);
  return 0;
}
FAKE int cuCtxSynchronize() { return 0; }
FAKE int cuStreamCreate(void** stream, unsigned) { return *stream = &looks_left, 0; }
FAKE int cuStreamDestroy_v2(void*) { return 0; }
FAKE int cuStreamQuery(void*) {
  if (looks_left == 0) return 0;
  if (std::getenv("FAKE_NCCL_HANGS") == nullptr) --looks_left;
  return kNotReady;
}
FAKE int cuGetErrorString(int, const char** text) { return *text = "an error of the fake driver", 0; }

FAKE const char* ncclGetErrorString(int error) {
  return error == kInvalidArgument ? "invalid argument" : "invalid usage";
}
FAKE int ncclGetVersion(int* version) {
  const char* const given = std::getenv("FAKE_NCCL_VERSION");
  *version = given != nullptr ? std::atoi(given) : 22803;
  return 0;
}
FAKE int ncclGetUniqueId(UniqueId* id) {
  for (size_t i = 0; i < sizeof id->bytes; ++i) id->bytes[i] = static_cast<char>(255 - i);
  return 0;
}
FAKE int ncclCommInitRank(void** comm, int ranks, UniqueId id, int rank) {
  for (size_t i = 0; i < sizeof id.bytes; ++i)
    if (id.bytes[i] != static_cast<char>(255 - i)) return kInvalidArgument;
  if (current_device != rank) return kInvalidUsage;  // the calling thread has this rank's GPU
  const char* const log = std::getenv("FAKE_NCCL_LOG");
  if (log == nullptr) return kInvalidUsage;
  auto* const made = new Comm{ranks, rank, std::fopen((log + ("." + std::to_string(rank))).c_str(), "w")};
  if (made->log == nullptr) return kInvalidUsage;
  *comm = made;
  return 0;
}
FAKE int ncclCommDestroy(void* opaque) {
  auto* const comm = static_cast<Comm*>(opaque);
  std::fprintf(comm->log, "ncclCommDestroy\n");
  std::fclose(comm->log);
  delete comm;
  return 0;
}
FAKE int ncclGroupStart() { return ++group_depth, 0; }
FAKE int ncclGroupEnd() { return --group_depth < 0 ? kInvalidUsage : 0; }
FAKE int ncclAllReduce(const void* src, void* dst, size_t count, int type, int op, void* comm, void* stream) {
  return call("ncclAllReduce", src, 1, dst, 1, count, type, op, comm, stream);
}
FAKE int ncclReduceScatter(const void* src, void* dst, size_t count, int type, int op, void* comm, void* stream) {
  return call("ncclReduceScatter", src, ranks_of(comm), dst, 1, count, type, op, comm, stream);
}
FAKE int ncclAllGather(const void* src, void* dst, size_t count, int type, void* comm, void* stream) {
  return call("ncclAllGather", src, 1, dst, ranks_of(comm), count, type, -1, comm, stream);
}
FAKE int ncclBroadcast(const void* src, void* dst, size_t count, int type, int root, void* comm, void* stream) {
  return call("ncclBroadcast", is_root(comm) ? src : nullptr, 1, dst, 1, count, type, root, comm, stream);
}
FAKE int ncclReduce(const void* src, void* dst, size_t count, int type, int op, int root, void* comm, void* stream) {
  if (root != 0) return kInvalidArgument;
  return call("ncclReduce", src, 1, is_root(comm) ? dst : nullptr, 1, count, type, op, comm, stream);
}
FAKE int ncclSend(const void* src, size_t count, int type, int peer, void* comm, void* stream) {
  return call("ncclSend", src, 1, nullptr, 0, count, type, peer, comm, stream);
}
FAKE int ncclRecv(void* dst, size_t count, int type, int peer, void* comm, void* stream) {
  return call("ncclRecv", nullptr, 0, dst, 1, count, type, peer, comm, stream);
}
