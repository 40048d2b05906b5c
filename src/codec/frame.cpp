// Reads, checks and writes the 64 bytes of a frame header.
#include "codec/frame.hpp"

#include "base/crc32c.hpp"
#include "codec/codec.hpp"

#include <bit>
#include <cstring>

namespace uzip {
namespace {

static_assert(std::endian::native == std::endian::little, "frames are little-endian in memory");

constexpr uint8_t kKnownFlags = kFrameHasChecksum | kFrameCodedFollows;

Status corrupt(const char* what, uint64_t value) {
  return error(UZIP_ERR_CORRUPT, "frame header: %s is %llu", what,
               static_cast<unsigned long long>(value));
}

Status check_lengths(const FrameHeader& header) {
  const uint64_t size = datatype_size(static_cast<DataType>(header.type));
  if (header.count > (uint64_t{1} << 62) / size) return corrupt("count", header.count);
  const uint64_t raw = header.count * size;
  if (header.codec == kCodecRaw) {
    if (header.plain_bytes != raw) return corrupt("plain_bytes of a raw frame", header.plain_bytes);
    if (header.coded_bytes != 0) return corrupt("coded_bytes of a raw frame", header.coded_bytes);
    return {};
  }
  if (header.count == 0) return corrupt("codec of an empty frame", header.codec);
  const uint64_t most = raw + frame_overhead_limit(header.count);
  if (header.plain_bytes > most) return corrupt("plain_bytes", header.plain_bytes);
  if (header.coded_bytes > most) return corrupt("coded_bytes", header.coded_bytes);
  if ((header.flags & kFrameCodedFollows) != 0 && header.coded_bytes != 0)
    return corrupt("coded_bytes of a split frame", header.coded_bytes);
  return {};
}

}  // namespace

Result<FrameHeader> parse_frame_header(std::span<const std::byte> bytes) {
  if (bytes.size() < kFrameHeaderBytes)
    return error(UZIP_ERR_CORRUPT, "frame header: %zu bytes, %zu are needed", bytes.size(),
                 kFrameHeaderBytes);
  FrameHeader header;
  std::memcpy(&header, bytes.data(), kFrameHeaderBytes);
  if (header.magic != kFrameMagic) return corrupt("magic", header.magic);
  if (header.version != kFrameVersion) return corrupt("version", header.version);
  if (find_codec(header.codec) == nullptr) return corrupt("codec", header.codec);
  if (!is_datatype(static_cast<DataType>(header.type))) return corrupt("type", header.type);
  if ((header.flags & ~kKnownFlags) != 0) return corrupt("flags", header.flags);
  if ((header.flags & kFrameHasChecksum) == 0 && header.checksum != 0)
    return corrupt("checksum of a frame without one", header.checksum);
  for (uint32_t word : header.reserved)
    if (word != 0) return corrupt("a reserved field", word);
  UZIP_RETURN_IF_ERROR(check_lengths(header));
  return header;
}

void write_frame_header(const FrameHeader& header, std::span<std::byte, kFrameHeaderBytes> bytes) {
  std::memcpy(bytes.data(), &header, kFrameHeaderBytes);
}

FrameHeader raw_frame_header(DataType type, uint64_t count) {
  FrameHeader header;
  header.type = static_cast<uint8_t>(type);
  header.count = count;
  header.plain_bytes = count * datatype_size(type);
  return header;
}

void add_checksum(std::span<const std::byte> elements, FrameHeader& header) {
  header.checksum = crc32c(elements);
  header.flags |= kFrameHasChecksum;
}

Status check_checksum(const FrameHeader& header, std::span<const std::byte> elements) {
  if ((header.flags & kFrameHasChecksum) == 0) return {};
  return check_checksum(header, crc32c(elements));
}

Status check_checksum(const FrameHeader& header, uint32_t checksum) {
  if ((header.flags & kFrameHasChecksum) == 0 || checksum == header.checksum) return {};
  return error(UZIP_ERR_CORRUPT, "frame: the elements' checksum is %08x, not %08x", checksum,
               header.checksum);
}

}  // namespace uzip
