#include "device_runtime.hpp"

#include "failure.hpp"

#include <dlfcn.h>

#include <cstdint>

namespace perf {
namespace {

// The part of CUDA's driver interface that is needed, as its documentation has it.
using Address = unsigned long long;
struct Driver {
  int (*init)(unsigned flags);
  int (*device_count)(int* count);
  int (*device)(int* device, int ordinal);
  int (*device_name)(char* name, int length, int device);
  int (*retain_context)(void** context, int device);
  int (*set_context)(void* context);
  int (*allocate)(Address* address, size_t bytes);
  int (*allocate_managed)(Address* address, size_t bytes, unsigned flags);
  int (*release)(Address address);
  int (*allocate_pinned)(void** memory, size_t bytes);
  int (*release_pinned)(void* memory);
  int (*copy)(Address dst, Address src, size_t bytes);
  int (*synchronize)();
  int (*make_stream)(void** stream, unsigned flags);
  int (*release_stream)(void* stream);
  int (*query_stream)(void* stream);
  int (*error_text)(int error, const char** text);
};
constexpr unsigned kAttachGlobal = 1;
constexpr unsigned kNonBlocking = 1;  // does not wait for the default stream
constexpr int kNotReady = 600;

template <class Function>
void find(void* library, const char* name, Function& function) {
  function = reinterpret_cast<Function>(dlsym(library, name));
  if (function == nullptr) throw Failure(kExitUsage, std::string("--mem: the CUDA driver has no ") + name);
}

Driver open_driver() {
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) throw Failure(kExitUsage, std::string("--mem: there is no CUDA driver: ") + dlerror());
  Driver driver{};
  find(library, "cuInit", driver.init);
  find(library, "cuDeviceGetCount", driver.device_count);
  find(library, "cuDeviceGet", driver.device);
  find(library, "cuDeviceGetName", driver.device_name);
  find(library, "cuDevicePrimaryCtxRetain", driver.retain_context);
  find(library, "cuCtxSetCurrent", driver.set_context);
  find(library, "cuMemAlloc_v2", driver.allocate);
  find(library, "cuMemAllocManaged", driver.allocate_managed);
  find(library, "cuMemFree_v2", driver.release);
  find(library, "cuMemAllocHost_v2", driver.allocate_pinned);
  find(library, "cuMemFreeHost", driver.release_pinned);
  find(library, "cuMemcpy", driver.copy);
  find(library, "cuCtxSynchronize", driver.synchronize);
  find(library, "cuStreamCreate", driver.make_stream);
  find(library, "cuStreamDestroy_v2", driver.release_stream);
  find(library, "cuStreamQuery", driver.query_stream);
  find(library, "cuGetErrorString", driver.error_text);
  return driver;
}

const Driver& driver() {
  static const Driver opened = open_driver();
  return opened;
}

void check(int error, const char* what) {
  if (error == 0) return;
  const char* text = nullptr;
  driver().error_text(error, &text);
  throw Failure(kExitWrong, std::string("--mem: ") + what + ": " + (text != nullptr ? text : "error"));
}

Address address_of(const void* memory) { return reinterpret_cast<uintptr_t>(memory); }

}  // namespace

const char* name_of(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kHost: return "host";
    case MemoryKind::kCuda: return "cuda";
    case MemoryKind::kPinned: return "pinned";
    case MemoryKind::kManaged: return "managed";
  }
  return "?";
}

DeviceRuntime::DeviceRuntime(MemoryKind kind, int rank) : kind_(kind) {
  check(driver().init(0), "the CUDA driver");
  int count = 0, device = 0;
  check(driver().device_count(&count), "number of GPUs");
  if (count == 0) throw Failure(kExitUsage, "--mem: there is no GPU");
  check(driver().device(&device, rank % count), "a GPU");
  char name[128] = "";
  check(driver().device_name(name, sizeof name, device), "name of a GPU");
  device_name_ = name;
  void* context = nullptr;
  check(driver().retain_context(&context, device), "context of a GPU");
  check(driver().set_context(context), "context of a GPU");
}

std::byte* DeviceRuntime::allocate(size_t bytes) const {
  Address address = 0;
  void* memory = nullptr;
  switch (kind_) {
    case MemoryKind::kHost: break;
    case MemoryKind::kCuda: check(driver().allocate(&address, bytes), "memory of the GPU"); break;
    case MemoryKind::kManaged: check(driver().allocate_managed(&address, bytes, kAttachGlobal), "managed memory"); break;
    case MemoryKind::kPinned:
      check(driver().allocate_pinned(&memory, bytes), "pinned memory");
      return static_cast<std::byte*>(memory);
  }
  return reinterpret_cast<std::byte*>(static_cast<uintptr_t>(address));
}

void DeviceRuntime::release(std::byte* memory) const {
  if (kind_ == MemoryKind::kPinned) driver().release_pinned(memory);
  else driver().release(address_of(memory));
}

void DeviceRuntime::copy(void* dst, const void* src, size_t bytes) const {
  if (bytes == 0) return;
  check(driver().copy(address_of(dst), address_of(src), bytes), "a copy");
  check(driver().synchronize(), "a copy");
}

DeviceStream::DeviceStream() { check(driver().make_stream(&stream_, kNonBlocking), "a stream"); }

DeviceStream::~DeviceStream() { driver().release_stream(stream_); }

bool DeviceStream::is_done() const {
  const int state = driver().query_stream(stream_);
  if (state != kNotReady) check(state, "a stream");
  return state != kNotReady;
}

}  // namespace perf
