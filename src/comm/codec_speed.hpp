// How fast and how small the codecs are on this core, measured on normally distributed numbers. Used by the quick
// calibration of a job and by uzip_tune.
#pragma once

#include "comm/tuning_table.hpp"

#include <cstddef>
#include <span>
#include <vector>

namespace uzip {

/// `count` elements, near a normal distribution of mean 0 and standard deviation 1; the same at each call.
std::vector<std::byte> normal_elements(DataType type, size_t count);

/// Each codec that compresses, level and type, on `bytes` of elements; the best of `calls` for encoding and decoding.
/// Types that no codec supports are left out.
std::vector<TunedCodec> measure_codec_speeds(std::span<const DataType> types, size_t bytes, int calls);

/// What `bandwidth` bytes a second and rank make best: raw, or a codec and level. The time of a byte is that of sending
/// what is left of it, and of coding it on one of 1 + `threads` cores; the sum, because on most networks that are slow
/// enough the processor sends, too. Without a codec if nothing is known of the type.
CodecChoice cheapest_codec(std::span<const TunedCodec> speeds, DataType type, double bandwidth, int threads);

}  // namespace uzip
