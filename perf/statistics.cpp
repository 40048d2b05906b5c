#include "statistics.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace perf {
namespace {

// Student's t for two-sided 95 %, by degrees of freedom from 1.
constexpr double kStudent[] = {12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                               2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093};
static_assert(std::size(kStudent) == kBatches - 1);

}  // namespace

double mean(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double quantile(const std::vector<double>& sorted, double fraction) {
  const double at = fraction * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(at);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return std::lerp(sorted[below], sorted[above], at - static_cast<double>(below));
}

std::vector<double> batch_values(const std::vector<double>& times, bool medians) {
  const size_t batches = std::min(times.size(), kBatches);
  std::vector<double> values;
  for (size_t b = 0; b < batches; ++b) {
    const auto at = [&](size_t batch) {
      return times.begin() + static_cast<std::ptrdiff_t>(times.size() * batch / batches);
    };
    std::vector<double> batch(at(b), at(b + 1));
    std::ranges::sort(batch);
    values.push_back(medians ? quantile(batch, 0.5) : mean(batch));
  }
  return values;
}

double half_width(const std::vector<double>& batches) {
  const size_t n = batches.size();
  if (n < kFewestBatches) return std::numeric_limits<double>::infinity();
  const double middle = mean(batches);
  double squares = 0;
  for (double value : batches) squares += (value - middle) * (value - middle);
  const double deviation = std::sqrt(squares / static_cast<double>(n - 1));
  return kStudent[std::min(n, kBatches) - 2] * deviation / std::sqrt(static_cast<double>(n));
}

}  // namespace perf
