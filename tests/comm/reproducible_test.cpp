// UZIP_REPRODUCIBLE: an element has the same bits alone, or anywhere in a larger call, whatever the size of the pieces.
#include "algos/algorithm.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace uzip {
namespace {

constexpr size_t kElements = 301;

/// Sums of these depend on the order of their operands.
std::vector<std::vector<float>> random_values(int ranks) {
  std::mt19937 random(4711);
  std::normal_distribution<float> normal;
  std::vector<std::vector<float>> values(static_cast<size_t>(ranks), std::vector<float>(kElements));
  for (auto& rank : values)
    for (float& value : rank) value = std::ldexp(normal(random), static_cast<int>(random() % 20));
  return values;
}

/// The results of all ranks for elements [begin, begin + count), one after another; of a reduce the root's only.
class Reproducible {
 public:
  Reproducible(int ranks, bool reproducible) : values_(random_values(ranks)), job_(ranks, {}, config_of(reproducible)) {}

  std::vector<float> run(uzip_coll_t coll, size_t begin, size_t count, const char* algorithm, size_t chunk) {
    const size_t ranks = values_.size();
    uzip_options_t options = UZIP_OPTIONS_INIT;
    options.algorithm = algorithm;
    options.chunk_bytes = chunk;
    std::vector<std::vector<float>> in(ranks), out(ranks, std::vector<float>(count));
    for (size_t r = 0; r < ranks; ++r) {
      const auto first = values_[r].begin() + static_cast<ptrdiff_t>(begin);
      // Of a reduce-scatter every block is of the same elements.
      for (size_t copy = 0; copy < (coll == UZIP_REDUCE_SCATTER ? ranks : 1); ++copy)
        in[r].insert(in[r].end(), first, first + static_cast<ptrdiff_t>(count));
    }
    statuses_ = job_.run([&](int rank) {
      const auto r = static_cast<size_t>(rank);
      uzip_coll_args_t call = make_call(coll, in[r].data(), out[r].data(), count);
      call.options = &options;
      return call;
    });
    std::vector<float> all;
    for (const auto& result : out) all.insert(all.end(), result.begin(), result.end());
    return all;
  }

  std::string wrong() const { return expect_all(statuses_, UZIP_OK); }
  const std::vector<Status>& statuses() const { return statuses_; }

 private:
  static Config config_of(bool reproducible) {
    Config config;
    config.reproducible = reproducible;
    return config;
  }

  std::vector<std::vector<float>> values_;
  LoopbackJob job_;
  std::vector<Status> statuses_;
};

/// How many elements of calls of other sizes have other bits than in the large one.
size_t count_differences(Reproducible& job, uzip_coll_t coll, const char* algorithm, int ranks) {
  const std::vector<float> large = job.run(coll, 0, kElements, algorithm, 0);
  EXPECT_EQ(job.wrong(), "");
  size_t differences = 0;
  const struct { size_t begin, count, chunk; } kParts[] = {
      {0, kElements, 40}, {0, kElements, 4}, {100, 1, 0}, {100, 37, 0}, {299, 2, 0}, {7, 200, 64}};
  for (const auto& [begin, count, chunk] : kParts) {
    const std::vector<float> part = job.run(coll, begin, count, algorithm, chunk);
    EXPECT_EQ(job.wrong(), "");
    for (size_t r = 0; r < static_cast<size_t>(ranks); ++r)
      for (size_t i = 0; i < count; ++i)
        differences += std::memcmp(&part[r * count + i], &large[r * kElements + begin + i], sizeof(float)) != 0;
  }
  return differences;
}

constexpr std::pair<uzip_coll_t, Coll> kReductions[] = {{UZIP_ALLREDUCE, Coll::kAllreduce},
                                                        {UZIP_REDUCE_SCATTER, Coll::kReduceScatter},
                                                        {UZIP_REDUCE, Coll::kReduce},
                                                        {UZIP_SCAN, Coll::kScan},
                                                        {UZIP_EXSCAN, Coll::kExscan}};

TEST(ReproducibleTest, OwnChoiceGivesAnElementTheSameBitsEverywhere) {
  for (int ranks : {2, 3, 5, 8}) {
    Reproducible job(ranks, true);
    for (const auto& [coll, unused] : kReductions)
      EXPECT_EQ(count_differences(job, coll, nullptr, ranks), 0u) << coll << ", " << ranks << " ranks";
  }
}

// What the records say of themselves.
TEST(ReproducibleTest, AlgorithmsKeepTheOrderTheyPromise) {
  Reproducible job(5, true);
  for (const auto& [coll, kind] : kReductions) {
    for (const Algorithm* algorithm : algorithms()) {
      if (algorithm->coll != kind) continue;
      EXPECT_NE(algorithm->order, Order::kMoves) << coll_name(kind) << " " << algorithm->name;
      if (algorithm->order == Order::kByPlace) continue;
      EXPECT_EQ(count_differences(job, coll, algorithm->name, 5), 0u) << coll_name(kind) << " " << algorithm->name;
    }
  }
}

TEST(ReproducibleTest, AlgorithmsThatGoByPlaceAreRefused) {
  Reproducible strict(5, true), free(5, false);
  for (uzip_coll_t coll : {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER}) {
    strict.run(coll, 0, 10, "ring", 0);
    EXPECT_EQ(expect_all(strict.statuses(), UZIP_ERR_UNSUPPORTED, "UZIP_REPRODUCIBLE"), "");
  }
  // And for a reason.
  EXPECT_GT(count_differences(free, UZIP_ALLREDUCE, "ring", 5), 0u);
}

}  // namespace
}  // namespace uzip
