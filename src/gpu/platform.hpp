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

UZIP_DEVICE unsigned thread_index() { return threadIdx.x; }
UZIP_DEVICE unsigned block_index() { return blockIdx.x; }
UZIP_DEVICE unsigned grid_size() { return gridDim.x; }
UZIP_DEVICE void sync() { __syncthreads(); }
/// A barrier; true on all threads when `predicate` is on any.
UZIP_DEVICE bool sync_or(bool predicate) { return __syncthreads_or(predicate) != 0; }

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
#define UZIP_HAS_GROUP_REDUCTIONS 1
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
#if defined(__HIP__)
/// 16 bytes from global to shared memory, both aligned; they are there after wait_copies() and a
/// barrier.
UZIP_DEVICE void copy_16_async(void* shared, const void* global) {
  *static_cast<uint4*>(shared) = *static_cast<const uint4*>(global);
}
/// Ends a batch of copies.
UZIP_DEVICE void commit_copies() {}
/// Waits for this thread's copies but those of the last `kNewer` batches.
template <int kNewer>
UZIP_DEVICE void wait_copies() {}
#else
UZIP_DEVICE void copy_16_async(void* shared, const void* global) {
  const auto address = static_cast<uint32_t>(__cvta_generic_to_shared(shared));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address), "l"(global) : "memory");
}
UZIP_DEVICE void commit_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int kNewer>
UZIP_DEVICE void wait_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kNewer) : "memory");
}
#endif

}  // namespace uzip::gpu
#endif
