// AVX2: where decoded values go, 64 bytes at a time: to memory, past the caches, or into a sum. The arithmetic of sums is
// that of the reduction kernels, in their own words; like kernels_avx2.hpp for kernel files only.
#pragma once

#include "base/reduce_vectors.inl"

#include "base/reduce_formats.inl"

#include "base/reduce_steps.inl"

#include "codec/cpu/kernels.hpp"
#include "codec/cpu/kernels_avx2.hpp"

namespace uzip {
namespace {

/// To memory, as usual.
class StoreSink {
 public:
  explicit StoreSink(const Output& output) : dst_(output.values), ahead_(output.ahead) {}
  [[gnu::always_inline]] void put(Bytes a, Bytes b) {
    __builtin_prefetch(ahead_, 1, 2);
    store(dst_, a);
    store(dst_ + 32, b);
    dst_ += 64;
    ahead_ += 64;
  }
  uint8_t* finish() const { return dst_; }

 private:
  uint8_t* dst_;
  const uint8_t* ahead_;
};

/// Past the caches, where values begin at a whole vector.
class StreamSink {
 public:
  explicit StreamSink(const Output& output) : dst_(output.values) {}
  static bool takes(const Output& output) {
    return output.streams && reinterpret_cast<uintptr_t>(output.values) % 32 == 0;
  }
  [[gnu::always_inline]] void put(Bytes a, Bytes b) {
    _mm256_stream_si256(reinterpret_cast<__m256i*>(dst_), a);
    _mm256_stream_si256(reinterpret_cast<__m256i*>(dst_ + 32), b);
    dst_ += 64;
  }
  uint8_t* finish() const { return dst_; }

 private:
  uint8_t* dst_;
};

/// For Output::sum. The first two operands may change places: their sum is the same, and a NaN has no payload
/// afterwards. So the usual sum, of two, is the same whichever was decoded.
template <class Step>
class SumSink {
 public:
  explicit SumSink(const Output& output)
      : dst_(output.values),
        sources_(output.sum->sources),
        before_(output.sum->before > 1 ? output.sum->before : 1),
        count_(output.sum->count),
        at_(output.sum_begin) {}
  [[gnu::always_inline]] void put(Bytes a, Bytes b) {
    __builtin_prefetch(dst_ + kFarAhead, 1, 2);
    for (size_t s = 0; s < count_; ++s) fetch_ahead(sources_[s] + at_);
    const Bytes first = sum(a, at_);
    const Bytes second = sum(b, at_ + 32);
    store(dst_, first);
    store(dst_ + 32, second);
    dst_ += 64;
    at_ += 64;
  }
  uint8_t* finish() const { return dst_; }

 private:
  [[gnu::always_inline]] Bytes sum(Bytes v, size_t at) const {
    Step step;
    step.first(Words(load(sources_[0] + at)));
    for (size_t s = 1; s < before_; ++s) step.next(Words(load(sources_[s] + at)));
    step.next(Words(v));
    for (size_t s = before_; s < count_; ++s) step.next(Words(load(sources_[s] + at)));
    return Bytes(step.result(0));
  }

  uint8_t* dst_;
  const uint8_t* const* sources_;
  size_t before_;
  size_t count_;
  size_t at_;  ///< of the sources
};

using SumOfBf16 = SumSink<FloatStep<Bfloat16, Add>>;
using SumOfFp16 = SumSink<FloatStep<Binary16, Add>>;
using SumOfFp32 = SumSink<FloatStep<Binary32, Add>>;
using SumOfFp64 = SumSink<DoubleStep<Add>>;

/// Calls `code` with a type that names the sink for values of kSize bytes.
template <class Sink>
struct SinkType {
  using Type = Sink;
};
template <size_t kSize, class Code>
[[gnu::always_inline]] inline auto with_sink(const Output& output, Code code) {
  if constexpr (kSize == 2) {
    if (output.sum != nullptr)
      return output.sum->type == UZIP_BF16 ? code(SinkType<SumOfBf16>()) : code(SinkType<SumOfFp16>());
  }
  if constexpr (kSize == 4) {
    if (output.sum != nullptr) return code(SinkType<SumOfFp32>());
  }
  if constexpr (kSize == 8) {
    if (output.sum != nullptr) return code(SinkType<SumOfFp64>());
  }
  return StreamSink::takes(output) ? code(SinkType<StreamSink>()) : code(SinkType<StoreSink>());
}

}  // namespace
}  // namespace uzip

#undef UZIP_INLINE
