// Whatever is encoded comes back bit for bit, within the promised sizes, on every CPU target.
#include "base/cpu.hpp"
#include "codec/codec_harness.hpp"
#include "codec/samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace uzip {
namespace {

/// Around every border there is: words, groups, the smallest and the ordinary block.
constexpr size_t kAwkwardCounts[] = {511,   513,   1023,  4095,  4096,  4097,
                                     16383, 16385, 32767, 32769, 65535, 65537};

/// What a codec doesn't support it sends raw, whatever the elements.
std::span<const SampleKind> kinds_for(const Codec& codec, DataType type) {
  const bool looks = codec.id != kCodecRaw && codec.supports(type);
  return looks ? sample_kinds() : sample_kinds().first(1);
}

/// Under a sanitizer everything takes ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kCountStep = 7;
#else
constexpr size_t kCountStep = 1;
#endif

std::string where(const Codec& codec, DataType type, SampleKind kind, size_t count,
                  CodecLevel level) {
  return std::string(codec.name) + " " + datatype_info(type).name + " " + sample_kind_name(kind) +
         " x " + std::to_string(count) + " level " + std::to_string(static_cast<int>(level)) +
         " on " + cpu_target_name(cpu_target());
}

class EveryTarget : public ::testing::TestWithParam<CpuTarget> {
 protected:
  void SetUp() override { ASSERT_TRUE(set_cpu_target(cpu_target_name(GetParam())).ok()); }
  void TearDown() override { ASSERT_TRUE(set_cpu_target("auto").ok()); }
};

void check_counts(const Codec& codec, DataType type, SampleKind kind,
                  std::span<const size_t> counts) {
  CodecHarness harness(codec);
  const auto all = make_sample(type, kind, counts.back());
  for (size_t count : counts) {
    const std::span elements(all.data(), count * datatype_size(type));
    for (CodecLevel level : kCodecLevels) {
      SCOPED_TRACE(where(codec, type, kind, count, level));
      const EncodedFrame frame = harness.encode(type, level, elements);
      ASSERT_EQ(harness.check_round_trip(frame, elements), "");
      ASSERT_LE(frame.body_bytes(), elements.size());
      ASSERT_TRUE(frame == harness.encode(type, level, elements)) << "not deterministic";
      if (frame.header.codec == kCodecRaw) continue;
      ASSERT_TRUE(frame == harness.encode_staged(type, level, elements)) << "stages differ";
    }
  }
}

TEST_P(EveryTarget, KeepsEveryBitOfShortFrames) {
  std::vector<size_t> counts;
  for (size_t count = 0; count <= 300; count += kCountStep) counts.push_back(count);
  for (const Codec* codec : codecs())
    for (const DataTypeInfo& info : datatypes())
      for (SampleKind kind : kinds_for(*codec, info.type))
        check_counts(*codec, info.type, kind, counts);
}

TEST_P(EveryTarget, KeepsEveryBitOfAwkwardLengths) {
  for (const Codec* codec : codecs())
    for (const DataTypeInfo& info : datatypes())
      for (SampleKind kind : kinds_for(*codec, info.type))
        check_counts(*codec, info.type, kind, kAwkwardCounts);
}

TEST_P(EveryTarget, KeepsRealTensors) {
  for (const TensorSample& sample : tensor_samples()) {
    CodecHarness harness(*find_codec("lev"));
    for (CodecLevel level : kCodecLevels) {
      SCOPED_TRACE(sample.name);
      const EncodedFrame frame = harness.encode(sample.type, level, sample.bytes);
      ASSERT_EQ(harness.check_round_trip(frame, sample.bytes), "");
      ASSERT_EQ(frame.header.codec, find_codec("lev")->id);
      ASSERT_TRUE(frame == harness.encode_staged(sample.type, level, sample.bytes));
    }
  }
}

/// Encoded on one target, decoded on another; and the frames are the same bytes.
TEST_P(EveryTarget, WritesTheSameBytesAsPortableCode) {
  CodecHarness harness(*find_codec("lev"));
  for (const DataTypeInfo& info : datatypes()) {
    for (SampleKind kind : sample_kinds()) {
      const auto elements = make_sample(info.type, kind, 40003);
      for (CodecLevel level : kCodecLevels) {
        SCOPED_TRACE(where(*find_codec("lev"), info.type, kind, 40003, level));
        ASSERT_TRUE(set_cpu_target(cpu_target_name(GetParam())).ok());
        const EncodedFrame frame = harness.encode(info.type, level, elements);
        ASSERT_TRUE(set_cpu_target("scalar").ok());
        ASSERT_TRUE(frame == harness.encode(info.type, level, elements));
        ASSERT_EQ(harness.check_round_trip(frame, elements), "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, EveryTarget,
                         ::testing::ValuesIn(available_cpu_targets().begin(),
                                             available_cpu_targets().end()),
                         [](const auto& info) { return std::string(cpu_target_name(info.param)); });

/// Encoders that place blocks at fixed distances leave gaps.
TEST(RoundTrip, LargerGrantsAreAccepted) {
  CodecHarness harness(*find_codec("lev"));
  const auto elements = make_sample(UZIP_FP16, SampleKind::kGaussian, 40000);
  EncodedFrame frame = harness.encode(UZIP_FP16, CodecLevel::kSmallest, elements);
  uint32_t grants[2];  // of block 0: plain, coded
  std::memcpy(grants, &frame.coded[8], sizeof grants);
  frame.plain.insert(frame.plain.begin() + grants[0], 32, std::byte{0x77});
  uint32_t blocks;
  std::memcpy(&blocks, &frame.coded[4], sizeof blocks);
  const size_t first = (8 + 8 * size_t{blocks} + 15) / 16 * 16;
  frame.coded.insert(frame.coded.begin() + static_cast<std::ptrdiff_t>(first + grants[1]), 48,
                     std::byte{0x77});
  grants[0] += 32;
  grants[1] += 48;
  std::memcpy(&frame.coded[8], grants, sizeof grants);
  frame.header.plain_bytes += 32;
  frame.header.coded_bytes += 48;
  EXPECT_EQ(harness.check_round_trip(frame, elements), "");
}

/// Past the caches or not, wherever the elements go: the same bytes, and none beside them.
TEST(RoundTrip, StreamingWritesTheSame) {
  constexpr size_t kLine = 64;
  const Codec& codec = *find_codec("lev");
  CodecScratch scratch;
  CodecHarness harness(codec);
  for (CpuTarget target : available_cpu_targets()) {
    ASSERT_TRUE(set_cpu_target(cpu_target_name(target)).ok());
    for (const DataTypeInfo& info : datatypes()) {
      if (!is_float(info.type)) continue;
      for (size_t count : {size_t{130}, size_t{1000}, size_t{4099}, size_t{33000}}) {
        const auto elements = make_sample(info.type, SampleKind::kGaussian, count);
        const EncodedFrame frame = harness.encode(info.type, kCodecLevels[count % 3], elements);
        if (frame.header.codec == kCodecRaw) continue;
        std::vector<std::byte> dst(elements.size() + 3 * kLine);
        auto* line = dst.data() + (kLine - reinterpret_cast<uintptr_t>(dst.data()) % kLine);
        for (size_t shift = 0; shift<kLine; shift += count> 5000 ? 13 : 1) {
          std::fill(dst.begin(), dst.end(), std::byte{0x5a});
          const std::span<std::byte> room(line + shift, elements.size());
          ASSERT_TRUE(
              codec.decode_streaming(frame.header, frame.plain, frame.coded, room, scratch).ok());
          ASSERT_EQ(std::memcmp(room.data(), elements.data(), elements.size()), 0);
          const auto untouched =
              std::ranges::count(dst, std::byte{0x5a}) - std::ranges::count(room, std::byte{0x5a});
          ASSERT_EQ(static_cast<size_t>(untouched), dst.size() - room.size());
        }
      }
    }
  }
  ASSERT_TRUE(set_cpu_target("auto").ok());
}

TEST(RoundTrip, AlignmentDoesNotMatter) {
  const Codec& codec = *find_codec("lev");
  CodecScratch scratch;
  for (const DataTypeInfo& info : datatypes()) {
    const size_t count = 5003;
    const auto elements = make_sample(info.type, SampleKind::kGaussian, count);
    const EncodedSizes bound = codec.bound(info.type, count);
    std::vector<std::byte> src(elements.size() + 8);
    std::vector<std::byte> body(bound.plain + bound.coded + 8);
    std::vector<std::byte> dst(elements.size() + 8);
    for (size_t shift = 0; shift < 8; ++shift) {
      std::memcpy(src.data() + shift, elements.data(), elements.size());
      FrameHeader header;
      const auto room = std::span(body).subspan(shift, bound.plain + bound.coded);
      ASSERT_TRUE(codec
                      .encode(info.type, CodecLevel::kSmallest, src.data() + shift, count, room,
                              scratch, header)
                      .ok());
      if (header.codec == kCodecRaw) continue;
      ASSERT_TRUE(codec
                      .decode(header, room.first(header.plain_bytes),
                              room.subspan(header.plain_bytes, header.coded_bytes),
                              std::span(dst).subspan(7 - shift), scratch)
                      .ok());
      ASSERT_EQ(std::memcmp(dst.data() + 7 - shift, elements.data(), elements.size()), 0);
    }
  }
}

}  // namespace
}  // namespace uzip
