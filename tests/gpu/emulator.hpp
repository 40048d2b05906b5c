// Runs the kernels of src/gpu on the CPU, one thread block after another, so that they are tested
// where there is no GPU. Include it before any header of src/gpu, in one file of a program.
//
// Every thread of a block is a fiber; it runs until a barrier or a shuffle, then the next one does.
// So a barrier that some threads miss is found, and results do not depend on luck: `order` runs the
// threads forwards or backwards.
#pragma once

#include "base/float_convert.hpp"

#include <ucontext.h>

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

/// The block of threads that runs.
class Emulator {
 public:
  static Emulator& get() {
    static Emulator emulator;
    return emulator;
  }

  /// Calls `kernel` for `blocks` blocks of `threads` threads each.
  void launch(unsigned blocks, unsigned threads, const std::function<void()>& kernel,
              bool backwards = false) {
    kernel_ = &kernel;
    grid_ = blocks;
    fibers_.resize(threads);
    for (block_ = 0; block_ < blocks; ++block_) run_block(backwards);
  }

  unsigned thread() const { return current_; }
  unsigned block() const { return block_; }
  unsigned grid() const { return grid_; }

  /// Waits for all threads of a group of 32, or of the block; returns everybody's values.
  uint32_t exchange(uint32_t value, bool whole_block, unsigned from) {
    Fiber& own = fibers_[current_];
    own.value = value;
    own.state = whole_block ? State::kAtBarrier : State::kAtShuffle;
    yield();
    const uint32_t result = whole_block ? any_ : fibers_[current_ / 32 * 32 + from].kept;
    return result;
  }
  uint32_t ballot(bool predicate) {
    exchange(predicate ? 1 : 0, false, 0);
    uint32_t bits = 0;
    for (unsigned l = 0; l < 32; ++l) bits |= fibers_[current_ / 32 * 32 + l].kept << l;
    return bits;
  }

 private:
  enum class State { kReady, kAtShuffle, kAtBarrier, kEnded };
  struct Fiber {
    ucontext_t context;
    std::unique_ptr<char[]> stack;
    State state = State::kReady;
    uint32_t value = 0;
    uint32_t kept = 0;
  };
  static constexpr size_t kStackBytes = 64 << 10;

  static void enter() {
    Emulator& emulator = get();
    (*emulator.kernel_)();
    emulator.fibers_[emulator.current_].state = State::kEnded;
    emulator.yield();
  }
  void yield() { swapcontext(&fibers_[current_].context, &scheduler_); }

  void run_block(bool backwards) {
    const auto count = static_cast<unsigned>(fibers_.size());
    for (Fiber& fiber : fibers_) {
      if (!fiber.stack) fiber.stack = std::make_unique<char[]>(kStackBytes);
      getcontext(&fiber.context);
      fiber.context.uc_stack.ss_sp = fiber.stack.get();
      fiber.context.uc_stack.ss_size = kStackBytes;
      fiber.context.uc_link = nullptr;
      makecontext(&fiber.context, enter, 0);
      fiber.state = State::kReady;
    }
    for (;;) {
      for (unsigned i = 0; i < count; ++i) {
        current_ = backwards ? count - 1 - i : i;
        if (fibers_[current_].state == State::kReady)
          swapcontext(&scheduler_, &fibers_[current_].context);
      }
      bool moved = false;
      for (unsigned group = 0; group < count; group += 32) moved |= release_group(group);
      if (!moved && !release_block()) return;
    }
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

  /// False: all threads have ended.
  bool release_block() {
    any_ = 0;
    size_t ended = 0;
    for (const Fiber& fiber : fibers_) {
      if (fiber.state == State::kEnded) ++ended;
      if (fiber.state == State::kAtShuffle) fail("a shuffle that some lanes miss");
      any_ |= fiber.value;
    }
    if (ended == fibers_.size()) return false;
    if (ended > 0) fail("a barrier that some threads miss");
    for (Fiber& fiber : fibers_) fiber.state = State::kReady;
    return true;
  }
  static void fail(const char* what) {
    std::fprintf(stderr, "emulator: %s\n", what);
    std::abort();
  }

  const std::function<void()>* kernel_ = nullptr;
  std::vector<Fiber> fibers_;
  ucontext_t scheduler_;
  unsigned current_ = 0;
  unsigned block_ = 0;
  unsigned grid_ = 0;
  uint32_t any_ = 0;
};

inline unsigned thread_index() { return Emulator::get().thread(); }
inline unsigned block_index() { return Emulator::get().block(); }
inline unsigned grid_size() { return Emulator::get().grid(); }
inline void sync() { Emulator::get().exchange(0, true, 0); }
inline bool sync_or(bool predicate) {
  return Emulator::get().exchange(predicate ? 1 : 0, true, 0) != 0;
}
inline uint32_t shuffle(uint32_t value, unsigned lane) {
  return Emulator::get().exchange(value, false, lane % 32);
}
inline uint32_t shuffle_up(uint32_t value, unsigned distance) {
  const unsigned lane = thread_index() % 32;
  return Emulator::get().exchange(value, false, lane >= distance ? lane - distance : lane);
}
inline uint32_t ballot(bool predicate) { return Emulator::get().ballot(predicate); }
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
inline void atomic_max(uint64_t* place, uint64_t value) {
  if (value > *place) *place = value;
}
inline uint64_t load_shared_word(const uint64_t* place) { return *place; }
inline void copy_16_async(void* shared, const void* global) { std::memcpy(shared, global, 16); }
inline void commit_copies() {}
template <int kNewer>
void wait_copies() {}
inline void store_shared_word(uint64_t* place, uint64_t value) { *place = value; }

}  // namespace uzip::gpu
