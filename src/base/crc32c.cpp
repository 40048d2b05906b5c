// CRC-32C by tables (eight bytes a step) or by the instruction of SSE4.2. The instruction has a
// latency of three cycles, so three neighbouring lanes are run at a time and joined: a CRC moves
// past n bytes of zeros by a linear map, which is kept as tables for the one n that is used (after
// Mark Adler's crc32c.c).
#include "base/crc32c.hpp"

#include "base/cpu.hpp"

#include <array>
#include <bit>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace uzip {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr uint32_t kPolynomial = 0x82f63b78;  // bit-reversed

using Table = std::array<std::array<uint32_t, 256>, 8>;

// kTable[k][b]: the register after byte b and k bytes of zeros.
constexpr Table make_table() {
  Table table{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ ((crc & 1u) != 0 ? kPolynomial : 0);
    table[0][byte] = crc;
  }
  for (size_t k = 1; k < table.size(); ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t previous = table[k - 1][byte];
      table[k][byte] = previous >> 8 ^ table[0][previous & 0xff];
    }
  }
  return table;
}
constexpr Table kTable = make_table();

uint64_t load_word(const std::byte* data) {
  uint64_t word;
  std::memcpy(&word, data, sizeof word);
  return word;
}

}  // namespace

uint32_t crc32c_portable(std::span<const std::byte> data, uint32_t crc) {
  const std::byte* next = data.data();
  size_t left = data.size();
  crc = ~crc;
  for (; left >= 8; next += 8, left -= 8) {
    uint64_t word = load_word(next) ^ crc;
    crc = 0;
    for (size_t k = 8; k-- > 0; word >>= 8) crc ^= kTable[k][word & 0xff];
  }
  for (; left > 0; ++next, --left) {
    crc = crc >> 8 ^ kTable[0][(crc ^ std::to_integer<uint32_t>(*next)) & 0xff];
  }
  return ~crc;
}

#if defined(__x86_64__)

namespace {

constexpr size_t kLaneBytes = 1024;

using ShiftTable = std::array<std::array<uint32_t, 256>, 4>;

// kShift[k][b]: byte k of a register, of value b, after kLaneBytes of zeros.
constexpr ShiftTable make_shift_table() {
  std::array<uint32_t, 32> image{};  // of each bit
  for (size_t bit = 0; bit < 32; ++bit) {
    uint32_t crc = uint32_t{1} << bit;
    for (size_t i = 0; i < kLaneBytes; ++i) crc = crc >> 8 ^ kTable[0][crc & 0xff];
    image[bit] = crc;
  }
  ShiftTable table{};
  for (size_t k = 0; k < 4; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      for (size_t bit = 0; bit < 8; ++bit) {
        if ((byte >> bit & 1u) != 0) table[k][byte] ^= image[8 * k + bit];
      }
    }
  }
  return table;
}
constexpr ShiftTable kShift = make_shift_table();

uint32_t shift_lane(uint32_t crc) {
  return kShift[0][crc & 0xff] ^ kShift[1][crc >> 8 & 0xff] ^ kShift[2][crc >> 16 & 0xff] ^
         kShift[3][crc >> 24];
}

}  // namespace

[[gnu::target("sse4.2")]] uint32_t crc32c_sse42(std::span<const std::byte> data, uint32_t crc) {
  const std::byte* next = data.data();
  size_t left = data.size();
  uint64_t state = ~crc;
  for (; left >= 3 * kLaneBytes; next += 3 * kLaneBytes, left -= 3 * kLaneBytes) {
    uint64_t second = 0;
    uint64_t third = 0;
    for (size_t i = 0; i < kLaneBytes; i += 8) {
      state = _mm_crc32_u64(state, load_word(next + i));
      second = _mm_crc32_u64(second, load_word(next + kLaneBytes + i));
      third = _mm_crc32_u64(third, load_word(next + 2 * kLaneBytes + i));
    }
    const uint32_t joined =
        shift_lane(static_cast<uint32_t>(state)) ^ static_cast<uint32_t>(second);
    state = shift_lane(joined) ^ static_cast<uint32_t>(third);
  }
  for (; left >= 8; next += 8, left -= 8) state = _mm_crc32_u64(state, load_word(next));
  auto narrow = static_cast<uint32_t>(state);
  for (; left > 0; ++next, --left) narrow = _mm_crc32_u8(narrow, std::to_integer<uint8_t>(*next));
  return ~narrow;
}

#else

uint32_t crc32c_sse42(std::span<const std::byte> data, uint32_t crc) {
  return crc32c_portable(data, crc);
}

#endif

uint32_t crc32c(std::span<const std::byte> data, uint32_t crc) {
  return cpu_has_sse42() ? crc32c_sse42(data, crc) : crc32c_portable(data, crc);
}

}  // namespace uzip
