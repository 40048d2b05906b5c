// Words in the memory of another GPU, or of the host, as kernels write and poll them: the layer of
// platform.hpp for the kernels between ranks.
#pragma once

#include "gpu/peer_layout.hpp"
#include "gpu/platform.hpp"

namespace uzip::gpu {

#if defined(UZIP_GPU_EMULATED)
// tests/gpu/emulator.hpp has defined all of this for the CPU.
#elif defined(__HIP__)
UZIP_DEVICE void store_flagged(uint4* place, uint2 data, uint32_t flag) {
  auto* const halves = reinterpret_cast<uint64_t*>(place);
  const uint64_t above = static_cast<uint64_t>(flag) << 32;
  __hip_atomic_store(halves, above | data.x, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  __hip_atomic_store(halves + 1, above | data.y, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
UZIP_DEVICE uint4 load_flagged(const uint4* place) {
  const auto* const halves = reinterpret_cast<const uint64_t*>(place);
  const uint64_t a = __hip_atomic_load(halves, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  const uint64_t b = __hip_atomic_load(halves + 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
  return make_uint4(static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32),
                    static_cast<uint32_t>(b), static_cast<uint32_t>(b >> 32));
}
UZIP_DEVICE void store_for_all(uint64_t* place, uint64_t value) {
  __hip_atomic_store(place, value, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_SYSTEM);
}
/// The same without order: for a word that says that something has been read.
UZIP_DEVICE void store_word_for_others(uint64_t* place, uint64_t value) {
  __hip_atomic_store(place, value, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM);
}
/// What others wrote before a word with store_for_all() is seen after it.
UZIP_DEVICE uint64_t load_from_others(const uint64_t* place) {
  return __hip_atomic_load(place, __ATOMIC_ACQUIRE, __HIP_MEMORY_SCOPE_SYSTEM);
}
/// 16 bytes that another GPU may have written since this kernel read them last.
UZIP_DEVICE uint4 load_fresh(const uint4* place) {
  const auto* const words = reinterpret_cast<const uint64_t*>(place);
  const uint64_t a = __hip_atomic_load(words, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  const uint64_t b = __hip_atomic_load(words + 1, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_AGENT);
  return make_uint4(static_cast<uint32_t>(a), static_cast<uint32_t>(a >> 32),
                    static_cast<uint32_t>(b), static_cast<uint32_t>(b >> 32));
}
UZIP_DEVICE void fence_for_all() { __threadfence_system(); }
/// Nanoseconds, from any beginning: a counter of 100 MHz.
UZIP_DEVICE uint64_t device_time_ns() {
#if defined(__HIP_DEVICE_COMPILE__)
  return __builtin_amdgcn_s_memrealtime() * 10;
#else
  return 0;
#endif
}
#else
/// Two words and a flag for each: each half of the 16 bytes is seen whole.
UZIP_DEVICE void store_flagged(uint4* place, uint2 data, uint32_t flag) {
  asm volatile("st.volatile.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(place), "r"(data.x),
               "r"(flag), "r"(data.y), "r"(flag)
               : "memory");
}
UZIP_DEVICE uint4 load_flagged(const uint4* place) {
  uint4 words;
  asm volatile("ld.volatile.global.v4.u32 {%0, %1, %2, %3}, [%4];"
               : "=r"(words.x), "=r"(words.y), "=r"(words.z), "=r"(words.w)
               : "l"(place)
               : "memory");
  return words;
}
/// After all that this thread has written, for whoever sees the memory.
UZIP_DEVICE void store_for_all(uint64_t* place, uint64_t value) {
  asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(place), "l"(value) : "memory");
}
/// The same without order: for a word that says that something has been read.
UZIP_DEVICE void store_word_for_others(uint64_t* place, uint64_t value) {
  asm volatile("st.relaxed.sys.global.u64 [%0], %1;" ::"l"(place), "l"(value) : "memory");
}
/// What others wrote before a word with store_for_all() is seen after it.
UZIP_DEVICE uint64_t load_from_others(const uint64_t* place) {
  uint64_t value;
  asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(place) : "memory");
  return value;
}
/// 16 bytes that another GPU may have written since this kernel read them last.
UZIP_DEVICE uint4 load_fresh(const uint4* place) { return __ldcg(place); }
UZIP_DEVICE void fence_for_all() { __threadfence_system(); }
/// Nanoseconds, from any beginning; steps are up to a microsecond wide.
UZIP_DEVICE uint64_t device_time_ns() {
  uint64_t now;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(now));
  return now;
}
#endif

/// Waits with an end: a rank that never answers must not keep a kernel.
class Patience {
 public:
  /// `given_up`: a word that is not 0 when the call has failed, see PeerFlags.
  UZIP_DEVICE Patience(uint64_t deadline_ns, const uint64_t* given_up)
      : deadline_ns_(deadline_ns), given_up_(given_up) {}
  UZIP_DEVICE bool is_over() {
    if (over_ || ++turns_ % 1024 != 0) return over_;
    const uint64_t now = device_time_ns();
    if (begin_ == 0) begin_ = now;
    if (now - begin_ > deadline_ns_) over_ = true;
    look();
    return over_;
  }
  /// Ends at once if the call has failed already.
  UZIP_DEVICE void look() {
    if (load_shared_word(given_up_) != 0) over_ = true;
  }
  UZIP_DEVICE bool has_ended() const { return over_; }

 private:
  uint64_t deadline_ns_;
  const uint64_t* given_up_;
  uint64_t begin_ = 0;
  uint32_t turns_ = 0;
  bool over_ = false;
};

/// As the fault of a call: another rank did not answer, or has failed.
inline constexpr uint64_t kTimedOut = ~uint64_t{0};

/// How a call between ranks ends: the words to write.
struct CallEnd {
  uint64_t* given_up[kMostPeerRanks];  ///< of all ranks, see PeerFlags
  uint64_t ticket;
  uint64_t* done;  ///< in memory of the host
  uint64_t* fault;
  uint64_t* reason;   ///< kDamaged, if another rank was the one that found that
  uint32_t* counter;  ///< of thread blocks that have ended; 0 before and after
  uint32_t rank;
  uint32_t ranks;
};

/// By one thread of each thread block when all others are done. `failure`: 0, or a PeerEnd, which
/// is said to all ranks before anything that follows. The last block says that the call is done,
/// and calls `announce` before if no rank has failed; else there is a fault, this rank's own or
/// kTimedOut, or a reason.
template <class Announce>
UZIP_DEVICE void end_call(const CallEnd& end, uint64_t failure, const Announce& announce) {
  if (failure != 0)
    for (unsigned rank = 0; rank < end.ranks; ++rank) store_for_all(end.given_up[rank], failure);
  fence_for_all();
  if (atomic_add(end.counter, 1) + 1 != grid_size()) return;
  *end.counter = 0;
  const uint64_t reason = load_from_others(end.given_up[end.rank]);
  if (reason == 0)
    announce();
  else if (load_from_others(end.fault) == 0)
    store_for_all(reason == kDamaged ? end.reason : end.fault,
                  reason == kDamaged ? uint64_t{kDamaged} : kTimedOut);
  store_for_all(end.done, end.ticket);
}

}  // namespace uzip::gpu
