// Instantiates the kernels of a type. Included by the kernels_*.cu only.
#pragma once

#include "gpu/decode_kernel.hpp"
#include "gpu/encode_kernel.hpp"
#include "gpu/formats.hpp"
#include "gpu/type_kernels.hpp"

#if defined(__HIP__)
#define UZIP_KERNEL_ARGUMENT
#else
#define UZIP_KERNEL_ARGUMENT __grid_constant__
#endif

namespace uzip::gpu {

/// Least thread blocks on a processor, from which its registers for each thread follow. More would
/// hide more latency, but the decoder spills below 128 registers, which costs more than that.
inline constexpr int kEncodeBlocks = 4;
inline constexpr int kDecodeBlocks = 2;

template <int kType>
__global__ void __launch_bounds__(kThreads, kEncodeBlocks)
    encode_kernel(const UZIP_KERNEL_ARGUMENT EncodeArgs args) {
  using Format = typename FormatOf<kType>::Type;
  __shared__ EncodeShared<Format> shared;
  FrameEncoder<Format>(args, shared).encode();
}

template <int kType>
__global__ void __launch_bounds__(kThreads, kDecodeBlocks)
    decode_kernel(const UZIP_KERNEL_ARGUMENT DecodeArgs args) {
  using Format = typename FormatOf<kType>::Type;
  __shared__ DecodeBuffers<Format> buffers;
  __shared__ DecodeCommon common;
  FrameDecoder<Format, kType>(args, buffers, common).decode();
}

template <int kType>
constexpr TypeKernels make_type_kernels() {
  return {
      [](const EncodeArgs& args, unsigned blocks, Stream stream) {
        encode_kernel<kType><<<blocks, kThreads, 0, stream>>>(args);
        return take_error();
      },
      [](const DecodeArgs& args, unsigned blocks, Stream stream) {
        decode_kernel<kType><<<blocks, kThreads, 0, stream>>>(args);
        return take_error();
      },
      [](int* blocks) { return blocks_per_processor(blocks, encode_kernel<kType>, kThreads); },
      [](int* blocks) { return blocks_per_processor(blocks, decode_kernel<kType>, kThreads); },
      FormatOf<kType>::Type::plain_bytes(kTileValues),
  };
}

}  // namespace uzip::gpu
