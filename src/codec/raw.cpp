// Codec 0: nothing is encoded. Its frames tell the caller to send the source itself.
#include "codec/raw.hpp"

#include "base/copy.hpp"

namespace uzip {
namespace {

EncodedSizes bound(DataType type, size_t count) { return {count * datatype_size(type), 0}; }

Status encode_plain(DataType type, CodecLevel, const void*, size_t count, std::span<std::byte>,
                    CodecScratch&, FrameHeader& header) {
  make_raw(type, count, header);
  return {};
}

Status encode_coded(DataType type, CodecLevel, const void*, size_t count, std::span<std::byte>,
                    CodecScratch&, FrameHeader& header) {
  make_raw(type, count, header);
  return {};
}

Status decode(const FrameHeader& header, std::span<const std::byte> plain,
              std::span<const std::byte> coded, std::span<std::byte> dst, CodecScratch&) {
  return decode_raw(header, plain, coded, dst);
}

}  // namespace

const Codec kRawCodec = {
    .id = kCodecRaw,
    .name = "raw",
    .summary = "the elements as they are",
    .supports = [](DataType) { return true; },
    .bound = bound,
    .encode_plain = encode_plain,
    .encode_coded = encode_coded,
    .encode = encode_plain,
    .decode = decode,
    .decode_streaming = decode,
};

void make_raw(DataType type, size_t count, FrameHeader& header) {
  header.codec = kCodecRaw;
  header.type = static_cast<uint8_t>(type);
  header.count = count;
  header.plain_bytes = count * datatype_size(type);
  header.coded_bytes = 0;
}

Status decode_raw(const FrameHeader& header, std::span<const std::byte> plain,
                  std::span<const std::byte> coded, std::span<std::byte> dst) {
  const size_t size = datatype_size(static_cast<DataType>(header.type));
  if (header.count > dst.size() / size)
    return error(UZIP_ERR_CORRUPT, "raw frame: %llu elements, room for %zu",
                 static_cast<unsigned long long>(header.count), dst.size() / size);
  const size_t bytes = header.count * size;
  if (header.plain_bytes != bytes || plain.size() != bytes || !coded.empty())
    return error(UZIP_ERR_CORRUPT, "raw frame: %zu + %zu bytes arrived, %zu + 0 are needed",
                 plain.size(), coded.size(), bytes);
  copy_bytes(dst.data(), plain.data(), bytes);
  return check_checksum(header, dst.first(bytes));
}

}  // namespace uzip
