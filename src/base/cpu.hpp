// Which instruction set the CPU kernels use, decided once at run time.
// The reductions, the checksum and the codecs keep one table of kernels, indexed by CpuTarget.
#pragma once

#include "base/status.hpp"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace uzip {

/// The targets that kernels are written for. kScalar is portable code at the compiler's baseline
/// and always available; every target produces the same bytes.
enum class CpuTarget : uint8_t { kScalar, kAvx2, kAvx512, kNeon };
inline constexpr size_t kCpuTargetCount = 4;

/// "scalar", "avx2", "avx512" or "neon".
const char* cpu_target_name(CpuTarget target);

/// The targets that are compiled in and that this processor can run, slowest first; never empty.
std::span<const CpuTarget> available_cpu_targets();

/// The target in force: the last of available_cpu_targets(), unless set_cpu_target() chose another.
CpuTarget cpu_target();

/// Makes the named target, or the best one for "auto", the one in force for the whole process.
/// Kernels that run at the same time in other threads finish on the old one, with the same result.
/// UZIP_ERR_CONFIG: no such target. UZIP_ERR_UNSUPPORTED: not compiled in, or not for this
/// processor.
Status set_cpu_target(std::string_view name);

/// Whose processor it is: what moving bytes costs differs more by vendor than by instruction set.
enum class CpuVendor : uint8_t { kOther, kIntel, kAmd };
CpuVendor cpu_vendor();

/// CRC32 instructions of SSE4.2 are there (false on other architectures).
bool cpu_has_sse42();

}  // namespace uzip
