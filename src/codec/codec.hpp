// The codec contract: turns `count` elements into a frame and back. A codec knows types and bytes,
// no ranks. Used by the executor; implemented by the codecs in this folder and listed in
// registry.cpp.
//
// A frame is a header and a body; the body is a plain part (planes that are stored as they are:
// final after the first stage of encoding) and a coded part. The header travels apart from the body
// (in a message's head) or in front of it (in a file). docs/FORMAT.md specifies every byte.
#pragma once

#include "base/datatype.hpp"
#include "base/status.hpp"
#include "codec/frame.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace uzip {

/// How hard a codec tries. Every level makes frames that every decoder reads.
enum class CodecLevel : uint8_t { kFastest, kBalanced, kSmallest };

/// Working memory of one encoding or decoding at a time, of fixed size, made once and reused.
class CodecScratch;

/// Sizes that an encoding chose. The body is plain part, then coded part.
struct EncodedSizes {
  size_t plain = 0;
  size_t coded = 0;
};

/// A codec is a const record; kernels behind it are chosen by CPU at run time.
struct Codec {
  uint8_t id;           ///< FrameHeader::codec
  const char* name;     ///< "lev"
  const char* summary;  ///< one sentence
  bool (*supports)(DataType type);

  /// Most bytes that the plain part, and the coded part, of `count` elements can take; never more
  /// in sum than the elements themselves plus a small constant (an encoding that would is abandoned
  /// for a raw frame).
  EncodedSizes (*bound)(DataType type, size_t count);

  /// First stage: writes the plain part and remembers in `scratch` what the second stage needs.
  /// Fills codec, type, count and plain_bytes of `header`. When coding would not pay it sets
  /// header.codec to raw, writes nothing, and the frame's body is the source itself.
  Status (*encode_plain)(DataType type, CodecLevel level, const void* src, size_t count,
                         std::span<std::byte> plain, CodecScratch& scratch, FrameHeader& header);
  /// Second stage, after the first with the same arguments: writes the coded part and completes
  /// `header`.
  Status (*encode_coded)(DataType type, CodecLevel level, const void* src, size_t count,
                         std::span<std::byte> coded, CodecScratch& scratch, FrameHeader& header);
  /// Both stages in one pass; the coded part directly follows the plain part. May also fall back to
  /// raw.
  Status (*encode)(DataType type, CodecLevel level, const void* src, size_t count,
                   std::span<std::byte> body, CodecScratch& scratch, FrameHeader& header);

  /// Writes exactly header.count elements to `dst` (capacity in bytes, checked). `plain` and
  /// `coded` are the parts as they arrived: their sizes are compared with the header's. Validates
  /// before it writes, and never reads or writes out of bounds whatever the bytes. A checksum in
  /// the header is compared at the end. UZIP_ERR_CORRUPT says what is wrong.
  Status (*decode)(const FrameHeader& header, std::span<const std::byte> plain,
                   std::span<const std::byte> coded, std::span<std::byte> dst,
                   CodecScratch& scratch);
  /// The same for a `dst` that nobody reads soon, because it is larger than the caches: the elements
  /// may go past them.
  Status (*decode_streaming)(const FrameHeader& header, std::span<const std::byte> plain,
                             std::span<const std::byte> coded, std::span<std::byte> dst,
                             CodecScratch& scratch);
};

/// All codecs, raw first.
std::span<const Codec* const> codecs();
const Codec* find_codec(std::string_view name);
const Codec* find_codec(uint8_t id);

/// Bytes needed for a CodecScratch are allocated here once; pieces of any size can be processed
/// with it.
class CodecScratch {
 public:
  CodecScratch();
  ~CodecScratch();
  CodecScratch(const CodecScratch&) = delete;
  CodecScratch& operator=(const CodecScratch&) = delete;
  struct State;
  State& state() { return *state_; }

 private:
  State* state_;
};

}  // namespace uzip
