// The executor contract: copies, reductions and codec work where the memory lives. Used by src/comm only;
// implemented for the CPU there, for GPUs in plugins. All pointers are in memory that the executor can reach.
#pragma once

#include "base/completion.hpp"
#include "base/datatype.hpp"
#include "base/reduce.hpp"

#include <cstddef>
#include <span>

namespace uzip {

struct Codec;
struct FrameHeader;
enum class CodecLevel : uint8_t;

/// Stages of an encoding: in one go, or plain part first and coded part later (split-send).
enum class EncodeStage : uint8_t { kWhole, kPlain, kCoded };

/// Where a frame's parts are while a device codes them, each aligned to 64 bytes. Of an executor that has memory of
/// its own only: `plain` and `coded` of a task are then in host memory that the device can reach.
struct DevicePlace {
  std::span<std::byte> plain;
  std::span<std::byte> coded;
  bool checksum = false;  ///< of the elements, to be made when they are encoded
};

struct EncodeTask {
  const Codec* codec = nullptr;  ///< with a device place, also null: the elements as they are
  CodecLevel level{};
  EncodeStage stage = EncodeStage::kWhole;
  DataType type{};
  const void* src = nullptr;
  size_t count = 0;
  std::span<std::byte> plain;  ///< kWhole: room for the whole body
  std::span<std::byte> coded;  ///< kCoded only; with a device place also kPlain
  FrameHeader* header = nullptr;
  DevicePlace place;
};

struct DecodeTask {
  const FrameHeader* header = nullptr;
  std::span<const std::byte> plain;
  std::span<const std::byte> coded;
  std::span<std::byte> dst;
  DevicePlace place;
  bool streams = false;  ///< nobody reads `dst` soon: it may be written past the caches
};

/// A reduction of plain elements and one frame.
struct DecodeReduceTask {
  ReduceOp op{};
  DataType type{};
  void* dst = nullptr;
  std::span<const void* const> sources;  ///< in order; null where the frame stands. Read before the call returns.
  size_t count = 0;
  size_t average_over = 0;
  DecodeTask frame;  ///< its `dst` and `streams` are not used
};
/// Most sources of one.
inline constexpr size_t kMostDecodeReduceSources = 64;

class Executor {
 public:
  virtual ~Executor() = default;

  /// Of places that may overlap, as memmove().
  virtual Result<Progress> copy(void* dst, const void* src, size_t bytes, Completion* completion) = 0;
  /// As base/reduce.hpp's reduce().
  virtual Result<Progress> reduce(ReduceOp op, DataType type, void* dst,
                                  std::span<const void* const> sources, size_t count, size_t average_over,
                                  Completion* completion) = 0;
  /// As the codec's encode functions, but that with a device place a raw frame's elements are written to `plain`, too.
  /// On one memory for both stages, between kPlain and kCoded of one frame there is no other encoding.
  virtual Result<Progress> encode(const EncodeTask& task, Completion* completion) = 0;
  /// As the decode function of the codec that the header names.
  virtual Result<Progress> decode(const DecodeTask& task, Completion* completion) = 0;

  /// Whether decode_reduce() can be used: then schedules are fused (algos/fuse.cpp).
  virtual bool fuses() const { return false; }
  /// As decode() of the frame followed by reduce() of the sources with what came of it: the same bits. A frame that
  /// decode() refuses is an error before `dst` is written. `dst` may be one of the sources.
  virtual Result<Progress> decode_reduce(const DecodeReduceTask&, Completion*) {
    return error(UZIP_ERR_UNSUPPORTED, "this executor does not reduce from frames");
  }

  /// Calls the completions of what has finished elsewhere; true if there were any.
  virtual bool progress() { return false; }
  /// Whether something is being done elsewhere, so that progress() will have completions to call.
  virtual bool busy() const { return false; }
};

}  // namespace uzip
