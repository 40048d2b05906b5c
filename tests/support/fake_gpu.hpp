// A GPU plugin for tests on machines without a GPU. Device memory is real memory at addresses that the host can't
// touch: a load or store there ends the test. Work is done later, in an order that a seed decides among streams, when
// somebody asks whether it is done; so nothing is finished because it was started. Kernels are the CPU's.
//
// One for the process. All functions may be called by several threads.
#pragma once

#include "gpu/plugin.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

namespace uzip::fake_gpu {

/// The plugin's table. It has kDevices devices.
const gpu::PluginApi* plugin();
inline constexpr int kDevices = 2;

/// Begins anew: order of work, counters, streams that are captured. Nothing may be in use.
void reset(uint64_t seed);

/// Memory of a kind for tests, full of rubbish.
std::byte* allocate(gpu::MemoryKind kind, int device, size_t bytes);
void release(std::byte* memory);
/// The bytes behind an address, wherever they are, as the host may touch them.
std::byte* behind(const void* address);

/// Puts work of the test on a stream. It begins when allow() has been called, if `blocked`.
void launch(void* stream, std::function<void()> work, bool blocked = false);
void allow(void* stream);
void set_capturing(void* stream, bool capturing);

struct Counters {
  int allocations = 0;  ///< of device and pinned memory, streams, events, codecs
  int synchronizations = 0;  ///< of a whole stream
  int encodings = 0, decodings = 0, reductions = 0, copies = 0;
  unsigned last_blocks = 0;  ///< EncodeRequest::blocks of the last encoding
  size_t bytes = 0, most_bytes = 0;  ///< of device and pinned memory that the library has now, and had at most
};
Counters counters();

/// From the operation after so many on, the device answers everything with an error; -1: never.
void fail_after(int operations);
/// It answers again; what was on its streams is done.
void recover();

}  // namespace uzip::fake_gpu
