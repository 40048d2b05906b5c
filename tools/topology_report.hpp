// What uzip_info(1) tells of the host: its NUMA nodes, where this process is, and how ranks are grouped.
#pragma once

#include "base/config.hpp"
#include "base/status.hpp"

namespace uzip {

Status print_locality(const Config& config);

}  // namespace uzip
