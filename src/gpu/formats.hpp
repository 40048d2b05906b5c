// Which format each float type has on the device. Used by the instantiations of the kernels.
#pragma once

#include "gpu/value_planes.hpp"

#include <uzipcoll/uzipcoll.h>

namespace uzip::gpu {

template <int kType>
struct FormatOf;
template <>
struct FormatOf<UZIP_FP16> {
  using Type = ValueFormat<2, 3>;
};
template <>
struct FormatOf<UZIP_BF16> {
  using Type = ValueFormat<2, 0>;
};
template <>
struct FormatOf<UZIP_FP32> {
  using Type = ValueFormat<4, 0>;
};
template <>
struct FormatOf<UZIP_FP64> {
  using Type = ValueFormat<8, 0>;
};
template <>
struct FormatOf<UZIP_FP8_E4M3FN> {
  using Type = ValueFormat<1, 4>;
};
template <>
struct FormatOf<UZIP_FP8_E5M2> {
  using Type = ValueFormat<1, 3>;
};

}  // namespace uzip::gpu
