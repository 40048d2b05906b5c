// Frames in memory through the C API: every type and codec there and back, reductions, wrong
// arguments, several threads.
#include "base/reduce.hpp"
#include "codec/frame.hpp"
#include "comm/guarded_codec.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <thread>

namespace uzip {
namespace {

constexpr const char* kCodecNames[] = {nullptr, "auto",        "raw",
                                       "lev",   "lev:fastest", "lev:smallest"};
constexpr ReduceOp kReductions[] = {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX};
class RoundTrip : public ::testing::TestWithParam<uzip_dtype_t> {
 protected:
  void check(const char* name, SampleKind kind, size_t count) {
    SCOPED_TRACE(std::string(sample_kind_name(kind)) + " x " + std::to_string(count) + ", " +
                 or_null(name));
    const DataType type = GetParam();
    const Bytes elements = make_sample(type, kind, count);
    Bytes frame;
    ASSERT_EQ(codec_.encode(type, name, elements, &frame), UZIP_OK) << uzip_last_error();
    ASSERT_LE(frame.size(), kFrameHeaderBytes + elements.size());
    ASSERT_EQ(codec_.decode(frame, type, count), UZIP_OK) << uzip_last_error();
    ASSERT_EQ(codec_.elements(), elements);
    ASSERT_TRUE(codec_.margin_is_untouched());
    // The same bytes again, and what follows a frame doesn't matter.
    ASSERT_EQ(encode(type, name, elements), frame);
    frame.resize(frame.size() + count % 5, 0xff);
    ASSERT_EQ(codec_.decode(frame, type, count), UZIP_OK) << uzip_last_error();
    ASSERT_EQ(codec_.elements(), elements);
  }

  GuardedCodec codec_;
};

TEST_P(RoundTrip, SmallCounts) {
  const auto kinds = sample_kinds();
  for (const char* name : kCodecNames) {
    for (size_t count = 0; count <= 300; ++count) {
      ASSERT_NO_FATAL_FAILURE(check(name, SampleKind::kSpecials, count));
      ASSERT_NO_FATAL_FAILURE(check(name, kinds[count % kinds.size()], count));
    }
  }
}

TEST_P(RoundTrip, MoreThanOneBlockOfEveryKind) {
  for (const char* name : kCodecNames)
    for (SampleKind kind : sample_kinds()) ASSERT_NO_FATAL_FAILURE(check(name, kind, 65537));
}

INSTANTIATE_TEST_SUITE_P(CodecApi, RoundTrip, ::testing::ValuesIn([] {
                           std::vector<uzip_dtype_t> types;
                           for (const DataTypeInfo& info : datatypes()) types.push_back(info.type);
                           return types;
                         }()),
                         [](const auto& parameter) {
                           return std::string(uzip_dtype_name(parameter.param));
                         });

TEST(CodecApi, ChoosesTheCodecThatWasAskedFor) {
  const Bytes elements = make_sample(UZIP_BF16, SampleKind::kGaussian, 20000);
  const Bytes lev = encode(UZIP_BF16, "lev", elements);
  EXPECT_NE(header_of(lev).codec, kCodecRaw);
  EXPECT_LT(lev.size(), elements.size() * 3 / 4);
  EXPECT_EQ(encode(UZIP_BF16, nullptr, elements), lev);
  EXPECT_EQ(encode(UZIP_BF16, "auto", elements), lev);
  EXPECT_EQ(encode(UZIP_BF16, "lev:balanced", elements), lev);
  EXPECT_LE(encode(UZIP_BF16, "lev:smallest", elements).size(), lev.size());
  EXPECT_EQ(header_of(encode(UZIP_BF16, "raw", elements)).codec, kCodecRaw);
  EXPECT_EQ(header_of(encode(UZIP_INT32, "lev", elements)).codec, kCodecRaw);
}

TEST(CodecApi, FramesInFilesCarryNoCall) {
  const FrameHeader header =
      header_of(encode(UZIP_FP32, "lev", make_sample(UZIP_FP32, SampleKind::kGaussian, 5000)));
  EXPECT_EQ(header.call, CallStamp{});
}

TEST(CodecApi, BoundsAreZeroForWhatCannotBe) {
  const auto unknown = static_cast<uzip_dtype_t>(12);
  EXPECT_EQ(uzip_encode_bound(1, unknown), 0u);
  EXPECT_EQ(uzip_encode_bound(1, static_cast<uzip_dtype_t>(-1)), 0u);
  for (const DataTypeInfo& info : datatypes()) {
    EXPECT_GE(uzip_encode_bound(0, info.type), kFrameHeaderBytes);
    EXPECT_EQ(uzip_encode_bound(SIZE_MAX, info.type), 0u);
    EXPECT_EQ(uzip_encode_bound(SIZE_MAX / info.size, info.type), 0u);
    const size_t most = static_cast<size_t>(PTRDIFF_MAX) / 2 / info.size;
    EXPECT_EQ(uzip_encode_bound(most + 1, info.type), 0u) << info.name;
    EXPECT_GT(uzip_encode_bound(most, info.type), most * info.size) << info.name;
    EXPECT_LT(uzip_encode_bound(most, info.type), static_cast<size_t>(PTRDIFF_MAX)) << info.name;
  }
}

class WrongArguments : public ::testing::Test {
 protected:
  static constexpr size_t kCount = 1000;
  static constexpr auto kUnknownType = static_cast<uzip_dtype_t>(77);

  void expect(uzip_status_t wanted, const char* said, uzip_status_t status) {
    EXPECT_EQ(status, wanted) << uzip_status_string(status);
    EXPECT_NE(std::string(uzip_last_error()).find(said), std::string::npos) << uzip_last_error();
    EXPECT_TRUE(std::all_of(dst_.begin(), dst_.end(), [](uint8_t b) { return b == kUntouched; }));
  }

  Bytes elements_ = make_sample(UZIP_FP32, SampleKind::kGaussian, kCount);
  Bytes frame_ = encode(UZIP_FP32, "lev", elements_);
  Bytes dst_ = Bytes(uzip_encode_bound(kCount, UZIP_FP32), kUntouched);
  size_t bytes_ = 99;
};

TEST_F(WrongArguments, Encode) {
  const void* src = elements_.data();
  auto encode_with = [&](const void* from, size_t count, uzip_dtype_t type, const char* codec,
                         void* to, size_t capacity, size_t* bytes) {
    bytes_ = 99;
    const uzip_status_t status = uzip_encode(from, count, type, codec, to, capacity, bytes);
    if (bytes != nullptr) {
      EXPECT_EQ(bytes_, 0u);
    }
    return status;
  };
  const size_t room = dst_.size();
  expect(UZIP_ERR_INVALID, "frame_bytes is NULL",
         encode_with(src, kCount, UZIP_FP32, "lev", dst_.data(), room, nullptr));
  expect(UZIP_ERR_INVALID, "src is NULL",
         encode_with(nullptr, kCount, UZIP_FP32, "lev", dst_.data(), room, &bytes_));
  expect(UZIP_ERR_INVALID, "dst is NULL",
         encode_with(src, kCount, UZIP_FP32, "lev", nullptr, room, &bytes_));
  expect(UZIP_ERR_INVALID, "dst is NULL",
         encode_with(nullptr, 0, UZIP_FP32, "lev", nullptr, 0, &bytes_));
  expect(UZIP_ERR_INVALID, "data type 77",
         encode_with(src, kCount, kUnknownType, "lev", dst_.data(), room, &bytes_));
  expect(UZIP_ERR_INVALID, "more than memory can hold",
         encode_with(src, SIZE_MAX, UZIP_FP32, "lev", dst_.data(), room, &bytes_));
  for (const char* codec : {"", "zip", "lev:", "lev:best", ":smallest", "lev:smallest:smallest"})
    expect(UZIP_ERR_INVALID, "there is no codec",
           encode_with(src, kCount, UZIP_FP32, codec, dst_.data(), room, &bytes_));
  for (size_t capacity : {size_t{0}, size_t{63}, size_t{64}, room - 1}) {
    expect(UZIP_ERR_INVALID, "uzip_encode_bound() says",
           encode_with(src, kCount, UZIP_FP32, "lev", dst_.data(), capacity, &bytes_));
    expect(UZIP_ERR_INVALID, "uzip_encode_bound() says",
           encode_with(src, kCount, UZIP_FP32, "raw", dst_.data(), capacity, &bytes_));
  }
}

TEST_F(WrongArguments, Decode) {
  const void* frame = frame_.data();
  const size_t bytes = frame_.size();
  expect(UZIP_ERR_INVALID, "frame is NULL",
         uzip_decode(nullptr, bytes, dst_.data(), kCount, UZIP_FP32));
  expect(UZIP_ERR_INVALID, "frame is NULL", uzip_decode(nullptr, 0, nullptr, 0, UZIP_FP32));
  expect(UZIP_ERR_INVALID, "dst is NULL", uzip_decode(frame, bytes, nullptr, kCount, UZIP_FP32));
  expect(UZIP_ERR_INVALID, "data type 77",
         uzip_decode(frame, bytes, dst_.data(), kCount, kUnknownType));
  expect(UZIP_ERR_INVALID, "more than memory can hold",
         uzip_decode(frame, bytes, dst_.data(), SIZE_MAX, UZIP_FP32));
  for (size_t count : {size_t{0}, kCount - 1, kCount + 1, size_t{1} << 59})
    expect(UZIP_ERR_MISMATCH, "the frame holds 1000 fp32",
           uzip_decode(frame, bytes, dst_.data(), count, UZIP_FP32));
  for (const DataTypeInfo& info : datatypes()) {
    if (info.type == UZIP_FP32) continue;
    expect(UZIP_ERR_MISMATCH, info.name, uzip_decode(frame, bytes, dst_.data(), kCount, info.type));
  }
}

TEST_F(WrongArguments, DecodeReduce) {
  const void* frame = frame_.data();
  const size_t bytes = frame_.size();
  auto reduce_with = [&](const void* from, void* to, size_t count, uzip_dtype_t type, int op) {
    return uzip_decode_reduce(from, bytes, to, count, type, static_cast<uzip_op_t>(op));
  };
  expect(UZIP_ERR_INVALID, "frame is NULL",
         reduce_with(nullptr, dst_.data(), kCount, UZIP_FP32, UZIP_SUM));
  expect(UZIP_ERR_INVALID, "dst is NULL", reduce_with(frame, nullptr, kCount, UZIP_FP32, UZIP_SUM));
  expect(UZIP_ERR_INVALID, "data type 77",
         reduce_with(frame, dst_.data(), kCount, kUnknownType, UZIP_SUM));
  expect(UZIP_ERR_MISMATCH, "the frame holds",
         reduce_with(frame, dst_.data(), kCount + 1, UZIP_FP32, UZIP_SUM));
  expect(UZIP_ERR_MISMATCH, "the frame holds",
         reduce_with(frame, dst_.data(), kCount, UZIP_INT32, UZIP_SUM));
  for (int op : {static_cast<int>(UZIP_AVG), 5, -1, std::numeric_limits<int>::max()})
    expect(UZIP_ERR_INVALID, "allowed are sum, prod, min, max",
           reduce_with(frame, dst_.data(), kCount, UZIP_FP32, op));
}

TEST_F(WrongArguments, FrameInfo) {
  uzip_frame_info_t info = {};
  expect(UZIP_ERR_INVALID, "info is NULL", uzip_frame_info(frame_.data(), frame_.size(), nullptr));
  for (size_t size : {size_t{0}, sizeof info - 8, sizeof info + 1, size_t{1} << 40}) {
    info.struct_size = size;
    expect(UZIP_ERR_INVALID, "struct_size", uzip_frame_info(frame_.data(), frame_.size(), &info));
  }
  info.struct_size = sizeof info;
  expect(UZIP_ERR_INVALID, "frame is NULL", uzip_frame_info(nullptr, frame_.size(), &info));
}

TEST(CodecApi, NothingNeedsNoMemory) {
  const Bytes frame = encode(UZIP_FP64, "lev", {});
  EXPECT_EQ(frame.size(), kFrameHeaderBytes);
  EXPECT_EQ(uzip_decode(frame.data(), frame.size(), nullptr, 0, UZIP_FP64), UZIP_OK);
  EXPECT_EQ(uzip_decode_reduce(frame.data(), frame.size(), nullptr, 0, UZIP_FP64, UZIP_SUM),
            UZIP_OK);
}

TEST(CodecApi, DecodeReduceGivesTheBitsOfDecodingAndReducing) {
  GuardedCodec codec;
  for (const DataTypeInfo& info : datatypes()) {
    for (SampleKind kind : {SampleKind::kGaussian, SampleKind::kSpecials, SampleKind::kSparse,
                            SampleKind::kRandomBits, SampleKind::kConstant}) {
      for (size_t count : {0, 1, 63, 300, 5000, 70001}) {
        const Bytes own = make_sample(info.type, SampleKind::kSpecials, count, 2);
        const Bytes elements = make_sample(info.type, kind, count, 3);
        for (const char* name : {"raw", "lev:fastest", "lev:smallest"}) {
          const Bytes frame = encode(info.type, name, elements);
          for (ReduceOp op : kReductions) {
            SCOPED_TRACE(std::string(info.name) + " " + sample_kind_name(kind) + " x " +
                         std::to_string(count) + " " + name + " " + reduce_op_name(op));
            Bytes expected = own;
            const void* const sources[] = {expected.data(), elements.data()};
            reduce(op, info.type, expected.data(), sources, count);
            ASSERT_EQ(codec.decode_reduce(frame, info.type, op, own), UZIP_OK) << uzip_last_error();
            ASSERT_EQ(codec.elements(), expected);
            ASSERT_TRUE(codec.margin_is_untouched());
          }
        }
      }
    }
  }
}

TEST(CodecApi, NoAlignmentIsNeeded) {
  constexpr size_t kCount = 5000;
  for (const DataTypeInfo& info : datatypes()) {
    const Bytes elements = make_sample(info.type, SampleKind::kSparse, kCount);
    const Bytes frame = encode(info.type, "lev:smallest", elements);
    for (size_t shift : {1, 3}) {
      Bytes src(shift, 0), dst(shift + elements.size()),
          room(shift + uzip_encode_bound(kCount, info.type));
      src.insert(src.end(), elements.begin(), elements.end());
      size_t bytes = 0;
      ASSERT_EQ(uzip_encode(&src[shift], kCount, info.type, "lev:smallest", &room[shift],
                            room.size() - shift, &bytes),
                UZIP_OK);
      ASSERT_EQ(Bytes(room.begin() + static_cast<ptrdiff_t>(shift),
                      room.begin() + static_cast<ptrdiff_t>(shift + bytes)),
                frame);
      ASSERT_EQ(uzip_decode(&room[shift], bytes, &dst[shift], kCount, info.type), UZIP_OK);
      ASSERT_EQ(std::memcmp(&dst[shift], elements.data(), elements.size()), 0);
      ASSERT_EQ(uzip_decode_reduce(&room[shift], bytes, &dst[shift], kCount, info.type, UZIP_MIN),
                UZIP_OK);
      ASSERT_EQ(std::memcmp(&dst[shift], elements.data(), elements.size()), 0);
    }
  }
}

TEST(CodecApi, GoldenFramesDecode) {
  const char* top = std::getenv("top_srcdir");
  const auto folder = std::filesystem::path(top != nullptr ? top : ".") / "tests/golden/vectors";
  auto read_file = [](const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return Bytes(std::istreambuf_iterator<char>(file), {});
  };
  size_t frames = 0;
  GuardedCodec codec;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    if (entry.path().extension() != ".frame") continue;
    SCOPED_TRACE(entry.path().string());
    const Bytes frame = read_file(entry.path());
    const Bytes elements = read_file(std::filesystem::path(entry.path()).replace_extension(".bin"));
    uzip_frame_info_t info;
    ASSERT_EQ(codec.frame_info(frame, &info), UZIP_OK) << uzip_last_error();
    ASSERT_EQ(info.frame_bytes, frame.size());
    ASSERT_EQ(codec.decode(frame, info.dtype, info.count), UZIP_OK) << uzip_last_error();
    EXPECT_EQ(codec.elements(), elements);
    ++frames;
  }
  EXPECT_GE(frames, 10u);
}

TEST(CodecApi, SeveralThreadsAtOnce) {
  constexpr unsigned kThreads = 6;
  std::vector<std::string> wrong(kThreads);
  auto work = [&wrong](unsigned thread) {
    GuardedCodec codec;
    for (unsigned round = 0; round < 3 && wrong[thread].empty(); ++round) {
      for (const Specimen& specimen : specimens()) {
        const auto type = specimen.type;
        const Bytes large = make_sample(type, SampleKind::kGaussian, 70001, thread + round);
        Bytes frame;
        const bool good =
            codec.decode(specimen.frame, type, specimen.count()) == UZIP_OK &&
            codec.elements() == specimen.elements &&
            codec.encode(type, kCodecNames[thread], large, &frame) == UZIP_OK &&
            codec.decode(frame, type, 70001) == UZIP_OK && codec.elements() == large &&
            codec.decode(frame, type, thread) == UZIP_ERR_MISMATCH &&
            std::string(uzip_last_error()).find(", not " + std::to_string(thread) + " ") !=
                std::string::npos;
        if (!good) wrong[thread] = specimen.name + ": " + uzip_last_error();
      }
    }
  };
  (void)specimens();
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread) threads.emplace_back(work, thread);
  for (std::thread& thread : threads) thread.join();
  for (const std::string& what : wrong) EXPECT_EQ(what, "");
}

}  // namespace
}  // namespace uzip
