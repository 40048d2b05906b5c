// The data of the measuring programs with known results: whatever the order in which the ranks'
// contributions are reduced, and although partial results are rounded to the type, the result is
// the predicted one, to the bit.
#include "../../perf/exact_data.hpp"

#include "base/reduce.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

namespace perf {
namespace {

constexpr size_t kCount = 10007;  // several blocks of equal scale

using Elements = std::vector<std::byte>;

// Reduces `parts` in pairs of random choice until one is left, each partial result in `type`.
Elements reduce_in_random_order(const ElementType& type, uzip_op_t op, std::vector<Elements> parts,
                                std::mt19937& random) {
  const size_t ranks = parts.size();
  if (ranks == 1) {
    const void* const source[] = {parts[0].data()};
    uzip::reduce(op, type.type, parts[0].data(), source, kCount, ranks);
  }
  while (parts.size() > 1) {
    std::shuffle(parts.begin(), parts.end(), random);
    const Elements right = std::move(parts.back());
    parts.pop_back();
    Elements& left = parts.back();
    const void* const sources[] = {left.data(), right.data()};
    uzip::reduce(op, type.type, left.data(), sources, kCount, parts.size() == 1 ? ranks : 0);
  }
  return parts[0];
}

class ExactData : public testing::TestWithParam<ElementType> {};

TEST_P(ExactData, EveryOrderGivesThePredictedBits) {
  std::mt19937 random(1);
  for (uzip_op_t op : {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX, UZIP_AVG}) {
    for (int ranks : {1, 2, 3, 4, 7, 33}) {
      std::vector<Elements> parts;
      for (int rank = 0; rank < ranks; ++rank) {
        parts.emplace_back(kCount * GetParam().size);
        exact_contribution(GetParam(), op, rank, ranks, kCount)
            .fill(parts.back().data(), 0, kCount);
      }
      const Elements result = reduce_in_random_order(GetParam(), op, std::move(parts), random);
      EXPECT_EQ(
          exact_result(GetParam(), op, ranks, kCount).count_differences(result.data(), 0, kCount),
          0u)
          << uzip_op_name(op) << " of " << ranks << " ranks";
    }
  }
}

// A piece that lands elsewhere, or a rank that is left out, must show.
TEST_P(ExactData, DisplacedOrMissingContributionsShow) {
  const Pattern result = exact_result(GetParam(), UZIP_SUM, 3, kCount);
  Elements displaced(kCount * GetParam().size);
  result.fill(displaced.data(), 64, kCount);
  EXPECT_GT(result.count_differences(displaced.data(), 0, kCount), kCount / 2);

  Elements zeros(kCount * GetParam().size);
  for (int rank = 0; rank < 3; ++rank) {
    const Pattern given = exact_contribution(GetParam(), UZIP_SUM, rank, 3, kCount);
    EXPECT_GT(given.count_differences(zeros.data(), 0, kCount), kCount / 4) << "rank " << rank;
  }
}

TEST_P(ExactData, MovedElementsAreOfEveryKind) {
  Elements moved(kCount * GetParam().size);
  exact_moved(GetParam(), kCount).fill(moved.data(), 0, kCount);
  Elements zero(GetParam().size);
  size_t zeros = 0;
  for (size_t i = 0; i < kCount; ++i) {
    zeros += std::equal(zero.begin(), zero.end(),
                        moved.begin() + static_cast<ptrdiff_t>(i * zero.size()));
  }
  EXPECT_GT(zeros, 0u);
  EXPECT_LT(zeros, kCount / 2);
}

INSTANTIATE_TEST_SUITE_P(AllTypes, ExactData,
                         testing::ValuesIn(element_types().begin(), element_types().end()),
                         [](const auto& info) { return std::string(info.param.name); });

uint64_t encode(uzip_dtype_t type, double value) {
  return encode_float(*find_element_type(uzip_dtype_name(type)), value);
}

TEST(EncodeFloat, RoundsToNearestEven) {
  EXPECT_EQ(encode(UZIP_BF16, 1.0), 0x3f80u);
  EXPECT_EQ(encode(UZIP_BF16, 1.0 + 0x1p-8), 0x3f80u);   // a tie, to the even neighbour
  EXPECT_EQ(encode(UZIP_BF16, 1.0 + 0x3p-8), 0x3f82u);   // a tie, upwards
  EXPECT_EQ(encode(UZIP_BF16, 2.0 - 0x1p-20), 0x4000u);  // a carry into the exponent
  EXPECT_EQ(encode(UZIP_FP16, -0.0), 0x8000u);
  EXPECT_EQ(encode(UZIP_FP16, 0x1p-24), 0x0001u);  // the smallest subnormal
  EXPECT_EQ(encode(UZIP_FP16, 0x1p-25), 0x0000u);
  EXPECT_EQ(encode(UZIP_FP16, 65504), 0x7bffu);
}

TEST(EncodeFloat, OverflowsAsTheTypeSays) {
  EXPECT_EQ(encode(UZIP_FP16, 65520), 0x7c00u);
  EXPECT_EQ(encode(UZIP_BF16, -1e300), 0xff80u);
  EXPECT_EQ(encode(UZIP_FP8_E5M2, 1e9), 0x7cu);
  EXPECT_EQ(encode(UZIP_FP8_E4M3FN, 448), 0x7eu);
  EXPECT_EQ(encode(UZIP_FP8_E4M3FN, 1e9), 0x7fu);  // there is no infinity
}

TEST(Pattern, RepeatsAndCountsDifferences) {
  const ElementType& type = *find_element_type("int32");
  Pattern pattern(type, 5);
  for (size_t i = 0; i < 5; ++i) pattern.set(i, 10 + i);
  int32_t values[8];
  pattern.fill(values, 3, 8);
  const int32_t expected[8] = {13, 14, 10, 11, 12, 13, 14, 10};
  EXPECT_TRUE(std::equal(values, values + 8, expected));
  EXPECT_EQ(pattern.count_differences(values, 3, 8), 0u);
  values[0] = values[7] = 0;
  EXPECT_EQ(pattern.count_differences(values, 3, 8), 2u);
}

}  // namespace
}  // namespace perf
