// The kernels of src/gpu, run thread by thread on the CPU: frames of the device and of the CPU are
// decoded by both, and compared byte by byte for the same plan. Needs no GPU.
#include "gpu/emulator.hpp"

#include "base/reduce.hpp"
#include "codec/codec_harness.hpp"
#include "codec/samples.hpp"
#include "gpu/decode_kernel.hpp"
#include "gpu/encode_kernel.hpp"
#include "gpu/formats.hpp"
#include "gpu/planned_frame.hpp"
#include "gpu/reduce_kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace uzip::gpu {
namespace {

/// What a launcher does for one of the float types.
template <class Visit>
void for_type(DataType type, const Visit& visit) {
  switch (type) {
    case UZIP_FP16: return visit(std::integral_constant<int, UZIP_FP16>{});
    case UZIP_BF16: return visit(std::integral_constant<int, UZIP_BF16>{});
    case UZIP_FP32: return visit(std::integral_constant<int, UZIP_FP32>{});
    case UZIP_FP64: return visit(std::integral_constant<int, UZIP_FP64>{});
    case UZIP_FP8_E4M3FN: return visit(std::integral_constant<int, UZIP_FP8_E4M3FN>{});
    case UZIP_FP8_E5M2: return visit(std::integral_constant<int, UZIP_FP8_E5M2>{});
    default: FAIL() << "not a float type";
  }
}

std::span<std::byte> aligned_last(const GuardedMemory& memory, size_t bytes) {
  return memory.last((bytes + 15) / 16 * 16).first(bytes);
}

/// What is in shared memory when a kernel starts.
void fill_with_all_bytes(std::span<std::byte> memory) {
  for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<std::byte>(i * 7);
}

class EmulatedDevice {
 public:
  struct Options {
    uint32_t levels = 1;
    bool fixed_plain = false;
    bool may_be_raw = true;
    unsigned blocks = 1;
    bool backwards = false;
    size_t misaligned = 0;  ///< bytes
  };

  EncodedFrame encode(DataType type, std::span<const uint8_t> elements, const Options& options) {
    const size_t size = datatype_size(type);
    const size_t count = elements.size() / size;
    const size_t tiles = (count + tile_values(size) - 1) / tile_values(size);
    const auto src = place(src_, elements, options.misaligned);
    // Exactly the room that the host reserves.
    const auto plain = aligned_last(plain_, tiles * plain_stride(type));
    const auto coded = aligned_last(coded_, coded_room(tiles, count));
    std::memset(plain.data(), 0xee, plain.size());
    std::memset(coded.data(), 0xee, coded.size());
    words_.resize(std::max(words_.size(), tiles));
    state_.word_count = static_cast<uint32_t>(words_.size());
    FrameHeader header;
    EncodeArgs args{};
    args.src = reinterpret_cast<const uint8_t*>(src.data());
    args.plain = reinterpret_cast<uint8_t*>(plain.data());
    args.coded = reinterpret_cast<uint8_t*>(coded.data());
    args.header = &header;
    args.state = &state_;
    args.words = words_.data();
    args.begin = raw_frame_header(type, count);
    args.levels = options.levels;
    args.fixed_plain = options.fixed_plain ? 1 : 0;
    args.may_be_raw = options.may_be_raw ? 1 : 0;
    for_type(type, [&](auto constant) {
      using Format = typename FormatOf<decltype(constant)::value>::Type;
      static std::vector<EncodeShared<Format>> shared;
      shared.resize(std::max<size_t>(shared.size(), options.blocks));
      fill_with_all_bytes(std::as_writable_bytes(std::span(shared)));
      Emulator::get().launch(
          options.blocks, kThreads,
          [&] { FrameEncoder<Format>(args, shared[block_index()]).encode(); }, options.backwards);
    });
    if (header.codec == kCodecRaw) return {header, copy(src), {}};
    EXPECT_LE(header.plain_bytes, plain.size());
    EXPECT_LE(header.coded_bytes, coded.size());
    return {header, copy(plain.first(header.plain_bytes)), copy(coded.first(header.coded_bytes))};
  }

  struct Decoded {
    uint64_t fault = 0;
    std::vector<uint8_t> elements;
  };
  Decoded decode(const EncodedFrame& frame, DataType type, size_t count, unsigned blocks = 1,
                 size_t misaligned = 0, const uint8_t* operand = nullptr, uint32_t op = UZIP_SUM) {
    const size_t size = datatype_size(type);
    const auto plain = aligned_last(plain_, frame.plain.size());
    const auto coded = aligned_last(coded_, frame.coded.size());
    std::ranges::copy(frame.plain, plain.begin());
    std::ranges::copy(frame.coded, coded.begin());
    const auto dst = dst_.last(padded(count * size + misaligned, 16) - misaligned)
                         .first(count * size);
    std::memset(dst.data(), 0xcc, dst.size());
    Decoded result;
    DecodeArgs args{};
    args.header = frame.header;
    args.plain = reinterpret_cast<const uint8_t*>(plain.data());
    args.coded = reinterpret_cast<const uint8_t*>(coded.data());
    args.plain_room = frame.plain.size();
    args.coded_room = frame.coded.size();
    args.count = count;
    args.type = type;
    args.op = op;
    args.operand = operand;
    args.dst = reinterpret_cast<uint8_t*>(dst.data());
    args.fault = &result.fault;
    for_type(type, [&](auto constant) {
      constexpr int kType = decltype(constant)::value;
      using Format = typename FormatOf<kType>::Type;
      static std::vector<DecodeBuffers<Format>> buffers;
      static std::vector<DecodeCommon> common;
      buffers.resize(std::max<size_t>(buffers.size(), blocks));
      common.resize(buffers.size());
      std::memset(buffers.data(), 0xdd, buffers.size() * sizeof buffers[0]);
      Emulator::get().launch(blocks, kThreads, [&] {
        FrameDecoder<Format, kType>(args, buffers[block_index()], common[block_index()]).decode();
      });
    });
    const auto* begin = reinterpret_cast<const uint8_t*>(dst.data());
    result.elements.assign(begin, begin + dst.size());
    return result;
  }

 private:
  static constexpr size_t kCapacity = size_t{4} << 20;

  static std::vector<std::byte> copy(std::span<const std::byte> bytes) {
    return {bytes.begin(), bytes.end()};
  }
  static std::span<std::byte> place(const GuardedMemory& memory, std::span<const uint8_t> bytes,
                                    size_t misaligned) {
    const auto room =
        memory.last(padded(bytes.size() + misaligned, 16) - misaligned).first(bytes.size());
    std::memcpy(room.data(), bytes.data(), bytes.size());
    return room;
  }
  static size_t plain_stride(DataType type) {
    size_t stride = 0;
    for_type(type, [&](auto constant) {
      using Format = typename FormatOf<decltype(constant)::value>::Type;
      stride = Format::plain_bytes(Format::kTileValues);
    });
    return stride;
  }
  static size_t coded_room(size_t tiles, size_t count) {
    return lev_first_block(tiles) + count + tiles * 256;
  }

  GuardedMemory src_{kCapacity}, plain_{kCapacity}, coded_{kCapacity}, dst_{kCapacity};
  EncodeState state_{};
  std::vector<uint64_t> words_;
};

constexpr DataType kFloatTypes[] = {UZIP_FP16, UZIP_BF16,       UZIP_FP32,
                                    UZIP_FP64, UZIP_FP8_E4M3FN, UZIP_FP8_E5M2};

std::string trace_of(DataType type, SampleKind kind, size_t count) {
  return std::string(datatype_info(type).name) + " " + sample_kind_name(kind) + " " +
         std::to_string(count);
}

class EmulatedKernels : public testing::Test {
 protected:
  void check_encoding(DataType type, std::span<const uint8_t> elements,
                      const EmulatedDevice::Options& options) {
    const EncodedFrame frame = device_.encode(type, elements, options);
    EXPECT_EQ(cpu_.check_round_trip(frame, elements), "");
    if (frame.header.codec != kCodecRaw && !options.fixed_plain) {
      const EncodedFrame expected = encode_as_planned(frame, elements);
      EXPECT_EQ(expected.plain.size(), frame.plain.size());
      EXPECT_EQ(expected.coded.size(), frame.coded.size());
      EXPECT_TRUE(expected == frame) << "not the CPU's bytes for the same plan";
    }
    const auto decoded = device_.decode(frame, type, elements.size() / datatype_size(type));
    EXPECT_EQ(decoded.fault, 0u);
    EXPECT_TRUE(std::equal(elements.begin(), elements.end(), decoded.elements.begin()));
  }

  EmulatedDevice device_;
  CodecHarness cpu_{*find_codec("lev"), size_t{4} << 20};
};

TEST_F(EmulatedKernels, FramesOfTheDeviceAreTheCpusForTheSamePlan) {
  for (DataType type : kFloatTypes) {
    for (SampleKind kind : sample_kinds()) {
      for (uint32_t levels : {1u, 2u}) {
        const size_t count = 2 * tile_values(datatype_size(type)) + 1234;
        SCOPED_TRACE(trace_of(type, kind, count) + " levels " + std::to_string(levels));
        check_encoding(type, make_sample(type, kind, count), {.levels = levels});
      }
    }
  }
}

TEST_F(EmulatedKernels, EveryCountAlignmentAndGrid) {
  for (DataType type : kFloatTypes) {
    for (size_t count : {1ul, 7ul, 8ul, 63ul, 65ul, 2047ul, 8191ul, 8192ul, 8193ul, 16383ul,
                         16384ul, 16385ul, 40961ul}) {
      SCOPED_TRACE(trace_of(type, SampleKind::kGaussian, count));
      const auto elements = make_sample(type, SampleKind::kGaussian, count);
      const size_t size = datatype_size(type);
      check_encoding(type, elements, {.blocks = 3, .misaligned = size % 16});
      check_encoding(type, elements, {.levels = 2, .fixed_plain = true, .backwards = true});
      check_encoding(type, elements, {.levels = 2, .may_be_raw = false, .blocks = 2});
    }
  }
}

TEST_F(EmulatedKernels, DecodeEveryFrameOfTheCpu) {
  for (DataType type : kFloatTypes) {
    for (SampleKind kind : sample_kinds()) {
      for (CodecLevel level : kCodecLevels) {
        const bool large = (static_cast<int>(kind) + static_cast<int>(level)) % 2 == 0;
        const size_t count = large ? 20011 : 700;
        SCOPED_TRACE(trace_of(type, kind, count) + " level " +
                     std::to_string(static_cast<int>(level)));
        const auto elements = make_sample(type, kind, count);
        const EncodedFrame frame = cpu_.encode(type, level, elements);
        const auto decoded = device_.decode(frame, type, count, 2, count % 2 * 8);
        EXPECT_EQ(decoded.fault, 0u);
        EXPECT_TRUE(decoded.elements == elements);
      }
    }
  }
}

TEST_F(EmulatedKernels, DecodeAndReduceGivesTheBitsOfReduce) {
  for (DataType type : kFloatTypes) {
    for (SampleKind kind : {SampleKind::kSpecials, SampleKind::kSparse, SampleKind::kRandomBits}) {
      const size_t count = 9000;
      SCOPED_TRACE(trace_of(type, kind, count));
      const auto first = make_sample(type, kind, count, 1);
      const auto second = make_sample(type, kind, count, 2);
      for (ReduceOp op : {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX}) {
        std::vector<uint8_t> expected(first.size());
        const std::array<const void*, 2> sources = {first.data(), second.data()};
        reduce(op, type, expected.data(), sources, count);
        for (const EncodedFrame& frame :
             {device_.encode(type, second, {}), cpu_.encode(type, CodecLevel::kSmallest, second)}) {
          const auto decoded = device_.decode(frame, type, count, 2, 0, first.data(), op);
          EXPECT_EQ(decoded.fault, 0u);
          EXPECT_TRUE(decoded.elements == expected) << reduce_op_name(op);
        }
      }
    }
  }
}

TEST_F(EmulatedKernels, RandomBitsAreRawUnlessTheyMayNotBe) {
  const auto elements = make_sample(UZIP_BF16, SampleKind::kRandomBits, 30000);
  EXPECT_EQ(device_.encode(UZIP_BF16, elements, {}).header.codec, kCodecRaw);
  const EncodedFrame forced = device_.encode(UZIP_BF16, elements, {.may_be_raw = false});
  EXPECT_EQ(forced.header.codec, 1);
  EXPECT_LE(forced.body_bytes(), elements.size() + 64 + elements.size() / 250);
}

TEST_F(EmulatedKernels, ConstantTilesTakeNoPlainBytes) {
  const auto elements = make_sample(UZIP_FP32, SampleKind::kZeros, 5 * tile_values(4));
  EXPECT_EQ(device_.encode(UZIP_FP32, elements, {}).header.plain_bytes, 0u);
  EXPECT_EQ(device_.encode(UZIP_FP32, elements, {.fixed_plain = true}).header.plain_bytes,
            5u * 3 * tile_values(4));
}

TEST_F(EmulatedKernels, TwoLevelsAreSmallerThanOne) {
  const auto elements = make_sample(UZIP_BF16, SampleKind::kGaussian, 8 * tile_values(2));
  const double one = static_cast<double>(device_.encode(UZIP_BF16, elements, {}).body_bytes());
  const double two =
      static_cast<double>(device_.encode(UZIP_BF16, elements, {.levels = 2}).body_bytes());
  EXPECT_LT(one, 0.715 * static_cast<double>(elements.size()));
  EXPECT_LT(two, 0.69 * static_cast<double>(elements.size()));
}

/// Codes of a second level are right whatever stands behind the fields, as it does behind the last ones of a list.
TEST(SecondLevel, CodesOfAllFields) {
  for (uint32_t base0 : {0u, 5u, 120u, 200u}) {
    for (uint32_t width0 = 1; width0 <= 3; ++width0) {
      for (uint32_t before = 0; before <= std::min(7u, base0); ++before) {
        const LevelPlan plan{2, {width0, 3}, {base0, base0 - before}};
        const SecondCodes codes(plan);
        for (uint32_t field = 0; field < 256; ++field) {
          if (field >= base0 && field < base0 + plan.symbols0()) continue;  // level 0 has it
          uint32_t expected = 0;
          while (expected < plan.symbols1() && plan.symbol(plan.symbols0() + expected) != field) ++expected;
          for (uint32_t behind = 0; behind < 256; ++behind) {
            const uint32_t code = codes.of(field | behind * 0x01010100u);
            EXPECT_EQ(code & 0xffu, expected);
            EXPECT_EQ(code & 0xf0f0f0f0u, 0u);
          }
        }
      }
    }
  }
}

/// Of a tile of 8-bit values the second level may have more fields than a thread block takes at a time.
TEST_F(EmulatedKernels, MostFieldsAreOfTheSecondLevel) {
  std::mt19937 random(3);
  std::vector<uint8_t> elements(3 * tile_values(1) + 777);
  for (uint8_t& element : elements) {
    const unsigned exponent = random() % 100 < 45 ? 14 : 8 + random() % 13;
    element = static_cast<uint8_t>((random() % 2) << 7 | exponent << 2 | random() % 4);
  }
  for (unsigned blocks : {1u, 2u})
    check_encoding(UZIP_FP8_E5M2, elements, {.levels = 2, .blocks = blocks});
}

/// Whatever the bytes: no access outside the parts (they end at a guard page), no endless loop, and
/// never a silent wrong size. The damaged frame may still decode.
TEST_F(EmulatedKernels, DamagedFramesAreFaultsOrOtherValues) {
  std::mt19937_64 random(7);
  size_t faults = 0;
  for (DataType type : kFloatTypes) {
    for (SampleKind kind : {SampleKind::kGaussian, SampleKind::kSparse, SampleKind::kOddOne,
                            SampleKind::kSmooth}) {
      const size_t count = 9000;
      const auto elements = make_sample(type, kind, count);
      for (int trial = 0; trial < 16; ++trial) {
        EncodedFrame frame = trial % 2 == 0 ? cpu_.encode(type, CodecLevel::kSmallest, elements)
                                            : device_.encode(type, elements, {.levels = 2});
        if (frame.coded.empty()) continue;
        // The front of the coded part holds what lengths depend on.
        const size_t front = std::min<size_t>(frame.coded.size(), trial % 3 == 0 ? 4096 : 160);
        for (int flips = 0; flips < 1 + trial % 3; ++flips)
          frame.coded[random() % front] ^= std::byte(1u << random() % 8);
        faults += device_.decode(frame, type, count, 2).fault != 0 ? 1 : 0;
      }
    }
  }
  EXPECT_GT(faults, 60u);
}

TEST_F(EmulatedKernels, WrongHeadersAreFaults) {
  const auto elements = make_sample(UZIP_BF16, SampleKind::kGaussian, 9000);
  const EncodedFrame good = device_.encode(UZIP_BF16, elements, {});
  const auto fault_of = [&](const auto& damage) {
    EncodedFrame frame = good;
    damage(frame.header);
    return device_.decode(frame, UZIP_BF16, 9000).fault >> 32;
  };
  const auto header_fault = static_cast<uint64_t>(DecodeFault::kHeader);
  EXPECT_EQ(fault_of([](FrameHeader&) {}), 0u);
  EXPECT_EQ(fault_of([](FrameHeader& h) { h.magic ^= 1; }), header_fault);
  EXPECT_EQ(fault_of([](FrameHeader& h) { h.version = 2; }), header_fault);
  EXPECT_EQ(fault_of([](FrameHeader& h) { h.codec = 2; }), header_fault);
  EXPECT_EQ(fault_of([](FrameHeader& h) { h.type = UZIP_FP16; }), header_fault);
  EXPECT_EQ(fault_of([](FrameHeader& h) { h.count += 1; }), header_fault);
  EXPECT_EQ(fault_of([](FrameHeader& h) { h.reserved[2] = 1; }), header_fault);
  EXPECT_EQ(fault_of([](FrameHeader& h) { h.plain_bytes += 16; }), header_fault);
  EXPECT_EQ(fault_of([](FrameHeader& h) { h.coded_bytes = UINT64_MAX; }), header_fault);
  EXPECT_NE(fault_of([](FrameHeader& h) { h.coded_bytes -= 16; }), 0u);
  EXPECT_NE(fault_of([](FrameHeader& h) { h.plain_bytes -= 16; }), 0u);
}

TEST(EmulatedReduce, GivesTheBitsOfReduce) {
  for (const DataTypeInfo& info : datatypes()) {
    for (ReduceOp op : {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX, UZIP_AVG}) {
      const size_t count = 5003;
      std::vector<std::vector<uint8_t>> inputs;
      std::vector<const void*> sources;
      for (uint32_t seed = 1; seed <= 3; ++seed)
        inputs.push_back(make_sample(
            info.type, is_float(info.type) ? SampleKind::kRandomBits : SampleKind::kUniform, count,
            seed));
      ReduceArgs args{};
      for (size_t i = 0; i < inputs.size(); ++i) {
        sources.push_back(inputs[i].data());
        args.sources[i] = inputs[i].data();
      }
      std::vector<uint8_t> expected(inputs[0].size());
      std::vector<uint8_t> result(inputs[0].size());
      reduce(op, info.type, expected.data(), sources, count, 3);
      args.source_count = 3;
      args.type = info.type;
      args.op = op;
      args.count = count;
      args.average_over = 3;
      args.dst = result.data();
      switch (info.type) {
#define UZIP_CASE(type) \
  case type: Emulator::get().launch(2, kThreads, [&] { reduce_arrays<type>(args, false); }); break;
        UZIP_CASE(UZIP_INT8)
        UZIP_CASE(UZIP_UINT8)
        UZIP_CASE(UZIP_INT32)
        UZIP_CASE(UZIP_UINT32)
        UZIP_CASE(UZIP_INT64)
        UZIP_CASE(UZIP_UINT64)
        UZIP_CASE(UZIP_FP16)
        UZIP_CASE(UZIP_BF16)
        UZIP_CASE(UZIP_FP32)
        UZIP_CASE(UZIP_FP64)
        UZIP_CASE(UZIP_FP8_E4M3FN)
        UZIP_CASE(UZIP_FP8_E5M2)
#undef UZIP_CASE
      }
      EXPECT_TRUE(result == expected) << info.name << " " << reduce_op_name(op);
    }
  }
}

}  // namespace
}  // namespace uzip::gpu
