// The header of a frame: describes one encoded piece, on the wire and in files. docs/FORMAT.md,
// "Frame header".
#pragma once

#include "base/datatype.hpp"
#include "base/status.hpp"

#include <cstddef>
#include <cstdint>
#include <span>

namespace uzip {

inline constexpr uint32_t kFrameMagic = 0x465a5a55;  ///< "UZZF" in memory order
inline constexpr uint8_t kFrameVersion = 1;
inline constexpr size_t kFrameHeaderBytes = 64;
inline constexpr uint8_t kCodecRaw = 0;

/// Flags of a frame.
inline constexpr uint8_t kFrameHasChecksum =
    1;  ///< `checksum` is the CRC32C of the original elements
inline constexpr uint8_t kFrameCodedFollows =
    2;  ///< split-send: coded_bytes is not known yet, comes later

/// Which call of which kind a frame belongs to, so that ranks that disagree are found. Zero in
/// files.
struct CallStamp {
  uint8_t coll = 0;       ///< kind of call
  uint8_t op = 0;         ///< reduction
  uint16_t plan = 0;      ///< digest of algorithm, codec and chunk size
  uint32_t sequence = 0;  ///< number of the call on its communicator
  uint64_t count = 0;     ///< elements of the whole call, in the caller's terms

  bool operator==(const CallStamp&) const = default;
};

/// In memory as on the wire: little-endian, no padding.
struct FrameHeader {
  uint32_t magic = kFrameMagic;
  uint8_t version = kFrameVersion;
  uint8_t codec = kCodecRaw;
  uint8_t type = 0;  ///< uzip_dtype_t
  uint8_t flags = 0;
  uint64_t count = 0;  ///< elements in this frame
  CallStamp call;
  uint64_t plain_bytes = 0;
  uint64_t coded_bytes = 0;
  uint32_t checksum = 0;
  uint32_t reserved[3] = {};
};
static_assert(sizeof(FrameHeader) == kFrameHeaderBytes);

/// Reads and checks what can be checked without knowing what is expected: size, magic, version,
/// known codec range and type, flags, reserved fields, count and lengths that can't overflow or
/// exceed the raw size.
Result<FrameHeader> parse_frame_header(std::span<const std::byte> bytes);
/// Writes the header's bytes.
void write_frame_header(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> bytes);

/// Most bytes that either part of a frame can take beyond the elements.
inline constexpr uint64_t frame_overhead_limit(uint64_t count) { return 1024 + count / 64; }

/// Puts the CRC32C of the original elements into the header. Any time before the header is sent.
void add_checksum(std::span<const std::byte> elements, FrameHeader& header);
/// UZIP_ERR_CORRUPT when the header has a checksum and these elements another one. The codecs'
/// decode calls it.
Status check_checksum(const FrameHeader& header, std::span<const std::byte> elements);
/// The same with a CRC32C that is known.
Status check_checksum(const FrameHeader& header, uint32_t checksum);

/// Header of `count` elements stored as they are.
FrameHeader raw_frame_header(DataType type, uint64_t count);

}  // namespace uzip
