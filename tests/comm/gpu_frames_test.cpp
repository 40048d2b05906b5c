// Frames in memory of elements in GPU memory, on a GPU that the tests make up and on a real one: there and back wherever the
// frame is, read by the host and by the GPU alike; damage, wrong places, failures, and no more memory than has to be.
#include "base/reduce.hpp"
#include "comm/frame_gpus.hpp"
#include "comm/gpu_job.hpp"
#include "comm/guarded_codec.hpp"
#include "support/fake_gpu.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

namespace uzip {
namespace {

using gpu::MemoryKind;

constexpr MemoryKind kFrameKinds[] = {MemoryKind::kDevice, MemoryKind::kPinned, MemoryKind::kHost};
constexpr const char* kCodecNames[] = {nullptr, "raw", "lev:fastest", "lev:smallest"};

const char* kind_name(MemoryKind kind) {
  constexpr const char* kNames[] = {"host", "pinned", "device", "managed"};
  return kNames[static_cast<size_t>(kind)];
}

/// Bytes of a kind of memory; ordinary host memory, too.
class Place {
 public:
  Place(const TestGpu& gpu, MemoryKind kind, size_t bytes, int device = 0) : host_(kind == MemoryKind::kHost ? bytes : 0) {
    if (kind != MemoryKind::kHost && bytes > 0) array_.emplace_back(gpu, kind, device, bytes);
  }
  Place(const TestGpu& gpu, MemoryKind kind, const Bytes& content, int device = 0)
      : Place(gpu, kind, content.size(), device) {
    if (!array_.empty()) array_[0].write(content.data());
    else host_ = content;
  }
  uint8_t* data() { return array_.empty() ? host_.data() : reinterpret_cast<uint8_t*>(array_[0].data()); }
  Bytes content() {
    if (array_.empty()) return host_;
    Bytes result(array_[0].size());
    array_[0].read(result.data());
    return result;
  }

 private:
  Bytes host_;
  std::vector<GpuArray> array_;
};

class GpuFrames : public ::testing::Test {
 protected:
  void use(const TestGpu& gpu) {
    gpu_ = gpu;
    FrameGpus::instance().use(gpu_.api);
  }
  void TearDown() override { FrameGpus::instance().use(nullptr); }

  /// A frame of elements on the GPU, made in memory of this kind, `offset` bytes after where that begins.
  Bytes encode_there(DataType type, const char* codec, const Bytes& elements, MemoryKind kind, size_t offset = 0,
                     MemoryKind of_elements = MemoryKind::kDevice) {
    const size_t count = elements.size() / datatype_size(type), capacity = uzip_encode_bound(count, type);
    Place src(gpu_, of_elements, elements);
    Place dst(gpu_, kind, capacity + offset);
    size_t bytes = 0;
    const uzip_status_t status = uzip_encode(src.data(), count, type, codec, dst.data() + offset, capacity, &bytes);
    EXPECT_EQ(status, UZIP_OK) << uzip_last_error();
    const Bytes all = dst.content();
    EXPECT_LE(offset + bytes, all.size());
    return Bytes(all.begin() + static_cast<ptrdiff_t>(offset), all.begin() + static_cast<ptrdiff_t>(offset + bytes));
  }

  /// Decodes on the GPU a frame that is in memory of this kind.
  uzip_status_t decode_there(const Bytes& frame, DataType type, MemoryKind kind, Bytes* elements, size_t offset = 0) {
    Bytes shifted(offset);
    shifted.insert(shifted.end(), frame.begin(), frame.end());
    Place src(gpu_, kind, shifted);
    Place dst(gpu_, MemoryKind::kDevice, *elements);
    const uzip_status_t status = uzip_decode(src.data() + offset, frame.size(), dst.data(),
                                             elements->size() / datatype_size(type), type);
    *elements = dst.content();
    return status;
  }

  void there_and_back(DataType type, SampleKind sample, size_t count, size_t turn) {
    const char* const codec = kCodecNames[turn % std::size(kCodecNames)];
    const MemoryKind kind = kFrameKinds[turn % std::size(kFrameKinds)];
    const size_t offset = turn % 5;
    SCOPED_TRACE(std::string(datatype_info(type).name) + " " + sample_kind_name(sample) + " x " + std::to_string(count) +
                 ", " + or_null(codec) + ", frame: " + kind_name(kind) + " + " + std::to_string(offset));
    const Bytes elements = make_sample(type, sample, count);
    const Bytes frame = encode_there(type, codec, elements, kind, offset);
    ASSERT_LE(frame.size(), kFrameHeaderBytes + elements.size());
    ASSERT_EQ(header_of(frame).flags, kFrameHasChecksum);
    // By the host, and by the GPU from each kind of memory.
    GuardedCodec host;
    ASSERT_EQ(host.decode(frame, type, count), UZIP_OK) << uzip_last_error();
    ASSERT_EQ(host.elements(), elements);
    for (const MemoryKind from : kFrameKinds) {
      Bytes decoded(elements.size(), kUntouched);
      ASSERT_EQ(decode_there(frame, type, from, &decoded, offset), UZIP_OK) << uzip_last_error();
      ASSERT_EQ(decoded, elements);
    }
    // What the host encodes, with all that the GPU can't.
    Bytes decoded(elements.size(), kUntouched);
    ASSERT_EQ(decode_there(encode(type, codec, elements), type, kind, &decoded), UZIP_OK) << uzip_last_error();
    ASSERT_EQ(decoded, elements);
  }

  void all_there_and_back(std::initializer_list<size_t> counts) {
    size_t turn = 0;
    for (const DataTypeInfo& type : datatypes())
      for (const SampleKind sample : sample_kinds())
        for (const size_t count : counts) ASSERT_NO_FATAL_FAILURE(there_and_back(type.type, sample, count, turn++));
  }

  void reduces_as_the_host_does() {
    size_t turn = 0;
    for (const DataTypeInfo& type : datatypes()) {
      for (const uzip_op_t op : {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX}) {
        for (const bool checksum : {true, false}) {
          SCOPED_TRACE(std::string(type.name) + " " + uzip_op_name(op) + (checksum ? " with a checksum" : ""));
          const size_t count = 9000 + turn++ % 7;
          const Bytes own = make_sample(type.type, SampleKind::kSpecials, count, 2);
          Bytes frame = encode(type.type, turn % 3 ? "lev" : "raw", make_sample(type.type, SampleKind::kGaussian, count));
          if (!checksum) {
            FrameHeader header = header_of(frame);
            header.flags = 0;
            header.checksum = 0;
            frame = with_header(frame, header);
          }
          GuardedCodec host;
          ASSERT_EQ(host.decode_reduce(frame, type.type, op, own), UZIP_OK) << uzip_last_error();
          Place there(gpu_, kFrameKinds[turn % 3], frame);
          Place dst(gpu_, MemoryKind::kDevice, own);
          ASSERT_EQ(uzip_decode_reduce(there.data(), frame.size(), dst.data(), count, type.type, op), UZIP_OK)
              << uzip_last_error();
          ASSERT_EQ(dst.content(), host.elements());
        }
      }
    }
  }

  TestGpu gpu_;
};

class FakeGpuFrames : public GpuFrames {
 protected:
  void SetUp() override { use(fake_gpu_for_tests(1)); }
};

TEST_F(FakeGpuFrames, ThereAndBack) { all_there_and_back({0, 1, 300, 20001}); }

TEST_F(FakeGpuFrames, ReducesAsTheHostDoes) { reduces_as_the_host_does(); }

TEST_F(FakeGpuFrames, ManagedElementsAreTheGpusWork) {
  const Bytes elements = make_sample(UZIP_BF16, SampleKind::kGaussian, 5000);
  const int before = fake_gpu::counters().encodings;
  const Bytes frame = encode_there(UZIP_BF16, "lev", elements, MemoryKind::kHost, 0, MemoryKind::kManaged);
  EXPECT_EQ(fake_gpu::counters().encodings, before + 1);
  GuardedCodec host;
  ASSERT_EQ(host.decode(frame, UZIP_BF16, 5000), UZIP_OK) << uzip_last_error();
  EXPECT_EQ(host.elements(), elements);
}

TEST_F(FakeGpuFrames, LongElementsHaveTheirChecksum) {
  const size_t count = (size_t{5} << 20) + 3;
  const Bytes elements = make_sample(UZIP_FP8_E5M2, SampleKind::kGaussian, count);
  EXPECT_EQ(header_of(encode_there(UZIP_FP8_E5M2, "raw", elements, MemoryKind::kHost)).checksum,
            header_of(encode(UZIP_FP8_E5M2, "raw", elements)).checksum);
}

TEST_F(FakeGpuFrames, TellsWhatAFrameOnTheGpuHolds) {
  const Bytes frame = encode(UZIP_FP32, "lev", make_sample(UZIP_FP32, SampleKind::kGaussian, 1000));
  Place there(gpu_, MemoryKind::kDevice, frame);
  uzip_frame_info_t info = {};
  info.struct_size = sizeof info;
  ASSERT_EQ(uzip_frame_info(there.data(), frame.size(), &info), UZIP_OK) << uzip_last_error();
  EXPECT_EQ(info.count, 1000u);
  EXPECT_EQ(info.dtype, UZIP_FP32);
  EXPECT_EQ(info.frame_bytes, frame.size());
  EXPECT_EQ(uzip_frame_info(there.data(), kFrameHeaderBytes - 1, &info), UZIP_ERR_CORRUPT);
}

TEST_F(FakeGpuFrames, BothMustBeReachable) {
  const Bytes elements = make_sample(UZIP_FP32, SampleKind::kGaussian, 1000);
  const Bytes frame = encode(UZIP_FP32, "lev", elements);
  Place there(gpu_, MemoryKind::kDevice, frame);
  Bytes decoded(elements.size(), kUntouched);
  EXPECT_EQ(uzip_decode(there.data(), frame.size(), decoded.data(), 1000, UZIP_FP32), UZIP_ERR_INVALID);
  EXPECT_NE(std::string(uzip_last_error()).find("frame is in memory of GPU 0 and dst in memory of the host"),
            std::string::npos) << uzip_last_error();
  EXPECT_EQ(decoded, Bytes(elements.size(), kUntouched));
  size_t bytes = 0;
  auto* const nowhere = reinterpret_cast<uint8_t*>(uintptr_t{0x10000});
  EXPECT_EQ(uzip_encode(nowhere, 1000, UZIP_FP32, "lev", there.data(), uzip_encode_bound(1000, UZIP_FP32), &bytes),
            UZIP_ERR_INVALID);
  EXPECT_NE(std::string(uzip_last_error()).find("src is 0x10000, which is neither"), std::string::npos) << uzip_last_error();
}

TEST_F(FakeGpuFrames, ElementsAndFrameOnDifferentGpus) {
  const Bytes elements = make_sample(UZIP_BF16, SampleKind::kGaussian, 20000);
  const Bytes frame = encode(UZIP_BF16, "lev", elements);
  Place src(gpu_, MemoryKind::kDevice, frame, 1);
  Place dst(gpu_, MemoryKind::kDevice, elements.size(), 0);
  ASSERT_EQ(uzip_decode(src.data(), frame.size(), dst.data(), 20000, UZIP_BF16), UZIP_OK) << uzip_last_error();
  EXPECT_EQ(dst.content(), elements);
}

/// Every byte of small frames, changed: an error, since there is a checksum, and no element outside.
TEST_F(FakeGpuFrames, DamageIsFound) {
  for (const char* codec : {"raw", "lev"}) {
    const size_t count = 257;
    const Bytes elements = make_sample(UZIP_BF16, SampleKind::kSpecials, count);
    const Bytes frame = encode_there(UZIP_BF16, codec, elements, MemoryKind::kHost);
    for (size_t at = 0; at < frame.size(); ++at) {
      Bytes damaged = frame;
      damaged[at] ^= static_cast<uint8_t>(1u << at % 8);
      Bytes decoded(elements.size(), kUntouched);
      const uzip_status_t status = decode_there(damaged, UZIP_BF16, kFrameKinds[at % 3], &decoded);
      if (status == UZIP_OK) {
        ASSERT_EQ(decoded, elements) << "byte " << at;  // fields that mean nothing in files
      } else {
        ASSERT_TRUE(status == UZIP_ERR_CORRUPT || status == UZIP_ERR_MISMATCH || status == UZIP_ERR_UNSUPPORTED)
            << "byte " << at << ": " << uzip_last_error();
      }
    }
    for (size_t length = 0; length < frame.size(); length += 7) {
      Bytes decoded(elements.size(), kUntouched);
      ASSERT_EQ(decode_there(Bytes(frame.begin(), frame.begin() + static_cast<ptrdiff_t>(length)), UZIP_BF16,
                             MemoryKind::kDevice, &decoded, 16), UZIP_ERR_CORRUPT) << length;
    }
  }
}

TEST_F(FakeGpuFrames, FailuresOfTheDeviceAreErrors) {
  const Bytes elements = make_sample(UZIP_BF16, SampleKind::kGaussian, 9000);
  const Bytes frame = encode(UZIP_BF16, "lev", elements);
  Place src(gpu_, MemoryKind::kDevice, elements);
  Place dst(gpu_, MemoryKind::kDevice, elements.size());
  Bytes made(uzip_encode_bound(9000, UZIP_BF16));
  for (int after = 0; after < 12; ++after) {
    fake_gpu::fail_after(after);
    size_t bytes = 0;
    const uzip_status_t encoded = uzip_encode(src.data(), 9000, UZIP_BF16, "lev", made.data(), made.size(), &bytes);
    EXPECT_TRUE(encoded == UZIP_OK || bytes == 0);
    fake_gpu::recover();
    fake_gpu::fail_after(after);
    const uzip_status_t decoded = uzip_decode(frame.data(), frame.size(), dst.data(), 9000, UZIP_BF16);
    if (after == 0) {
      EXPECT_NE(encoded, UZIP_OK);
      EXPECT_NE(decoded, UZIP_OK);
    }
    fake_gpu::recover();
    ASSERT_EQ(uzip_decode(frame.data(), frame.size(), dst.data(), 9000, UZIP_BF16), UZIP_OK) << uzip_last_error();
    ASSERT_EQ(dst.content(), elements);
  }
}

TEST_F(FakeGpuFrames, CallsFromSeveralThreadsAllocateNothingAgain) {
  const Bytes elements = make_sample(UZIP_BF16, SampleKind::kGaussian, 9000);
  const auto round = [&] {
    for (int i = 0; i < 5; ++i) {
      const Bytes frame = encode_there(UZIP_BF16, "lev", elements, MemoryKind::kHost);
      Bytes decoded(elements.size(), kUntouched);
      EXPECT_EQ(decode_there(frame, UZIP_BF16, MemoryKind::kHost, &decoded), UZIP_OK) << uzip_last_error();
      EXPECT_EQ(decoded, elements);
    }
  };
  round();
  const int before = fake_gpu::counters().allocations;
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) threads.emplace_back(round);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(fake_gpu::counters().allocations, before);
}

/// What comes before a call on the GPU's default stream does not end: the call does, and later ones until it has ended.
TEST_F(FakeGpuFrames, WaitsHaveADeadline) {
  const Bytes elements = make_sample(UZIP_BF16, SampleKind::kGaussian, 9000);
  const Bytes frame = encode(UZIP_BF16, "lev", elements);
  Place src(gpu_, MemoryKind::kDevice, elements);
  Place dst(gpu_, MemoryKind::kDevice, elements.size());
  std::vector<std::byte> made(uzip_encode_bound(9000, UZIP_BF16));
  const std::span<const std::byte> body = std::as_bytes(std::span(frame)).subspan(kFrameHeaderBytes);
  auto created = gpu::FrameCodec::create(*gpu_.api, 0, 0, {0.01, 0.05});
  ASSERT_TRUE(created.ok()) << created.status().message();
  gpu::FrameCodec& codec = **created;
  fake_gpu::launch(nullptr, [] {}, true);
  const auto encoded = codec.encode(UZIP_BF16, 2, src.data(), 9000, made);
  ASSERT_FALSE(encoded.ok());
  EXPECT_EQ(encoded.status().code(), UZIP_ERR_TIMEOUT);
  EXPECT_NE(encoded.status().message().find("UZIP_TIMEOUT_LIMIT"), std::string::npos) << encoded.status().message();
  EXPECT_EQ(codec.decode(header_of(frame), body, dst.data()).code(), UZIP_ERR_TIMEOUT);
  EXPECT_EQ(codec.decode_reduce(header_of(frame), body, dst.data(), UZIP_SUM).code(), UZIP_ERR_TIMEOUT);
  fake_gpu::allow(nullptr);
  Status decoded;
  for (int looks = 0; looks < 10000; ++looks) {
    decoded = codec.decode(header_of(frame), body, dst.data());
    if (decoded.code() != UZIP_ERR_TIMEOUT) break;
  }
  ASSERT_TRUE(decoded.ok()) << decoded.message();
  EXPECT_EQ(dst.content(), elements);
}

/// A host call in another thread ends while a GPU is at work.
TEST_F(FakeGpuFrames, HostCallsDoNotWaitForAGpu) {
  const Bytes elements = make_sample(UZIP_BF16, SampleKind::kGaussian, 9000);
  std::future<Bytes> host;
  const Status status = FrameGpus::instance().with(0, [&](gpu::FrameCodec&) {
    host = std::async(std::launch::async, [&] { return encode(UZIP_BF16, "lev", elements); });
    EXPECT_EQ(host.wait_for(std::chrono::seconds(20)), std::future_status::ready);
    return Status();
  });
  ASSERT_TRUE(status.ok()) << status.message();
  const Bytes frame = host.get();
  EXPECT_GT(frame.size(), kFrameHeaderBytes);
}

class DeviceFrames : public GpuFrames {
 protected:
  void SetUp() override {
    std::string why;
    const TestGpu gpu = real_gpu(&why);
    if (!gpu.api) GTEST_SKIP() << why;
    use(gpu);
  }
};

TEST_F(DeviceFrames, ThereAndBack) { all_there_and_back({0, 1, 300, 20001, 100003}); }

TEST_F(DeviceFrames, ReducesAsTheHostDoes) { reduces_as_the_host_does(); }

}  // namespace
}  // namespace uzip
