#include "bench_overlap.hpp"

#include "statistics.hpp"

#include <algorithm>
#include <chrono>

namespace perf {
namespace {

using Clock = std::chrono::steady_clock;

constexpr uint64_t kTrialWork = 200000;
constexpr int kTrials = 5;

template <class Action>
double seconds_of(const Action& action) {
  const Clock::time_point start = Clock::now();
  action();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Work that needs a core and no memory. Measured in units of itself, not of time: whoever takes the core away from it
/// makes it longer.
void compute(uint64_t units) {
  static volatile double number = 0.5;  // a compiler that knew it could do without the loop
  double value = number;
  for (uint64_t i = 0; i < units; ++i) value = value * 0.999999 + 0.000001;
  number = value;
}

double median_of(std::vector<double> values) {
  std::ranges::sort(values);
  return quantile(values, 0.5);
}

}  // namespace

double Overlap::hidden() const {
  const double shorter = std::min(call, compute);
  return shorter > 0 ? std::clamp((call + compute - both) / shorter, 0.0, 1.0) : 0;
}

Overlap measure_overlap(const Case& bench, size_t bytes) {
  const Layout layout = bench.layout_of(bytes);
  const uzip_options_t options = bench.options.call_options();
  const auto call = [&] { require(bench.run(layout, false, options, nullptr), bench.operation.name); };
  bench.sample.fill(bench.source(layout, false), sample_start(bench.world.rank()), layout.send);
  bench.buffers.source.arm(layout.send * bench.type.size);
  bench.push();
  call();
  std::vector<double> trials;
  bench.world.barrier();
  for (int i = 0; i < kTrials; ++i) trials.push_back(seconds_of(call));
  double unit = 1;
  for (int i = 0; i < kTrials; ++i) unit = std::min(unit, seconds_of([] { compute(kTrialWork); }) / kTrialWork);
  const double mine[] = {median_of(trials) / unit};
  const auto work = static_cast<uint64_t>(mean(bench.world.gather(mine)));

  std::vector<double> calls, computations, both;
  for (int i = 0; i < bench.options.iterations; ++i) {
    bench.world.barrier();
    calls.push_back(seconds_of(call));
    bench.world.barrier();
    computations.push_back(seconds_of([&] { compute(work); }));
    bench.world.barrier();
    both.push_back(seconds_of([&] {
      uzip_request_t request = UZIP_REQUEST_NULL;
      require(bench.start(layout, options, &request), bench.operation.name);
      compute(work);
      require(uzip_wait(&request), bench.operation.name);
    }));
  }
  const double medians[] = {median_of(calls), median_of(computations), median_of(both)};
  const std::vector<double> all = bench.world.gather(medians);
  Overlap result;
  for (size_t i = 0; i < all.size(); i += 3) {
    result.call += all[i] / bench.world.ranks();
    result.compute += all[i + 1] / bench.world.ranks();
    result.both += all[i + 2] / bench.world.ranks();
  }
  return result;
}

}  // namespace perf
