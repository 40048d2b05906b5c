// The thin layer under the kernels: one source for CUDA, HIP and the emulator of the tests.
// Kernels see groups of 32 lanes, whatever the width of the hardware's own (a wave of 64 holds two).
#pragma once

#include <cstddef>
#include <cstdint>

#if defined(UZIP_GPU_EMULATED)
// tests/gpu/emulator.hpp was included before, and has defined all of this for the CPU.
#elif defined(__HIP__)
#if !defined(__HIP_PLATFORM_AMD__)
#define __HIP_PLATFORM_AMD__ 1
#endif
#include <hip/hip_runtime.h>
#else
#include <cuda_runtime.h>
#endif

#if !defined(UZIP_GPU_EMULATED)
#define UZIP_DEVICE __device__ __forceinline__
#define UZIP_DEVICE_CALL __device__ __noinline__ inline
#define UZIP_HOST_DEVICE __host__ __device__
#define UZIP_UNROLL _Pragma("unroll")
#define UZIP_NO_UNROLL _Pragma("unroll 1")

namespace uzip::gpu {

#if defined(__HIP__)
inline constexpr bool kHasLargeBlocks = false;  ///< of more than 64 KiB of shared memory
#else
inline constexpr bool kHasLargeBlocks = true;
#endif
UZIP_DEVICE unsigned thread_index() { return threadIdx.x; }
UZIP_DEVICE unsigned block_index() { return blockIdx.x; }
UZIP_DEVICE unsigned grid_size() { return gridDim.x; }
UZIP_DEVICE void sync() { __syncthreads(); }
/// A barrier; true on all threads when `predicate` is on any.
UZIP_DEVICE bool sync_or(bool predicate) { return __syncthreads_or(predicate) != 0; }

// Barriers of the first 256 threads of a block, which code, when there may be others; and barriers of
// so many threads, by number from 2 on, at which some wait and others only say that they are there.
#if defined(__HIP__)
inline constexpr bool kHasPartialBarriers = false;
UZIP_DEVICE void sync_coders() { __syncthreads(); }
UZIP_DEVICE bool sync_coders_or(bool predicate) { return __syncthreads_or(predicate) != 0; }
template <unsigned kBarrier, unsigned kCount>
UZIP_DEVICE void wait_at() {}
template <unsigned kBarrier, unsigned kCount>
UZIP_DEVICE void arrive_at() {}
#else
inline constexpr bool kHasPartialBarriers = true;
UZIP_DEVICE void sync_coders() { asm volatile("barrier.sync 1, 256;" ::: "memory"); }
UZIP_DEVICE bool sync_coders_or(bool predicate) {
  uint32_t any;
  asm volatile(
      "{\n\t.reg .pred own, all;\n\tsetp.ne.u32 own, %1, 0;\n\t"
      "barrier.red.or.pred all, 1, 256, own;\n\tselp.u32 %0, 1, 0, all;\n\t}"
      : "=r"(any)
      : "r"(predicate ? 1u : 0u)
      : "memory");
  return any != 0;
}
template <unsigned kBarrier, unsigned kCount>
UZIP_DEVICE void wait_at() {
  asm volatile("barrier.sync %0, %1;" ::"n"(kBarrier), "n"(kCount) : "memory");
}
template <unsigned kBarrier, unsigned kCount>
UZIP_DEVICE void arrive_at() {
  asm volatile("barrier.arrive %0, %1;" ::"n"(kBarrier), "n"(kCount) : "memory");
}
#endif

#if defined(__HIP__)
UZIP_DEVICE uint32_t shuffle(uint32_t value, unsigned lane) {
  return static_cast<uint32_t>(__shfl(static_cast<int>(value), static_cast<int>(lane), 32));
}
UZIP_DEVICE uint32_t shuffle_up(uint32_t value, unsigned distance) {
  return static_cast<uint32_t>(__shfl_up(static_cast<int>(value), distance, 32));
}
UZIP_DEVICE uint32_t ballot(bool predicate) {
  const unsigned long long all = __ballot(predicate);
  return static_cast<uint32_t>(all >> (__lane_id() & 32u));
}
UZIP_DEVICE void sync_group() {
  __threadfence_block();
  __builtin_amdgcn_wave_barrier();
}
UZIP_DEVICE unsigned taken_anew(unsigned value) { return value; }
UZIP_DEVICE uint2 load_constant(const uint2* place) { return *place; }
UZIP_DEVICE float half_to_float(uint16_t bits) {
  _Float16 value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return static_cast<float>(value);
}
UZIP_DEVICE uint16_t float_to_half(float value) {
  const auto narrowed = static_cast<_Float16>(value);
  uint16_t bits;
  __builtin_memcpy(&bits, &narrowed, sizeof bits);
  return bits;
}
#else
UZIP_DEVICE uint32_t shuffle(uint32_t value, unsigned lane) {
  return __shfl_sync(~0u, value, static_cast<int>(lane));
}
UZIP_DEVICE uint32_t shuffle_up(uint32_t value, unsigned distance) {
  return __shfl_up_sync(~0u, value, distance);
}
UZIP_DEVICE uint32_t ballot(bool predicate) { return __ballot_sync(~0u, predicate); }
/// What lanes of this group wrote to shared memory is seen by the others.
UZIP_DEVICE void sync_group() { __syncwarp(); }
#define UZIP_HAS_GROUP_OPERATIONS 1
/// The value, plus that of the lane `distance` below if there is one.
UZIP_DEVICE uint32_t add_from_below(uint32_t value, unsigned distance) {
  asm volatile(
      "{\n\t.reg .pred below;\n\t.reg .u32 other;\n\t"
      "shfl.sync.up.b32 other|below, %0, %1, 0, 0xffffffff;\n\t"
      "@below add.u32 %0, %0, other;\n\t}"
      : "+r"(value)
      : "r"(distance));
  return value;
}
/// min(a + b, most), in each half.
UZIP_DEVICE uint32_t add_up_to_halves(uint32_t a, uint32_t b, uint32_t most) {
  return __viaddmin_u16x2(a, b, most);
}
UZIP_DEVICE uint32_t maximum_of_halves(uint32_t a, uint32_t b) { return __vmaxu2(a, b); }
/// Four of the eight bytes of `a` and `b`; the selector's lower four nibbles are less than 8.
UZIP_DEVICE uint32_t pick_bytes(uint32_t a, uint32_t b, uint32_t selector) {
  uint32_t bytes;
  asm("prmt.b32 %0, %1, %2, %3;" : "=r"(bytes) : "r"(a), "r"(b), "r"(selector));
  return bytes;
}
/// Bits of `a` where the mask has 1, of `b` elsewhere.
template <uint32_t kMask>
UZIP_DEVICE uint32_t select_bits(uint32_t a, uint32_t b) {
  uint32_t bits;
  asm("lop3.b32 %0, %1, %2, %3, 0xe4;" : "=r"(bits) : "r"(a), "r"(b), "n"(kMask));
  return bits;
}
/// The signs of the four halves of `a` and `b`, in all bits of a byte each.
UZIP_DEVICE uint32_t signs_of_halves(uint32_t a, uint32_t b) {
  uint32_t signs;
  asm("prmt.b32 %0, %1, %2, 0xfdb9;" : "=r"(signs) : "r"(a), "r"(b));
  return signs;
}
/// The value, which the compiler must take for new: what follows from it is computed where it is
/// used, instead of before a loop, where it would cost registers.
UZIP_DEVICE unsigned taken_anew(unsigned value) {
  asm volatile("" : "+r"(value));
  return value;
}
/// From memory that nobody writes while the kernel runs.
UZIP_DEVICE uint2 load_constant(const uint2* place) { return __ldg(place); }
#define UZIP_HAS_SUMS_OF_WORDS 1
// Sums of all values in a word, and averages of two, rounded once, with the canonical NaN of
// base/reduce.hpp.
UZIP_DEVICE uint32_t sum_of_bf16(uint32_t a, uint32_t b) {
  uint32_t sum;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(sum) : "r"(a), "r"(0x3f803f80u), "r"(b));
  return __vmins2(sum, 0x7fc07fc0u);  // the instruction's NaN is 0x7fff
}
UZIP_DEVICE uint32_t sum_of_fp16(uint32_t a, uint32_t b) {
  uint32_t sum;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return __vmins2(sum, 0x7e007e00u);
}
UZIP_DEVICE uint32_t average_of_bf16(uint32_t a, uint32_t b) {
  const float low = (__uint_as_float(a << 16) + __uint_as_float(b << 16)) * 0.5f;
  const float high =
      (__uint_as_float(a & 0xffff0000u) + __uint_as_float(b & 0xffff0000u)) * 0.5f;
  uint32_t average;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(average) : "f"(high), "f"(low));
  return __vmins2(average, 0x7fc07fc0u);
}
// 8-bit floats are halves with fewer bits, so conversions to these are exact. A sum of two that was
// rounded to 11 bits and then to 4 or 3 is the same as if it was rounded once: 2 * 4 + 2 bits are
// enough for that. Halving is exact.
UZIP_DEVICE uint32_t sum_of_halves(uint32_t a, uint32_t b) {
  uint32_t sum;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(sum) : "r"(a), "r"(b));
  return sum;
}
UZIP_DEVICE uint32_t half_of_halves(uint32_t a) {
  uint32_t result;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(result) : "r"(a), "r"(0x38003800u));
  return result;
}
template <bool kAverage>
UZIP_DEVICE uint32_t combine_e5m2(uint32_t a, uint32_t b) {
  uint32_t sums[2];
  UZIP_UNROLL
  for (unsigned i = 0; i < 2; ++i) {
    const uint32_t selector = i == 0 ? 0x1404 : 0x3424;
    uint32_t x = __byte_perm(a, 0, selector);
    uint32_t y = __byte_perm(b, 0, selector);
    if (kAverage) {  // before, since the sum may be too large
      x = half_of_halves(x);
      y = half_of_halves(y);
    }
    const uint32_t sum = __vmins2(sum_of_halves(x, y), 0x7e007e00u);
    sums[i] = sum + 0x007f007fu + (sum >> 8 & 0x00010001u);  // what is too large becomes infinity
  }
  return __byte_perm(sums[0], sums[1], 0x7531);
}
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define UZIP_HAS_E4M3 1
template <bool kAverage>
UZIP_DEVICE uint32_t combine_e4m3fn(uint32_t a, uint32_t b) {
  uint32_t sums[2];
  uint32_t pairs[2];
  UZIP_UNROLL
  for (unsigned i = 0; i < 2; ++i) {
    uint32_t x;
    uint32_t y;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(x) : "h"(static_cast<uint16_t>(a >> (16 * i))));
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(y) : "h"(static_cast<uint16_t>(b >> (16 * i))));
    sums[i] = sum_of_halves(x, y);
    if (kAverage) sums[i] = half_of_halves(sums[i]);
    uint16_t pair;
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(pair) : "r"(sums[i]));
    pairs[i] = pair;
    // Magnitudes above 464, and NaNs, get a sign.
    sums[i] = (sums[i] & 0x7fff7fffu) + (0x7fffu - 0x5f40u) * 0x00010001u;
  }
  const uint32_t result = __byte_perm(pairs[0], pairs[1], 0x5410);
  uint32_t special;
  asm("prmt.b32 %0, %1, %2, 0xfdb9;" : "=r"(special) : "r"(sums[0]), "r"(sums[1]));
  return (result & ~special) | (special & 0x7f7f7f7fu);
}
#endif
UZIP_DEVICE uint32_t group_sum(uint32_t value) { return __reduce_add_sync(~0u, value); }
UZIP_DEVICE uint32_t group_minimum(uint32_t value) { return __reduce_min_sync(~0u, value); }
UZIP_DEVICE uint32_t group_maximum(uint32_t value) { return __reduce_max_sync(~0u, value); }
UZIP_DEVICE float half_to_float(uint16_t bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}
UZIP_DEVICE uint16_t float_to_half(float value) {
  uint16_t bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}
#endif

UZIP_DEVICE uint32_t byte_permute(uint32_t a, uint32_t b, uint32_t selector) {
  return __byte_perm(a, b, selector);
}
UZIP_DEVICE unsigned count_bits(uint32_t word) { return static_cast<unsigned>(__popc(word)); }
/// Index of the lowest set bit; the word is not 0.
UZIP_DEVICE unsigned lowest_bit(uint32_t word) {
  return static_cast<unsigned>(__ffs(static_cast<int>(word)) - 1);
}
UZIP_DEVICE float bits_to_float(uint32_t bits) { return __uint_as_float(bits); }
UZIP_DEVICE uint32_t float_to_bits(float value) { return __float_as_uint(value); }
UZIP_DEVICE double bits_to_double(uint64_t bits) {
  return __longlong_as_double(static_cast<long long>(bits));
}
UZIP_DEVICE uint64_t double_to_bits(double value) {
  return static_cast<uint64_t>(__double_as_longlong(value));
}
UZIP_DEVICE uint32_t atomic_add(uint32_t* counter, uint32_t value) {
  return atomicAdd(counter, value);
}
UZIP_DEVICE uint32_t atomic_xor(uint32_t* place, uint32_t value) { return atomicXor(place, value); }
/// What this thread wrote before is seen by other blocks of threads before what it writes after.
UZIP_DEVICE void fence_device() { __threadfence(); }
UZIP_DEVICE void atomic_max(uint64_t* place, uint64_t value) {
  atomicMax(reinterpret_cast<unsigned long long*>(place), static_cast<unsigned long long>(value));
}
/// Words that other blocks of threads poll: whole, and past the first-level cache.
UZIP_DEVICE uint64_t load_shared_word(const uint64_t* place) {
  return *reinterpret_cast<const volatile uint64_t*>(place);
}
UZIP_DEVICE void store_shared_word(uint64_t* place, uint64_t value) {
  *reinterpret_cast<volatile uint64_t*>(place) = value;
}
}  // namespace uzip::gpu
#endif
