// Every damage of the golden frames: each truncation, each bit, each field of the header. A reader
// answers with an error or with elements, which are the right ones if there is a checksum, and
// touches nothing beyond its buffers, which end at guard pages.
#include "base/cpu.hpp"
#include "codec/codec.hpp"
#include "codec/guarded_memory.hpp"
#include "codec/reduce_frames.hpp"
#include "support/long_tests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace uzip {
namespace {

/// Under a sanitizer everything takes ten times as long.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr size_t kStep = 13;
#else
constexpr size_t kStep = 1;
#endif

struct Golden {
  std::string name;
  std::vector<std::byte> frame;
  std::vector<std::byte> elements;
};

std::vector<std::byte> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  const std::vector<char> bytes(std::istreambuf_iterator<char>(file), {});
  const auto* begin = reinterpret_cast<const std::byte*>(bytes.data());
  return {begin, begin + bytes.size()};
}

const std::vector<Golden>& golden_frames() {
  static const auto all = [] {
    const char* top = std::getenv("top_srcdir");
    const auto folder = std::filesystem::path(top != nullptr ? top : ".") / "tests/golden/vectors";
    std::vector<Golden> frames;
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      std::filesystem::path path = entry.path();
      if (path.extension() != ".frame") continue;
      const auto frame = read_file(path);
      frames.push_back({path.stem(), frame, read_file(path.replace_extension(".bin"))});
    }
    std::sort(frames.begin(), frames.end(),
              [](const Golden& a, const Golden& b) { return a.name < b.name; });
    return frames;
  }();
  return all;
}

constexpr size_t kMostBytes = size_t{1} << 18;

/// Reads frames as a user of files does: the caller knows the type and the count.
class Reader {
 public:
  explicit Reader(const Golden& golden) : golden_(golden) {
    std::memcpy(&expected_, golden.frame.data(), sizeof expected_);
  }

  /// UZIP_OK: the elements are at elements().
  StatusCode decode(std::span<const std::byte> file) {
    const auto header = parse_frame_header(file);
    if (!header.ok()) return header.status().code();
    if ((header->flags & kFrameCodedFollows) != 0) return UZIP_ERR_CORRUPT;
    const auto body = file.subspan(kFrameHeaderBytes);
    if (header->plain_bytes > body.size()) return UZIP_ERR_CORRUPT;
    if (header->coded_bytes != body.size() - header->plain_bytes) return UZIP_ERR_CORRUPT;
    const auto plain = place(plain_, body.first(header->plain_bytes));
    const auto coded = place(coded_, body.subspan(header->plain_bytes));
    const Status status =
        find_codec(header->codec)->decode(*header, plain, coded, elements(), scratch_);
    if (!status.ok()) return status.code();
    const bool expected = header->type == expected_.type && header->count == expected_.count;
    return expected ? UZIP_OK : UZIP_ERR_MISMATCH;
  }

  /// The same, summed up; the elements are 0 before.
  StatusCode reduce(std::span<const std::byte> file) {
    std::memset(elements().data(), 0, elements().size());
    const auto header = parse_frame_header(file);
    if (!header.ok()) return header.status().code();
    const auto body = file.subspan(kFrameHeaderBytes);
    if (header->plain_bytes > body.size()) return UZIP_ERR_CORRUPT;
    const ReduceOperand operands[] = {
        {elements().data(), nullptr, {}, {}},
        {nullptr, &*header, place(plain_, body.first(header->plain_bytes)),
         place(coded_, body.subspan(header->plain_bytes))}};
    return reduce_frames(UZIP_MAX, static_cast<DataType>(expected_.type), elements().data(),
                         operands, expected_.count, 0, work_, scratch_)
        .code();
  }

  std::span<std::byte> elements() const { return dst_.last(golden_.elements.size()); }
  bool elements_are_right() const {
    return std::equal(elements().begin(), elements().end(), golden_.elements.begin());
  }
  bool elements_are_zero() const {
    return std::all_of(elements().begin(), elements().end(),
                       [](std::byte byte) { return byte == std::byte{0}; });
  }
  const FrameHeader& expected() const { return expected_; }

 private:
  static std::span<const std::byte> place(const GuardedMemory& memory,
                                          std::span<const std::byte> bytes) {
    const auto to = memory.last(bytes.size());
    if (!bytes.empty()) std::memcpy(to.data(), bytes.data(), bytes.size());
    return to;
  }

  const Golden& golden_;
  FrameHeader expected_;
  CodecScratch scratch_;
  GuardedMemory plain_{kMostBytes};
  GuardedMemory coded_{kMostBytes};
  GuardedMemory dst_{kMostBytes};
  std::vector<std::byte> work_ = std::vector<std::byte>(reduce_frames_bytes(UZIP_FP64, 1));
};

bool is_refusal(StatusCode code) { return code == UZIP_ERR_CORRUPT || code == UZIP_ERR_MISMATCH; }

std::span<std::byte> header_of(std::vector<std::byte>& file) {
  return std::span(file).first(kFrameHeaderBytes);
}

/// With a checksum, and without.
std::vector<std::byte> with_checksum(const Golden& golden, bool wanted) {
  FrameHeader header;
  std::memcpy(&header, golden.frame.data(), sizeof header);
  header.flags = 0;
  header.checksum = 0;
  if (wanted) add_checksum(golden.elements, header);
  auto file = golden.frame;
  std::memcpy(file.data(), &header, sizeof header);
  return file;
}

/// Looks at all bits of the small frames; at as many of the large ones.
size_t bit_step(const Golden& golden) {
  if (long_tests()) return 1;
  // Odd, so that each bit of a byte has its turn.
  return kStep * (1 + golden.frame.size() / 3000) * (1 + golden.elements.size() / 20000) | 1;
}

class Damage : public ::testing::TestWithParam<CpuTarget> {
 protected:
  void SetUp() override { ASSERT_TRUE(set_cpu_target(cpu_target_name(GetParam())).ok()); }
  void TearDown() override { ASSERT_TRUE(set_cpu_target("auto").ok()); }
};

TEST_P(Damage, EveryTruncationIsRefused) {
  for (const Golden& golden : golden_frames()) {
    SCOPED_TRACE(golden.name);
    Reader reader(golden);
    for (size_t size = 0; size < golden.frame.size(); size += kStep)
      ASSERT_EQ(reader.decode(std::span(golden.frame).first(size)), UZIP_ERR_CORRUPT) << size;
  }
}

/// The header admits that something is missing.
TEST_P(Damage, EveryTruncationWithAMatchingHeaderIsRefused) {
  for (const Golden& golden : golden_frames()) {
    SCOPED_TRACE(golden.name);
    Reader reader(golden);
    const FrameHeader whole = reader.expected();
    for (size_t size = kFrameHeaderBytes; size < golden.frame.size(); size += kStep) {
      FrameHeader header = whole;
      header.plain_bytes = std::min<uint64_t>(whole.plain_bytes, size - kFrameHeaderBytes);
      header.coded_bytes = size - kFrameHeaderBytes - header.plain_bytes;
      std::vector<std::byte> file(golden.frame.begin(),
                                  golden.frame.begin() + static_cast<std::ptrdiff_t>(size));
      std::memcpy(file.data(), &header, sizeof header);
      ASSERT_EQ(reader.decode(file), UZIP_ERR_CORRUPT) << size;
    }
  }
}

TEST_P(Damage, EveryBitIsCoveredByTheChecksum) {
  size_t refused = 0;
  size_t harmless = 0;
  for (const Golden& golden : golden_frames()) {
    SCOPED_TRACE(golden.name);
    Reader reader(golden);
    auto file = with_checksum(golden, true);
    const size_t step = bit_step(golden);
    for (size_t bit = 0; bit < 8 * file.size(); bit += bit < 8 * kFrameHeaderBytes ? 1 : step) {
      file[bit / 8] ^= std::byte{1} << bit % 8;
      const StatusCode code = reader.decode(file);
      file[bit / 8] ^= std::byte{1} << bit % 8;
      ASSERT_TRUE(code == UZIP_OK || is_refusal(code)) << "bit " << bit;
      // Padding, and what the header says of calls, mean nothing.
      if (code == UZIP_OK) {
        ASSERT_TRUE(reader.elements_are_right()) << "bit " << bit;
      }
      ++(code == UZIP_OK ? harmless : refused);
    }
  }
  EXPECT_GT(refused, 5 * harmless);
}

TEST_P(Damage, EveryBitWithoutAChecksumIsHarmless) {
  for (const Golden& golden : golden_frames()) {
    SCOPED_TRACE(golden.name);
    Reader reader(golden);
    auto file = with_checksum(golden, false);
    const size_t step = bit_step(golden);
    for (size_t bit = 0; bit < 8 * file.size(); bit += step) {
      file[bit / 8] ^= std::byte{1} << bit % 8;
      const StatusCode code = reader.decode(file);
      ASSERT_TRUE(code == UZIP_OK || is_refusal(code)) << "bit " << bit;
      file[bit / 8] ^= std::byte{1} << bit % 8;
    }
  }
}

/// A refused frame of one block has not been reduced in part.
TEST_P(Damage, EveryBitIsLookedAtBeforeReducing) {
  for (const Golden& golden : golden_frames()) {
    SCOPED_TRACE(golden.name);
    Reader reader(golden);
    if (reader.expected().count == 0) continue;
    auto file = with_checksum(golden, false);
    for (size_t bit = 0; bit < 8 * file.size(); bit += 17 * kStep) {
      file[bit / 8] ^= std::byte{1} << bit % 8;
      const StatusCode code = reader.reduce(file);
      file[bit / 8] ^= std::byte{1} << bit % 8;
      ASSERT_TRUE(code == UZIP_OK || is_refusal(code)) << "bit " << bit;
      if (code != UZIP_OK && reader.expected().count <= 4096) {
        ASSERT_TRUE(reader.elements_are_zero()) << "bit " << bit;
      }
    }
  }
}

struct Field {
  const char* name;
  size_t at;
  size_t bytes;
};
constexpr Field kFields[] = {
    {"magic", 0, 4},        {"version", 4, 1},        {"codec", 5, 1},       {"type", 6, 1},
    {"flags", 7, 1},        {"count", 8, 8},          {"call.coll", 16, 1},  {"call.op", 17, 1},
    {"call.plan", 18, 2},   {"call.sequence", 20, 4}, {"call.count", 24, 8}, {"plain_bytes", 32, 8},
    {"coded_bytes", 40, 8}, {"checksum", 48, 4},      {"reserved 0", 52, 4}, {"reserved 1", 56, 4},
    {"reserved 2", 60, 4},
};

TEST_P(Damage, EveryHeaderFieldAtItsLimitsIsDetected) {
  for (const Golden& golden : golden_frames()) {
    SCOPED_TRACE(golden.name);
    Reader reader(golden);
    for (const Field& field : kFields) {
      const uint64_t max = ~uint64_t{0} >> (64 - 8 * field.bytes);
      for (uint64_t value : {uint64_t{0}, uint64_t{1}, max - 1, max}) {
        auto file = with_checksum(golden, true);
        std::memcpy(&header_of(file)[field.at], &value, field.bytes);
        const StatusCode code = reader.decode(file);
        ASSERT_TRUE(code == UZIP_OK || is_refusal(code)) << field.name << " = " << value;
        if (code == UZIP_OK) {
          ASSERT_TRUE(reader.elements_are_right()) << field.name << " = " << value;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Targets, Damage,
                         ::testing::ValuesIn(available_cpu_targets().begin(),
                                             available_cpu_targets().end()),
                         [](const auto& test) { return cpu_target_name(test.param); });

}  // namespace
}  // namespace uzip
