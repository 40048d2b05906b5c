// Reducing from frames gives the bits of decoding and reducing.
#include "codec/reduce_frames.hpp"

#include "base/cpu.hpp"
#include "codec/block.hpp"
#include "codec/codec_harness.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/samples.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cfenv>
#include <random>

namespace uzip {
namespace {

struct Inputs {
  std::vector<std::vector<uint8_t>> elements;
  std::vector<EncodedFrame> frames;
  std::vector<ReduceOperand> operands;

  /// Operand 1 is plain, the others are frames, of different levels so that their blocks differ.
  Inputs(CodecHarness& harness, DataType type, SampleKind kind, size_t count, uint32_t ranks) {
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      elements.push_back(make_sample(type, kind, count, rank + 1));
      frames.push_back(harness.encode(type, kCodecLevels[rank % 3], elements.back()));
    }
    for (uint32_t rank = 0; rank < ranks; ++rank) {
      operands.push_back({elements[rank].data(), nullptr, {}, {}});
      if (rank != 1) take_frame(rank);
    }
  }
  void take_frame(size_t rank) {
    operands[rank] = {nullptr, &frames[rank].header, frames[rank].plain, frames[rank].coded};
  }
  std::vector<const void*> sources() const {
    std::vector<const void*> result;
    for (const auto& one : elements) result.push_back(one.data());
    return result;
  }
};

TEST(ReduceFrames, GivesTheBitsOfDecodingAndReducing) {
  CodecScratch scratch;
  CodecHarness harness(*find_codec("lev"));
  for (const DataTypeInfo& info : datatypes()) {
    for (SampleKind kind : {SampleKind::kGaussian, SampleKind::kSpecials, SampleKind::kSparse,
                            SampleKind::kRandomBits, SampleKind::kSmooth}) {
      for (size_t count : {size_t{1}, size_t{1000}, size_t{70001}}) {
        for (uint32_t ranks : {1u, 2u, 5u}) {
          const Inputs inputs(harness, info.type, kind, count, ranks);
          std::vector<std::byte> work(reduce_frames_bytes(info.type, ranks));
          std::vector<uint8_t> expected(count * info.size);
          std::vector<uint8_t> result(count * info.size);
          for (ReduceOp op : {UZIP_SUM, UZIP_MAX}) {
            reduce(op, info.type, expected.data(), inputs.sources(), count);
            const Status status = reduce_frames(op, info.type, result.data(), inputs.operands,
                                                count, 0, work, scratch);
            ASSERT_TRUE(status.ok()) << status.message();
            ASSERT_EQ(result, expected)
                << info.name << " " << sample_kind_name(kind) << " x " << count;
          }
        }
      }
    }
  }
}

/// On every target, wherever the frame stands among the operands, and whatever the program has set
/// for its own arithmetic.
TEST(ReduceFrames, AddsAsReduceDoes) {
  CodecScratch scratch;
  CodecHarness harness(*find_codec("lev"));
  const size_t count = 40003;
  for (DataType type : {UZIP_BF16, UZIP_FP16, UZIP_FP32, UZIP_FP64, UZIP_FP8_E4M3FN, UZIP_FP8_E5M2}) {
    const size_t size = datatype_size(type);
    for (SampleKind kind : {SampleKind::kGaussian, SampleKind::kSpecials}) {
      for (const auto& [ranks, place] : {std::pair{4u, 0u}, {4u, 1u}, {4u, 3u}, {2u, 0u}, {2u, 1u}}) {
        Inputs inputs(harness, type, kind, count, ranks);
        for (uint32_t i = 0; i < ranks; ++i)
          if (i != place) inputs.operands[i] = {inputs.elements[i].data(), nullptr, {}, {}};
        inputs.take_frame(place);
        std::vector<std::byte> work(reduce_frames_bytes(type, 1));
        std::vector<uint8_t> expected(count * size);
        for (CpuTarget target : available_cpu_targets()) {
          ASSERT_TRUE(set_cpu_target(cpu_target_name(target)).ok());
          reduce(UZIP_SUM, type, expected.data(), inputs.sources(), count);
          std::vector<uint8_t> result(count * size);
          std::fesetround(FE_UPWARD);
          const Status status = reduce_frames(UZIP_SUM, type, result.data(), inputs.operands, count,
                                              0, work, scratch);
          const int rounding = std::fegetround();
          std::fesetround(FE_TONEAREST);
          ASSERT_TRUE(status.ok()) << status.message();
          EXPECT_EQ(rounding, FE_UPWARD);
          EXPECT_TRUE(result == expected) << datatype_info(type).name << " at " << place;
        }
        ASSERT_TRUE(set_cpu_target("auto").ok());
      }
    }
  }
}

/// More blocks than a reader keeps between checking and decoding, each with another descriptor; into a result of its own,
/// and in place.
TEST(ReduceFrames, FramesOfManyDifferentBlocks) {
  const Codec& codec = *find_codec("lev");
  CodecScratch scratch;
  constexpr std::array kKinds = {SampleKind::kGaussian, SampleKind::kZeros, SampleKind::kSpecials,
                                 SampleKind::kOddOne};
  const size_t part = size_t{1} << 14;
  const size_t count = 37 * part + 100;
  for (DataType type : {UZIP_BF16, UZIP_FP32}) {
    const size_t size = datatype_size(type);
    std::vector<uint8_t> coded(count * size);
    for (size_t at = 0; at < count; at += part) {
      const size_t here = std::min(part, count - at);
      const auto some = make_sample(type, kKinds[at / part % kKinds.size()], here, static_cast<uint32_t>(at));
      std::copy(some.begin(), some.end(), coded.begin() + static_cast<std::ptrdiff_t>(at * size));
    }
    const auto other = make_sample(type, SampleKind::kGaussian, count, 7);
    const EncodedSizes bound = codec.bound(type, count);
    std::vector<std::byte> body(bound.plain + bound.coded);
    FrameHeader header;
    ASSERT_TRUE(codec.encode(type, CodecLevel::kSmallest, coded.data(), count, body, scratch, header).ok());
    ASSERT_NE(header.codec, kCodecRaw);
    const auto plain_part = std::span<const std::byte>(body).first(header.plain_bytes);
    const auto coded_part = std::span<const std::byte>(body).subspan(header.plain_bytes, header.coded_bytes);
    std::vector<std::byte> work(reduce_frames_bytes(type, 1));
    std::vector<uint8_t> expected(count * size);
    reduce(UZIP_SUM, type, expected.data(), std::array<const void*, 2>{other.data(), coded.data()}, count);
    for (CpuTarget target : available_cpu_targets()) {
      ASSERT_TRUE(set_cpu_target(cpu_target_name(target)).ok());
      std::vector<uint8_t> result(count * size);
      ASSERT_TRUE(codec.decode(header, plain_part, coded_part, std::as_writable_bytes(std::span(result)), scratch).ok());
      EXPECT_TRUE(result == coded) << datatype_info(type).name << " " << cpu_target_name(target);
      for (const bool in_place : {false, true}) {
        result = other;
        const void* const elements = in_place ? result.data() : other.data();
        const ReduceOperand operands[] = {{elements, nullptr, {}, {}}, {nullptr, &header, plain_part, coded_part}};
        ASSERT_TRUE(reduce_frames(UZIP_SUM, type, result.data(), operands, count, 0, work, scratch).ok());
        EXPECT_TRUE(result == expected) << datatype_info(type).name << " " << cpu_target_name(target) << " " << in_place;
      }
    }
    ASSERT_TRUE(set_cpu_target("auto").ok());
  }
}

/// Where there are kernels that add what they decode, the frame's values are not put into `work`.
TEST(ReduceFrames, KernelsAddWhatTheyDecode) {
  CodecScratch scratch;
  CodecHarness harness(*find_codec("lev"));
  const size_t count = size_t{1} << 14;
  size_t adding = 0;
  for (DataType type : {UZIP_BF16, UZIP_FP16, UZIP_FP32, UZIP_FP64, UZIP_FP8_E4M3FN, UZIP_FP8_E5M2}) {
    Inputs inputs(harness, type, SampleKind::kGaussian, count, 2);
    ASSERT_NE(inputs.frames[0].header.codec, kCodecRaw);
    const size_t room = kMaxBlockValues * datatype_size(type);
    std::vector<uint8_t> result(count * datatype_size(type));
    for (CpuTarget target : available_cpu_targets()) {
      ASSERT_TRUE(set_cpu_target(cpu_target_name(target)).ok());
      for (ReduceOp op : {UZIP_SUM, UZIP_MAX}) {
        std::vector<std::byte> work(reduce_frames_bytes(type, 1), std::byte{0xa5});
        ASSERT_TRUE(reduce_frames(op, type, result.data(), inputs.operands, count, 0, work, scratch).ok());
        const auto written = static_cast<size_t>(
            std::count_if(work.end() - static_cast<std::ptrdiff_t>(room), work.end(), [](std::byte b) { return b != std::byte{0xa5}; }));
        const bool adds = op == UZIP_SUM && (codec_kernels().sums >> type & 1) != 0;
        EXPECT_EQ(written == 0, adds) << datatype_info(type).name << " " << cpu_target_name(target) << ": " << written;
        adding += adds;
      }
    }
    ASSERT_TRUE(set_cpu_target("auto").ok());
  }
  if (cpu_target() == CpuTarget::kAvx512) {
    EXPECT_EQ(adding, 8u);  // AVX2 and AVX-512
  }
}

TEST(ReduceFrames, DestinationMayBeAnOperand) {
  CodecScratch scratch;
  CodecHarness harness(*find_codec("lev"));
  const size_t count = 50000;
  Inputs inputs(harness, UZIP_BF16, SampleKind::kGaussian, count, 3);
  std::vector<std::byte> work(reduce_frames_bytes(UZIP_BF16, 3));
  std::vector<uint8_t> expected(count * 2);
  reduce(UZIP_AVG, UZIP_BF16, expected.data(), inputs.sources(), count, 3);
  std::vector<uint8_t> sums(count * 2);
  reduce(UZIP_SUM, UZIP_BF16, sums.data(), inputs.sources(), count);
  const std::vector<uint8_t> before = inputs.elements[1];
  ASSERT_TRUE(reduce_frames(UZIP_AVG, UZIP_BF16, inputs.elements[1].data(), inputs.operands, count,
                            3, work, scratch)
                  .ok());
  EXPECT_EQ(inputs.elements[1], expected);
  inputs.elements[1] = before;
  ASSERT_TRUE(reduce_frames(UZIP_SUM, UZIP_BF16, inputs.elements[1].data(), inputs.operands, count,
                            0, work, scratch)
                  .ok());
  EXPECT_EQ(inputs.elements[1], sums);
}

/// What decoding refuses is refused before the first element is written; what it accepts is reduced
/// to the same bits on every target.
TEST(ReduceFrames, FindsDamageBeforeItWrites) {
  CodecScratch scratch;
  CodecHarness harness(*find_codec("lev"));
  const size_t count = 70001;
  std::mt19937_64 random(3);
  size_t refused = 0;
  for (DataType type : {UZIP_BF16, UZIP_FP32, UZIP_FP8_E4M3FN}) {
    const size_t size = datatype_size(type);
    std::vector<std::byte> work(reduce_frames_bytes(type, 1));
    for (SampleKind kind : {SampleKind::kGaussian, SampleKind::kSparse, SampleKind::kSmooth}) {
      const std::vector<uint8_t> elements = make_sample(type, kind, count, 7);
      const EncodedFrame frame = harness.encode(type, CodecLevel::kSmallest, elements);
      if (frame.header.codec == kCodecRaw) continue;
      for (int round = 0; round < 24; ++round) {
        EncodedFrame bad = frame;
        bad.coded[random() % bad.coded.size()] ^= std::byte{1} << (random() % 8);
        std::vector<uint8_t> decoded;
        const bool ok = harness.decode(bad, count * size, &decoded).ok();
        refused += !ok;
        std::vector<uint8_t> expected(count * size, 0x5a);
        if (ok)
          reduce(UZIP_SUM, type, expected.data(),
                 std::array<const void*, 2>{elements.data(), decoded.data()}, count);
        for (CpuTarget target : available_cpu_targets()) {
          ASSERT_TRUE(set_cpu_target(cpu_target_name(target)).ok());
          const ReduceOperand operands[] = {{elements.data(), nullptr, {}, {}},
                                            {nullptr, &bad.header, bad.plain, bad.coded}};
          std::vector<uint8_t> result(count * size, 0x5a);
          const Status status =
              reduce_frames(UZIP_SUM, type, result.data(), operands, count, 0, work, scratch);
          ASSERT_EQ(status.ok(), ok) << status.message();
          ASSERT_EQ(result, expected);
        }
        ASSERT_TRUE(set_cpu_target("auto").ok());
      }
    }
  }
  EXPECT_GT(refused, 20u);
}

/// Of frames of every codec, and wherever the frame stands.
TEST(ReduceFrames, ComparesChecksumsBeforeItWrites) {
  CodecScratch scratch;
  CodecHarness harness(*find_codec("lev"));
  const size_t count = 70001;
  for (SampleKind kind : {SampleKind::kGaussian, SampleKind::kSparse, SampleKind::kRandomBits}) {
    Inputs inputs(harness, UZIP_FP32, kind, count, 3);
    for (size_t rank : {size_t{0}, size_t{2}})
      add_checksum(std::as_bytes(std::span(inputs.elements[rank])), inputs.frames[rank].header);
    std::vector<std::byte> work(reduce_frames_bytes(UZIP_FP32, 3));
    std::vector<uint8_t> expected(count * 4);
    reduce(UZIP_SUM, UZIP_FP32, expected.data(), inputs.sources(), count);
    std::vector<uint8_t> result(count * 4, 0x5a);
    const auto sum = [&] {
      return reduce_frames(UZIP_SUM, UZIP_FP32, result.data(), inputs.operands, count, 0, work,
                           scratch)
          .code();
    };
    for (size_t rank : {size_t{0}, size_t{2}}) {
      inputs.frames[rank].header.checksum ^= 1;
      EXPECT_EQ(sum(), UZIP_ERR_CORRUPT);
      for (uint8_t byte : result) ASSERT_EQ(byte, 0x5a);
      inputs.frames[rank].header.checksum ^= 1;
    }
    EXPECT_EQ(sum(), UZIP_OK);
    EXPECT_EQ(result, expected);
  }
}

TEST(ReduceFrames, RefusesFramesThatDoNotFit) {
  CodecScratch scratch;
  CodecHarness harness(*find_codec("lev"));
  Inputs inputs(harness, UZIP_FP32, SampleKind::kGaussian, 5000, 3);
  std::vector<std::byte> work(reduce_frames_bytes(UZIP_FP32, 3));
  std::vector<uint8_t> dst(5000 * 4, 0x5a);
  auto code = [&](DataType type, size_t count, size_t room) {
    return reduce_frames(UZIP_SUM, type, dst.data(), inputs.operands, count, 0,
                         std::span(work).first(room), scratch)
        .code();
  };
  EXPECT_EQ(code(UZIP_FP32, 4999, work.size()), UZIP_ERR_CORRUPT);
  EXPECT_EQ(code(UZIP_INT32, 5000, work.size()), UZIP_ERR_CORRUPT);
  EXPECT_EQ(code(UZIP_FP32, 5000, 1000), UZIP_ERR_INVALID);
  inputs.operands[2].coded = inputs.operands[2].coded.first(100);
  EXPECT_EQ(code(UZIP_FP32, 5000, work.size()), UZIP_ERR_CORRUPT);
  for (uint8_t byte : dst) ASSERT_EQ(byte, 0x5a);
}

}  // namespace
}  // namespace uzip
