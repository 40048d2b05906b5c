// Which row of kernels runs. The AVX-512 ones also use GFNI and VPOPCNTDQ, which every processor
// with the target's other features has had so far; one without them gets the AVX2 kernels.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "codec/cpu/kernels.hpp"

namespace uzip {
namespace {

[[maybe_unused]] bool has_all_of_avx512() {
#if defined(__x86_64__)
  static const bool result =
      __builtin_cpu_supports("gfni") != 0 && __builtin_cpu_supports("avx512vpopcntdq") != 0;
  return result;
#else
  return false;
#endif
}

}  // namespace

const CodecKernels& codec_kernels() {
  const CpuTarget target = cpu_target();
#if defined(UZIP_HAVE_AVX512_KERNELS)
  if (target == CpuTarget::kAvx512 && has_all_of_avx512()) return kAvx512CodecKernels;
#endif
#if defined(UZIP_HAVE_AVX2_KERNELS)
  if (target == CpuTarget::kAvx2 || target == CpuTarget::kAvx512) return kAvx2CodecKernels;
#endif
  static_cast<void>(target);
  return kScalarCodecKernels;
}

}  // namespace uzip
