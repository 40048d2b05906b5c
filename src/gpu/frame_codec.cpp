#include "gpu/frame_codec.hpp"

#include "base/crc32c.hpp"
#include "gpu/fault_text.hpp"

#include <algorithm>
#include <utility>

namespace uzip::gpu {
namespace {

/// A codec's working memory is made for frames of at least so many elements; it has a word for 8192.
constexpr uint64_t kLeastCodecCount = uint64_t{1} << 22;
/// Alignment of the parts of a frame that the kernels ask for.
constexpr uintptr_t kPartAlignment = 16;
/// Elements come to the host for their checksum in pieces of so many bytes, one while the other is summed up.
constexpr size_t kPieceBytes = size_t{2} << 20;
/// More memory of the device than this is given back after a call.
constexpr size_t kMostIdleBytes = size_t{64} << 20;

bool is_aligned(const void* part) { return reinterpret_cast<uintptr_t>(part) % kPartAlignment == 0; }

}  // namespace

/// Memory of the device for the time of one call; given back when nothing works on it any more.
class FrameCodec::Block {
 public:
  explicit Block(FrameCodec& codec) : codec_(codec) {}
  ~Block() {
    if (!block_.data) return;
    (void)codec_.wait();
    codec_.memory_.put(block_);
    if (codec_.memory_.idle_bytes() > kMostIdleBytes) codec_.memory_.release_idle();
  }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;

  Result<std::byte*> get(size_t bytes) {
    UZIP_ASSIGN_OR_RETURN(block_, codec_.memory_.get(bytes));
    return block_.data;
  }

 private:
  FrameCodec& codec_;
  DeviceBlock block_;
};

Result<std::unique_ptr<FrameCodec>> FrameCodec::create(const PluginApi& api, int device, unsigned blocks) {
  std::unique_ptr<FrameCodec> codec(new FrameCodec(api, device, blocks));
  const DeviceScope scope(api, device);
  UZIP_RETURN_IF_ERROR(codec->initialize());
  return codec;
}

Status FrameCodec::initialize() {
  UZIP_RETURN_IF_ERROR(check(api_.create_stream(&stream_)));
  UZIP_ASSIGN_OR_RETURN(report_block_, pinned_.get(sizeof(Report)));
  UZIP_ASSIGN_OR_RETURN(pieces_, pinned_.get(2 * kPieceBytes));
  return Status();
}

FrameCodec::~FrameCodec() {
  const DeviceScope scope(api_, device_);
  if (stream_) {
    (void)wait();
    (void)api_.destroy_stream(stream_);
  }
  if (codec_) api_.destroy_codec(codec_);
  pinned_.put(report_block_);
  pinned_.put(pieces_);
}

Status FrameCodec::check(int failed) const {
  return failed == 0 ? Status() : error(UZIP_ERR_INTERNAL, "GPU %d: %s", device_, api_.last_error());
}

/// The stream follows what the caller has put on the default stream, and there is a codec for so many elements.
Status FrameCodec::begin(uint64_t count) {
  UZIP_RETURN_IF_ERROR(check(api_.stream_waits_for(stream_, nullptr)));
  if (count <= most_count_) return Status();
  if (codec_) api_.destroy_codec(std::exchange(codec_, nullptr));
  most_count_ = 0;
  const uint64_t most = std::max(count, kLeastCodecCount);
  UZIP_RETURN_IF_ERROR(check(api_.create_codec(most, &codec_)));
  most_count_ = most;
  return Status();
}

Status FrameCodec::copy(void* dst, const void* src, size_t bytes) {
  return bytes == 0 ? Status() : check(api_.copy(dst, src, bytes, stream_));
}

Status FrameCodec::read(std::span<std::byte> to, const void* frame) {
  const DeviceScope scope(api_, device_);
  UZIP_RETURN_IF_ERROR(begin(0));
  UZIP_RETURN_IF_ERROR(copy(to.data(), frame, to.size()));
  return wait();
}

Result<uint32_t> FrameCodec::checksum(const void* elements, size_t bytes) {
  const auto* const from = static_cast<const std::byte*>(elements);
  std::byte* arriving = pieces_.data;
  std::byte* arrived = pieces_.data + kPieceBytes;
  uint32_t crc = 0;
  UZIP_RETURN_IF_ERROR(copy(arriving, from, std::min(kPieceBytes, bytes)));
  for (size_t at = 0; at < bytes; at += kPieceBytes) {
    UZIP_RETURN_IF_ERROR(wait());
    std::swap(arriving, arrived);
    const size_t next = at + kPieceBytes;
    if (next < bytes) UZIP_RETURN_IF_ERROR(copy(arriving, from + next, std::min(kPieceBytes, bytes - next)));
    crc = crc32c({arrived, std::min(kPieceBytes, bytes - at)}, crc);
  }
  return crc;
}

Result<FrameHeader> FrameCodec::encode(DataType type, int levels, const void* src, size_t count,
                                       std::span<std::byte> frame) {
  const DeviceScope scope(api_, device_);
  UZIP_RETURN_IF_ERROR(begin(count));
  const size_t bytes = count * datatype_size(type);
  std::byte* const body = frame.data() + kFrameHeaderBytes;
  auto& report = *reinterpret_cast<Report*>(report_block_.data);
  FrameHeader header = raw_frame_header(type, count);
  Block place(*this);
  if (levels > 0 && count > 0) {
    EncodeRequest request{};
    uint64_t plain = 0, coded = 0;
    UZIP_RETURN_IF_ERROR(check(api_.encode_bound(static_cast<uint8_t>(type), count, &plain, &coded)));
    const size_t coded_at = (plain + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    UZIP_ASSIGN_OR_RETURN(std::byte* const parts, place.get(coded_at + coded));
    request.type = static_cast<uint8_t>(type);
    request.count = count;
    request.src = src;
    request.plain = parts;
    request.coded = parts + coded_at;
    request.header = &report.header;
    request.levels = levels;
    request.may_be_raw = true;
    request.blocks = blocks_;
    UZIP_RETURN_IF_ERROR(check(api_.encode(codec_, &request, stream_)));
    UZIP_RETURN_IF_ERROR(wait());
    const FrameHeader& made = report.header;
    if (made.codec != kCodecRaw && made.plain_bytes <= plain && made.coded_bytes <= coded &&
        made.plain_bytes + made.coded_bytes < bytes) {
      header = made;
      header.call = CallStamp();
      UZIP_RETURN_IF_ERROR(copy(body, parts, header.plain_bytes));
      UZIP_RETURN_IF_ERROR(copy(body + header.plain_bytes, parts + coded_at, header.coded_bytes));
    }
  }
  if (header.codec == kCodecRaw) UZIP_RETURN_IF_ERROR(copy(body, src, bytes));
  UZIP_ASSIGN_OR_RETURN(header.checksum, checksum(src, bytes));
  header.flags |= kFrameHasChecksum;
  write_frame_header(header, std::span<std::byte, kFrameHeaderBytes>(report_block_.data, kFrameHeaderBytes));
  UZIP_RETURN_IF_ERROR(copy(frame.data(), report_block_.data, kFrameHeaderBytes));
  UZIP_RETURN_IF_ERROR(wait());
  return header;
}

/// The parts of a coded frame are taken where they are if the kernels can read them there.
Status FrameCodec::run_decode(const FrameHeader& header, std::span<const std::byte> body, void* dst, const void* operand,
                              ReduceOp op) {
  PointerInfo info{MemoryKind::kHost, -1};
  UZIP_RETURN_IF_ERROR(check(api_.describe_pointer(body.data(), &info)));
  const size_t plain_bytes = header.plain_bytes, coded_bytes = header.coded_bytes;
  const std::byte* plain = body.data();
  const std::byte* coded = plain + plain_bytes;
  Block place(*this);
  if (info.kind != MemoryKind::kDevice || info.device != device_ || !is_aligned(plain) || !is_aligned(coded)) {
    const size_t coded_at = (plain_bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    UZIP_ASSIGN_OR_RETURN(std::byte* const parts, place.get(coded_at + coded_bytes));
    UZIP_RETURN_IF_ERROR(copy(parts, plain, plain_bytes));
    UZIP_RETURN_IF_ERROR(copy(parts + coded_at, coded, coded_bytes));
    plain = parts;
    coded = parts + coded_at;
  }
  auto& report = *reinterpret_cast<Report*>(report_block_.data);
  report.fault = 0;
  DecodeRequest request{};
  request.type = header.type;
  request.count = header.count;
  request.header = &header;
  request.plain = plain;
  request.coded = coded;
  request.plain_room = plain_bytes;
  request.coded_room = coded_bytes;
  request.dst = dst;
  request.operand = operand;
  request.op = static_cast<uint8_t>(op);
  request.fault = &report.fault;
  request.blocks = blocks_;
  UZIP_RETURN_IF_ERROR(check(api_.decode(codec_, &request, stream_)));
  UZIP_RETURN_IF_ERROR(wait());
  return status_of_fault(report.fault);
}

Status FrameCodec::decode(const FrameHeader& header, std::span<const std::byte> body, void* dst) {
  const DeviceScope scope(api_, device_);
  UZIP_RETURN_IF_ERROR(begin(header.count));
  const size_t bytes = header.count * datatype_size(static_cast<DataType>(header.type));
  if (header.codec == kCodecRaw) UZIP_RETURN_IF_ERROR(copy(dst, body.data(), bytes));
  else if (bytes > 0) UZIP_RETURN_IF_ERROR(run_decode(header, body, dst, nullptr, UZIP_SUM));
  if (header.flags & kFrameHasChecksum) {
    UZIP_ASSIGN_OR_RETURN(const uint32_t crc, checksum(dst, bytes));
    return check_checksum(header, crc);
  }
  return wait();
}

Status FrameCodec::decode_reduce(const FrameHeader& header, std::span<const std::byte> body, void* dst, ReduceOp op) {
  const bool checked = (header.flags & kFrameHasChecksum) != 0;
  if (!checked && header.codec != kCodecRaw) {
    const DeviceScope scope(api_, device_);
    UZIP_RETURN_IF_ERROR(begin(header.count));
    return run_decode(header, body, dst, dst, op);
  }
  // What has a checksum is decoded apart, and reduced when it is known to be right.
  Block place(*this);
  const size_t bytes = header.count * datatype_size(static_cast<DataType>(header.type));
  UZIP_ASSIGN_OR_RETURN(std::byte* const decoded, place.get(bytes));
  UZIP_RETURN_IF_ERROR(decode(header, body, decoded));
  if (bytes == 0) return Status();
  const DeviceScope scope(api_, device_);
  const void* const operands[] = {dst, decoded};
  UZIP_RETURN_IF_ERROR(check(api_.reduce(codec_, static_cast<uint8_t>(op), header.type, dst, operands, 2, header.count, 0,
                                         stream_)));
  return wait();
}

}  // namespace uzip::gpu
