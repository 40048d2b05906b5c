// Where a call's buffers are: in host memory, or in memory of a GPU.
#pragma once

#include "comm/coll_args.hpp"

namespace uzip {

class GpuDevices;

/// Whether the first byte is memory that this process can read; true where that can't be found out.
bool is_readable(const void* data);

/// Fills in args.device from the buffers, which are all bound. An error: they are on different GPUs, one can't be
/// reached by the GPU that has the other, or one can't be read by anybody.
Status find_memory(GpuDevices& gpus, CollArgs& args);

}  // namespace uzip
