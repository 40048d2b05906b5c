// CRC-32C (Castagnoli; RFC 3720): the checksum of frames.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace uzip {

/// The CRC of what `crc` covers followed by `data`; 0 covers nothing. So a message may come in
/// pieces: crc32c(b, crc32c(a)) is the CRC of a followed by b.
uint32_t crc32c(std::span<const std::byte> data, uint32_t crc = 0);

/// The two implementations behind it. The second needs cpu_has_sse42().
uint32_t crc32c_portable(std::span<const std::byte> data, uint32_t crc);
uint32_t crc32c_sse42(std::span<const std::byte> data, uint32_t crc);

}  // namespace uzip
