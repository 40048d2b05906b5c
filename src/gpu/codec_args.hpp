// What the codec kernels take and answer: plain structs, the same for host and device. Used by the
// kernels, their launchers and the plugin.
#pragma once

#include "codec/frame.hpp"

#include <cstdint>

namespace uzip::gpu {

/// Memory of a device that one encoding at a time uses. Zeroed once, but for word_count; every
/// kernel leaves it ready for the next, also in a graph that is launched again and again.
struct EncodeState {
  uint32_t ticket;  ///< next block of the frame
  uint32_t exited;  ///< thread blocks that have ended
  uint32_t epoch;   ///< of the words below; words of other frames don't count
  uint32_t word_count;  ///< words that follow elsewhere, EncodeArgs::words
};
/// One word for each block of a frame: epoch | state | blocks with a plain part | coded units of 16
/// bytes, the sums of this block alone (kOwn) or of all up to it (kSum).
inline constexpr unsigned kUnitBits = 29;
inline constexpr unsigned kPlainBits = 20;
inline constexpr unsigned kStateShift = kUnitBits + kPlainBits;
inline constexpr unsigned kEpochShift = kStateShift + 2;
inline constexpr uint32_t kEpochs = 1u << (64 - kEpochShift);
/// Frames of so few blocks place them without a block of threads that does nothing but add.
inline constexpr uint32_t kDirectTiles = 256;
/// Most blocks of a frame that a device encodes.
inline constexpr uint64_t kMostBlocks = (uint64_t{1} << kPlainBits) - 1;

struct EncodeArgs {
  const uint8_t* src;   ///< aligned to a value
  uint8_t* plain;       ///< aligned to 16, as is `coded`
  uint8_t* coded;
  FrameHeader* header;  ///< in memory of the device; written when all else is
  EncodeState* state;
  uint64_t* words;      ///< as many as the frame has blocks
  FrameHeader begin;    ///< type, count and call of the frame
  uint32_t levels;      ///< most levels: 1 or 2
  /// The blocks' plain parts stand at fixed distances, so that the size of the plain part is known
  /// beforehand: constant blocks leave a gap.
  uint32_t fixed_plain;
  /// The header may say "raw": the body is then the elements themselves.
  uint32_t may_be_raw;
};

/// Why a device refused a frame; the first reason that is not 0 counts. Whatever is wrong, nothing
/// is read or written outside of the arguments.
enum class DecodeFault : uint32_t {
  kNone = 0,
  kHeader,      ///< not a frame, or not of the count and type that are expected
  kTable,       ///< the blocks' sizes contradict the parts'
  kDescriptor,  ///< a block's descriptor breaks a rule
  kSections,    ///< a block's sections need more than the table grants
  kEscapes,     ///< the codes contradict the descriptor
  kZeros,       ///< the bitmap of kept values contradicts the descriptor
};

struct DecodeArgs {
  const FrameHeader* device_header;  ///< null: `header` counts; else it is read on the device
  FrameHeader header;
  const uint8_t* plain;  ///< aligned to 16, as is `coded`; of a raw frame the elements
  const uint8_t* coded;
  uint64_t plain_room;   ///< bytes that may be read
  uint64_t coded_room;
  /// Null, or where the coded part goes on from coded_room: an address so that coded byte i is at
  /// coded_rest + i.
  const uint8_t* coded_rest;
  uint64_t count;        ///< elements that are expected
  uint32_t type;
  uint32_t op;           ///< uzip_op_t; see `operand`
  uint8_t* dst;          ///< aligned to a value
  /// Null: dst[i] = frame[i]. Else dst[i] = operand[i] op frame[i]; may be `dst`.
  const uint8_t* operand;
  uint64_t average_over;  ///< as reduce()'s
  /// fault << 32 | block, the largest wins; 0 stays when all is well. In memory of the device.
  uint64_t* fault;
};

/// Most sources of a reduction.
inline constexpr unsigned kMostSources = 64;

struct ReduceArgs {
  const uint8_t* sources[kMostSources];
  uint32_t source_count;
  uint32_t type;
  uint32_t op;
  uint32_t reserved;
  uint64_t count;
  uint64_t average_over;
  uint8_t* dst;
};

}  // namespace uzip::gpu
