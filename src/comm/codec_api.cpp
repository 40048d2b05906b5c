// The public C functions on frames in memory: for checkpoints, files and tests. The same frames as on the wire.
#include "codec/codec.hpp"
#include "codec/reduce_frames.hpp"
#include "comm/api_guard.hpp"
#include "comm/coll_args.hpp"
#include "comm/frame_gpus.hpp"
#include "comm/struct_size.hpp"
#include "gpu/stream_executor.hpp"

#include <uzipcoll/uzipcoll.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

namespace uzip {
namespace {

/// Working memory of the thread that encodes or decodes, made at its first use.
CodecScratch& scratch() {
  thread_local std::unique_ptr<CodecScratch> memory;
  if (!memory) memory = std::make_unique<CodecScratch>();
  return *memory;
}

/// True, with their bytes, for elements that can be in memory.
bool can_exist(size_t count, DataType type, size_t* bytes) {
  return is_datatype(type) && !__builtin_mul_overflow(count, datatype_size(type), bytes) &&
         *bytes <= static_cast<size_t>(PTRDIFF_MAX) / 2;
}

/// Bytes of the body's elements.
Result<size_t> element_bytes(size_t count, DataType type) {
  size_t bytes = 0;
  if (can_exist(count, type, &bytes)) return bytes;
  if (!is_datatype(type))
    return error(UZIP_ERR_INVALID, "data type %d does not exist", static_cast<int>(type));
  return error(UZIP_ERR_INVALID, "count %zu of %s is more than memory can hold; a negative number?", count,
               datatype_info(type).name);
}

size_t frame_bound(size_t count, DataType type, size_t bytes) {
  size_t body = bytes;
  for (const Codec* codec : codecs()) {
    if (!codec->supports(type)) continue;
    const EncodedSizes bound = codec->bound(type, count);
    body = std::max(body, bound.plain + bound.coded);
  }
  return kFrameHeaderBytes + body;
}

/// A frame in memory whose lengths have been checked against what is there.
struct FrameView {
  FrameHeader header;
  std::span<const std::byte> plain, coded;

  std::span<const std::byte> body() const { return {plain.data(), plain.size() + coded.size()}; }
};

/// Of a codec that this library doesn't have, what all codecs have in common is checked.
Result<FrameHeader> read_header(std::span<const std::byte> bytes) {
  FrameHeader header;
  std::memcpy(&header, bytes.data(), kFrameHeaderBytes);
  if (find_codec(header.codec)) return parse_frame_header(bytes);
  const uint8_t codec = header.codec;
  header.codec = find_codec("lev")->id;
  std::array<std::byte, kFrameHeaderBytes> as_known;
  write_frame_header(header, as_known);
  UZIP_ASSIGN_OR_RETURN(header, parse_frame_header(as_known));
  header.codec = codec;
  return header;
}

/// The header of a frame that is not on its way, so both parts are known. `device`: the GPU that can read it; -1: the host.
Result<FrameHeader> header_of_file(const void* frame, size_t frame_bytes, int device) {
  if (frame_bytes < kFrameHeaderBytes)
    return error(UZIP_ERR_CORRUPT, "a frame has at least %zu bytes, here are %zu", kFrameHeaderBytes, frame_bytes);
  std::array<std::byte, kFrameHeaderBytes> bytes;
  if (device < 0) std::memcpy(bytes.data(), frame, bytes.size());
  else
    UZIP_RETURN_IF_ERROR(FrameGpus::instance().with(
        device, [&](gpu::FrameCodec& codec) { return codec.read(bytes, frame); }));
  UZIP_ASSIGN_OR_RETURN(const FrameHeader header, read_header(bytes));
  if (header.flags & kFrameCodedFollows)
    return error(UZIP_ERR_CORRUPT, "the frame is only the first part of one: its coded part is missing");
  return header;
}

Result<FrameView> view(const void* frame, size_t frame_bytes, int device) {
  FrameView result;
  UZIP_ASSIGN_OR_RETURN(result.header, header_of_file(frame, frame_bytes, device));
  const std::span<const std::byte> all(static_cast<const std::byte*>(frame), frame_bytes);
  const std::span<const std::byte> body = all.subspan(kFrameHeaderBytes);
  const uint64_t plain = result.header.plain_bytes, coded = result.header.coded_bytes;
  if (plain > body.size() || coded > body.size() - plain)
    return error(UZIP_ERR_CORRUPT, "the frame is cut off: %llu of its %llu bytes are missing",
                 static_cast<unsigned long long>(plain + coded - body.size()),
                 static_cast<unsigned long long>(kFrameHeaderBytes + plain + coded));
  result.plain = body.first(plain);
  result.coded = body.subspan(plain, coded);
  return result;
}

/// The frame holds what the caller expects, in a codec that is there.
Status check_contents(const FrameHeader& header, size_t count, DataType type) {
  if (header.type == static_cast<uint8_t>(type) && header.count == count) {
    if (find_codec(header.codec)) return Status();
    return error(UZIP_ERR_UNSUPPORTED, "this library has no codec %u; the frame is of a later version, or damaged",
                 header.codec);
  }
  return error(UZIP_ERR_MISMATCH, "the frame holds %llu %s, not %zu %s",
               static_cast<unsigned long long>(header.count),
               datatype_info(static_cast<DataType>(header.type)).name, count, datatype_info(type).name);
}

Status encode(const void* src, size_t count, DataType type, const char* codec_name, void* dst, size_t capacity,
              size_t* frame_bytes) {
  if (!frame_bytes) return null_pointer("frame_bytes");
  *frame_bytes = 0;
  UZIP_ASSIGN_OR_RETURN(const size_t bytes, element_bytes(count, type));
  if (!dst) return null_pointer("dst");
  if (!src && bytes) return null_pointer("src");
  UZIP_ASSIGN_OR_RETURN(CodecChoice choice, parse_codec_choice(codec_name ? codec_name : "auto"));
  if (!choice.codec) choice.codec = find_codec("lev");
  const size_t bound = frame_bound(count, type, bytes);
  if (capacity < bound)
    return error(UZIP_ERR_INVALID, "dst has room for %zu bytes; uzip_encode_bound() says %zu", capacity, bound);
  const bool coded = choice.codec->id != kCodecRaw && choice.codec->supports(type) && count > 0;
  FrameGpus& gpus = FrameGpus::instance();
  UZIP_ASSIGN_OR_RETURN(const int device, gpus.device_of({"src", src, bytes}, {"dst", dst, capacity}));
  if (device >= 0) {
    return gpus.with(device, [&](gpu::FrameCodec& codec) -> Status {
      UZIP_ASSIGN_OR_RETURN(const FrameHeader header,
                            codec.encode(type, coded ? gpu::levels_on_gpu(choice.level) : 0, src, count,
                                         {static_cast<std::byte*>(dst), capacity}));
      *frame_bytes = kFrameHeaderBytes + header.plain_bytes + header.coded_bytes;
      return Status();
    });
  }
  const std::span<std::byte> body(static_cast<std::byte*>(dst) + kFrameHeaderBytes, capacity - kFrameHeaderBytes);
  FrameHeader header = raw_frame_header(type, count);
  if (coded)
    UZIP_RETURN_IF_ERROR(choice.codec->encode(type, choice.level, src, count, body, scratch(), header));
  if (header.codec == kCodecRaw) {
    header = raw_frame_header(type, count);
    if (bytes) std::memcpy(body.data(), src, bytes);
  }
  add_checksum({static_cast<const std::byte*>(src), bytes}, header);
  write_frame_header(header, std::span<std::byte, kFrameHeaderBytes>(static_cast<std::byte*>(dst), kFrameHeaderBytes));
  *frame_bytes = kFrameHeaderBytes + header.plain_bytes + header.coded_bytes;
  return Status();
}

/// What decoding begins with. Says where the elements are, -1: on the host.
Result<FrameView> open_frame(const void* frame, size_t frame_bytes, const void* dst, size_t count, DataType type,
                             int* device) {
  if (!frame) return null_pointer("frame");
  UZIP_ASSIGN_OR_RETURN(const size_t bytes, element_bytes(count, type));
  UZIP_ASSIGN_OR_RETURN(*device, FrameGpus::instance().device_of({"dst", dst, bytes}, {"frame", frame, frame_bytes}));
  UZIP_ASSIGN_OR_RETURN(const FrameView source, view(frame, frame_bytes, *device));
  UZIP_RETURN_IF_ERROR(check_contents(source.header, count, type));
  if (!dst && count) return null_pointer("dst");
  return source;
}

Status decode(const void* frame, size_t frame_bytes, void* dst, size_t count, DataType type) {
  int device = -1;
  UZIP_ASSIGN_OR_RETURN(const FrameView source, open_frame(frame, frame_bytes, dst, count, type, &device));
  if (device >= 0)
    return FrameGpus::instance().with(
        device, [&](gpu::FrameCodec& codec) { return codec.decode(source.header, source.body(), dst); });
  return find_codec(source.header.codec)
      ->decode(source.header, source.plain, source.coded,
               {static_cast<std::byte*>(dst), count * datatype_size(type)}, scratch());
}

Status decode_reduce(const void* frame, size_t frame_bytes, void* dst, size_t count, DataType type, ReduceOp op) {
  int device = -1;
  UZIP_ASSIGN_OR_RETURN(const FrameView source, open_frame(frame, frame_bytes, dst, count, type, &device));
  if (!is_reduce_op(op) || op == UZIP_AVG)
    return error(UZIP_ERR_INVALID, "reduction %d is not possible here; allowed are sum, prod, min, max",
                 static_cast<int>(op));
  if (count == 0) return check_checksum(source.header, std::span<const std::byte>());
  if (device >= 0)
    return FrameGpus::instance().with(
        device, [&](gpu::FrameCodec& codec) { return codec.decode_reduce(source.header, source.body(), dst, op); });
  ReduceOperand operands[2];
  operands[0].elements = dst;
  operands[1].header = &source.header;
  operands[1].plain = source.plain;
  operands[1].coded = source.coded;
  thread_local std::vector<std::byte> work;
  work.resize(std::max(work.size(), reduce_frames_bytes(type, 1)));
  return reduce_frames(op, type, dst, operands, count, 0, work, scratch());
}

Status describe(const void* frame, size_t frame_bytes, uzip_frame_info_t* info) {
  if (!info) return null_pointer("info");
  UZIP_RETURN_IF_ERROR(check_written_struct(*info, "uzip_frame_info_t", kFirstFrameInfoBytes));
  if (!frame) return null_pointer("frame");
  UZIP_ASSIGN_OR_RETURN(const int device, FrameGpus::instance().device_of({}, {"frame", frame, frame_bytes}));
  UZIP_ASSIGN_OR_RETURN(const FrameHeader header, header_of_file(frame, frame_bytes, device));
  const Codec* codec = find_codec(header.codec);
  uzip_frame_info_t result = {};
  result.dtype = static_cast<uzip_dtype_t>(header.type);
  result.count = header.count;
  result.frame_bytes = kFrameHeaderBytes + header.plain_bytes + header.coded_bytes;
  result.plain_bytes = header.plain_bytes;
  result.coded_bytes = header.coded_bytes;
  result.codec = codec ? codec->name : "unknown";
  result.has_checksum = (header.flags & kFrameHasChecksum) != 0;
  result.checksum = header.checksum;
  write_struct(result, info);
  return Status();
}

}  // namespace
}  // namespace uzip

using namespace uzip;

extern "C" {

size_t uzip_encode_bound(size_t count, uzip_dtype_t dtype) {
  size_t bytes = 0;
  return can_exist(count, dtype, &bytes) ? frame_bound(count, dtype, bytes) : 0;
}

uzip_status_t uzip_encode(const void* src, size_t count, uzip_dtype_t dtype, const char* codec, void* dst,
                          size_t capacity, size_t* frame_bytes) {
  return guarded([&] { return encode(src, count, dtype, codec, dst, capacity, frame_bytes); });
}

uzip_status_t uzip_decode(const void* frame, size_t frame_bytes, void* dst, size_t count, uzip_dtype_t dtype) {
  return guarded([&] { return decode(frame, frame_bytes, dst, count, dtype); });
}

uzip_status_t uzip_decode_reduce(const void* frame, size_t frame_bytes, void* dst, size_t count, uzip_dtype_t dtype,
                                 uzip_op_t op) {
  return guarded([&] { return decode_reduce(frame, frame_bytes, dst, count, dtype, op); });
}

uzip_status_t uzip_frame_info(const void* frame, size_t frame_bytes, uzip_frame_info_t* info) {
  return guarded([&] { return describe(frame, frame_bytes, info); });
}

}  // extern "C"
