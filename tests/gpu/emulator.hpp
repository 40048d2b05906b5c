// Runs the kernels of src/gpu on the CPU, all thread blocks at a time, so that they are tested
// where there is no GPU. Include it before any header of src/gpu.
//
// Every thread is a fiber; it runs until a barrier, a shuffle, or a look at a word that other blocks
// write, then the next one does. So a barrier that some threads miss is found, and results do not
// depend on luck: threads run forwards or backwards.
#pragma once

#include "base/float_convert.hpp"

#include <ucontext.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <vector>

#define UZIP_GPU_EMULATED 1
#define UZIP_DEVICE inline
#define UZIP_DEVICE_CALL inline
#define UZIP_HOST_DEVICE
#define UZIP_UNROLL
#define UZIP_NO_UNROLL

struct alignas(8) uint2 {
  uint32_t x, y;
};
struct alignas(16) uint4 {
  uint32_t x, y, z, w;
};
inline uint2 make_uint2(uint32_t x, uint32_t y) { return {x, y}; }
inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w) { return {x, y, z, w}; }

namespace uzip::gpu {

class Emulator {
 public:
  static Emulator& get() {
    static Emulator emulator;
    return emulator;
  }

  /// Calls `kernel` for `blocks` blocks of `threads` threads each.
  void launch(unsigned blocks, unsigned threads, const std::function<void()>& kernel,
              bool backwards = false) {
    launch_on(1, blocks, threads, kernel, backwards);
  }
  /// The same on several devices at a time, each with so many blocks; device() tells which.
  void launch_on(unsigned devices, unsigned blocks_each, unsigned threads,
                 const std::function<void()>& kernel, bool backwards = false) {
    const unsigned blocks = devices * blocks_each;
    kernel_ = &kernel;
    grid_ = blocks;
    blocks_each_ = blocks_each;
    threads_ = threads;
    meetings_.assign(blocks, {});
    fibers_.resize(std::max<size_t>(fibers_.size(), size_t{blocks} * threads));
    for (unsigned i = 0; i < blocks * threads; ++i) start(fibers_[i]);
    while (run(backwards)) {
    }
  }

  unsigned thread() const { return current_ % threads_; }
  unsigned block() const { return current_ / threads_ % blocks_each_; }
  unsigned grid() const { return blocks_each_; }
  unsigned device() const { return current_ / threads_ / blocks_each_; }

  /// Waits for all threads of a group of 32, or of the block; returns everybody's values.
  uint32_t exchange(uint32_t value, bool whole_block, unsigned from) {
    Fiber& own = fibers_[current_];
    own.value = value;
    own.state = whole_block ? State::kAtBarrier : State::kAtShuffle;
    pause();
    return whole_block ? own.kept : fibers_[current_ / 32 * 32 + from].kept;
  }
  uint32_t ballot(bool predicate) {
    exchange(predicate ? 1 : 0, false, 0);
    uint32_t bits = 0;
    for (unsigned l = 0; l < 32; ++l) bits |= fibers_[current_ / 32 * 32 + l].kept << l;
    return bits;
  }
  /// A barrier of so many threads of the block, of which some only say that they are there. Whether
  /// `predicate` was true on any; only for those that wait.
  bool meet(unsigned number, unsigned threads, bool waits, bool predicate) {
    Meeting& meeting = meetings_[current_ / threads_].at(number);
    meeting.any |= predicate;
    if (++meeting.arrived == threads) {
      meeting.was = meeting.any;
      meeting.any = false;
      meeting.arrived = 0;
      const unsigned first = current_ / threads_ * threads_;
      for (unsigned i = first; i < first + threads_; ++i)
        if (fibers_[i].state == State::kAtMeeting && fibers_[i].meeting == number)
          fibers_[i].state = State::kReady;
    } else if (waits) {
      fibers_[current_].meeting = number;
      fibers_[current_].state = State::kAtMeeting;
      pause();
    }
    return meeting.was;
  }
  unsigned threads() const { return threads_; }
  /// Lets others run.
  void pause() { swapcontext(&fibers_[current_].context, &scheduler_); }

 private:
  enum class State { kReady, kAtShuffle, kAtBarrier, kAtMeeting, kEnded };
  struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    State state = State::kReady;
    uint32_t value = 0;
    uint32_t kept = 0;
    unsigned meeting = 0;
  };
  struct Meeting {
    unsigned arrived = 0;
    bool any = false;
    bool was = false;
  };
  static constexpr size_t kStackBytes = 64 << 10;

  static void enter() {
    Emulator& emulator = get();
    (*emulator.kernel_)();
    emulator.fibers_[emulator.current_].state = State::kEnded;
    emulator.pause();
  }
  static void start(Fiber& fiber) {
    if (!fiber.stack) fiber.stack = std::make_unique<char[]>(kStackBytes);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = kStackBytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, enter, 0);
    fiber.state = State::kReady;
  }

  /// Each fiber that can goes on once. False: all have ended.
  bool run(bool backwards) {
    const unsigned count = grid_ * threads_;
    bool moved = false;
    for (unsigned i = 0; i < count; ++i) {
      current_ = backwards ? count - 1 - i : i;
      if (fibers_[current_].state != State::kReady) continue;
      moved = true;
      swapcontext(&scheduler_, &fibers_[current_].context);
    }
    for (unsigned group = 0; group < count; group += 32) moved |= release_group(group);
    for (unsigned block = 0; block < grid_; ++block) moved |= release_block(block * threads_);
    return moved;
  }

  bool release_group(unsigned first) {
    for (unsigned l = 0; l < 32; ++l)
      if (fibers_[first + l].state != State::kAtShuffle) return false;
    for (unsigned l = 0; l < 32; ++l) {
      fibers_[first + l].kept = fibers_[first + l].value;
      fibers_[first + l].state = State::kReady;
    }
    return true;
  }

  bool release_block(unsigned first) {
    uint32_t any = 0;
    unsigned states[5] = {};
    for (unsigned i = first; i < first + threads_; ++i) {
      any |= fibers_[i].value;
      ++states[static_cast<size_t>(fibers_[i].state)];
    }
    if (states[static_cast<size_t>(State::kReady)] > 0) return false;
    if (states[static_cast<size_t>(State::kEnded)] == threads_) return false;
    if (states[static_cast<size_t>(State::kAtMeeting)] > 0) fail("a barrier that too few threads come to");
    if (states[static_cast<size_t>(State::kAtShuffle)] > 0) fail("a shuffle that some lanes miss");
    if (states[static_cast<size_t>(State::kEnded)] > 0) fail("a barrier that some threads miss");
    for (unsigned i = first; i < first + threads_; ++i) {
      fibers_[i].kept = any;
      fibers_[i].state = State::kReady;
    }
    return true;
  }
  static void fail(const char* what) {
    std::fprintf(stderr, "emulator: %s\n", what);
    std::abort();
  }

  const std::function<void()>* kernel_ = nullptr;
  std::vector<Fiber> fibers_;
  std::vector<std::array<Meeting, 16>> meetings_;  ///< by block
  ucontext_t scheduler_;
  unsigned current_ = 0;
  unsigned grid_ = 0;
  unsigned blocks_each_ = 1;
  unsigned threads_ = 1;
};

inline constexpr bool kHasLargeBlocks = true;
inline unsigned thread_index() { return Emulator::get().thread(); }
inline unsigned block_index() { return Emulator::get().block(); }
inline unsigned grid_size() { return Emulator::get().grid(); }
inline void sync() { Emulator::get().exchange(0, true, 0); }
inline bool sync_or(bool predicate) {
  return Emulator::get().exchange(predicate ? 1 : 0, true, 0) != 0;
}
inline constexpr bool kHasPartialBarriers = true;
inline constexpr unsigned kCoders = 256;
inline bool sync_coders_or(bool predicate) {
  if (Emulator::get().threads() == kCoders) return sync_or(predicate);
  return Emulator::get().meet(1, kCoders, true, predicate);
}
inline void sync_coders() {
  if (Emulator::get().threads() == kCoders) return sync();
  static_cast<void>(Emulator::get().meet(1, kCoders, true, false));
}
template <unsigned kBarrier, unsigned kCount>
void wait_at() {
  static_cast<void>(Emulator::get().meet(kBarrier, kCount, true, false));
}
template <unsigned kBarrier, unsigned kCount>
void arrive_at() {
  static_cast<void>(Emulator::get().meet(kBarrier, kCount, false, false));
}
inline uint32_t shuffle(uint32_t value, unsigned lane) {
  return Emulator::get().exchange(value, false, lane % 32);
}
inline uint32_t shuffle_up(uint32_t value, unsigned distance) {
  const unsigned lane = thread_index() % 32;
  return Emulator::get().exchange(value, false, lane >= distance ? lane - distance : lane);
}
inline uint32_t ballot(bool predicate) { return Emulator::get().ballot(predicate); }
inline void sync_group() { ballot(true); }
inline unsigned taken_anew(unsigned value) { return value; }
inline uint2 load_constant(const uint2* place) { return *place; }
inline uint32_t byte_permute(uint32_t a, uint32_t b, uint32_t selector) {
  const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
  uint32_t result = 0;
  for (unsigned i = 0; i < 4; ++i)
    result |= static_cast<uint32_t>(both >> (8 * (selector >> (4 * i) & 7u)) & 0xffu) << (8 * i);
  return result;
}
inline unsigned count_bits(uint32_t word) { return static_cast<unsigned>(std::popcount(word)); }
inline unsigned lowest_bit(uint32_t word) { return static_cast<unsigned>(std::countr_zero(word)); }
inline float bits_to_float(uint32_t bits) { return std::bit_cast<float>(bits); }
inline uint32_t float_to_bits(float value) { return std::bit_cast<uint32_t>(value); }
inline double bits_to_double(uint64_t bits) { return std::bit_cast<double>(bits); }
inline uint64_t double_to_bits(double value) { return std::bit_cast<uint64_t>(value); }
inline float half_to_float(uint16_t bits) { return fp16_to_float(bits); }
inline uint16_t float_to_half(float value) { return float_to_fp16(value); }
inline uint32_t atomic_add(uint32_t* counter, uint32_t value) {
  const uint32_t before = *counter;
  *counter += value;
  return before;
}
inline uint32_t atomic_xor(uint32_t* place, uint32_t value) {
  const uint32_t before = *place;
  *place ^= value;
  return before;
}
inline void fence_device() {}
inline void atomic_max(uint64_t* place, uint64_t value) {
  if (value > *place) *place = value;
}
inline uint64_t load_shared_word(const uint64_t* place) {
  Emulator::get().pause();
  return *place;
}
inline void store_shared_word(uint64_t* place, uint64_t value) { *place = value; }

// ---- Words between devices: peer_words.hpp --------------------------------------------------------

inline void store_flagged(uint4* place, uint2 data, uint32_t flag) {
  *place = {data.x, flag, data.y, flag};
}
inline uint4 load_flagged(const uint4* place) {
  Emulator::get().pause();
  return *place;
}
inline void store_for_all(uint64_t* place, uint64_t value) { *place = value; }
inline void store_word_for_others(uint64_t* place, uint64_t value) { *place = value; }
inline uint64_t load_from_others(const uint64_t* place) { return load_shared_word(place); }
inline uint4 load_fresh(const uint4* place) { return *place; }
inline void fence_for_all() {}
/// Each look at the time takes a microsecond.
inline uint64_t device_time_ns() {
  static uint64_t now = 0;
  return now += 1000;
}

}  // namespace uzip::gpu
