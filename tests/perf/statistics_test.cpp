// Means, percentiles, batches and confidence intervals of times.
#include "../../perf/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>

namespace perf {
namespace {

TEST(Statistics, QuantilesLieBetweenNeighbours) {
  const std::vector<double> sorted = {1, 2, 4, 8};
  EXPECT_EQ(quantile(sorted, 0), 1);
  EXPECT_EQ(quantile(sorted, 0.5), 3);
  EXPECT_EQ(quantile(sorted, 1), 8);
  EXPECT_DOUBLE_EQ(quantile(sorted, 0.9), 4 + 0.7 * 4);
  EXPECT_EQ(quantile({5}, 0.99), 5);
}

TEST(Statistics, BatchesCoverAllCallsOnce) {
  for (size_t calls : {1u, 7u, 20u, 21u, 59u, 1000u}) {
    std::vector<double> times(calls);
    std::iota(times.begin(), times.end(), 1);
    const std::vector<double> batches = batch_values(times, false);
    ASSERT_EQ(batches.size(), std::min(calls, kBatches));
    EXPECT_TRUE(std::ranges::is_sorted(batches));
    if (calls % kBatches == 0) {
      EXPECT_DOUBLE_EQ(mean(batches), mean(times));
    }
  }
}

TEST(Statistics, BatchesMayBeMedians) {
  std::vector<double> times(kBatches * 3, 1);
  times[4] = 100;
  EXPECT_GT(batch_values(times, false)[1], 1);
  EXPECT_EQ(batch_values(times, true)[1], 1);
}

TEST(Statistics, HalfWidthIsStudents) {
  // Mean 3, standard deviation sqrt(2.5), t(4) = 2.776.
  EXPECT_NEAR(half_width({1, 2, 3, 4, 5}), 2.776 * std::sqrt(2.5 / 5), 1e-12);
  EXPECT_EQ(half_width({7, 7, 7, 7, 7, 7}), 0);
  EXPECT_TRUE(std::isinf(half_width({1, 1, 1, 1})));
}

// The interval holds the true mean in about 95 of 100 cases, also if neighbouring calls resemble each
// other: a hundred calls that share one disturbance are one observation, not a hundred.
TEST(Statistics, IntervalOfBatchesHoldsForCallsThatResembleTheirNeighbours) {
  std::mt19937 random(1);
  std::normal_distribution<double> normal;
  int hits = 0;
  constexpr int kTrials = 400;
  for (int trial = 0; trial < kTrials; ++trial) {
    std::vector<double> times;
    double drift = 0;
    for (int call = 0; call < 1000; ++call) {
      drift = 0.9 * drift + normal(random);
      times.push_back(100 + drift);
    }
    const std::vector<double> batches = batch_values(times, false);
    hits += std::abs(mean(batches) - 100) <= half_width(batches) ? 1 : 0;
  }
  EXPECT_GT(hits, kTrials * 0.91);
  EXPECT_LT(hits, kTrials * 0.98);
}

}  // namespace
}  // namespace perf
