// Frames are as small as docs/FORMAT.md and the codec's summary say, and never too large.
#include "codec/codec_harness.hpp"
#include "codec/samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

namespace uzip {
namespace {

const Codec& lev() { return *find_codec("lev"); }

double ratio(DataType type, CodecLevel level, std::span<const uint8_t> elements) {
  CodecHarness harness(lev());
  return static_cast<double>(harness.encode(type, level, elements).body_bytes()) /
         static_cast<double>(elements.size());
}

TEST(FrameSize, BoundIsTheElementsAndLittleMore) {
  for (const Codec* codec : codecs()) {
    for (const DataTypeInfo& info : datatypes()) {
      for (size_t count : {size_t{0}, size_t{1}, size_t{1000}, size_t{1} << 20}) {
        const EncodedSizes bound = codec->bound(info.type, count);
        const size_t raw = count * info.size;
        EXPECT_LE(bound.plain, raw + raw / 100 + 1024);
        EXPECT_LE(bound.plain + bound.coded, raw + raw / 40 + 4096);
      }
    }
  }
}

TEST(FrameSize, ConstantsCostAlmostNothing) {
  for (const DataTypeInfo& info : datatypes()) {
    if (!is_float(info.type)) continue;
    for (CodecLevel level : kCodecLevels)
      for (SampleKind kind : {SampleKind::kZeros, SampleKind::kMinusZeros, SampleKind::kConstant})
        EXPECT_LE(ratio(info.type, level, make_sample(info.type, kind, 100000)), 0.005);
  }
}

TEST(FrameSize, OneOddValueCostsBytes) {
  CodecHarness harness(lev());
  for (const DataTypeInfo& info : datatypes()) {
    if (!is_float(info.type)) continue;
    for (CodecLevel level : kCodecLevels) {
      const auto zeros = make_sample(info.type, SampleKind::kZeros, 100000);
      const auto odd = make_sample(info.type, SampleKind::kOddOne, 100000);
      const size_t without = harness.encode(info.type, level, zeros).body_bytes();
      EXPECT_LE(harness.encode(info.type, level, odd).body_bytes(), without + 32);
    }
  }
}

TEST(FrameSize, RandomBitsAreSentRaw) {
  for (const DataTypeInfo& info : datatypes()) {
    CodecHarness harness(lev());
    const auto elements = make_sample(info.type, SampleKind::kRandomBits, 60000);
    for (CodecLevel level : kCodecLevels) {
      const EncodedFrame frame = harness.encode(info.type, level, elements);
      EXPECT_EQ(frame.header.codec, kCodecRaw);
      EXPECT_EQ(frame.body_bytes(), elements.size());
    }
  }
}

/// The whole looks random then; the block that is not is coded all the same.
TEST(FrameSize, AQuarterThatShrinksIsFound) {
  constexpr size_t kBytes = size_t{512} << 10;
  for (const auto& [type, most] : {std::pair{UZIP_BF16, 0.94}, {UZIP_FP32, 0.97}, {UZIP_FP64, 0.98}}) {
    const size_t count = kBytes / datatype_size(type);
    const auto part = make_sample(type, SampleKind::kGaussian, count / 4);
    for (size_t quarter = 0; quarter < 4; ++quarter) {
      auto elements = make_sample(type, SampleKind::kRandomBits, count);
      std::copy(part.begin(), part.end(),
                elements.begin() + static_cast<std::ptrdiff_t>(quarter * part.size()));
      for (CodecLevel level : kCodecLevels)
        EXPECT_LE(ratio(type, level, elements), most) << datatype_info(type).name << " " << quarter;
    }
  }
}

/// The exponents of normal data have 2.6 bits in them.
TEST(FrameSize, WideExponentsAreCoded) {
  const auto elements = make_sample(UZIP_FP64, SampleKind::kGaussian, 100000);
  for (CodecLevel level : kCodecLevels) EXPECT_LE(ratio(UZIP_FP64, level, elements), 0.88);
}

/// Its rows have 48 values; a sample that met all of them at the same place made it 0.80.
TEST(FrameSize, AFieldIsSampledAtEveryPlaceOfItsRows) {
  for (const TensorSample& tensor : tensor_samples()) {
    if (tensor.name != "heat3d_fp32") continue;
    EXPECT_LE(ratio(tensor.type, CodecLevel::kBalanced, tensor.bytes), 0.73);
    EXPECT_LE(ratio(tensor.type, CodecLevel::kSmallest, tensor.bytes), 0.73);
    return;
  }
  FAIL() << "no heat3d_fp32";
}

/// A sample may promise too much; then the plain part has left already.
TEST(FrameSize, StagesStayWithinTheirBound) {
  CodecHarness harness(lev());
  for (const DataTypeInfo& info : datatypes()) {
    for (SampleKind kind : sample_kinds()) {
      const auto elements = make_sample(info.type, kind, 70000);
      for (CodecLevel level : kCodecLevels) {
        const EncodedFrame frame = harness.encode_staged(info.type, level, elements);
        const size_t allowed = elements.size() + elements.size() / 500 + 64;
        EXPECT_LE(frame.body_bytes(), allowed) << info.name << " " << sample_kind_name(kind);
        EXPECT_EQ(harness.check_round_trip(frame, elements), "");
      }
    }
  }
}

TEST(FrameSize, TooLittleRoomIsAnError) {
  CodecScratch scratch;
  const auto elements = make_sample(UZIP_BF16, SampleKind::kGaussian, 5000);
  const EncodedSizes bound = lev().bound(UZIP_BF16, 5000);
  std::vector<std::byte> body(bound.plain + bound.coded - 1);
  FrameHeader header;
  EXPECT_EQ(
      lev()
          .encode(UZIP_BF16, CodecLevel::kFastest, elements.data(), 5000, body, scratch, header)
          .code(),
      UZIP_ERR_INVALID);
}

}  // namespace
}  // namespace uzip
