// Damaged frames are refused, or decode to something else, but never touch memory that isn't
// theirs: every buffer ends at a guard page.
#include "base/cpu.hpp"
#include "codec/codec_harness.hpp"
#include "codec/samples.hpp"

#include <gtest/gtest.h>

namespace uzip {
namespace {

constexpr uint64_t kHostileSizes[] = {0, 1, 0x7fffffff, 0x80000000, 0xffffffff, uint64_t{1} << 63};

uint64_t next_random(uint64_t* state) {
  *state = *state * 6364136223846793005u + 1442695040888963407u;
  return *state >> 20;
}

/// Small frames that use every kind of block and record.
std::vector<EncodedFrame> specimens(CodecHarness& harness) {
  std::vector<EncodedFrame> frames;
  auto add = [&](DataType type, std::span<const uint8_t> elements) {
    for (CodecLevel level : {CodecLevel::kFastest, CodecLevel::kSmallest}) {
      EncodedFrame frame = harness.encode(type, level, elements);
      if (frame.header.codec != kCodecRaw) frames.push_back(std::move(frame));
    }
  };
  for (const DataTypeInfo& info : datatypes())
    for (SampleKind kind : sample_kinds()) add(info.type, make_sample(info.type, kind, 5000));
  for (const TensorSample& sample : tensor_samples())
    add(sample.type, std::span(sample.bytes).first(16384));
  return frames;
}

class Corruption : public ::testing::Test {
 protected:
  /// Decodes; a failure must be CORRUPT.
  void decode(const EncodedFrame& frame, size_t capacity) {
    const Status status = harness_.decode(frame, capacity, &decoded_);
    if (!status.ok()) {
      EXPECT_EQ(status.code(), UZIP_ERR_CORRUPT);
      EXPECT_FALSE(status.message().empty());
    }
    refused_ += !status.ok();
  }
  void expect_refused(const EncodedFrame& frame, size_t capacity) {
    EXPECT_EQ(harness_.decode(frame, capacity, &decoded_).code(), UZIP_ERR_CORRUPT);
  }
  static size_t raw_bytes(const EncodedFrame& frame) {
    return frame.header.count * datatype_size(static_cast<DataType>(frame.header.type));
  }

  CodecHarness harness_{*find_codec("lev")};
  std::vector<uint8_t> decoded_;
  size_t refused_ = 0;
};

TEST_F(Corruption, LessRoomThanElementsIsRefused) {
  for (const EncodedFrame& frame : specimens(harness_)) {
    expect_refused(frame, 0);
    expect_refused(frame, raw_bytes(frame) - 1);
  }
}

TEST_F(Corruption, RefusalWritesNothingWhenTheDescriptorsAreDamaged) {
  for (EncodedFrame frame : specimens(harness_)) {
    frame.coded.pop_back();
    expect_refused(frame, raw_bytes(frame));
    for (uint8_t byte : decoded_) ASSERT_EQ(byte, 0x5a);
  }
}

TEST_F(Corruption, TruncatedPartsAreRefused) {
  for (const EncodedFrame& frame : specimens(harness_)) {
    for (size_t size = 0; size < frame.coded.size(); size += size < 300 ? 1 : 97) {
      EncodedFrame cut = frame;
      cut.coded.resize(size);
      expect_refused(cut, raw_bytes(frame));
      cut.header.coded_bytes = size;
      expect_refused(cut, raw_bytes(frame));
    }
    for (size_t size = 0; size < frame.plain.size(); size += 1 + frame.plain.size() / 50) {
      EncodedFrame cut = frame;
      cut.plain.resize(size);
      expect_refused(cut, raw_bytes(frame));
      cut.header.plain_bytes = size;
      expect_refused(cut, raw_bytes(frame));
    }
  }
}

TEST_F(Corruption, HostileHeaderFieldsAreRefused) {
  for (const EncodedFrame& frame : specimens(harness_)) {
    for (uint64_t size : kHostileSizes) {
      EncodedFrame bad = frame;
      bad.header.count = size;
      expect_refused(bad, raw_bytes(frame));
      bad = frame;
      bad.header.plain_bytes = frame.header.plain_bytes == size ? size + 1 : size;
      expect_refused(bad, raw_bytes(frame));
      bad = frame;
      bad.header.coded_bytes = size;
      expect_refused(bad, raw_bytes(frame));
    }
    EncodedFrame bad = frame;
    bad.header.count = frame.header.count + 1;
    expect_refused(bad, raw_bytes(frame));
    expect_refused(bad, raw_bytes(frame) + 8);
  }
}

TEST_F(Corruption, EveryHeaderBitFlipIsHarmless) {
  for (const EncodedFrame& frame : specimens(harness_)) {
    for (size_t byte = 0; byte < kFrameHeaderBytes; ++byte) {
      for (unsigned bit = 0; bit < 8; ++bit) {
        std::array<std::byte, kFrameHeaderBytes> bytes;
        write_frame_header(frame.header, bytes);
        bytes[byte] ^= std::byte{1} << bit;
        const auto header = parse_frame_header(bytes);
        if (!header.ok()) continue;
        EncodedFrame bad = frame;
        bad.header = *header;
        decode(bad, raw_bytes(frame));
      }
    }
  }
}

/// Every four bytes of the table, the descriptors and what follows become each of the hostile
/// sizes.
TEST_F(Corruption, HostileSizesInTheCodedPartAreHarmless) {
  for (const EncodedFrame& frame : specimens(harness_)) {
    for (size_t at = 0; at + 4 <= std::min<size_t>(frame.coded.size(), 400); at += 4) {
      uint32_t original;
      std::memcpy(&original, &frame.coded[at], 4);
      for (uint64_t size :
           {uint64_t{0}, uint64_t{1}, uint64_t{original} + 1, uint64_t{original} - 1,
            uint64_t{0x7fffffff}, uint64_t{0x80000000}, uint64_t{0xffffffff}}) {
        EncodedFrame bad = frame;
        const auto value = static_cast<uint32_t>(size);
        std::memcpy(&bad.coded[at], &value, 4);
        decode(bad, raw_bytes(frame));
      }
    }
  }
  EXPECT_GT(refused_, 1000u);
}

TEST_F(Corruption, RandomDamageIsHarmless) {
  uint64_t random = 5;
  for (const EncodedFrame& frame : specimens(harness_)) {
    for (int round = 0; round < 60; ++round) {
      EncodedFrame bad = frame;
      const int changes = 1 + round % 4;
      for (int change = 0; change < changes; ++change) {
        const size_t limit =
            round % 2 == 0 ? std::min<size_t>(bad.coded.size(), 160) : bad.coded.size();
        bad.coded[next_random(&random) % limit] ^= std::byte{1} << (next_random(&random) % 8);
      }
      decode(bad, raw_bytes(frame));
    }
  }
}

TEST_F(Corruption, EveryTargetRefusesTheSame) {
  const auto frames = specimens(harness_);
  for (CpuTarget target : available_cpu_targets()) {
    uint64_t random = 9;
    for (const EncodedFrame& frame : frames) {
      for (int round = 0; round < 20; ++round) {
        EncodedFrame bad = frame;
        bad.coded[next_random(&random) % bad.coded.size()] ^= std::byte{1}
                                                              << (next_random(&random) % 8);
        ASSERT_TRUE(set_cpu_target("scalar").ok());
        std::vector<uint8_t> expected;
        const bool ok = harness_.decode(bad, raw_bytes(frame), &expected).ok();
        ASSERT_TRUE(set_cpu_target(cpu_target_name(target)).ok());
        ASSERT_EQ(harness_.decode(bad, raw_bytes(frame), &decoded_).ok(), ok);
        if (ok) {
          ASSERT_EQ(decoded_, expected);
        }
      }
    }
  }
  ASSERT_TRUE(set_cpu_target("auto").ok());
}

}  // namespace
}  // namespace uzip
