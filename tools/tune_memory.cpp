#include "tune_memory.hpp"

#include "../perf/statistics.hpp"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <ctime>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace uzip {
namespace {

using Clock = std::chrono::steady_clock;
using perf::World;

/// What a piece of a call has on shared memory: two fit a core's own cache.
constexpr size_t kPiece = 256 << 10;
constexpr size_t kSmallPiece = 16 << 10;
constexpr size_t kSmallestBeyond = size_t{64} << 20;
constexpr int kTurns = 4;
constexpr int kExchanges = 40;
constexpr size_t kInFlight = 3;
constexpr int kYields = 2000;
constexpr int kTag = 9;

double mean_of(const World& world, double mine) {
  const double values[] = {mine};
  return perf::mean(world.gather(values));
}

/// Seconds that a core takes to copy a byte, where source and destination have `bytes` each and are copied again and again.
double copy_byte(size_t bytes) {
  std::vector<std::byte> src(bytes, std::byte{1}), dst(bytes, std::byte{2});
  const size_t piece = std::min(kPiece, bytes);
  const size_t rounds = std::max<size_t>(kSmallestBeyond / bytes, 1);
  const double seconds = least_seconds(kTurns, [&] {
    for (size_t round = 0; round < rounds; ++round) {
      for (size_t at = 0; at + piece <= bytes; at += piece) {
        std::memcpy(dst.data() + at, src.data() + at, piece);
        asm volatile("" : : "r"(dst.data()) : "memory");
      }
    }
  });
  return seconds / static_cast<double>(rounds * (bytes / piece) * piece);
}

/// Of the cache of this level, or 0. As the kernel has it: sysconf() adds up what a virtual machine only shares.
double cache_bytes(int level) {
  for (int index = 0; index < 8; ++index) {
    const std::string folder = "/sys/devices/system/cpu/cpu0/cache/index" + std::to_string(index) + "/";
    int found = 0;
    double kilobytes = 0;
    std::string type;
    std::ifstream(folder + "level") >> found;
    std::ifstream(folder + "type") >> type;
    std::ifstream(folder + "size") >> kilobytes;  // "32768K"
    if (found == level && type != "Instruction") return kilobytes * 1024;
  }
  return 0;
}

/// Two threads on one core that do nothing but yield to one another.
double change_seconds() {
  cpu_set_t before, one;
  const int core = sched_getcpu();
  if (core < 0 || sched_getaffinity(0, sizeof before, &before) != 0) return 0;
  CPU_ZERO(&one);
  CPU_SET(static_cast<size_t>(core), &one);
  double seconds = 0;
  const auto yield = [&] {
    if (sched_setaffinity(0, sizeof one, &one) != 0) return;
    const auto start = Clock::now();
    for (int i = 0; i < kYields; ++i) sched_yield();
    seconds = std::chrono::duration<double>(Clock::now() - start).count();
  };
  std::thread other([&] {
    if (sched_setaffinity(0, sizeof one, &one) != 0) return;
    for (int i = 0; i < kYields; ++i) sched_yield();
  });
  yield();
  other.join();
  sched_setaffinity(0, sizeof before, &before);
  return seconds / (2 * kYields);
}

size_t beyond_bytes(const MachineModel& model) {
  return std::max(kSmallestBeyond, 2 * static_cast<size_t>(model.cache) / kPiece * kPiece);
}
/// The arrays of all ranks together fit the last cache well.
size_t cached_bytes(const World& world, const MachineModel& model) {
  const auto cores = std::clamp<size_t>(static_cast<size_t>(world.ranks()), 1, static_cast<size_t>(model.cores_per_host));
  return std::max(static_cast<size_t>(model.cache) / (8 * cores), kPiece) / kPiece * kPiece;
}

/// Each rank sends pieces of `bytes`, a few at a time as rounds in flight do, and receives as many.
class Exchanges {
 public:
  Exchanges(const World& world, std::pair<int, int> partners, size_t array)
      : world_(world), partners_(partners), src_(std::max(array, kInFlight * kPiece), std::byte{1}), dst_(kInFlight * kPiece) {}

  /// Seconds of a piece on the slowest rank: the lower quartile. `fresh`: what is sent has just been written.
  double seconds(size_t bytes, bool fresh) {
    std::vector<double> times;
    for (int i = 0; i < kExchanges; ++i) {
      std::byte* pieces = src_.data() + place_;
      place_ += kInFlight * kPiece;
      if (place_ + kInFlight * kPiece > src_.size()) place_ = 0;
      for (size_t k = 0; fresh && k < kInFlight; ++k) std::memset(pieces + k * kPiece, i, bytes);
      world_.barrier();
      const auto start = Clock::now();
      uzip_request_t requests[2 * kInFlight] = {};
      for (size_t k = 0; k < kInFlight; ++k) {
        perf::require(uzip_irecv(dst_.data() + k * kPiece, bytes, UZIP_UINT8, partners_.second, kTag, world_.comm(), &requests[k]),
                      "irecv");
      }
      for (size_t k = 0; k < kInFlight; ++k) {
        perf::require(uzip_isend(pieces + k * kPiece, bytes, UZIP_UINT8, partners_.first, kTag, world_.comm(),
                                 &requests[kInFlight + k]),
                      "isend");
      }
      perf::require(uzip_waitall(2 * kInFlight, requests, nullptr), "waitall");
      const double mine[] = {std::chrono::duration<double>(Clock::now() - start).count() / kInFlight};
      times.push_back(std::ranges::max(world_.gather(mine)));
    }
    std::ranges::sort(times);
    return perf::quantile(times, 0.25);
  }

 private:
  const World& world_;
  std::pair<int, int> partners_;
  std::vector<std::byte> src_;
  std::vector<std::byte> dst_;
  size_t place_ = 0;
};

}  // namespace

double processor_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void measure_memory(const World& world, MachineModel& model) {
  model.core_cache = cache_bytes(2);
  model.cache = std::max(cache_bytes(3), model.core_cache);
  double alone = 0;
  if (world.is_root()) {
    alone = copy_byte(beyond_bytes(model));
    model.change = change_seconds();
  }
  const double of_root[] = {alone, model.change};
  const std::vector<double> all = world.gather(of_root);  // all others wait
  alone = all[0];
  model.change = all[1];
  world.barrier();
  const double own = mean_of(world, copy_byte(kPiece / 2));
  world.barrier();
  const double last = mean_of(world, copy_byte(cached_bytes(world, model)));
  world.barrier();
  const double together = mean_of(world, copy_byte(beyond_bytes(model)));
  model.copy = 1 / own;
  // A copy reads a byte and writes one.
  model.far = std::max(last - own, 0.0) / 2;
  model.memory = std::max(alone - last, 0.0) / 2;
  model.crowd = alone > last ? std::max((together - last) / (alone - last), 1.0) : 1;
}

void measure_reads(const World& world, std::pair<int, int> partners, const MachineModel& model, LinkModel& link) {
  Exchanges cached(world, partners, cached_bytes(world, model));
  const double small = cached.seconds(kSmallPiece, false);
  const double rested = cached.seconds(kPiece, false), written = cached.seconds(kPiece, true);
  const double missed = Exchanges(world, partners, beyond_bytes(model)).seconds(kPiece, false);
  // What the library does for each message is no part of a byte's time.
  link.bandwidth = (kPiece - kSmallPiece) / std::max(rested - small, 1e-9);
  link.fresh = std::max(written - rested, 0.0) / kPiece;
  link.memory = std::max(missed - rested, 0.0) / kPiece / model.crowd;
}

}  // namespace uzip
