// Symbolic values and the interval map, against arrays of single elements.
#include "algos/symbols.hpp"

#include "algos/interval_map.hpp"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace uzip {
namespace {

TEST(IntervalMap, IsAnArray) {
  constexpr size_t kSize = 50;
  IntervalMap<int> map;
  std::array<int, kSize> array{};
  std::minstd_rand random(1);
  for (int i = 1; i < 2000; ++i) {
    const size_t begin = random() % kSize;
    const size_t end = begin + random() % (kSize + 1 - begin);
    if (i % 2 == 0) {
      map.assign(begin, end, i);
      std::fill(array.begin() + begin, array.begin() + end, i);
    } else {
      map.for_each(begin, end, [&](int& value) { value += 7; });
      for (size_t k = begin; k < end; ++k) array[k] += 7;
    }
    for (size_t k = 0; k < kSize; ++k)
      map.for_each(k, k + 1, [&](int& value) { ASSERT_EQ(value, array[k]); });
  }
}

TEST(SymbolicMemory, IsAnArray) {
  constexpr size_t kSize = 60;
  SymbolicMemory memory;
  std::array<SymbolRun, kSize> array{};  // one element each; length 0: never written
  std::minstd_rand random(1);
  for (int i = 0; i < 2000; ++i) {
    const size_t begin = random() % kSize;
    const size_t length = random() % (kSize + 1 - begin);
    Symbols expected;
    bool written = true;
    for (size_t k = begin; k < begin + length; ++k) {
      written = written && array[k].length > 0;
      append_run(expected, array[k]);
    }
    Symbols found;
    ASSERT_EQ(memory.read(begin, length, &found), written);
    if (written) {
      ASSERT_EQ(found, expected);
    }

    Symbols value;
    for (size_t k = begin; k < begin + length;) {
      const size_t run = std::min<size_t>(1 + random() % 9, begin + length - k);
      const SymbolRun elements{run, static_cast<uint32_t>(random() % 3), k + random() % 2};
      append_run(value, elements);
      for (size_t j = 0; j < run; ++j) array[k + j] = {1, elements.expression, elements.index + j};
      k += run;
    }
    memory.write(begin, value);
  }
}

TEST(Expressions, AreEqualIfTheBitsAre) {
  Expressions expressions(3);
  const auto sum = [&](std::vector<uint32_t> operands, bool average = false) {
    return *expressions.reduce(operands, average);
  };
  EXPECT_EQ(sum({0, 1}), sum({1, 0}));
  EXPECT_EQ(sum({sum({0, 1}), 2}, true), sum({2, sum({1, 0})}, true));
  EXPECT_NE(sum({sum({0, 1}), 2}), sum({0, sum({1, 2})}));
  EXPECT_NE(sum({0, 1, 2}), sum({1, 0, 2}));
  EXPECT_NE(sum({0, 1, 2}), sum({sum({0, 1}), 2})) << "rounded once or twice";
  EXPECT_NE(sum({0, 1, 2}), sum({0, 1, 2}, true));
  EXPECT_EQ(expressions.text(sum({sum({0, 1}), 2})), "2 + (0 + 1)");
}

TEST(Expressions, RefuseWhatIsNoReduction) {
  Expressions expressions(2);
  const std::array<uint32_t, 2> twice{1, 1};
  EXPECT_FALSE(expressions.reduce(twice, false).ok());
  const std::array<uint32_t, 1> some{1};
  EXPECT_FALSE(expressions.reduce(some, true).ok());
  const std::array<uint32_t, 2> all{0, 1};
  const uint32_t average = *expressions.reduce(all, true);
  EXPECT_TRUE(expressions.complete(average));
  EXPECT_FALSE(expressions.reduce(std::array{average}, false).ok());
}

TEST(ReduceSymbols, CutsRunsAndComparesIndices) {
  Expressions expressions(2);
  const std::array<Symbols, 2> operands{Symbols{{5, 0, 10}}, Symbols{{2, 1, 10}, {3, 1, 12}}};
  const Result<Symbols> sum = reduce_symbols(expressions, operands, true);
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ(*sum, (Symbols{{5, 2, 10}})) << "equal neighbours are one run";
  const std::array<Symbols, 2> shifted{Symbols{{5, 0, 10}}, Symbols{{2, 1, 10}, {3, 1, 13}}};
  EXPECT_NE(
      reduce_symbols(expressions, shifted, true).status().message().find("element 13 of source 1"),
      std::string::npos);
}

}  // namespace
}  // namespace uzip
