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

struct EncodeTask {
  const Codec* codec = nullptr;
  CodecLevel level{};
  EncodeStage stage = EncodeStage::kWhole;
  DataType type{};
  const void* src = nullptr;
  size_t count = 0;
  std::span<std::byte> plain;  ///< kWhole: room for the whole body
  std::span<std::byte> coded;  ///< kCoded only
  FrameHeader* header = nullptr;
};

struct DecodeTask {
  const FrameHeader* header = nullptr;
  std::span<const std::byte> plain;
  std::span<const std::byte> coded;
  std::span<std::byte> dst;
  bool streams = false;  ///< nobody reads `dst` soon: it may be written past the caches
};

class Executor {
 public:
  virtual ~Executor() = default;

  virtual Result<Progress> copy(void* dst, const void* src, size_t bytes, Completion* completion) = 0;
  /// As base/reduce.hpp's reduce().
  virtual Result<Progress> reduce(ReduceOp op, DataType type, void* dst,
                                  std::span<const void* const> sources, size_t count, size_t average_over,
                                  Completion* completion) = 0;
  /// As the codec's encode functions; between kPlain and kCoded of one frame there is no other encoding.
  virtual Result<Progress> encode(const EncodeTask& task, Completion* completion) = 0;
  /// As the decode function of the codec that the header names.
  virtual Result<Progress> decode(const DecodeTask& task, Completion* completion) = 0;

  /// Calls the completions of what has finished elsewhere; true if there were any.
  virtual bool progress() { return false; }
  /// Whether something is being done elsewhere, so that progress() will have completions to call.
  virtual bool busy() const { return false; }
};

}  // namespace uzip
