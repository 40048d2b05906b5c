#include "codec/codec_harness.hpp"

#include <gtest/gtest.h>

namespace uzip {
namespace {

std::vector<std::byte> copy_of(std::span<const std::byte> bytes) {
  return {bytes.begin(), bytes.end()};
}

EncodedFrame raw_frame(const FrameHeader& header, std::span<const std::byte> elements) {
  return {header, copy_of(elements), {}};
}

}  // namespace

CodecHarness::CodecHarness(const Codec& codec, size_t capacity_bytes)
    : codec_(codec),
      src_(capacity_bytes),
      first_(2 * capacity_bytes + 65536),
      second_(2 * capacity_bytes + 65536),
      dst_(capacity_bytes) {}

std::span<std::byte> CodecHarness::place_source(std::span<const uint8_t> elements) {
  const std::span<std::byte> src = src_.last(elements.size());
  if (!elements.empty()) std::memcpy(src.data(), elements.data(), elements.size());
  return src;
}

EncodedFrame CodecHarness::encode(DataType type, CodecLevel level,
                                  std::span<const uint8_t> elements) {
  const size_t count = elements.size() / datatype_size(type);
  const auto src = place_source(elements);
  const EncodedSizes bound = codec_.bound(type, count);
  const auto body = first_.last(bound.plain + bound.coded);
  FrameHeader header;
  const Status status = codec_.encode(type, level, src.data(), count, body, scratch_, header);
  EXPECT_TRUE(status.ok()) << status.message();
  if (header.codec == kCodecRaw) return raw_frame(header, src);
  EXPECT_LE(header.plain_bytes + header.coded_bytes, body.size());
  return {header, copy_of(body.first(header.plain_bytes)),
          copy_of(body.subspan(header.plain_bytes, header.coded_bytes))};
}

EncodedFrame CodecHarness::encode_staged(DataType type, CodecLevel level,
                                         std::span<const uint8_t> elements) {
  const size_t count = elements.size() / datatype_size(type);
  const auto src = place_source(elements);
  const EncodedSizes bound = codec_.bound(type, count);
  const auto plain = first_.last(bound.plain);
  const auto coded = second_.last(bound.coded);
  FrameHeader header;
  Status status = codec_.encode_plain(type, level, src.data(), count, plain, scratch_, header);
  EXPECT_TRUE(status.ok()) << status.message();
  if (header.codec == kCodecRaw) return raw_frame(header, src);
  status = codec_.encode_coded(type, level, src.data(), count, coded, scratch_, header);
  EXPECT_TRUE(status.ok()) << status.message();
  EXPECT_LE(header.plain_bytes, bound.plain);
  EXPECT_LE(header.coded_bytes, bound.coded);
  return {header, copy_of(plain.first(header.plain_bytes)),
          copy_of(coded.first(header.coded_bytes))};
}

Status CodecHarness::decode(const EncodedFrame& frame, size_t capacity,
                            std::vector<uint8_t>* elements) {
  const auto plain = first_.last(frame.plain.size());
  const auto coded = second_.last(frame.coded.size());
  if (!plain.empty()) std::memcpy(plain.data(), frame.plain.data(), plain.size());
  if (!coded.empty()) std::memcpy(coded.data(), frame.coded.data(), coded.size());
  const auto dst = dst_.last(capacity);
  if (capacity > 0) std::memset(dst.data(), 0x5a, capacity);
  Status status = codec_.decode(frame.header, plain, coded, dst, scratch_);
  elements->resize(capacity);
  if (capacity > 0) std::memcpy(elements->data(), dst.data(), capacity);
  return status;
}

std::string CodecHarness::check_round_trip(const EncodedFrame& frame,
                                           std::span<const uint8_t> elements) {
  std::vector<uint8_t> decoded;
  const Status status = decode(frame, elements.size(), &decoded);
  if (!status.ok()) return status.message();
  const auto dst = dst_.last(elements.size());
  const Status again = codec_.decode_streaming(frame.header, first_.last(frame.plain.size()),
                                               second_.last(frame.coded.size()), dst, scratch_);
  if (!again.ok()) return again.message();
  if (!elements.empty() && std::memcmp(dst.data(), decoded.data(), dst.size()) != 0)
    return "streaming differs";
  for (size_t i = 0; i < elements.size(); ++i)
    if (decoded[i] != elements[i])
      return "byte " + std::to_string(i) + " of " + std::to_string(elements.size()) + " differs";
  return "";
}

}  // namespace uzip
