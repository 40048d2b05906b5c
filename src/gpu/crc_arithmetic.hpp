// CRC-32C as arithmetic of polynomials over bits, modulo that of the CRC: what lets many threads work on one checksum. A
// register's lowest bit is x^31. Used by the checksum kernel and by who starts it.
#pragma once

#include "gpu/platform.hpp"

#include <cstdint>

namespace uzip::gpu {

inline constexpr uint32_t kCrcPolynomial = 0x82f63b78;  // bit-reversed, without x^32
inline constexpr uint32_t kCrcOne = 0x80000000;
/// x to this power is 1.
inline constexpr uint64_t kCrcOrder = 0x7fffffff;

constexpr UZIP_HOST_DEVICE uint32_t crc_times_x(uint32_t a) {
  return a >> 1 ^ ((0u - (a & 1u)) & kCrcPolynomial);
}
constexpr UZIP_HOST_DEVICE uint32_t crc_multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (unsigned i = 0; i < 32; ++i) {
    product ^= (0u - (a >> (31 - i) & 1u)) & b;
    b = crc_times_x(b);
  }
  return product;
}
constexpr uint32_t crc_power_of_x(uint64_t exponent) {
  exponent %= kCrcOrder;
  uint32_t power = kCrcOne;
  uint32_t square = crc_times_x(kCrcOne);
  for (; exponent != 0; exponent >>= 1) {
    if ((exponent & 1u) != 0) power = crc_multiply(power, square);
    square = crc_multiply(square, square);
  }
  return power;
}
static_assert(crc_multiply(crc_power_of_x(kCrcOrder - 1), crc_power_of_x(1)) == kCrcOne);

}  // namespace uzip::gpu
