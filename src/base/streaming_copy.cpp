#include "base/streaming_copy.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace uzip {

#if defined(__SSE2__)

// Four stores of the least vector that every x86-64 has fill a line, and it is memory that is waited for.
void copy_past_caches(void* dst, const void* src, size_t bytes) {
  constexpr size_t kLine = 64, kFarAhead = 8192, kNearAhead = 2048;
  auto* to = static_cast<char*>(dst);
  const auto* from = static_cast<const char*>(src);
  const size_t head = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(to) % kLine) % kLine);
  if (head > 0) std::memcpy(to, from, head);
  size_t done = head;
  for (; bytes - done >= kLine; done += kLine) {
    __builtin_prefetch(from + done + kFarAhead, 0, 2);
    __builtin_prefetch(from + done + kNearAhead);
    for (size_t part = 0; part < kLine; part += sizeof(__m128i)) {
      const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done + part));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to + done + part), value);
    }
  }
  if (done < bytes) std::memcpy(to + done, from + done, bytes - done);
  _mm_sfence();
}

// Lines of the near place are mostly another core's: they are asked for in time, which takes a tenth of the whole on Sapphire
// Rapids. prefetchw does nothing on processors of 64 bits that don't know it.
[[gnu::target("prfchw")]] void copy_twice(void* near, void* far, const void* src, size_t bytes) {
  constexpr size_t kLine = 64, kFarAhead = 8192, kNearAhead = 2048;
  auto* to_near = static_cast<char*>(near);
  auto* to_far = static_cast<char*>(far);
  const auto* from = static_cast<const char*>(src);
  const auto copy_plainly = [&](size_t begin, size_t end) {
    if (begin == end) return;
    std::memcpy(to_near + begin, from + begin, end - begin);
    std::memcpy(to_far + begin, from + begin, end - begin);
  };
  const size_t head = std::min(bytes, (kLine - reinterpret_cast<uintptr_t>(to_far) % kLine) % kLine);
  copy_plainly(0, head);
  size_t done = head;
  for (; bytes - done >= kLine; done += kLine) {
    __builtin_prefetch(from + done + kFarAhead, 0, 2);
    __builtin_prefetch(from + done + kNearAhead);
    __builtin_prefetch(to_near + done + kNearAhead, 1);
    for (size_t part = 0; part < kLine; part += sizeof(__m128i)) {
      const __m128i value = _mm_loadu_si128(reinterpret_cast<const __m128i*>(from + done + part));
      _mm_stream_si128(reinterpret_cast<__m128i*>(to_far + done + part), value);
      _mm_storeu_si128(reinterpret_cast<__m128i*>(to_near + done + part), value);
    }
  }
  copy_plainly(done, bytes);
  _mm_sfence();
}

#else

void copy_past_caches(void* dst, const void* src, size_t bytes) {
  if (bytes > 0) std::memcpy(dst, src, bytes);
}

void copy_twice(void* near, void* far, const void* src, size_t bytes) {
  copy_past_caches(near, src, bytes);
  copy_past_caches(far, src, bytes);
}

#endif

}  // namespace uzip
