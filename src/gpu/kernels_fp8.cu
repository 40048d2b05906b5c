// Kernels for fp8_e4m3fn and fp8_e5m2.
#include "gpu/type_kernels_impl.hpp"

namespace uzip::gpu {

const TypeKernels kFp8E4m3fnKernels = make_type_kernels<UZIP_FP8_E4M3FN>();
const TypeKernels kFp8E5m2Kernels = make_type_kernels<UZIP_FP8_E5M2>();

}  // namespace uzip::gpu
