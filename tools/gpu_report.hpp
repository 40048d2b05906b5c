// What uzip_info tells about GPUs: which there are, and which of them reach each other's memory.
#pragma once

#include "base/config.hpp"
#include "base/status.hpp"

namespace uzip {

/// Prints the plugin in force, the GPUs, their pairs, and the bound of the memory that calls use. A machine without GPUs
/// is no error, a plugin that UZIP_GPU_PLUGIN names and that can't be opened is one.
Status print_gpus(const Config& config);

}  // namespace uzip
