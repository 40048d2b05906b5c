// What a GPU plugin (libuzipcoll_cuda.so, libuzipcoll_hip.so) gives to the core: one table of
// functions. The core never links a GPU runtime; plugin_loader.cpp opens the plugin on demand.
//
// All functions return 0, or another value after which last_error() has one sentence for the user
// (in the same thread). None of them ends the process or throws. Streams are the runtime's own
// (cudaStream_t, hipStream_t), null for its default stream. What takes a stream is ordered on it and
// does not block the host.
#pragma once

#include "codec/frame.hpp"
#include "gpu/peer_plugin.hpp"

#include <cstddef>
#include <cstdint>

namespace uzip::gpu {

/// Raised with every change of the table: plugin and core come from one build.
inline constexpr uint32_t kPluginAbi = 3;

struct DeviceInfo {
  char name[128];
  char bus[32];  ///< where it is on the host, "0000:1b:00.0"
  int compute_major;
  int compute_minor;
  int processors;
  uint64_t memory_bytes;
};

/// What one device can do with the memory of another.
struct PairInfo {
  bool access;
  bool native_atomics;  ///< the link between them has atomic operations, as NVLink does
};

enum class MemoryKind : uint8_t {
  kHost,     ///< ordinary memory, unknown to the runtime
  kPinned,   ///< of the host, and known to the runtime
  kDevice,
  kManaged,  ///< moves between both
};
struct PointerInfo {
  MemoryKind kind;
  int device;  ///< where it is; -1 for the host's
};

/// Working memory of one encoding at a time, on one device.
struct CodecContext;

struct EncodeRequest {
  uint8_t type;  ///< a float type
  uint64_t count;
  const void* src;
  void* plain;         ///< encode_bound() bytes, aligned to 16, as is `coded`
  void* coded;
  FrameHeader* header; ///< in memory that the device can write
  CallStamp call;
  int levels;          ///< 1 or 2
  bool fixed_plain;    ///< the plain part has exactly encode_bound()'s size, whatever the elements
  bool may_be_raw;     ///< the header may say that the body is the elements themselves
  unsigned blocks;     ///< thread blocks; 0: as many as the device runs at a time
};

struct DecodeRequest {
  uint8_t type;
  uint64_t count;      ///< elements that are expected
  const FrameHeader* header;
  bool header_on_device;  ///< else it is read before the call returns
  const void* plain;   ///< aligned to 16, as is `coded`; of a raw frame the elements
  const void* coded;
  uint64_t plain_room; ///< bytes that may be read
  uint64_t coded_room;
  const void* coded_rest;  ///< null, or memory that holds byte i of the coded part at i, for blocks
                           ///< that do not end before coded_room
  void* dst;
  const void* operand; ///< null, or dst[i] = operand[i] op decoded[i]; may be `dst`
  uint8_t op;
  uint64_t average_over;  ///< as uzip::reduce()'s
  /// In memory of the device: 0 stays when all is well; DecodeFault << 32 | block if not. Must be 0
  /// before, or of an earlier failure.
  uint64_t* fault;
  unsigned blocks;
};

struct PluginApi {
  uint32_t abi;
  const char* name;  ///< "cuda", "hip"
  const char* (*last_error)();

  int (*device_count)(int* count);
  int (*describe_device)(int device, DeviceInfo* info);
  int (*describe_pair)(int device, int peer, PairInfo* info);
  /// A pointer that was never memory, or is memory no more, is kHost.
  int (*describe_pointer)(const void* pointer, PointerInfo* info);
  int (*current_device)(int* device);
  int (*set_device)(int device);

  int (*allocate)(void** memory, size_t bytes);  ///< of the current device
  int (*release)(void* memory);
  int (*allocate_pinned)(void** memory, size_t bytes);
  int (*release_pinned)(void* memory);

  int (*create_stream)(void** stream);
  int (*destroy_stream)(void* stream);
  int (*wait_stream)(void* stream);   ///< blocks the host
  int (*query_stream)(void* stream, bool* done);
  int (*stream_waits_for)(void* stream, void* other);  ///< for all that is on `other` now
  /// A stream whose work is being recorded into a graph carries nothing out.
  int (*is_capturing)(void* stream, bool* capturing);
  /// Events: record_event() marks what is on the stream by then; query_event() tells whether all of it is done,
  /// stream_waits_for_event() lets what comes later on another stream wait for it.
  int (*create_event)(void** event);
  int (*destroy_event)(void* event);
  int (*record_event)(void* event, void* stream);
  int (*query_event)(void* event, bool* done);
  int (*stream_waits_for_event)(void* stream, void* event);
  int (*copy)(void* dst, const void* src, size_t bytes, void* stream);
  int (*clear)(void* dst, size_t bytes, void* stream);

  /// Room for the parts of a frame of `count` elements.
  int (*encode_bound)(uint8_t type, uint64_t count, uint64_t* plain, uint64_t* coded);
  /// For frames of at most `most_count` elements, on the current device.
  int (*create_codec)(uint64_t most_count, CodecContext** context);
  void (*destroy_codec)(CodecContext* context);
  int (*encode)(CodecContext* context, const EncodeRequest* request, void* stream);
  int (*decode)(CodecContext* context, const DecodeRequest* request, void* stream);
  /// As uzip::reduce(), of at most kMostSources arrays in device memory.
  int (*reduce)(CodecContext* context, uint8_t op, uint8_t type, void* dst,
                const void* const* sources, size_t source_count, uint64_t count,
                uint64_t average_over, void* stream);

  /// Writes the CRC-32C of memory of the device, as uzip::crc32c(), to `crc` in memory that the device can write. One at a
  /// time for a context.
  int (*checksum)(CodecContext* context, const void* data, uint64_t bytes, uint32_t* crc, void* stream);

  const PeerApi* (*peers)();  ///< never null
};

/// The only symbol that a plugin exports.
using PluginEntry = const PluginApi* (*)();
inline constexpr const char* kPluginEntry = "uzip_gpu_plugin";

}  // namespace uzip::gpu
