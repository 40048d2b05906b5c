// Cores of ranks that are bound, not bound, and on other hosts.
#include "../../perf/usable_cores.hpp"

#include <gtest/gtest.h>

namespace perf {
namespace {

std::vector<uint64_t> sets_of(std::initializer_list<uint64_t> lowest_words) {
  std::vector<uint64_t> sets;
  for (uint64_t word : lowest_words) {
    sets.push_back(word);
    sets.resize(sets.size() + kCoreSetWords - 1);
  }
  return sets;
}

TEST(UsableCores, BoundRanksHaveTheirCoresTogether) {
  EXPECT_EQ(cores_of_first_host({"a", "a"}, sets_of({0b01, 0b10})), 2);
  EXPECT_EQ(cores_of_first_host({"a", "a", "a"}, sets_of({0b0110, 0b1100, 0b0010})), 3);
}

TEST(UsableCores, SharedCoresCountOnce) {
  EXPECT_EQ(cores_of_first_host({"a", "a"}, sets_of({0b11, 0b11})), 2);
}

TEST(UsableCores, OtherHostsDoNotCount) {
  EXPECT_EQ(cores_of_first_host({"a", "b", "a"}, sets_of({0b001, 0b110, 0b001})), 1);
}

TEST(UsableCores, CoresOfAllWords) {
  std::vector<uint64_t> sets = sets_of({1});
  sets.back() = uint64_t{1} << 63;
  EXPECT_EQ(cores_of_first_host({"a"}, sets), 2);
}

TEST(UsableCores, ThisProcessHasSome) {
  EXPECT_GE(cores_of_first_host({"here"}, own_core_set()), 1);
}

}  // namespace
}  // namespace perf
