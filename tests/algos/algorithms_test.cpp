// Every algorithm of the registry, proved for many numbers of ranks and elements.
#include "algos/algorithm.hpp"
#include "algos/collective_cases.hpp"
#include "algos/verify.hpp"

#include <gtest/gtest.h>

namespace uzip {
namespace {

constexpr int kMostRanks = 17;

class AlgorithmTest : public testing::TestWithParam<const Algorithm*> {};

void expect_verified(const Algorithm& algorithm, int size, Form form) {
  for (const Shape& shape : awkward_shapes(algorithm.coll, size)) {
    ASSERT_TRUE(algorithm.supports(shape)) << describe(algorithm, shape, form);
    const Status status = verify(build_schedules(algorithm, shape, form), shape, 1, 1);
    ASSERT_TRUE(status.ok()) << describe(algorithm, shape, form) << "\n" << status.message();
  }
}

TEST_P(AlgorithmTest, IsRightPlain) {
  for (int size = 1; size <= kMostRanks; ++size) expect_verified(*GetParam(), size, Form::kPlain);
}

TEST_P(AlgorithmTest, IsRightWithFrames) {
  for (int size = 1; size <= kMostRanks; ++size) expect_verified(*GetParam(), size, Form::kLowered);
}

TEST_P(AlgorithmTest, IsRightWithFramesInTwoParts) {
  for (int size = 1; size <= kMostRanks; ++size) expect_verified(*GetParam(), size, Form::kSplit);
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(coll_name(info.param->coll)) + "_" + info.param->name;
}

INSTANTIATE_TEST_SUITE_P(All, AlgorithmTest,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()), test_name);

}  // namespace
}  // namespace uzip
