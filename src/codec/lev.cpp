// The record of the lev codec.
#include "codec/lev.hpp"

#include "base/cpu.hpp"
#include "codec/lev_reader.hpp"
#include "codec/raw.hpp"

namespace uzip {
namespace {

Status encode_plain(DataType type, CodecLevel level, const void* src, size_t count,
                    std::span<std::byte> plain, CodecScratch& scratch, FrameHeader& header) {
  return lev_encode(LevStage::kPlain, type, level, src, count, plain, scratch, header);
}

Status encode_coded(DataType type, CodecLevel level, const void* src, size_t count,
                    std::span<std::byte> coded, CodecScratch& scratch, FrameHeader& header) {
  if (header.codec == kCodecRaw) return {};
  return lev_encode(LevStage::kCoded, type, level, src, count, coded, scratch, header);
}

Status encode(DataType type, CodecLevel level, const void* src, size_t count,
              std::span<std::byte> body, CodecScratch& scratch, FrameHeader& header) {
  return lev_encode(LevStage::kBoth, type, level, src, count, body, scratch, header);
}

/// How far ahead of what is written lines are asked for. Intel's AVX-512 kernels do well with what
/// they ask for themselves, and a line that is there already takes them a cycle.
size_t ahead_of_values() {
  const bool near_is_enough =
      cpu_vendor() == CpuVendor::kIntel && cpu_target() == CpuTarget::kAvx512;
  return near_is_enough ? 0 : kFarAhead;
}

template <bool kStreams>
Status decode(const FrameHeader& header, std::span<const std::byte> plain,
              std::span<const std::byte> coded, std::span<std::byte> dst, CodecScratch& scratch) {
  if (header.codec == kCodecRaw) return decode_raw(header, plain, coded, dst);
  // A checksum is compared with what was written, so that is read again.
  const bool streams = kStreams && (header.flags & kFrameHasChecksum) == 0;
  return lev_decode(header, plain, coded, dst, streams, scratch);
}

}  // namespace

Status lev_decode(const FrameHeader& header, std::span<const std::byte> plain,
                  std::span<const std::byte> coded, std::span<std::byte> dst, bool streams,
                  CodecScratch& scratch) {
  LevReader reader;
  UZIP_RETURN_IF_ERROR(reader.open(header, plain, coded, scratch.state().sections));
  const size_t size = datatype_size(static_cast<DataType>(header.type));
  if (reader.count() > dst.size() / size)
    return error(UZIP_ERR_CORRUPT, "lev frame: %zu elements, room for %zu", reader.count(),
                 dst.size() / size);
  auto* out = reinterpret_cast<uint8_t*>(dst.data());
  const size_t ahead = ahead_of_values();
  Status status;
  for (size_t done = 0; done < reader.count() && status.ok(); done += reader.block_values()) {
    uint8_t* const values = out + done * size;
    status = reader.next(scratch.state(), {values, values + ahead, streams});
  }
  if (streams) codec_kernels().finish_streaming();
  UZIP_RETURN_IF_ERROR(status);
  return check_checksum(header, dst.first(reader.count() * size));
}

const Codec kLevCodec = {
    .id = 1,
    .name = "lev",
    .summary = "level coding: frequent exponents get codes of 1 to 4 bits, the rest is coded again",
    .supports = [](DataType type) { return is_datatype(type) && is_float(type); },
    .bound = lev_bound,
    .encode_plain = encode_plain,
    .encode_coded = encode_coded,
    .encode = encode,
    .decode = decode<false>,
    .decode_streaming = decode<true>,
};

}  // namespace uzip
