// The codec on a real GPU, through the plugin: frames are decoded by device and CPU, and have the
// CPU's bytes for the same plan. Skipped where there is no GPU.
#include "base/reduce.hpp"
#include "codec/codec_harness.hpp"
#include "codec/samples.hpp"
#include "gpu/gpu_memory.hpp"
#include "gpu/planned_frame.hpp"

#include <gtest/gtest.h>

#include <bit>
#include <random>

namespace uzip::gpu {
namespace {

constexpr DataType kFloatTypes[] = {UZIP_FP16, UZIP_BF16,       UZIP_FP32,
                                    UZIP_FP64, UZIP_FP8_E4M3FN, UZIP_FP8_E5M2};

class DeviceCodec : public testing::Test {
 protected:
  static constexpr size_t kCapacity = size_t{16} << 20;

  void SetUp() override {
    std::string why;
    gpu_ = find_gpu(&why);
    if (gpu_ == nullptr) GTEST_SKIP() << why;
    src_ = std::make_unique<GpuMemory>(*gpu_, kCapacity);
    other_ = std::make_unique<GpuMemory>(*gpu_, kCapacity);
    plain_ = std::make_unique<GpuMemory>(*gpu_, kCapacity + (1 << 20));
    coded_ = std::make_unique<GpuMemory>(*gpu_, kCapacity + (1 << 20));
    dst_ = std::make_unique<GpuMemory>(*gpu_, kCapacity);
    small_ = std::make_unique<GpuMemory>(*gpu_, 4096);
    require(*gpu_, gpu_->create_codec(kCapacity, &codec_));
  }
  void TearDown() override {
    if (codec_ != nullptr) gpu_->destroy_codec(codec_);
  }

  void to_device(void* dst, const void* src, size_t bytes) {
    require(*gpu_, gpu_->copy(dst, src, bytes, nullptr));
    require(*gpu_, gpu_->wait_stream(nullptr));
  }
  void wait() { require(*gpu_, gpu_->wait_stream(nullptr)); }

  FrameHeader* header_place() const { return reinterpret_cast<FrameHeader*>(small_->data()); }
  uint64_t* fault_place() const { return reinterpret_cast<uint64_t*>(small_->data() + 1024); }

  EncodedFrame encode(DataType type, std::span<const uint8_t> elements, int levels,
                      bool fixed_plain = false, size_t misaligned = 0, unsigned blocks = 0) {
    to_device(src_->data() + misaligned, elements.data(), elements.size());
    require(*gpu_, gpu_->clear(plain_->data(), plain_->size(), nullptr));
    EncodeRequest request{};
    request.type = static_cast<uint8_t>(type);
    request.count = elements.size() / datatype_size(type);
    request.src = src_->data() + misaligned;
    request.plain = plain_->data();
    request.coded = coded_->data();
    request.header = header_place();
    request.levels = levels;
    request.fixed_plain = fixed_plain;
    request.may_be_raw = true;
    request.blocks = blocks;
    require(*gpu_, gpu_->encode(codec_, &request, nullptr));
    EncodedFrame frame;
    require(*gpu_, gpu_->copy(&frame.header, header_place(), sizeof frame.header, nullptr));
    wait();
    frame.plain.resize(frame.header.plain_bytes);
    frame.coded.resize(frame.header.coded_bytes);
    const void* plain = frame.header.codec == kCodecRaw ? src_->data() + misaligned : plain_->data();
    require(*gpu_, gpu_->copy(frame.plain.data(), plain, frame.plain.size(), nullptr));
    if (!frame.coded.empty())
      require(*gpu_, gpu_->copy(frame.coded.data(), coded_->data(), frame.coded.size(), nullptr));
    wait();
    return frame;
  }

  uint64_t decode(const EncodedFrame& frame, DataType type, size_t count,
                  std::vector<uint8_t>* elements, std::span<const uint8_t> operand = {},
                  ReduceOp op = UZIP_SUM, size_t misaligned = 0, uint64_t average_over = 0) {
    if (!frame.plain.empty()) to_device(plain_->data(), frame.plain.data(), frame.plain.size());
    if (!frame.coded.empty()) to_device(coded_->data(), frame.coded.data(), frame.coded.size());
    if (!operand.empty()) to_device(other_->data(), operand.data(), operand.size());
    require(*gpu_, gpu_->clear(fault_place(), 8, nullptr));
    DecodeRequest request{};
    request.type = static_cast<uint8_t>(type);
    request.count = count;
    request.header = &frame.header;
    request.plain = plain_->data();
    request.coded = coded_->data();
    request.plain_room = frame.plain.size();
    request.coded_room = frame.coded.size();
    request.dst = dst_->data() + misaligned;
    request.operand = operand.empty() ? nullptr : other_->data();
    request.op = static_cast<uint8_t>(op);
    request.average_over = average_over;
    request.fault = fault_place();
    require(*gpu_, gpu_->decode(codec_, &request, nullptr));
    uint64_t fault = 0;
    elements->resize(count * datatype_size(type));
    require(*gpu_, gpu_->copy(&fault, fault_place(), sizeof fault, nullptr));
    require(*gpu_, gpu_->copy(elements->data(), dst_->data() + misaligned, elements->size(), nullptr));
    wait();
    return fault;
  }

  void check(DataType type, std::span<const uint8_t> elements, int levels, bool fixed_plain,
             size_t misaligned, unsigned blocks) {
    const EncodedFrame frame = encode(type, elements, levels, fixed_plain, misaligned, blocks);
    EXPECT_EQ(cpu_.check_round_trip(frame, elements), "");
    if (frame.header.codec != kCodecRaw && !fixed_plain) {
      EXPECT_TRUE(encode_as_planned(frame, elements) == frame)
          << "not the CPU's bytes for the same plan";
    }
    std::vector<uint8_t> decoded;
    EXPECT_EQ(decode(frame, type, elements.size() / datatype_size(type), &decoded), 0u);
    EXPECT_TRUE(std::equal(elements.begin(), elements.end(), decoded.begin(), decoded.end()));
  }

  const PluginApi* gpu_ = nullptr;
  CodecContext* codec_ = nullptr;
  std::unique_ptr<GpuMemory> src_, other_, plain_, coded_, dst_, small_;
  CodecHarness cpu_{*find_codec("lev"), kCapacity};
};

std::string trace_of(DataType type, SampleKind kind, size_t count) {
  return std::string(datatype_info(type).name) + " " + sample_kind_name(kind) + " " +
         std::to_string(count);
}

/// Every kernel, type and kind of block, with little work: for compute-sanitizer, which is slow.
TEST_F(DeviceCodec, SmallFramesOfEveryKind) {
  std::vector<uint8_t> decoded;
  for (DataType type : kFloatTypes) {
    for (SampleKind kind : sample_kinds()) {
      const size_t count = 9001;
      SCOPED_TRACE(trace_of(type, kind, count));
      const auto elements = make_sample(type, kind, count);
      check(type, elements, 2, false, 0, 0);
      const EncodedFrame frame = cpu_.encode(type, CodecLevel::kSmallest, elements);
      EXPECT_EQ(decode(frame, type, count, &decoded), 0u);
      EXPECT_TRUE(decoded == elements);
    }
  }
}

TEST_F(DeviceCodec, FramesAreTheCpusForTheSamePlan) {
  for (DataType type : kFloatTypes) {
    for (SampleKind kind : sample_kinds()) {
      for (size_t count : {1ul, 63ul, 8191ul, 8192ul, 100003ul}) {
        SCOPED_TRACE(trace_of(type, kind, count));
        const auto elements = make_sample(type, kind, count);
        check(type, elements, 1, false, 0, 0);
        check(type, elements, 2, false, datatype_size(type), 5);
        check(type, elements, 2, true, 0, 1);
      }
    }
  }
}

TEST_F(DeviceCodec, ManyTilesFindTheirPlaces) {
  for (DataType type : {UZIP_BF16, UZIP_FP32}) {
    const size_t count = (size_t{12} << 20) / datatype_size(type) + 17;
    const auto elements = make_sample(type, SampleKind::kRowScaled, count);
    for (int repeat = 0; repeat < 5; ++repeat) {
      SCOPED_TRACE(repeat);
      check(type, elements, 1 + repeat % 2, repeat == 4, 0, repeat < 2 ? 0 : 33);
    }
  }
}

TEST_F(DeviceCodec, DecodesEveryFrameOfTheCpu) {
  std::vector<uint8_t> decoded;
  for (DataType type : kFloatTypes) {
    for (SampleKind kind : sample_kinds()) {
      for (CodecLevel level : kCodecLevels) {
        for (size_t count : {700ul, 70011ul}) {
          SCOPED_TRACE(trace_of(type, kind, count));
          const auto elements = make_sample(type, kind, count);
          const EncodedFrame frame = cpu_.encode(type, level, elements);
          EXPECT_EQ(decode(frame, type, count, &decoded, {}, UZIP_SUM, count % 2 * 8), 0u);
          EXPECT_TRUE(decoded == elements);
        }
      }
    }
  }
}

TEST_F(DeviceCodec, DecodeAndReduceGivesTheBitsOfReduce) {
  std::vector<uint8_t> decoded;
  for (DataType type : kFloatTypes) {
    for (SampleKind kind : {SampleKind::kGaussian, SampleKind::kSpecials, SampleKind::kRandomBits}) {
      const size_t count = 50001;
      SCOPED_TRACE(trace_of(type, kind, count));
      const auto first = make_sample(type, kind, count, 1);
      const auto second = make_sample(type, kind, count, 2);
      for (ReduceOp op : {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX, UZIP_AVG}) {
        for (const uint64_t average_over : {0, 2, 3}) {
          if (op != UZIP_AVG && average_over != 0) continue;
          std::vector<uint8_t> expected(first.size());
          const std::array<const void*, 2> sources = {first.data(), second.data()};
          reduce(op, type, expected.data(), sources, count, average_over);
          const EncodedFrame frame = encode(type, second, 1);
          EXPECT_EQ(decode(frame, type, count, &decoded, first, op, 0, average_over), 0u);
          EXPECT_TRUE(decoded == expected) << reduce_op_name(op) << " " << average_over;
        }
      }
    }
  }
}

TEST_F(DeviceCodec, AllSumsAndAveragesOfTwoSmallFloats) {
  constexpr size_t kPairs = 1 << 16;
  std::vector<uint8_t> first(kPairs);
  std::vector<uint8_t> second(kPairs);
  for (size_t i = 0; i < kPairs; ++i) {
    first[i] = static_cast<uint8_t>(i);
    // Few exponents in a tile: it shrinks.
    second[i] = std::rotr(static_cast<uint8_t>(i >> 8), 1);
  }
  for (const DataType type : {UZIP_FP8_E4M3FN, UZIP_FP8_E5M2}) {
    const EncodedFrame frame = encode(type, second, 1);
    ASSERT_NE(frame.header.codec, kCodecRaw);
    for (const uint64_t average_over : {0, 2}) {
      std::vector<uint8_t> expected(kPairs);
      std::vector<uint8_t> decoded;
      const std::array<const void*, 2> sources = {first.data(), second.data()};
      reduce(UZIP_AVG, type, expected.data(), sources, kPairs, average_over);
      EXPECT_EQ(decode(frame, type, kPairs, &decoded, first, UZIP_AVG, 0, average_over), 0u);
      size_t wrong = 0;
      for (size_t i = 0; i < kPairs; ++i)
        if (decoded[i] != expected[i] && ++wrong < 10)
          ADD_FAILURE() << datatype_info(type).name << " " << int{first[i]} << ", " << int{second[i]}
                        << ": " << int{decoded[i]} << ", not " << int{expected[i]};
      EXPECT_EQ(wrong, 0u);
    }
  }
}

TEST_F(DeviceCodec, ReducesAsTheCpuDoes) {
  for (const DataTypeInfo& info : datatypes()) {
    const SampleKind kind = is_float(info.type) ? SampleKind::kRandomBits : SampleKind::kUniform;
    const size_t count = 70001;
    const auto first = make_sample(info.type, kind, count, 1);
    const auto second = make_sample(info.type, kind, count, 2);
    const auto third = make_sample(info.type, kind, count, 3);
    to_device(src_->data(), first.data(), first.size());
    to_device(other_->data(), second.data(), second.size());
    to_device(plain_->data(), third.data(), third.size());
    for (ReduceOp op : {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX, UZIP_AVG}) {
      std::vector<uint8_t> expected(first.size());
      std::vector<uint8_t> result(first.size());
      const std::array<const void*, 3> sources = {first.data(), second.data(), third.data()};
      reduce(op, info.type, expected.data(), sources, count, 3);
      const std::array<const void*, 3> on_device = {src_->data(), other_->data(), plain_->data()};
      require(*gpu_, gpu_->reduce(codec_, static_cast<uint8_t>(op), static_cast<uint8_t>(info.type),
                                  dst_->data(), on_device.data(), 3, count, 3, nullptr));
      require(*gpu_, gpu_->copy(result.data(), dst_->data(), result.size(), nullptr));
      wait();
      EXPECT_TRUE(result == expected) << info.name << " " << reduce_op_name(op);
    }
  }
}

/// Run it under compute-sanitizer: no damage may lead outside of the parts.
TEST_F(DeviceCodec, DamagedFramesAreFaultsOrOtherValues) {
  std::mt19937_64 random(11);
  std::vector<uint8_t> decoded;
  size_t faults = 0;
  for (DataType type : kFloatTypes) {
    for (SampleKind kind : {SampleKind::kGaussian, SampleKind::kSparse, SampleKind::kOddOne,
                            SampleKind::kSmooth}) {
      const size_t count = 30000;
      const auto elements = make_sample(type, kind, count);
      const EncodedFrame good[] = {cpu_.encode(type, CodecLevel::kSmallest, elements),
                                   encode(type, elements, 2)};
      for (int trial = 0; trial < 40; ++trial) {
        EncodedFrame frame = good[trial % 2];
        if (frame.coded.empty()) continue;
        const size_t front = std::min<size_t>(frame.coded.size(), trial % 3 == 0 ? 1 << 16 : 200);
        for (int flips = 0; flips < 1 + trial % 3; ++flips)
          frame.coded[random() % front] ^= std::byte(1u << random() % 8);
        faults += decode(frame, type, count, &decoded) != 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(faults, 200u);
}

TEST_F(DeviceCodec, PointersAreDescribed) {
  PointerInfo info{};
  int on_stack = 0;
  require(*gpu_, gpu_->describe_pointer(&on_stack, &info));
  EXPECT_EQ(info.kind, MemoryKind::kHost);
  require(*gpu_, gpu_->describe_pointer(src_->data() + 100, &info));
  EXPECT_EQ(info.kind, MemoryKind::kDevice);
  EXPECT_EQ(info.device, 0);
  void* pinned = nullptr;
  require(*gpu_, gpu_->allocate_pinned(&pinned, 4096));
  require(*gpu_, gpu_->describe_pointer(pinned, &info));
  EXPECT_EQ(info.kind, MemoryKind::kPinned);
  require(*gpu_, gpu_->release_pinned(pinned));
}

TEST_F(DeviceCodec, WrongArgumentsAreErrors) {
  EncodeRequest request{};
  request.type = UZIP_INT32;
  request.count = 10;
  request.levels = 1;
  EXPECT_NE(gpu_->encode(codec_, &request, nullptr), 0);
  EXPECT_NE(std::string(gpu_->last_error()).find("type 2"), std::string::npos);
  request.type = UZIP_BF16;
  request.count = uint64_t{1} << 40;
  EXPECT_NE(gpu_->encode(codec_, &request, nullptr), 0);
  request.count = 10;
  request.levels = 3;
  EXPECT_NE(gpu_->encode(codec_, &request, nullptr), 0);
  request.levels = 1;
  request.plain = plain_->data() + 8;
  EXPECT_NE(gpu_->encode(codec_, &request, nullptr), 0);
}

}  // namespace
}  // namespace uzip::gpu
