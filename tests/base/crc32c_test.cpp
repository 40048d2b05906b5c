// CRC-32C against the vectors of RFC 3720, and the two implementations against each other.
#include "base/crc32c.hpp"

#include "base/cpu.hpp"

#include <gtest/gtest.h>

#include <random>
#include <string_view>
#include <vector>

namespace uzip {
namespace {

using Crc = uint32_t (*)(std::span<const std::byte>, uint32_t);

std::vector<Crc> implementations() {
  std::vector<Crc> list = {crc32c, crc32c_portable};
  if (cpu_has_sse42()) list.push_back(crc32c_sse42);
  return list;
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::byte> random_bytes(size_t count) {
  std::mt19937 random(1);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(Crc32cTest, VectorsOfTheStandard) {
  std::vector<std::byte> zeros(32), ones(32, std::byte{0xff}), up(32), down(32);
  for (size_t i = 0; i < 32; ++i) {
    up[i] = static_cast<std::byte>(i);
    down[i] = static_cast<std::byte>(31 - i);
  }
  for (Crc crc : implementations()) {
    EXPECT_EQ(crc({}, 0), 0u);
    EXPECT_EQ(crc(bytes_of("a"), 0), 0xc1d04330u);
    EXPECT_EQ(crc(bytes_of("123456789"), 0), 0xe3069283u);
    EXPECT_EQ(crc(zeros, 0), 0x8a9136aau);
    EXPECT_EQ(crc(ones, 0), 0x62a8ab43u);
    EXPECT_EQ(crc(up, 0), 0x46dd794eu);
    EXPECT_EQ(crc(down, 0), 0x113fdb5cu);
  }
}

// One bit at a time, from the definition.
uint32_t slow_crc(std::span<const std::byte> data) {
  uint32_t crc = ~0u;
  for (std::byte byte : data) {
    crc ^= std::to_integer<uint32_t>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = (crc & 1) != 0 ? crc >> 1 ^ 0x82f63b78u : crc >> 1;
  }
  return ~crc;
}

TEST(Crc32cTest, EveryLengthAndAlignment) {
  const std::vector<std::byte> bytes = random_bytes(20000);
  for (size_t length = 0; length < 400; ++length) {
    const auto piece = std::span(bytes).subspan(length % 9, length);
    for (Crc crc : implementations()) ASSERT_EQ(crc(piece, 0), slow_crc(piece)) << length;
  }
  for (size_t length : {1023, 1024, 3071, 3072, 3073, 3080, 6143, 6144, 9999, 19990}) {
    const auto piece = std::span(bytes).subspan(3, length);
    for (Crc crc : implementations()) ASSERT_EQ(crc(piece, 0), slow_crc(piece)) << length;
  }
}

TEST(Crc32cTest, PiecesChain) {
  const std::vector<std::byte> bytes = random_bytes(8000);
  const std::span<const std::byte> all(bytes);
  for (Crc crc : implementations()) {
    const uint32_t whole = crc(all, 0);
    for (size_t cut : {0, 1, 7, 8, 1000, 3072, 7999, 8000}) {
      ASSERT_EQ(crc(all.subspan(cut), crc(all.first(cut), 0)), whole) << cut;
    }
  }
}

TEST(Crc32cTest, EveryFlippedBitIsSeen) {
  std::vector<std::byte> bytes = random_bytes(4000);
  const uint32_t intact = crc32c(bytes);
  for (size_t bit = 0; bit < 8 * bytes.size(); bit += 37) {
    const auto mask = std::byte{1} << static_cast<int>(bit % 8);
    bytes[bit / 8] ^= mask;
    ASSERT_NE(crc32c(bytes), intact) << bit;
    bytes[bit / 8] ^= mask;
  }
}

}  // namespace
}  // namespace uzip
