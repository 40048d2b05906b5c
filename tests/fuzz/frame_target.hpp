// What is fuzzed: any bytes as a frame, and any bytes as elements. Used by a libFuzzer build and by
// the replay.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uzip {

/// Reads the input as a frame (header, body) and decodes it; then takes it as elements of a type
/// chosen by its first byte, encodes and decodes these. Aborts when something is wrong.
void fuzz_frame(const uint8_t* data, size_t size);

}  // namespace uzip
