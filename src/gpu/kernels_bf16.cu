// Kernels for bf16.
#include "gpu/type_kernels_impl.hpp"

namespace uzip::gpu {

const TypeKernels kBf16Kernels = make_type_kernels<UZIP_BF16>();

}  // namespace uzip::gpu
