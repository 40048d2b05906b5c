// What uzip_info tells about the codecs: for which types they are, and how fast on this machine.
#pragma once

#include "base/status.hpp"

namespace uzip {

/// The names, one a line.
void print_codec_names();

/// Each codec's sentence, and a line for each of its types with the ratio and the speeds of each
/// CPU target, measured here and now in a fraction of a second. Leaves the best target in force.
Status print_codecs();

}  // namespace uzip
