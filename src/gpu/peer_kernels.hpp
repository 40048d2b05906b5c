// The kernels between ranks, of which there is one for each type of element. Host code of the plugin only.
#pragma once

#include "base/datatype.hpp"
#include "gpu/runtime.hpp"

namespace uzip::gpu {

template <class Args>
struct PeerKernel {
  Error (*launch)(const Args& args, unsigned blocks, Stream stream);
  Error (*load)();
};

/// Kernel<type>::launch and load by type, in the order of uzip_dtype_t.
template <template <int> class Kernel, class Args>
inline constexpr PeerKernel<Args> kPeerKernels[] = {
    {Kernel<UZIP_INT8>::launch, Kernel<UZIP_INT8>::load},
    {Kernel<UZIP_UINT8>::launch, Kernel<UZIP_UINT8>::load},
    {Kernel<UZIP_INT32>::launch, Kernel<UZIP_INT32>::load},
    {Kernel<UZIP_UINT32>::launch, Kernel<UZIP_UINT32>::load},
    {Kernel<UZIP_INT64>::launch, Kernel<UZIP_INT64>::load},
    {Kernel<UZIP_UINT64>::launch, Kernel<UZIP_UINT64>::load},
    {Kernel<UZIP_FP16>::launch, Kernel<UZIP_FP16>::load},
    {Kernel<UZIP_BF16>::launch, Kernel<UZIP_BF16>::load},
    {Kernel<UZIP_FP32>::launch, Kernel<UZIP_FP32>::load},
    {Kernel<UZIP_FP64>::launch, Kernel<UZIP_FP64>::load},
    {Kernel<UZIP_FP8_E4M3FN>::launch, Kernel<UZIP_FP8_E4M3FN>::load},
    {Kernel<UZIP_FP8_E5M2>::launch, Kernel<UZIP_FP8_E5M2>::load},
};

}  // namespace uzip::gpu
