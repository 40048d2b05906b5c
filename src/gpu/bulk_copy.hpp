// Copies between global and shared memory that one group of lanes starts and the hardware does, from
// sm_90 on; elsewhere that group does them itself. Used by the encode and decode kernels.
//
// Addresses and sizes are multiples of 16.
#pragma once

#include "gpu/cooperative.hpp"

namespace uzip::gpu {

/// Announces that bytes have come to shared memory; it is used again and again, and whoever waits
/// knows how often.
struct BulkBarrier {
  uint64_t word;
};

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
UZIP_DEVICE uint32_t shared_address(const void* shared) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(shared));
}
/// By one thread; all threads use it after a barrier.
UZIP_DEVICE void prepare(BulkBarrier& barrier) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;\n\tfence.proxy.async.shared::cta;" ::"r"(
                   shared_address(&barrier))
               : "memory");
}
/// By one thread, before the loads that are to come until the barrier's next turn.
UZIP_DEVICE void expect_bulk(BulkBarrier& barrier, uint32_t bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(
                   shared_address(&barrier)),
               "r"(bytes)
               : "memory");
}
/// By one group. What other threads wrote to shared memory before is overwritten safely when they
/// called hand_over() and a barrier was passed.
UZIP_DEVICE void load_bulk(void* shared, const void* global, uint32_t bytes,
                           BulkBarrier& barrier) {
  if (lane_index() != 0) return;
  asm volatile(
      "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
          shared_address(shared)),
      "l"(global), "r"(bytes), "r"(shared_address(&barrier))
      : "memory");
}
/// By all threads: the bytes of the load whose number, from 0 on, has this parity are there.
UZIP_DEVICE void wait_bulk(BulkBarrier& barrier, unsigned parity) {
  asm volatile(
      "{\n\t.reg .pred there;\nagain:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 there, [%0], %1;\n\t"
      "@there bra done;\n\tbra again;\ndone:\n\t}" ::"r"(shared_address(&barrier)),
      "r"(parity)
      : "memory");
}
/// Before a barrier: what this thread wrote to shared memory may be stored, and overwritten.
UZIP_DEVICE void hand_over() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
/// By one group, after hand_over() by those who wrote and a barrier.
UZIP_DEVICE void store_bulk(void* global, const void* shared, uint32_t bytes) {
  if (lane_index() != 0 || bytes == 0) return;
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global),
               "r"(shared_address(shared)), "r"(bytes)
               : "memory");
}
/// By one thread: what is read soon, to the second-level cache.
UZIP_DEVICE void fetch_bulk(const void* global, uint32_t bytes) {
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes) : "memory");
}
UZIP_DEVICE void commit_bulk_stores() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
/// By one thread, before loads of what it has seen that others wrote.
UZIP_DEVICE void take_over() { asm volatile("fence.proxy.async;" ::: "memory"); }
/// By the group that stored: all of it can be seen.
UZIP_DEVICE void wait_bulk_stored() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
/// By the group that stored: shared memory has been read.
UZIP_DEVICE void wait_bulk_stores() {
  asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
}
#else
UZIP_DEVICE void prepare(BulkBarrier& barrier) { barrier.word = 0; }
UZIP_DEVICE void copy_by_group(void* dst, const void* src, uint32_t bytes) {
  for (uint32_t i = lane_index(); i < bytes / 16; i += kGroupLanes)
    static_cast<uint4*>(dst)[i] = static_cast<const uint4*>(src)[i];
}
UZIP_DEVICE void expect_bulk(BulkBarrier&, uint32_t) {}
UZIP_DEVICE void load_bulk(void* shared, const void* global, uint32_t bytes, BulkBarrier&) {
  copy_by_group(shared, global, bytes);
}
UZIP_DEVICE void wait_bulk(BulkBarrier&, unsigned) { sync_coders(); }
UZIP_DEVICE void hand_over() {}
UZIP_DEVICE void fetch_bulk(const void*, uint32_t) {}
UZIP_DEVICE void store_bulk(void* global, const void* shared, uint32_t bytes) {
  copy_by_group(global, shared, bytes);
}
UZIP_DEVICE void commit_bulk_stores() {}
UZIP_DEVICE void take_over() {}
UZIP_DEVICE void wait_bulk_stored() { sync_group(); }
UZIP_DEVICE void wait_bulk_stores() {}
#endif

}  // namespace uzip::gpu
