// The kernels of one element type, as the plugin launches them. Each kernels_*.cu defines those of
// some types.
#pragma once

#include "gpu/codec_args.hpp"
#include "gpu/runtime.hpp"

namespace uzip::gpu {

/// `blocks` is the number of thread blocks; any number works.
struct TypeKernels {
  Error (*encode)(const EncodeArgs& args, unsigned blocks, Stream stream);
  Error (*decode)(const DecodeArgs& args, unsigned blocks, Stream stream);
  /// Blocks that run at the same time on one processor of the current device.
  Error (*encode_occupancy)(int* blocks);
  Error (*decode_occupancy)(int* blocks);
  uint32_t tile_values;   ///< of a whole block
  uint32_t plain_stride;  ///< plain bytes of a whole block
};

extern const TypeKernels kFp16Kernels;
extern const TypeKernels kBf16Kernels;
extern const TypeKernels kFp32Kernels;
extern const TypeKernels kFp64Kernels;
extern const TypeKernels kFp8E4m3fnKernels;
extern const TypeKernels kFp8E5m2Kernels;

/// Of any type, integers too.
Error launch_reduce(const ReduceArgs& args, unsigned blocks, Stream stream);

}  // namespace uzip::gpu
