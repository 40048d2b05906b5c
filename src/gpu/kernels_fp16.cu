// Kernels for fp16.
#include "gpu/type_kernels_impl.hpp"

namespace uzip::gpu {

const TypeKernels kFp16Kernels = make_type_kernels<UZIP_FP16>();

}  // namespace uzip::gpu
