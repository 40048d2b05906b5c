// Frames written by earlier versions decode for ever. tests/golden/frames holds NAME.frame (header,
// plain part, coded part) and NAME.bin (the elements). UPDATE=1 in the environment writes them
// anew.
#include "codec/codec_harness.hpp"
#include "codec/samples.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace uzip {
namespace {

struct GoldenFrame {
  const char* name;
  DataType type;
  SampleKind kind;
  size_t count;
  CodecLevel level;
};

constexpr GoldenFrame kGoldenFrames[] = {
    {"one_level_bf16", UZIP_BF16, SampleKind::kGaussian, 700, CodecLevel::kFastest},
    {"four_levels_fp32", UZIP_FP32, SampleKind::kGaussian, 601, CodecLevel::kSmallest},
    {"packed_bits_fp16", UZIP_FP16, SampleKind::kGaussian, 515, CodecLevel::kBalanced},
    {"two_planes_fp64", UZIP_FP64, SampleKind::kGaussian, 300, CodecLevel::kSmallest},
    {"constant_fp8_e4m3fn", UZIP_FP8_E4M3FN, SampleKind::kConstant, 5000, CodecLevel::kFastest},
    {"odd_one_fp64", UZIP_FP64, SampleKind::kOddOne, 400, CodecLevel::kFastest},
    {"sparse_bf16", UZIP_BF16, SampleKind::kSparse, 2500, CodecLevel::kSmallest},
    {"narrowed_fp32", UZIP_FP32, SampleKind::kNarrowed, 555, CodecLevel::kSmallest},
    {"smooth_fp64", UZIP_FP64, SampleKind::kSmooth, 450, CodecLevel::kSmallest},
    {"two_blocks_fp8_e5m2", UZIP_FP8_E5M2, SampleKind::kRowScaled, 17000, CodecLevel::kBalanced},
    {"raw_int32", UZIP_INT32, SampleKind::kGaussian, 10, CodecLevel::kFastest},
};

std::filesystem::path folder() {
  const char* top = std::getenv("top_srcdir");
  return std::filesystem::path(top != nullptr ? top : ".") / "tests/golden/frames";
}

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

void append(std::ofstream& file, std::span<const std::byte> bytes) {
  file.write(reinterpret_cast<const char*>(bytes.data()),
             static_cast<std::streamsize>(bytes.size()));
}

void write_golden(const GoldenFrame& golden, std::span<const uint8_t> elements) {
  CodecHarness harness(*find_codec("lev"));
  const EncodedFrame frame = harness.encode(golden.type, golden.level, elements);
  std::array<std::byte, kFrameHeaderBytes> header;
  write_frame_header(frame.header, header);
  std::ofstream file(folder() / (std::string(golden.name) + ".frame"), std::ios::binary);
  append(file, header);
  append(file, frame.plain);
  append(file, frame.coded);
  std::ofstream plain(folder() / (std::string(golden.name) + ".bin"), std::ios::binary);
  append(plain, std::as_bytes(elements));
}

TEST(GoldenFrames, DecodeToTheElementsThatWereEncoded) {
  const char* update = std::getenv("UPDATE");
  for (const GoldenFrame& golden : kGoldenFrames) {
    SCOPED_TRACE(golden.name);
    const auto sample = make_sample(golden.type, golden.kind, golden.count);
    if (update != nullptr && *update != '\0') write_golden(golden, sample);
    const auto file = read_file(folder() / (std::string(golden.name) + ".frame"));
    const auto header = parse_frame_header(file);
    ASSERT_TRUE(header.ok()) << header.status().message();
    const auto body = std::span(file).subspan(kFrameHeaderBytes);
    ASSERT_EQ(body.size(), header->plain_bytes + header->coded_bytes);
    CodecScratch scratch;
    std::vector<std::byte> elements(sample.size());
    const Status status = find_codec(header->codec)
                              ->decode(*header, body.first(header->plain_bytes),
                                       body.subspan(header->plain_bytes), elements, scratch);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(std::memcmp(elements.data(), sample.data(), sample.size()), 0);
    EXPECT_EQ(read_file(folder() / (std::string(golden.name) + ".bin")), elements);
  }
}

}  // namespace
}  // namespace uzip
