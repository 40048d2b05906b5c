// Headers survive the trip, and every impossible one is refused.
#include "codec/codec.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace uzip {
namespace {

using HeaderBytes = std::array<std::byte, kFrameHeaderBytes>;

HeaderBytes bytes_of(const FrameHeader& header) {
  HeaderBytes bytes;
  write_frame_header(header, bytes);
  return bytes;
}

FrameHeader lev_header() {
  FrameHeader header = raw_frame_header(UZIP_BF16, 1000);
  header.codec = find_codec("lev")->id;
  header.plain_bytes = 1008;
  header.coded_bytes = 400;
  header.flags = kFrameHasChecksum;
  header.checksum = 0x12345678;
  header.call = {1, 2, 3, 4, 5};
  return header;
}

bool accepted(const FrameHeader& header) { return parse_frame_header(bytes_of(header)).ok(); }

TEST(FrameHeader, ReadsBackWhatWasWritten) {
  const FrameHeader header = lev_header();
  const auto parsed = parse_frame_header(bytes_of(header));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(std::memcmp(&*parsed, &header, sizeof header), 0);
}

TEST(FrameHeader, HasTheDocumentedLayout) {
  const HeaderBytes bytes = bytes_of(lev_header());
  EXPECT_EQ(std::memcmp(bytes.data(), "UZZF\1\1\7\1", 8), 0);
  EXPECT_EQ(std::to_integer<int>(bytes[8]), 1000 & 255);
  EXPECT_EQ(std::to_integer<int>(bytes[32]), 1008 & 255);
  EXPECT_EQ(std::to_integer<int>(bytes[40]), 400 & 255);
  EXPECT_EQ(std::to_integer<int>(bytes[48]), 0x78);
}

TEST(FrameHeader, RefusesShortInput) {
  const HeaderBytes bytes = bytes_of(lev_header());
  for (size_t size = 0; size < bytes.size(); ++size)
    EXPECT_EQ(parse_frame_header(std::span(bytes).first(size)).status().code(), UZIP_ERR_CORRUPT);
}

TEST(FrameHeader, RefusesEveryWrongField) {
  auto with = [](auto change) {
    FrameHeader header = lev_header();
    change(header);
    return accepted(header);
  };
  EXPECT_FALSE(with([](FrameHeader& h) { ++h.magic; }));
  EXPECT_FALSE(with([](FrameHeader& h) { ++h.version; }));
  EXPECT_FALSE(with([](FrameHeader& h) { h.codec = 200; }));
  EXPECT_FALSE(with([](FrameHeader& h) { h.type = 12; }));
  EXPECT_FALSE(with([](FrameHeader& h) { h.flags |= 4; }));
  EXPECT_FALSE(with([](FrameHeader& h) { h.flags = 0; })) << "a checksum without its flag";
  EXPECT_FALSE(with([](FrameHeader& h) { h.flags |= kFrameCodedFollows; }))
      << "length of a later part";
  for (uint32_t i = 0; i < 3; ++i) EXPECT_FALSE(with([i](FrameHeader& h) { h.reserved[i] = 1; }));
}

TEST(FrameHeader, RefusesImpossibleLengths) {
  const uint64_t sizes[] = {0x7fffffff, 0x80000000, 0xffffffff, uint64_t{1} << 63, ~uint64_t{0}};
  for (uint64_t size : sizes) {
    FrameHeader header = lev_header();
    header.plain_bytes = size;
    EXPECT_FALSE(accepted(header));
    header = lev_header();
    header.coded_bytes = size;
    EXPECT_FALSE(accepted(header));
    header = raw_frame_header(UZIP_FP32, 10);
    header.plain_bytes = size;
    EXPECT_FALSE(accepted(header));
  }
  for (uint64_t count : {uint64_t{1} << 61, uint64_t{1} << 62, uint64_t{1} << 63, ~uint64_t{0}})
    EXPECT_FALSE(accepted(raw_frame_header(UZIP_FP64, count)));
  FrameHeader empty = lev_header();
  empty.count = 0;
  EXPECT_FALSE(accepted(empty));
}

TEST(FrameHeader, AcceptsRawFramesOfAnyCount) {
  for (uint64_t count : {uint64_t{0}, uint64_t{1}, uint64_t{1} << 40})
    EXPECT_TRUE(accepted(raw_frame_header(UZIP_FP16, count)));
}

TEST(FrameChecksum, IsComparedWithTheElements) {
  CodecScratch scratch;
  std::vector<float> elements(1000);
  for (size_t i = 0; i < elements.size(); ++i) elements[i] = static_cast<float>(i % 37) / 64;
  const auto bytes = std::as_bytes(std::span(elements));
  for (const Codec* codec : codecs()) {
    const EncodedSizes bound = codec->bound(UZIP_FP32, elements.size());
    std::vector<std::byte> body(bound.plain + bound.coded);
    FrameHeader header;
    ASSERT_TRUE(codec
                    ->encode(UZIP_FP32, CodecLevel::kFastest, elements.data(), elements.size(),
                             body, scratch, header)
                    .ok());
    if (header.codec == kCodecRaw) std::memcpy(body.data(), bytes.data(), bytes.size());
    add_checksum(bytes, header);
    std::vector<std::byte> dst(bytes.size());
    auto decode = [&] {
      return codec
          ->decode(header, std::span(body).first(header.plain_bytes),
                   std::span(body).subspan(header.plain_bytes, header.coded_bytes), dst, scratch)
          .code();
    };
    EXPECT_EQ(decode(), UZIP_OK);
    header.checksum ^= 1;
    EXPECT_EQ(decode(), UZIP_ERR_CORRUPT);
  }
}

TEST(CodecRegistry, FindsByNameAndId) {
  for (const Codec* codec : codecs()) {
    EXPECT_EQ(find_codec(codec->name), codec);
    EXPECT_EQ(find_codec(codec->id), codec);
  }
  EXPECT_EQ(codecs()[0]->id, kCodecRaw);
  EXPECT_EQ(find_codec("no such codec"), nullptr);
  EXPECT_EQ(find_codec(uint8_t{255}), nullptr);
}

}  // namespace
}  // namespace uzip
