#include "base/copy.hpp"

#include "base/cpu.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace uzip {

#if defined(__x86_64__)

namespace {

// From about here to about there memcpy() may be one string instruction ("rep movsb"). On AMD's Zen 3 and 4 that moves 2 GB/s
// instead of 40 where the destination is 1 to 63 bytes behind the source, modulo a page: malloc() begins 16 bytes behind one.
// On Intel's it is the best way: it takes lines that another core has read without asking for what is in them.
//   https://sourceware.org/bugzilla/show_bug.cgi?id=30994
constexpr size_t kLeastStringBytes = 2048, kMostStringBytes = size_t{1} << 20;

bool has_slow_strings() {
  return cpu_vendor() == CpuVendor::kAmd && (cpu_target() == CpuTarget::kAvx2 || cpu_target() == CpuTarget::kAvx512);
}

}  // namespace

[[gnu::target("avx2")]] void copy_by_vectors(void* dst, const void* src, size_t bytes) {
  auto* to = static_cast<char*>(dst);
  const auto* from = static_cast<const char*>(src);
  constexpr size_t kVector = sizeof(__m256i), kStep = 4 * kVector;
  const size_t head = std::min(bytes, (kVector - reinterpret_cast<uintptr_t>(to) % kVector) % kVector);
  if (head > 0) std::memcpy(to, from, head);
  size_t done = head;
  for (; bytes - done >= kStep; done += kStep) {
    const auto* source = reinterpret_cast<const __m256i*>(from + done);
    auto* target = reinterpret_cast<__m256i*>(to + done);
    const __m256i first = _mm256_loadu_si256(source), second = _mm256_loadu_si256(source + 1);
    const __m256i third = _mm256_loadu_si256(source + 2), fourth = _mm256_loadu_si256(source + 3);
    _mm256_store_si256(target, first);
    _mm256_store_si256(target + 1, second);
    _mm256_store_si256(target + 2, third);
    _mm256_store_si256(target + 3, fourth);
  }
  if (done < bytes) std::memcpy(to + done, from + done, bytes - done);
}

void copy_bytes(void* dst, const void* src, size_t bytes) {
  if (bytes >= kLeastStringBytes && bytes <= kMostStringBytes && has_slow_strings())
    return copy_by_vectors(dst, src, bytes);
  if (bytes > 0) std::memcpy(dst, src, bytes);
}

#else

void copy_bytes(void* dst, const void* src, size_t bytes) {
  if (bytes > 0) std::memcpy(dst, src, bytes);
}

#endif

}  // namespace uzip
