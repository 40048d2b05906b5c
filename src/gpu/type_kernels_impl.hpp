// Instantiates the kernels of a type. Included by the kernels_*.cu only.
#pragma once

#include "gpu/decode_kernel.hpp"
#include "gpu/encode_kernel.hpp"
#include "gpu/formats.hpp"
#include "gpu/runtime.hpp"
#include "gpu/type_kernels.hpp"

namespace uzip::gpu {

/// Least thread blocks on a processor, from which its registers for each thread follow. More would
/// hide more latency, but registers that do not suffice cost more than that: the encoder needs 64 for
/// 8- and 16-bit values, 80 for larger ones, and the decoder 80 and 128.
template <class Format>
inline constexpr int kEncodeBlocks = Format::kSize <= 2 ? 4 : 3;
template <class Format>
inline constexpr int kDecodeBlocks = Format::kSize == 1 ? 3 : 2;

template <int kType>
__global__ void __launch_bounds__(kThreads, kEncodeBlocks<typename FormatOf<kType>::Type>)
    encode_kernel(const UZIP_KERNEL_ARGUMENT EncodeArgs args) {
  using Format = typename FormatOf<kType>::Type;
  extern __shared__ uint4 memory[];
  FrameEncoder<Format>(args, *reinterpret_cast<EncodeShared<Format>*>(memory)).encode();
}

template <int kType>
__global__ void __launch_bounds__(kThreads, kDecodeBlocks<typename FormatOf<kType>::Type>)
    decode_kernel(const UZIP_KERNEL_ARGUMENT DecodeArgs args) {
  using Format = typename FormatOf<kType>::Type;
  extern __shared__ uint4 memory[];
  auto& shared = *reinterpret_cast<DecodeShared<Format>*>(memory);
  FrameDecoder<Format, kType>(args, shared.buffers, shared.common).decode();
}

template <int kType>
inline constexpr unsigned kEncodeBytes = sizeof(EncodeShared<typename FormatOf<kType>::Type>);

template <int kType>
inline constexpr unsigned kDecodeBytes = sizeof(DecodeShared<typename FormatOf<kType>::Type>);

template <int kType>
TypeKernels make_type_kernels() {
  return {
      [](const EncodeArgs& args, unsigned blocks, Stream stream) {
        encode_kernel<kType><<<blocks, kThreads, kEncodeBytes<kType>, stream>>>(args);
        return take_error();
      },
      [](const DecodeArgs& args, unsigned blocks, Stream stream) {
        decode_kernel<kType><<<blocks, kThreads, kDecodeBytes<kType>, stream>>>(args);
        return take_error();
      },
      [](int* blocks) {
        return blocks_per_processor(blocks, encode_kernel<kType>, kThreads, kEncodeBytes<kType>);
      },
      [](int* blocks) {
        return blocks_per_processor(blocks, decode_kernel<kType>, kThreads, kDecodeBytes<kType>);
      },
      FormatOf<kType>::Type::kTileValues,
      FormatOf<kType>::Type::plain_bytes(FormatOf<kType>::Type::kTileValues),
  };
}

}  // namespace uzip::gpu
