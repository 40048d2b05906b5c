#include "bench_time.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The mean of the two middle values if their number is even.
double median(std::vector<double> values) {
  std::ranges::sort(values);
  const size_t middle = values.size() / 2;
  return values.size() % 2 == 1 ? values[middle] : (values[middle - 1] + values[middle]) / 2;
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

class Timer {
 public:
  Timer(const Case& bench, size_t bytes, bool in_place, const VersusMpi* versus)
      : bench_(bench),
        layout_(bench.layout_of(bytes)),
        in_place_(in_place),
        versus_(versus),
        options_(bench.options.call_options()) {
    fill_source();
  }

  void measure() {
    for (int i = 0; i < bench_.options.warmup; ++i) run_once();
    times_.clear();
    versus_times_.clear();
    bench_.world.barrier();
    for (int i = 0; i < bench_.options.iterations; ++i) run_once();
  }

  Timing summary() const {
    Timing timing;
    const Average average = bench_.options.average;
    timing.median = over_ranks(average, gather(median(times_)));
    timing.time = bench_.options.median ? timing.median : over_ranks(average, gather(mean(times_)));
    if (versus_ != nullptr)
      timing.versus_median = over_ranks(average, gather(median(versus_times_)));
    add_info(&timing);
    return timing;
  }

 private:
  void fill_source() const {
    bench_.sample.fill(bench_.source(layout_, in_place_), sample_start(bench_.world.rank()),
                       layout_.send);
  }

  void run_once() {
    // An in-place reduction replaces its input. Summing sums again would soon compress like nothing
    // real.
    if (in_place_ && bench_.operation.reduces) fill_source();
    if (versus_ != nullptr) bench_.world.barrier();
    const Clock::time_point start = Clock::now();
    require(bench_.run(layout_, in_place_, options_, &info_), bench_.operation.name);
    times_.push_back(seconds_since(start));
    if (versus_ != nullptr) run_versus();
  }

  // Whoever blocks in MPI doesn't progress the library, and the other way round. The library's
  // barrier tells that all ranks have finished its operation and received what this rank sent, so
  // none needs it any more; MPI's barrier tells the same of MPI's operation before the library is
  // entered again. Both are outside of the measured time and let all ranks start together.
  void run_versus() {
    bench_.world.barrier();
    const Clock::time_point start = Clock::now();
    versus_->run(bench_.source(layout_, false), bench_.result(layout_, false), layout_);
    versus_times_.push_back(seconds_since(start));
    VersusMpi::barrier();
  }

  std::vector<double> gather(double mine) const {
    const double values[] = {mine};
    return bench_.world.gather(values);
  }

  void add_info(Timing* timing) const {
    if (info_.algorithm != nullptr) timing->algorithm = info_.algorithm;
    if (info_.codec != nullptr) timing->codec = info_.codec;
    timing->chunk_bytes = info_.chunk_bytes;
    const uint64_t mine[] = {info_.payload_bytes, info_.wire_bytes};
    const std::vector<uint64_t> all = bench_.world.gather(mine);
    for (size_t i = 0; i < all.size(); i += 2) {
      timing->payload_bytes += all[i];
      timing->wire_bytes += all[i + 1];
    }
  }

  const Case& bench_;
  Layout layout_;
  bool in_place_;
  const VersusMpi* versus_;
  uzip_options_t options_;
  uzip_coll_info_t info_ = {sizeof(uzip_coll_info_t), nullptr, nullptr, 0, 0, 0};
  std::vector<double> times_;
  std::vector<double> versus_times_;
};

}  // namespace

Timing time_calls(const Case& bench, size_t bytes, bool in_place, const VersusMpi* versus) {
  Timer timer(bench, bytes, in_place, versus);
  timer.measure();
  return timer.summary();
}

}  // namespace perf
