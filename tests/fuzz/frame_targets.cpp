// Frames from anywhere. Every buffer is a heap block of exactly its size, so that a sanitizer sees
// the first byte too much.
#include "base/cpu.hpp"
#include "codec/codec.hpp"
#include "codec/reduce_frames.hpp"
#include "fuzz/fuzz_target.hpp"

#include <algorithm>
#include <cstring>
#include <vector>

namespace uzip {
namespace {

constexpr size_t kMostOutput = size_t{1} << 20;
/// The smallest block, and a second one.
constexpr size_t kMostValues = 4096 + 300;

CodecScratch& scratch() {
  static CodecScratch memory;
  return memory;
}

std::vector<std::byte> copy(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

struct Frame {
  FrameHeader header;
  std::vector<std::byte> plain;
  std::vector<std::byte> coded;

  Status decode(std::span<std::byte> dst) const {
    return find_codec(header.codec)->decode(header, plain, coded, dst, scratch());
  }
};

void require_ok_or_corrupt(const Status& status) {
  require(status.ok() || (status.code() == UZIP_ERR_CORRUPT && !status.message().empty()),
          "a frame was refused with another code than CORRUPT");
}

/// The input as a frame with a header that parse_frame_header() would accept, so that whatever is
/// damaged lies behind it. False: there is not even a header.
bool repair(std::span<const std::byte> input, DataType type, Frame* frame) {
  if (input.size() < kFrameHeaderBytes) return false;
  FrameHeader& header = frame->header;
  std::memcpy(&header, input.data(), kFrameHeaderBytes);
  const auto body = input.subspan(kFrameHeaderBytes);
  header.magic = kFrameMagic;
  header.version = kFrameVersion;
  header.codec = find_codec("lev")->id;
  header.type = static_cast<uint8_t>(type);
  header.flags &= kFrameHasChecksum;
  header.count = std::max<uint64_t>(1, header.count % kMostValues);
  header.plain_bytes = std::min<uint64_t>(header.plain_bytes, body.size());
  header.coded_bytes = body.size() - header.plain_bytes;
  frame->plain = copy(body.first(header.plain_bytes));
  frame->coded = copy(body.subspan(header.plain_bytes));
  return true;
}

std::span<const std::byte> some_elements() {
  static const auto elements = [] {
    std::vector<std::byte> bytes(kMostValues * sizeof(double));
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = std::byte(0x3b + i * 7 + i / 256 * 3);
    return bytes;
  }();
  return elements;
}

void use_cpu_target(size_t choice) {
  const auto targets = available_cpu_targets();
  require(set_cpu_target(cpu_target_name(targets[choice % targets.size()])).ok(), "no CPU target");
}

}  // namespace

void fuzz_frame(std::span<const std::byte> input, DataType) {
  const auto header = parse_frame_header(input);
  if (!header.ok()) return require_ok_or_corrupt(header.status());
  const auto body = input.subspan(kFrameHeaderBytes);
  const size_t raw = header->count * datatype_size(static_cast<DataType>(header->type));
  if (raw > kMostOutput || header->plain_bytes > body.size()) return;
  if (header->coded_bytes > body.size() - header->plain_bytes) return;
  const Frame frame{*header, copy(body.first(header->plain_bytes)),
                    copy(body.subspan(header->plain_bytes, header->coded_bytes))};
  std::vector<std::byte> dst(raw);
  require_ok_or_corrupt(frame.decode(dst));
}

void fuzz_decode(std::span<const std::byte> input, DataType type) {
  Frame frame;
  if (!repair(input, type, &frame)) return;
  use_cpu_target(frame.header.call.coll);
  std::vector<std::byte> dst(frame.header.count * datatype_size(type));
  const Status status = frame.decode(dst);
  require_ok_or_corrupt(status);
  if (frame.header.call.op % 2 == 0) return;
  use_cpu_target(0);
  std::vector<std::byte> portable(dst.size());
  require(frame.decode(portable).ok() == status.ok(), "CPU targets disagree about a frame");
  require(!status.ok() || dst == portable, "CPU targets decode a frame to different elements");
}

void fuzz_reduce(std::span<const std::byte> input, DataType type) {
  Frame frame;
  if (!repair(input, type, &frame)) return;
  use_cpu_target(frame.header.call.coll);
  const size_t count = frame.header.count;
  const auto op = static_cast<ReduceOp>(frame.header.call.plan % UZIP_AVG);
  static std::vector<std::byte> work(reduce_frames_bytes(UZIP_FP64, 1));
  const auto before = some_elements().first(count * datatype_size(type));
  std::vector<std::byte> dst = copy(before);
  const ReduceOperand operands[] = {{dst.data(), nullptr, {}, {}},
                                    {nullptr, &frame.header, frame.plain, frame.coded}};
  const Status status = reduce_frames(op, type, dst.data(), operands, count, 0, work, scratch());
  require_ok_or_corrupt(status);
  // A frame of one block: the codes are wrong before anything has been reduced.
  if (!status.ok() && count <= 4096)
    require(std::memcmp(dst.data(), before.data(), dst.size()) == 0,
            "a frame that is refused was reduced all the same");
  if (frame.header.call.op % 2 == 0) return;
  std::vector<std::byte> decoded(dst.size());
  require(frame.decode(decoded).ok() == status.ok(), "decode and reduce disagree about a frame");
  if (!status.ok()) return;
  std::vector<std::byte> expected(dst.size());
  const void* sources[] = {before.data(), decoded.data()};
  reduce(op, type, expected.data(), sources, count);
  require(dst == expected, "reducing a frame gives other bits than decoding and reducing");
}

}  // namespace uzip
