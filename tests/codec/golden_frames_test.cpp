// Frames of version 1 decode for ever, whoever wrote them. tests/golden/vectors holds NAME.frame
// (header, plain part, coded part) and NAME.bin (the elements), and in reject/ frames that break one
// rule each. Those in the table below were made by this library, and UPDATE=1 in the environment
// writes them anew; the others are made by tests/golden/make_vectors.py.
#include "base/cpu.hpp"
#include "codec/codec_harness.hpp"
#include "codec/samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
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
};

std::filesystem::path folder() {
  const char* top = std::getenv("top_srcdir");
  return std::filesystem::path(top != nullptr ? top : ".") / "tests/golden/vectors";
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

std::vector<std::filesystem::path> frames_in(const std::filesystem::path& where) {
  std::vector<std::filesystem::path> frames;
  for (const auto& entry : std::filesystem::directory_iterator(where))
    if (entry.path().extension() == ".frame") frames.push_back(entry.path());
  std::sort(frames.begin(), frames.end());
  return frames;
}

/// What a reader of files does: a whole frame, or an error.
Status decode_file(const std::vector<std::byte>& file, size_t capacity,
                   std::vector<std::byte>* elements) {
  UZIP_ASSIGN_OR_RETURN(const FrameHeader header, parse_frame_header(file));
  if ((header.flags & kFrameCodedFollows) != 0)
    return error(UZIP_ERR_CORRUPT, "only the first part of a frame");
  const auto body = std::span(file).subspan(kFrameHeaderBytes);
  if (header.plain_bytes > body.size() || header.coded_bytes != body.size() - header.plain_bytes)
    return error(UZIP_ERR_CORRUPT, "another length than the header says");
  CodecScratch scratch;
  elements->assign(capacity, std::byte{0x5a});
  return find_codec(header.codec)
      ->decode(header, body.first(header.plain_bytes), body.subspan(header.plain_bytes), *elements,
               scratch);
}

class GoldenFrames : public ::testing::TestWithParam<CpuTarget> {
 protected:
  void SetUp() override { ASSERT_TRUE(set_cpu_target(cpu_target_name(GetParam())).ok()); }
  void TearDown() override { ASSERT_TRUE(set_cpu_target("auto").ok()); }
};

TEST_P(GoldenFrames, DecodeToTheirElements) {
  const auto frames = frames_in(folder());
  ASSERT_GT(frames.size(), 80u);
  for (std::filesystem::path path : frames) {
    SCOPED_TRACE(path.filename());
    const auto file = read_file(path);
    const auto expected = read_file(path.replace_extension(".bin"));
    std::vector<std::byte> elements;
    const Status status = decode_file(file, expected.size(), &elements);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(elements, expected);
  }
}

TEST_P(GoldenFrames, AreRefusedWhenTheyBreakARule) {
  const auto frames = frames_in(folder() / "reject");
  ASSERT_GT(frames.size(), 60u);
  for (const std::filesystem::path& path : frames) {
    SCOPED_TRACE(path.filename());
    std::vector<std::byte> elements;
    EXPECT_EQ(decode_file(read_file(path), size_t{1} << 16, &elements).code(), UZIP_ERR_CORRUPT);
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, GoldenFrames,
                         ::testing::ValuesIn(available_cpu_targets().begin(),
                                             available_cpu_targets().end()),
                         [](const auto& test) { return cpu_target_name(test.param); });

TEST(GoldenFramesOfThisLibrary, HoldTheSamplesThatWereEncoded) {
  const char* update = std::getenv("UPDATE");
  for (const GoldenFrame& golden : kGoldenFrames) {
    SCOPED_TRACE(golden.name);
    const auto sample = make_sample(golden.type, golden.kind, golden.count);
    if (update != nullptr && *update != '\0') write_golden(golden, sample);
    const auto file = read_file(folder() / (std::string(golden.name) + ".frame"));
    std::vector<std::byte> elements;
    ASSERT_TRUE(decode_file(file, sample.size(), &elements).ok());
    EXPECT_EQ(std::memcmp(elements.data(), sample.data(), sample.size()), 0);
  }
}

}  // namespace
}  // namespace uzip
