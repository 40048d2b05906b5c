// The reduction kernels. Compiled once for each CPU target by the reduce_kernels_*.cpp, which
// define UZIP_REDUCE_KERNELS, the name of the table at the end.
//
// Everything here is local to its file, and nothing of the standard library is called: an inline
// function compiled for a newer processor could otherwise be the copy that the linker keeps for
// all.
//
// The code is written with vectors of the compiler (vector_size), so that one source serves every
// width. A vector of memory is seen as 32-bit words, and the 8- and 16-bit floats in a word are
// widened in place, by shifts: their order does not matter, and no data moves between lanes.
#include "base/reduce_kernels.hpp"

#include <uzipcoll/uzipcoll.h>

#include "base/reduce_vectors.inl"

#include "base/reduce_formats.inl"

#include "base/reduce_steps.inl"

#include "base/reduce_byte_pairs.inl"

#include "base/reduce_byte_halves.inl"

namespace uzip {
namespace {

// ---- The loop --------------------------------------------------------------------------------------

// Vectors that are in work at a time: enough to hide the latency of loads, as few as fit into the
// registers.
constexpr int vectors_at_a_time(size_t registers_used) {
  const size_t fitting = kRegisters / 4 / registers_used;
  return fitting > 4 ? 4 : fitting > 1 ? static_cast<int>(fitting) : 1;
}

// The processor's own prefetching stops at pages and lags behind a loop with many instructions a
// line; what is written has to be fetched, too. From memory lines go to the second cache, since the
// first one can wait for few at a time, and from there to the first. A single vector is an end, or
// in a loop that computes longer than it loads.
constexpr size_t kFarAhead = 8192;
constexpr size_t kNearAhead = 2048;
template <int kVectors>
UZIP_INLINE void prefetch_far(const char* src, bool wanted) {
  if (kVectors == 1 || !wanted) return;
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v)
    __builtin_prefetch(src + v * kVectorBytes + kFarAhead, 0, 2);
}
template <int kVectors>
UZIP_INLINE void prefetch(const char* src) {
  if constexpr (kVectors > 1) __builtin_prefetch(src + kNearAhead);
}
// What is written has often been read by other cores, as the result of the all-reduce before has been by its receivers. Intel's
// cores wait long until a line is theirs alone, so that there it is asked for at once, and from near by, since it comes to the
// first cache (all-reduce of 256 KiB between two: 1.2 times as fast). On others lines are fetched as those of the sources are.
// Nor do Intel's cores gain by asking for sources from far ahead: it costs a third of the speed in the second cache.
struct Ahead {
  bool far = true;
  size_t fetched = kFarAhead, owned = 0;
};
UZIP_INLINE Ahead how_far_ahead() {
#if defined(__x86_64__)
  if (__builtin_cpu_is("intel")) return {false, 0, kNearAhead};
#endif
  return {};
}
UZIP_INLINE void prefetch_to_write(const char* dst, Ahead ahead) {
  __builtin_prefetch(dst + ahead.fetched, 0, 2);
  __builtin_prefetch(dst + ahead.owned, 1);
}

template <class Step, int kVectors>
UZIP_INLINE void first_vectors(Step (&steps)[kVectors], const char* src, bool far) {
  prefetch_far<kVectors>(src, far);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    prefetch<kVectors>(src + v * kVectorBytes);
    steps[v].first(load(src + v * kVectorBytes));
  }
}

template <class Step, int kVectors>
UZIP_INLINE void next_vectors(Step (&steps)[kVectors], const char* src, bool far) {
  prefetch_far<kVectors>(src, far);
#pragma GCC unroll 4
  for (int v = 0; v < kVectors; ++v) {
    prefetch<kVectors>(src + v * kVectorBytes);
    steps[v].next(load(src + v * kVectorBytes));
  }
}

template <class Step, int kVectors>
UZIP_INLINE void reduce_vectors(Step (&steps)[kVectors], const char* const* sources,
                                size_t source_count, size_t offset, bool far) {
  first_vectors(steps, sources[0] + offset, far);
  for (size_t s = 1; s < source_count; ++s) next_vectors(steps, sources[s] + offset, far);
}

template <class Step>
void reduce_bytes(void* dst, const void* const* source_list, size_t source_count, size_t bytes,
                  size_t average_over) {
  char* const out = static_cast<char*>(dst);
  const char* const* const sources = reinterpret_cast<const char* const*>(source_list);
  if (bytes < kVectorBytes) {
    Step step;
    step.first(load_part(sources[0], bytes));
    for (size_t s = 1; s < source_count; ++s) step.next(load_part(sources[s], bytes));
    store_part(out, step.result(average_over), bytes);
    return;
  }
  // The last vector overlaps the one before. It is computed first and stored last, because its
  // sources may be overwritten on the way.
  const size_t last = bytes - kVectorBytes;
  Step last_step[1];
  reduce_vectors(last_step, sources, source_count, last, false);
  const Words last_words = last_step[0].result(average_over);

  constexpr int kVectors = vectors_at_a_time(Step::kRegistersUsed);
  constexpr size_t kBlock = kVectors * kVectorBytes;
  const Ahead ahead = how_far_ahead();
  size_t offset = 0;
  if constexpr (kVectors > 1) {
    for (; offset + kBlock <= last; offset += kBlock) {
      Step steps[kVectors];
      reduce_vectors(steps, sources, source_count, offset, ahead.far);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) {
        prefetch_to_write(out + offset + v * kVectorBytes, ahead);
        store(out + offset + v * kVectorBytes, steps[v].result(average_over));
      }
    }
  }
  for (; offset < last; offset += kVectorBytes) {
    Step step[1];
    reduce_vectors(step, sources, source_count, offset, false);
    store(out + offset, step[0].result(average_over));
  }
  store(out + last, last_words);
}

#if defined(__AVX512BW__)
template <class Combine, bool kDivide = false>
void reduce_bf16(void* dst, const void* const* source_list, size_t source_count, size_t bytes, size_t average_over) {
  const ReduceKernel kernel = NativeBfloat16::runs_here() ? reduce_bytes<FloatStep<NativeBfloat16, Combine, kDivide>>
                                                          : reduce_bytes<FloatStep<Bfloat16, Combine, kDivide>>;
  kernel(dst, source_list, source_count, bytes, average_over);
}

template <class Format, int kMantissa, bool kHasInfinity>
void sum_byte_floats(void* dst, const void* const* source_list, size_t source_count, size_t bytes, size_t) {
  const ReduceKernel kernel =
      source_count == 2 ? reduce_bytes<BytePairStep<kMantissa, kHasInfinity>> : reduce_bytes<FloatStep<Format, Add>>;
  kernel(dst, source_list, source_count, bytes, 0);
}
#endif

// ---- The table -------------------------------------------------------------------------------------

struct Row {
  ReduceKernel kernels[kReduceOps];
};

template <class SumStep, class ProductStep, class MinimumStep, class MaximumStep, class AverageStep>
constexpr Row row() {
  Row kernels{};
  kernels.kernels[UZIP_SUM] = reduce_bytes<SumStep>;
  kernels.kernels[UZIP_PROD] = reduce_bytes<ProductStep>;
  kernels.kernels[UZIP_MIN] = reduce_bytes<MinimumStep>;
  kernels.kernels[UZIP_MAX] = reduce_bytes<MaximumStep>;
  kernels.kernels[UZIP_AVG] = reduce_bytes<AverageStep>;
  return kernels;
}

template <class T, class Unsigned>
constexpr Row integer_row() {
  return row<IntegerStep<Unsigned, Add>, IntegerStep<Unsigned, Multiply>, IntegerStep<T, Lesser>,
             IntegerStep<T, Greater>, IntegerStep<Unsigned, Add, T>>();
}

template <class Format, class Bits, Bits kInfinity, Bits kNan>
constexpr Row float_row() {
  return row<FloatStep<Format, Add>, FloatStep<Format, Multiply>,
             OrderStep<Bits, kInfinity, kNan, Lesser>, OrderStep<Bits, kInfinity, kNan, Greater>,
             FloatStep<Format, Add, true>>();
}

constexpr int64_t kInfinity64 = int64_t{0x7ff0} << 48;
constexpr int64_t kNan64 = int64_t{0x7ff8} << 48;

constexpr ReduceKernels make_table() {
  ReduceKernels table{};
  const auto set = [&table](uzip_dtype_t type, const Row& kernels) {
    for (size_t op = 0; op < kReduceOps; ++op) table.kernels[type][op] = kernels.kernels[op];
  };
  set(UZIP_INT8, integer_row<int8_t, uint8_t>());
  set(UZIP_UINT8, integer_row<uint8_t, uint8_t>());
  set(UZIP_INT32, integer_row<int32_t, uint32_t>());
  set(UZIP_UINT32, integer_row<uint32_t, uint32_t>());
  set(UZIP_INT64, integer_row<int64_t, uint64_t>());
  set(UZIP_UINT64, integer_row<uint64_t, uint64_t>());
  set(UZIP_FP16, float_row<Binary16, int16_t, 0x7c00, 0x7e00>());
  set(UZIP_BF16, float_row<Bfloat16, int16_t, 0x7f80, 0x7fc0>());
#if defined(__AVX512BW__)
  table.kernels[UZIP_BF16][UZIP_SUM] = reduce_bf16<Add>;
  table.kernels[UZIP_BF16][UZIP_PROD] = reduce_bf16<Multiply>;
  table.kernels[UZIP_BF16][UZIP_AVG] = reduce_bf16<Add, true>;
#endif
  set(UZIP_FP32, float_row<Binary32, int32_t, 0x7f800000, 0x7fc00000>());
  set(UZIP_FP64,
      row<DoubleStep<Add>, DoubleStep<Multiply>, OrderStep<int64_t, kInfinity64, kNan64, Lesser>,
          OrderStep<int64_t, kInfinity64, kNan64, Greater>, DoubleStep<Add, true>>());
  set(UZIP_FP8_E4M3FN, float_row<Fp8E4m3fn, int8_t, 0x7e, 0x7f>());
  set(UZIP_FP8_E5M2, float_row<Fp8E5m2, int8_t, 0x7c, 0x7e>());
#if defined(__AVX512BW__)
  table.kernels[UZIP_FP8_E4M3FN][UZIP_SUM] = sum_byte_floats<Fp8E4m3fn, 3, false>;
  table.kernels[UZIP_FP8_E5M2][UZIP_SUM] = sum_byte_floats<Fp8E5m2, 2, true>;
#elif defined(__AVX2__) && defined(__F16C__)
  table.kernels[UZIP_FP8_E4M3FN][UZIP_SUM] = reduce_bytes<ByteSumStep<3, false>>;
  table.kernels[UZIP_FP8_E5M2][UZIP_SUM] = reduce_bytes<ByteSumStep<2, true>>;
#endif
  return table;
}

[[maybe_unused]] constexpr bool is_complete(const ReduceKernels& table) {
  for (const auto& row : table.kernels) {
    for (ReduceKernel kernel : row) {
      if (kernel == nullptr) return false;
    }
  }
  return true;
}
// GCC's undefined-behaviour sanitizer does not compare addresses of functions at compile time.
#ifndef UZIP_SANITIZE_UNDEFINED
static_assert(is_complete(make_table()));
#endif

#undef UZIP_INLINE

}  // namespace

extern constexpr ReduceKernels UZIP_REDUCE_KERNELS = make_table();

}  // namespace uzip
