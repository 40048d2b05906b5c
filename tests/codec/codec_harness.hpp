// Encodes and decodes with guard pages behind every buffer. Used by the codec tests.
#pragma once

#include "codec/codec.hpp"
#include "codec/guarded_memory.hpp"

#include <cstring>
#include <span>
#include <string>
#include <vector>

namespace uzip {

inline constexpr CodecLevel kCodecLevels[] = {CodecLevel::kFastest, CodecLevel::kBalanced,
                                              CodecLevel::kSmallest};

struct EncodedFrame {
  FrameHeader header;
  std::vector<std::byte> plain;
  std::vector<std::byte> coded;

  size_t body_bytes() const { return plain.size() + coded.size(); }
  bool operator==(const EncodedFrame& other) const {
    return std::memcmp(&header, &other.header, sizeof header) == 0 && plain == other.plain &&
           coded == other.coded;
  }
};

/// One codec, with its scratch and buffers of a fixed capacity.
class CodecHarness {
 public:
  explicit CodecHarness(const Codec& codec, size_t capacity_bytes = size_t{1} << 20);

  /// One pass. The elements stand right before a guard page, as does the room that bound() asks
  /// for.
  EncodedFrame encode(DataType type, CodecLevel level, std::span<const uint8_t> elements);
  /// In two stages.
  EncodedFrame encode_staged(DataType type, CodecLevel level, std::span<const uint8_t> elements);
  /// Empty status, or what decode said. *elements receives the result.
  Status decode(const EncodedFrame& frame, size_t capacity, std::vector<uint8_t>* elements);

  /// "" when the frame decodes to exactly `elements`, else what is wrong.
  std::string check_round_trip(const EncodedFrame& frame, std::span<const uint8_t> elements);

 private:
  std::span<std::byte> place_source(std::span<const uint8_t> elements);

  const Codec& codec_;
  CodecScratch scratch_;
  GuardedMemory src_;
  GuardedMemory first_;
  GuardedMemory second_;
  GuardedMemory dst_;
};

}  // namespace uzip
