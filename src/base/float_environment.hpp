// Shields arithmetic from the floating point settings of the calling thread. Used around every loop
// that adds or multiplies floats, so that a rank whose program flushes denormals, rounds upwards or
// traps on NaN computes the same bits as the others.
#pragma once

#include <cfenv>
#include <cstdint>

#if defined(__SSE2__)
#include <immintrin.h>
#endif

namespace uzip {

/// While it lives, this thread rounds to nearest, keeps denormals and does not trap; then the
/// caller's settings return. Costs about 2 ns when they were the default already. The loop must be
/// behind a call that the compiler cannot look into, as a table of kernels is: it may move
/// arithmetic across the constructor otherwise.
class DefaultFloatEnvironment {
 public:
#if defined(__SSE2__)
  DefaultFloatEnvironment() : saved_(_mm_getcsr()) {
    if ((saved_ & ~kStickyFlags) != kDefault) _mm_setcsr(kDefault);
  }
  ~DefaultFloatEnvironment() {
    if ((saved_ & ~kStickyFlags) != kDefault) _mm_setcsr(saved_);
  }
#else
  DefaultFloatEnvironment() {
    std::fegetenv(&saved_);
    std::fesetenv(FE_DFL_ENV);
  }
  ~DefaultFloatEnvironment() { std::fesetenv(&saved_); }
#endif
  DefaultFloatEnvironment(const DefaultFloatEnvironment&) = delete;
  DefaultFloatEnvironment& operator=(const DefaultFloatEnvironment&) = delete;

 private:
#if defined(__SSE2__)
  static constexpr unsigned kStickyFlags = 0x3f;
  static constexpr unsigned kDefault = 0x1f80;
  const unsigned saved_;
#else
  std::fenv_t saved_;
#endif
};

}  // namespace uzip
