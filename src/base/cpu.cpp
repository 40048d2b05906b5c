// Finds out what the processor can do. The features tested for a target are exactly the ones that
// its kernels are compiled with (m4/uzip_compiler.m4): a missing one would be an illegal
// instruction.
#ifdef HAVE_CONFIG_H
#include "config.h"
#endif

#include "base/cpu.hpp"

#include <array>
#include <atomic>
#include <string>

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace uzip {
namespace {

#if defined(__x86_64__)

// Not every compiler's __builtin_cpu_supports knows these two.
bool has_f16c_and_lzcnt() {
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  if (__get_cpuid(1, &eax, &ebx, &ecx, &edx) == 0 || (ecx & bit_F16C) == 0) return false;
  constexpr unsigned kLzcnt = 1u << 5;
  return __get_cpuid(0x80000001u, &eax, &ebx, &ecx, &edx) != 0 && (ecx & kLzcnt) != 0;
}

// The builtin also asks whether the operating system saves the wide registers.
[[maybe_unused]] bool has_avx2() {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
         __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("popcnt") && has_f16c_and_lzcnt();
}

[[maybe_unused]] bool has_avx512() {
  return has_avx2() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2") &&
         __builtin_cpu_supports("avx512bitalg");
}

#endif

struct TargetRow {
  CpuTarget target;
  const char* name;
  bool (*runs_here)();  ///< null: not compiled in
};

// Slowest first.
constexpr std::array<TargetRow, kCpuTargetCount> kTargets = {{
    {CpuTarget::kScalar, "scalar", [] { return true; }},
#if defined(UZIP_HAVE_AVX2_KERNELS)
    {CpuTarget::kAvx2, "avx2", has_avx2},
#else
    {CpuTarget::kAvx2, "avx2", nullptr},
#endif
#if defined(UZIP_HAVE_AVX512_KERNELS)
    {CpuTarget::kAvx512, "avx512", has_avx512},
#else
    {CpuTarget::kAvx512, "avx512", nullptr},
#endif
#if defined(__aarch64__)
    {CpuTarget::kNeon, "neon", [] { return true; }},
#else
    {CpuTarget::kNeon, "neon", nullptr},
#endif
}};

struct Available {
  std::array<CpuTarget, kCpuTargetCount> targets{};
  size_t count = 0;

  Available() {
#if defined(__x86_64__)
    __builtin_cpu_init();
#endif
    for (const TargetRow& row : kTargets) {
      if (row.runs_here != nullptr && row.runs_here()) targets[count++] = row.target;
    }
  }
};

const Available& available() {
  static const Available result;
  return result;
}

constexpr int kBest = -1;
std::atomic<int> target_in_force{kBest};

}  // namespace

const char* cpu_target_name(CpuTarget target) { return kTargets[static_cast<size_t>(target)].name; }

std::span<const CpuTarget> available_cpu_targets() {
  return {available().targets.data(), available().count};
}

CpuTarget cpu_target() {
  const int target = target_in_force.load(std::memory_order_relaxed);
  return target == kBest ? available_cpu_targets().back() : static_cast<CpuTarget>(target);
}

Status set_cpu_target(std::string_view name) {
  if (name == "auto") {
    target_in_force.store(kBest, std::memory_order_relaxed);
    return {};
  }
  std::string names;
  for (CpuTarget target : available_cpu_targets()) {
    if (name == cpu_target_name(target)) {
      target_in_force.store(static_cast<int>(target), std::memory_order_relaxed);
      return {};
    }
    names += std::string(", ") + cpu_target_name(target);
  }
  constexpr int kShown = 40;
  const std::string shown(name.substr(0, kShown));
  for (const TargetRow& row : kTargets) {
    if (name != row.name) continue;
    return error(
        UZIP_ERR_UNSUPPORTED, "CPU target %s is not available here (%s); use auto%s", row.name,
        row.runs_here == nullptr ? "not compiled in" : "missing in this processor", names.c_str());
  }
  return error(UZIP_ERR_CONFIG, "there is no CPU target '%s'; use auto%s", shown.c_str(),
               names.c_str());
}

CpuVendor cpu_vendor() {
#if defined(__x86_64__)
  static const CpuVendor vendor = (__builtin_cpu_init(), __builtin_cpu_is("intel") ? CpuVendor::kIntel
                                                        : __builtin_cpu_is("amd") ? CpuVendor::kAmd : CpuVendor::kOther);
  return vendor;
#else
  return CpuVendor::kOther;
#endif
}

bool cpu_has_sse42() {
#if defined(__x86_64__)
  static const bool result = (__builtin_cpu_init(), __builtin_cpu_supports("sse4.2") != 0);
  return result;
#else
  return false;
#endif
}

}  // namespace uzip
