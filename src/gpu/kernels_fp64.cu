// Kernels for fp64.
#include "gpu/type_kernels_impl.hpp"

namespace uzip::gpu {

const TypeKernels kFp64Kernels = make_type_kernels<UZIP_FP64>();

}  // namespace uzip::gpu
