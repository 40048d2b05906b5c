// AVX-512: what becomes of decoded values that are added to others at once. The arithmetic is that
// of the reduction kernels, in their own words; like kernels_avx512.hpp for kernel files only.
#pragma once

#include "base/reduce_vectors.inl"

#include "base/reduce_formats.inl"

#include "base/reduce_steps.inl"

#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx512.hpp"

namespace uzip {
namespace {

/// A sink like StoreSink, for Output::sum. The first two operands may change places: their sum is the same, and a NaN
/// has no payload afterwards. So the usual sum, of two, is the same whichever was decoded.
template <class Step>
class SumSink {
 public:
  explicit SumSink(const Output& output)
      : dst_(output.values),
        sources_(output.sum->sources),
        before_(output.sum->before > 1 ? output.sum->before : 1),
        count_(output.sum->count),
        first_(sources_[0]),
        at_(output.sum_begin),
        owns_near_(__builtin_cpu_is("intel")),
        fetches_far_(!owns_near_ || first_ + at_ == dst_) {}
  [[gnu::always_inline]] void put(Bytes v) {
    // As base/reduce_kernels.inl does; only an instruction by its name asks for a line to write.
    if (owns_near_)
      asm volatile("prefetchw %0" : : "m"(dst_[kNearAhead]));
    else
      __builtin_prefetch(dst_ + kFarAhead, 0, 2);
    Step step;
    step.first(words(first_));
    if (count_ == 1) [[likely]] {
      step.next(Words(v));
    } else {
      for (size_t s = 1; s < before_; ++s) step.next(words(sources_[s]));
      step.next(Words(v));
      for (size_t s = before_; s < count_; ++s) step.next(words(sources_[s]));
    }
    store(dst_, Bytes(step.result(0)));
    dst_ += 64;
    at_ += 64;
  }
  uint8_t* finish() const { return dst_; }

 private:
  [[gnu::always_inline]] Words words(const uint8_t* source) const {
    // Intel's cores lose by it, except in place.
    if (fetches_far_) _mm_prefetch(source + at_ + kFarAhead, _MM_HINT_T1);
    _mm_prefetch(source + at_ + kNearAhead, _MM_HINT_T0);
    return Words(load(source + at_));
  }

  uint8_t* dst_;
  const uint8_t* const* sources_;
  size_t before_;
  size_t count_;
  const uint8_t* first_;
  size_t at_;  ///< of the sources
  bool owns_near_;
  bool fetches_far_;
};

using SumOfNativeBf16 = SumSink<FloatStep<NativeBfloat16, Add>>;
using SumOfBf16 = SumSink<FloatStep<Bfloat16, Add>>;
using SumOfFp16 = SumSink<FloatStep<Binary16, Add>>;
using SumOfFp32 = SumSink<FloatStep<Binary32, Add>>;
using SumOfFp64 = SumSink<DoubleStep<Add>>;

}  // namespace
}  // namespace uzip

#undef UZIP_INLINE
