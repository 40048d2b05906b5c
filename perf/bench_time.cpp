#include "bench_time.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;

// Where --ci gives up: the machine is too restless.
constexpr int kMostRepetitions = 100;
constexpr double kMostSeconds = 60;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Of one value for each rank.
double over_ranks(Average average, const std::vector<double>& values) {
  switch (average) {
    case Average::kRank0:
      return values.front();
    case Average::kMin:
      return *std::ranges::min_element(values);
    case Average::kMax:
      return *std::ranges::max_element(values);
    case Average::kMean:
      break;
  }
  return mean(values);
}

// The library and its peers take turns, a call each, in all orders one after the other: each comes after each other one
// about equally often. Who always follows the same one finds the caches as that one left them. (Rotation was not enough: of three,
// two of three calls of the library came after UCC's, whose peers read a rank's own part of the result of an all-gather, so
// that writing it again took twice the time.)
class Timer {
 public:
  Timer(const Case& bench, size_t bytes, bool in_place,
        const std::vector<std::unique_ptr<Peer>>& peers)
      : bench_(bench),
        layout_(bench.layout_of(bytes)),
        in_place_(in_place),
        options_(bench.options.call_options()) {
    for (const std::unique_ptr<Peer>& peer : peers)
      if (peer->can_run(layout_)) peers_.push_back(peer.get());
    times_.resize(1 + peers_.size());
    order_.resize(times_.size());
    std::iota(order_.begin(), order_.end(), size_t{0});
    arm();
    fill_source();
  }

  Timing measure() {
    const Clock::time_point start = Clock::now();
    for (int i = 0; i < bench_.options.warmup; ++i) take_turns();
    for (std::vector<double>& times : times_) times.clear();
    bench_.world.barrier();
    std::vector<CallTimes> all;
    for (int repetition = 0; repetition < kMostRepetitions; ++repetition) {
      for (int i = 0; i < bench_.options.iterations; ++i) take_turns();
      all.clear();
      for (const std::vector<double>& times : times_) all.push_back(summary(times));
      if (enough(all, seconds_since(start))) break;
    }
    return result(std::move(all));
  }

 private:
  // What is pushed is what is armed; without checks nobody has done it.
  void arm() const {
    bench_.buffers.source.arm(layout_.send * bench_.type.size);
    bench_.buffers.result.arm((in_place_ ? layout_.largest() : layout_.receive) * bench_.type.size);
  }

  // An in-place reduction replaces its input. Summing sums again would soon compress like nothing
  // real, so each call gets the same input anew, from the other buffer.
  bool replaces_input() const { return in_place_ && bench_.operation.reduces; }

  void fill_source() const {
    const bool apart = !in_place_ || replaces_input();
    bench_.sample.fill(bench_.source(layout_, !apart), sample_start(bench_.world.rank()), layout_.send);
    (apart ? bench_.buffers.source : bench_.buffers.result).push();
  }

  void restore_input() const {
    bench_.buffers.result.copy_from(bench_.buffers.source, bench_.source(layout_, true),
                                    layout_.send * bench_.type.size);
  }

  void take_turns() {
    for (const size_t who : order_) who == 0 ? run_own() : run_peer(who);
    std::ranges::next_permutation(order_);
  }

  void run_own() {
    if (replaces_input()) restore_input();
    // Ranks restore it in different times, which is not the operation's.
    if (replaces_input() || !peers_.empty()) bench_.world.barrier();
    const Clock::time_point start = Clock::now();
    require(bench_.run(layout_, in_place_, options_, &info_), bench_.operation.name);
    times_[0].push_back(seconds_since(start));
  }

  // Whoever blocks in another library doesn't progress this one, and the other way round. The library's
  // barrier tells that all ranks have finished its operation and received what this rank sent, so
  // none needs it any more; the peer's barrier tells the same of its operation before the library is
  // entered again. Both are outside of the measured time and let all ranks start together.
  void run_peer(size_t who) {
    bench_.world.barrier();
    const Clock::time_point start = Clock::now();
    peers_[who - 1]->run(layout_);
    times_[who].push_back(seconds_since(start));
    peers_[who - 1]->barrier();
  }

  // All ranks decide alike: by what they have gathered, and by rank 0's clock.
  bool enough(const std::vector<CallTimes>& all, double seconds) const {
    const double wanted = bench_.options.precision;
    if (wanted == 0) return true;
    const double mine[] = {seconds};
    if (bench_.world.gather(mine).front() > kMostSeconds) return true;
    return std::ranges::all_of(
        all, [=](const CallTimes& times) { return times.precision() <= wanted; });
  }

  CallTimes summary(const std::vector<double>& times) const {
    std::vector<double> sorted = times;
    std::ranges::sort(sorted);
    std::vector<double> mine = {mean(times), quantile(sorted, 0.5), quantile(sorted, 0.9),
                                quantile(sorted, 0.99)};
    const std::vector<double> batches = batch_values(times, bench_.options.median);
    mine.insert(mine.end(), batches.begin(), batches.end());
    const std::vector<double> gathered = bench_.world.gather(mine);
    std::vector<double> averaged;
    for (size_t i = 0; i < mine.size(); ++i) {
      std::vector<double> of_ranks;
      for (size_t at = i; at < gathered.size(); at += mine.size()) of_ranks.push_back(gathered[at]);
      averaged.push_back(over_ranks(bench_.options.average, of_ranks));
    }
    return {.mean = averaged[0],
            .p50 = averaged[1],
            .p90 = averaged[2],
            .p99 = averaged[3],
            .calls = times.size(),
            .batches = {averaged.begin() + 4, averaged.end()}};
  }

  Timing result(std::vector<CallTimes> all) const {
    Timing timing;
    timing.times = std::move(all.front());
    timing.time = bench_.options.median ? timing.times.p50 : timing.times.mean;
    for (size_t i = 0; i < peers_.size(); ++i)
      timing.versus.push_back({peers_[i]->kind(), peers_[i]->description(), std::move(all[i + 1])});
    if (info_.algorithm != nullptr) timing.algorithm = info_.algorithm;
    if (info_.codec != nullptr) timing.codec = info_.codec;
    timing.chunk_bytes = info_.chunk_bytes;
    const uint64_t mine[] = {info_.payload_bytes, info_.wire_bytes};
    const std::vector<uint64_t> bytes = bench_.world.gather(mine);
    for (size_t i = 0; i < bytes.size(); i += 2) {
      timing.payload_bytes += bytes[i];
      timing.wire_bytes += bytes[i + 1];
    }
    return timing;
  }

  const Case& bench_;
  Layout layout_;
  bool in_place_;
  uzip_options_t options_;
  uzip_coll_info_t info_ = {sizeof(uzip_coll_info_t), nullptr, nullptr, 0, 0, 0};
  std::vector<Peer*> peers_;
  std::vector<std::vector<double>> times_;  // of the library, then of each peer
  std::vector<size_t> order_;               // of the next turn
};

}  // namespace

Timing time_calls(const Case& bench, size_t bytes, bool in_place,
                  const std::vector<std::unique_ptr<Peer>>& peers) {
  return Timer(bench, bytes, in_place, peers).measure();
}

}  // namespace perf
