// Kernels for fp32.
#include "gpu/type_kernels_impl.hpp"

namespace uzip::gpu {

const TypeKernels kFp32Kernels = make_type_kernels<UZIP_FP32>();

}  // namespace uzip::gpu
