#include "gpu/frame_codec.hpp"

#include "base/log.hpp"
#include "gpu/fault_text.hpp"

#include <sched.h>

#include <chrono>
#include <thread>
#include <utility>

namespace uzip::gpu {
namespace {

/// More memory of the device than this is given back after a call.
constexpr size_t kMostIdleBytes = size_t{64} << 20;

/// A wait looks again at once for so long, then after a nap each time.
constexpr std::chrono::milliseconds kEager(2);
constexpr std::chrono::microseconds kNap(50);

bool is_aligned(const void* part) { return reinterpret_cast<uintptr_t>(part) % kPartAlignment == 0; }

}  // namespace

/// Memory of the device for the time of one call; given back when nothing works on it any more.
class FrameCodec::Block {
 public:
  explicit Block(FrameCodec& codec) : codec_(codec) {}
  ~Block() {
    if (!block_.data) return;
    if (!codec_.busy_) (void)codec_.wait();
    codec_.put(block_);
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

Result<std::unique_ptr<FrameCodec>> FrameCodec::create(const PluginApi& api, int device, unsigned blocks,
                                                       WaitLimits limits) {
  std::unique_ptr<FrameCodec> codec(new FrameCodec(api, device, blocks, limits));
  const DeviceScope scope(api, device);
  UZIP_RETURN_IF_ERROR(codec->initialize());
  return codec;
}

Status FrameCodec::initialize() {
  UZIP_RETURN_IF_ERROR(check(api_.create_stream(&stream_)));
  UZIP_ASSIGN_OR_RETURN(report_block_, pinned_.get(sizeof(Report)));
  return Status();
}

FrameCodec::~FrameCodec() {
  const DeviceScope scope(api_, device_);
  if (!stream_) return;
  if (const Status ended = wait(); ended.code() == UZIP_ERR_TIMEOUT) return;
  for (const DeviceBlock& block : std::exchange(kept_, {})) memory_.put(block);
  pinned_.put(report_block_);
  (void)api_.destroy_stream(stream_);
}

/// Waits for what the caller has put on the default stream: the runtime would, too, in a copy of memory that is not pinned, but
/// for ever.
Status FrameCodec::begin() {
  if (busy_) {
    bool done = false;
    UZIP_RETURN_IF_ERROR(check(api_.query_stream(stream_, &done)));
    if (!done)
      return error(UZIP_ERR_TIMEOUT, "GPU %d is still busy with an earlier call on a frame, which has failed; wait for it, "
                                     "or raise UZIP_TIMEOUT_LIMIT", device_);
    busy_ = false;
    for (const DeviceBlock& block : std::exchange(kept_, {})) put(block);
  }
  report().fault = 0;
  UZIP_RETURN_IF_ERROR(check(api_.stream_waits_for(stream_, nullptr)));
  return wait();
}

void FrameCodec::put(DeviceBlock block) {
  if (busy_) return kept_.push_back(block);
  memory_.put(block);
  if (memory_.idle_bytes() > kMostIdleBytes) memory_.release_idle();
}

/// Until all that is on the stream is done.
Status FrameCodec::wait() {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  bool warned = false;
  for (;;) {
    bool done = false;
    UZIP_RETURN_IF_ERROR(check(api_.query_stream(stream_, &done)));
    if (done) {
      busy_ = false;
      return Status();
    }
    const auto passed = Clock::now() - begin;
    const double seconds = std::chrono::duration<double>(passed).count();
    if (limits_.fail > 0 && seconds > limits_.fail) {
      busy_ = true;
      return error(UZIP_ERR_TIMEOUT, "GPU %d is still busy with a frame, or with what came before it on its default stream, "
                                     "after %.1f s (UZIP_TIMEOUT_LIMIT); it may still use the buffers of this call",
                   device_, seconds);
    }
    if (limits_.warn > 0 && seconds > limits_.warn && !std::exchange(warned, true))
      log(LogLevel::kWarn, "a call on a frame has waited %.0f s (UZIP_TIMEOUT) for GPU %d", seconds, device_);
    if (passed < kEager) sched_yield();
    else std::this_thread::sleep_for(kNap);
  }
}

Status FrameCodec::copy(void* dst, const void* src, size_t bytes) {
  return bytes == 0 ? Status() : check(api_.copy(dst, src, bytes, stream_));
}

Status FrameCodec::read(std::span<std::byte> to, const void* frame) {
  const DeviceScope scope(api_, device_);
  UZIP_RETURN_IF_ERROR(begin());
  UZIP_RETURN_IF_ERROR(copy(to.data(), frame, to.size()));
  return wait();
}

/// Leaves the checksum of what is there by then in the report.
Status FrameCodec::start_checksum(const void* elements, size_t bytes) {
  report().checksum = 0;
  if (bytes == 0) return Status();
  UZIP_ASSIGN_OR_RETURN(CodecContext* const context, contexts_.get(0));
  return check(api_.checksum(context, elements, bytes, &report().checksum, stream_));
}

Result<FrameHeader> FrameCodec::encode(DataType type, int levels, const void* src, size_t count,
                                       std::span<std::byte> frame) {
  const DeviceScope scope(api_, device_);
  UZIP_RETURN_IF_ERROR(begin());
  const size_t bytes = count * datatype_size(type);
  std::byte* const body = frame.data() + kFrameHeaderBytes;
  Block place(*this);
  uint64_t plain = 0, coded = 0;
  std::byte *parts = nullptr, *coded_part = nullptr;
  report().header = raw_frame_header(type, count);
  if (levels > 0 && count > 0) {
    EncodeRequest request{};
    UZIP_RETURN_IF_ERROR(check(api_.encode_bound(static_cast<uint8_t>(type), count, &plain, &coded)));
    const size_t coded_at = (plain + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    UZIP_ASSIGN_OR_RETURN(parts, place.get(coded_at + coded));
    coded_part = parts + coded_at;
    request.type = static_cast<uint8_t>(type);
    request.count = count;
    request.src = src;
    request.plain = parts;
    request.coded = coded_part;
    request.header = &report().header;
    request.levels = levels;
    request.may_be_raw = true;
    request.blocks = blocks_;
    UZIP_ASSIGN_OR_RETURN(CodecContext* const context, contexts_.get(count));
    UZIP_RETURN_IF_ERROR(check(api_.encode(context, &request, stream_)));
  }
  UZIP_RETURN_IF_ERROR(start_checksum(src, bytes));
  UZIP_RETURN_IF_ERROR(wait());
  FrameHeader header = report().header;
  if (header.codec != kCodecRaw && header.plain_bytes <= plain && header.coded_bytes <= coded &&
      header.plain_bytes + header.coded_bytes < bytes) {
    header.call = CallStamp();
    UZIP_RETURN_IF_ERROR(copy(body, parts, header.plain_bytes));
    UZIP_RETURN_IF_ERROR(copy(body + header.plain_bytes, coded_part, header.coded_bytes));
  } else {
    header = raw_frame_header(type, count);
    UZIP_RETURN_IF_ERROR(copy(body, src, bytes));
  }
  header.checksum = report().checksum;
  header.flags |= kFrameHasChecksum;
  write_frame_header(header, std::span<std::byte, kFrameHeaderBytes>(report_block_.data, kFrameHeaderBytes));
  UZIP_RETURN_IF_ERROR(copy(frame.data(), report_block_.data, kFrameHeaderBytes));
  UZIP_RETURN_IF_ERROR(wait());
  return header;
}

/// The parts of a coded frame are taken where they are if the kernels can read them there.
Status FrameCodec::start_decode(const FrameHeader& header, std::span<const std::byte> body, void* dst, const void* operand,
                                ReduceOp op, Block& place) {
  PointerInfo info{MemoryKind::kHost, -1};
  UZIP_RETURN_IF_ERROR(check(api_.describe_pointer(body.data(), &info)));
  const size_t plain_bytes = header.plain_bytes, coded_bytes = header.coded_bytes;
  const std::byte* plain = body.data();
  const std::byte* coded = plain + plain_bytes;
  if (info.kind != MemoryKind::kDevice || info.device != device_ || !is_aligned(plain) || !is_aligned(coded)) {
    const size_t coded_at = (plain_bytes + kPartAlignment - 1) / kPartAlignment * kPartAlignment;
    UZIP_ASSIGN_OR_RETURN(std::byte* const parts, place.get(coded_at + coded_bytes));
    UZIP_RETURN_IF_ERROR(copy(parts, plain, plain_bytes));
    UZIP_RETURN_IF_ERROR(copy(parts + coded_at, coded, coded_bytes));
    plain = parts;
    coded = parts + coded_at;
  }
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
  request.fault = &report().fault;
  request.blocks = blocks_;
  UZIP_ASSIGN_OR_RETURN(CodecContext* const context, contexts_.get(0));
  return check(api_.decode(context, &request, stream_));
}

Status FrameCodec::decode(const FrameHeader& header, std::span<const std::byte> body, void* dst) {
  const DeviceScope scope(api_, device_);
  UZIP_RETURN_IF_ERROR(begin());
  const size_t bytes = header.count * datatype_size(static_cast<DataType>(header.type));
  const bool checked = (header.flags & kFrameHasChecksum) != 0;
  Block place(*this);
  if (header.codec == kCodecRaw) UZIP_RETURN_IF_ERROR(copy(dst, body.data(), bytes));
  else if (bytes > 0) UZIP_RETURN_IF_ERROR(start_decode(header, body, dst, nullptr, UZIP_SUM, place));
  if (checked) UZIP_RETURN_IF_ERROR(start_checksum(dst, bytes));
  UZIP_RETURN_IF_ERROR(wait());
  UZIP_RETURN_IF_ERROR(status_of_fault(report().fault));
  return checked ? check_checksum(header, report().checksum) : Status();
}

Status FrameCodec::decode_reduce(const FrameHeader& header, std::span<const std::byte> body, void* dst, ReduceOp op) {
  const bool checked = (header.flags & kFrameHasChecksum) != 0;
  Block place(*this);
  if (!checked && header.codec != kCodecRaw) {
    const DeviceScope scope(api_, device_);
    UZIP_RETURN_IF_ERROR(begin());
    UZIP_RETURN_IF_ERROR(start_decode(header, body, dst, dst, op, place));
    UZIP_RETURN_IF_ERROR(wait());
    return status_of_fault(report().fault);
  }
  // What has a checksum is decoded apart, and reduced when it is known to be right.
  const size_t bytes = header.count * datatype_size(static_cast<DataType>(header.type));
  UZIP_ASSIGN_OR_RETURN(std::byte* const decoded, place.get(bytes));
  UZIP_RETURN_IF_ERROR(decode(header, body, decoded));
  if (bytes == 0) return Status();
  const DeviceScope scope(api_, device_);
  const void* const operands[] = {dst, decoded};
  UZIP_ASSIGN_OR_RETURN(CodecContext* const context, contexts_.get(0));
  UZIP_RETURN_IF_ERROR(check(api_.reduce(context, static_cast<uint8_t>(op), header.type, dst, operands, 2, header.count, 0,
                                         stream_)));
  return wait();
}

}  // namespace uzip::gpu
