// Reductions of all types.
#include "gpu/reduce_kernel.hpp"
#include "gpu/type_kernels.hpp"

namespace uzip::gpu {
namespace {

template <int kType>
__global__ void __launch_bounds__(kThreads) reduce_kernel(const ReduceArgs args, bool aligned) {
  reduce_arrays<kType>(args, aligned);
}

bool is_aligned_to_16(const void* address) { return reinterpret_cast<uintptr_t>(address) % 16 == 0; }

template <int kType>
Error launch(const ReduceArgs& args, unsigned blocks, Stream stream) {
  bool aligned = is_aligned_to_16(args.dst);
  for (uint32_t s = 0; s < args.source_count; ++s)
    aligned = aligned && is_aligned_to_16(args.sources[s]);
  reduce_kernel<kType><<<blocks, kThreads, 0, stream>>>(args, aligned);
  return take_error();
}

using Launch = Error (*)(const ReduceArgs& args, unsigned blocks, Stream stream);

// By type, in the order of uzip_dtype_t.
constexpr Launch kLaunches[] = {
    launch<UZIP_INT8>,   launch<UZIP_UINT8>,  launch<UZIP_INT32>,      launch<UZIP_UINT32>,
    launch<UZIP_INT64>,  launch<UZIP_UINT64>, launch<UZIP_FP16>,       launch<UZIP_BF16>,
    launch<UZIP_FP32>,   launch<UZIP_FP64>,   launch<UZIP_FP8_E4M3FN>, launch<UZIP_FP8_E5M2>,
};

}  // namespace

Error launch_reduce(const ReduceArgs& args, unsigned blocks, Stream stream) {
  return kLaunches[args.type](args, blocks, stream);
}

}  // namespace uzip::gpu
