// Starts checksums of memory of a device. Host code of the plugin only.
#pragma once

#include "gpu/runtime.hpp"

#include <cstdint>

namespace uzip::gpu {

/// Memory of a device that one checksum at a time uses.
struct ChecksumMemory;

/// On the current device. These return 0, or fail().
int create_checksums(ChecksumMemory** memory);
void destroy_checksums(ChecksumMemory* memory);
/// As PluginApi::checksum.
int start_checksum(ChecksumMemory* memory, const void* data, uint64_t bytes, uint32_t* crc, Stream stream);

}  // namespace uzip::gpu
