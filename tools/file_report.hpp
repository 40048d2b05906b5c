// What uzip_info tells about a file: the frames in it, or how small each codec would make it.
#pragma once

#include "base/status.hpp"

namespace uzip {

/// Prints what the headers of a file of frames say, one line for each of the first frames and one
/// for all. An error says at which byte of the file what is wrong.
Status print_frames(const char* path);

/// Encodes and decodes a raw file of elements in pieces with each setting of each codec. Prints a
/// line for each with both speeds and the ratio of encoded to original bytes; the last word of the
/// last line is that of the setting that tries hardest.
Status print_ratios(const char* path, const char* type_name);

}  // namespace uzip
