// Every length, every alignment, and lengths beyond what a 32-bit number can count.
#include "base/cpu.hpp"
#include "codec/codec_harness.hpp"
#include "codec/samples.hpp"
#include "support/long_tests.hpp"

#include <gtest/gtest.h>

#include <sys/mman.h>

namespace uzip {
namespace {

constexpr DataType kFloats[] = {UZIP_FP16, UZIP_BF16,       UZIP_FP32,
                                UZIP_FP64, UZIP_FP8_E4M3FN, UZIP_FP8_E5M2};

class Extent : public ::testing::TestWithParam<CpuTarget> {
 protected:
  void SetUp() override { ASSERT_TRUE(set_cpu_target(cpu_target_name(GetParam())).ok()); }
  void TearDown() override { ASSERT_TRUE(set_cpu_target("auto").ok()); }
};

/// 0 to 5000; the kind of elements and the level go round, so that all meet.
TEST_P(Extent, EveryLengthComesBack) {
  CodecHarness harness(*find_codec("lev"));
  for (DataType type : kFloats) {
    std::vector<std::vector<uint8_t>> samples;
    for (SampleKind kind : sample_kinds()) samples.push_back(make_sample(type, kind, 5000));
    for (size_t count = 0; count <= 5000; ++count) {
      const size_t kind = count % samples.size();
      const CodecLevel level = kCodecLevels[count / samples.size() % 3];
      const auto elements = std::span(samples[kind]).first(count * datatype_size(type));
      const EncodedFrame frame = harness.encode(type, level, elements);
      ASSERT_EQ(harness.check_round_trip(frame, elements), "")
          << datatype_info(type).name << " " << sample_kind_name(sample_kinds()[kind]) << " x "
          << count;
    }
  }
}

/// Source, body and destination at each byte of a cache line.
TEST_P(Extent, EveryAlignmentComesBack) {
  constexpr size_t kLine = 64;
  constexpr size_t kCount = 333;
  const Codec& codec = *find_codec("lev");
  CodecScratch scratch;
  for (DataType type : kFloats) {
    for (SampleKind kind : {SampleKind::kGaussian, SampleKind::kSparse, SampleKind::kSmooth}) {
      const auto elements = make_sample(type, kind, kCount);
      const EncodedSizes bound = codec.bound(type, kCount);
      alignas(kLine) std::byte src[kCount * 8 + kLine];
      alignas(kLine) std::byte dst[kCount * 8 + kLine];
      std::vector<std::byte> memory(bound.plain + bound.coded + 2 * kLine);
      for (size_t from = 0; from < kLine; ++from) {
        std::memcpy(src + from, elements.data(), elements.size());
        const auto room = std::span(memory).subspan(from * 5 % kLine, bound.plain + bound.coded);
        FrameHeader header;
        ASSERT_TRUE(
            codec.encode(type, CodecLevel::kBalanced, src + from, kCount, room, scratch, header)
                .ok());
        if (header.codec == kCodecRaw) continue;
        for (size_t to = 0; to < kLine; ++to) {
          std::memset(dst, 0, sizeof dst);
          ASSERT_TRUE(codec
                          .decode(header, room.first(header.plain_bytes),
                                  room.subspan(header.plain_bytes, header.coded_bytes),
                                  {dst + to, elements.size()}, scratch)
                          .ok());
          ASSERT_EQ(std::memcmp(dst + to, elements.data(), elements.size()), 0)
              << from << " to " << to;
          // Nothing in front of it and nothing behind.
          for (size_t i = 0; i < to; ++i) ASSERT_EQ(dst[i], std::byte{0});
          for (size_t i = to + elements.size(); i < sizeof dst; ++i)
            ASSERT_EQ(dst[i], std::byte{0});
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Extent,
                         ::testing::ValuesIn(available_cpu_targets().begin(),
                                             available_cpu_targets().end()),
                         [](const auto& test) { return cpu_target_name(test.param); });

/// Memory of any size, of which only what is touched is taken.
class Mapping {
 public:
  explicit Mapping(size_t bytes) : bytes_(bytes) {
    void* begin = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (begin != MAP_FAILED) begin_ = static_cast<std::byte*>(begin);
  }
  ~Mapping() {
    if (begin_ != nullptr) munmap(begin_, bytes_);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  bool ok() const { return begin_ != nullptr; }
  std::span<std::byte> bytes() const { return {begin_, bytes_}; }

 private:
  std::byte* begin_ = nullptr;
  size_t bytes_;
};

/// The sample again and again. Its length shares no factor with a block's.
class Repeated {
 public:
  explicit Repeated(DataType type)
      : piece_(make_sample(type, SampleKind::kGaussian, kPiece)), bytes_(piece_.size()) {}
  void fill(std::span<std::byte> memory) const {
    for (size_t at = 0; at < memory.size(); at += bytes_)
      std::memcpy(&memory[at], piece_.data(), std::min(bytes_, memory.size() - at));
  }
  /// Where the memory differs first, or its size.
  size_t first_difference(std::span<const std::byte> memory) const {
    for (size_t at = 0; at < memory.size(); at += bytes_)
      if (std::memcmp(&memory[at], piece_.data(), std::min(bytes_, memory.size() - at)) != 0)
        return at;
    return memory.size();
  }

 private:
  static constexpr size_t kPiece = 100003;
  std::vector<uint8_t> piece_;
  size_t bytes_;
};

/// Decodes over the source, to need half the memory.
void check_large(DataType type, size_t bytes, CodecLevel level) {
  SCOPED_TRACE(std::string(datatype_info(type).name) + ", " + std::to_string(bytes) + " bytes");
  const Codec& codec = *find_codec("lev");
  const size_t count = bytes / datatype_size(type);
  const EncodedSizes bound = codec.bound(type, count);
  const Mapping elements(count * datatype_size(type));
  const Mapping body(bound.plain + bound.coded);
  if (!elements.ok() || !body.ok()) GTEST_SKIP() << "no memory for " << bytes << " bytes";
  const Repeated pattern(type);
  pattern.fill(elements.bytes());
  CodecScratch scratch;
  FrameHeader header;
  ASSERT_TRUE(
      codec.encode(type, level, elements.bytes().data(), count, body.bytes(), scratch, header)
          .ok());
  ASSERT_EQ(header.codec, codec.id);
  ASSERT_EQ(header.count, count);
  ASSERT_LT(header.plain_bytes + header.coded_bytes, bytes / 100 * 95);
  std::memset(elements.bytes().data(), 0, elements.bytes().size());
  const Status status = codec.decode(header, body.bytes().first(header.plain_bytes),
                                     body.bytes().subspan(header.plain_bytes, header.coded_bytes),
                                     elements.bytes(), scratch);
  ASSERT_TRUE(status.ok()) << status.message();
  ASSERT_EQ(pattern.first_difference(elements.bytes()), elements.bytes().size());
}

constexpr size_t kMiB = size_t{1} << 20;

TEST(LargeExtent, ComesBack) {
  check_large(UZIP_BF16, 64 * kMiB + 6, CodecLevel::kBalanced);
  if (!long_tests()) return;
  for (DataType type : kFloats) check_large(type, 256 * kMiB + 40, CodecLevel::kFastest);
  check_large(UZIP_FP32, 1024 * kMiB, CodecLevel::kSmallest);
  check_large(UZIP_BF16, 4096 * kMiB + 130, CodecLevel::kFastest);
  // More elements than 32 bits count.
  check_large(UZIP_FP8_E4M3FN, 4096 * kMiB + 70001, CodecLevel::kSmallest);
}

}  // namespace
}  // namespace uzip
