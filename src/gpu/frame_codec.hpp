// Frames in memory whose elements are in memory of a GPU: whole frames, one at a time, for which the host waits. Used by
// src/comm for the calls on frames; the frames of messages are StreamExecutor's.
#pragma once

#include "base/datatype.hpp"
#include "base/reduce.hpp"
#include "base/status.hpp"
#include "codec/frame.hpp"
#include "gpu/codec_contexts.hpp"
#include "gpu/device_memory.hpp"
#include "gpu/plugin.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

namespace uzip::gpu {

/// How long a wait for a device may last, in seconds, 0: for ever.
struct WaitLimits {
  double warn = 0;  ///< UZIP_TIMEOUT
  double fail = 0;  ///< UZIP_TIMEOUT_LIMIT
};

/// On one device. Not thread-safe. Work begins when all is done that is on the device's default stream at the time of the
/// call, and has ended when the call returns, but for UZIP_ERR_TIMEOUT: then the device may still use what it was given, and
/// later calls fail, too, until it has ended. Frames may be in memory of the host or of a device.
class FrameCodec {
 public:
  static Result<std::unique_ptr<FrameCodec>> create(const PluginApi& api, int device, unsigned blocks, WaitLimits limits);
  /// What a device that does not come to an end may still use is not given back.
  ~FrameCodec();
  FrameCodec(const FrameCodec&) = delete;
  FrameCodec& operator=(const FrameCodec&) = delete;

  /// Writes the frame of `count` elements of the device, with their checksum, to `frame`, and returns its header. `levels`: 1
  /// or 2; 0: the elements as they are. What would not fit in `frame`, which has room for that, is stored so, too.
  Result<FrameHeader> encode(DataType type, int levels, const void* src, size_t count, std::span<std::byte> frame);
  /// Decodes a frame whose header was read, and checked, from its beginning and whose body is `body` into elements of the
  /// device. UZIP_ERR_CORRUPT: it is damaged, and some elements may have been written.
  Status decode(const FrameHeader& header, std::span<const std::byte> body, void* dst);
  /// dst[i] = dst[i] op decoded[i].
  Status decode_reduce(const FrameHeader& header, std::span<const std::byte> body, void* dst, ReduceOp op);
  /// Copies bytes of a frame to the host.
  Status read(std::span<std::byte> to, const void* frame);

 private:
  /// What the device writes for the host, and the other way.
  struct Report {
    FrameHeader header;
    uint64_t fault;
    uint32_t checksum;
  };
  class Block;

  FrameCodec(const PluginApi& api, int device, unsigned blocks, WaitLimits limits)
      : api_(api), device_(device), blocks_(blocks), limits_(limits), contexts_(api, device),
        memory_(api, device, DeviceMemory::Kind::kDevice), pinned_(api, device, DeviceMemory::Kind::kPinned) {}
  Status initialize();
  Status check(int failed) const { return device_status(api_, device_, failed); }
  Status begin();
  Status wait();
  void put(DeviceBlock block);
  Report& report() { return *reinterpret_cast<Report*>(report_block_.data); }
  Status copy(void* dst, const void* src, size_t bytes);
  Status start_checksum(const void* elements, size_t bytes);
  /// `operand`: null, or elements that the decoded ones are reduced with. `place` is where the frame is brought to if it must be.
  Status start_decode(const FrameHeader& header, std::span<const std::byte> body, void* dst, const void* operand, ReduceOp op,
                      Block& place);

  const PluginApi& api_;
  const int device_;
  const unsigned blocks_;
  const WaitLimits limits_;
  void* stream_ = nullptr;
  bool busy_ = false;  ///< a wait has failed: work may still be going on
  CodecContexts contexts_;
  DeviceMemory memory_;
  DeviceMemory pinned_;
  DeviceBlock report_block_;
  std::vector<DeviceBlock> kept_;  ///< of calls that have failed while something may still be going on in them
};

}  // namespace uzip::gpu
