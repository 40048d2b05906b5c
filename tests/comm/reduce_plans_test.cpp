// Which algorithm reduces to one rank where the ranks share memory.
#include "comm/selector.hpp"

#include <gtest/gtest.h>

#include <string>

namespace uzip {
namespace {

// Measured, where the formulas would have it otherwise; what must keep an order, or is coded, is left to them.
TEST(ReducePlans, GoUpATreeAmongFewRanksOfOneHost) {
  Config config;
  const Selector selector(config, link_facts(true, nullptr));
  const auto name_of = [](const Selector& from, int ranks, size_t bytes, bool ordered, const char* codec) {
    CallShape shape;
    shape.kind = CallKind::kReduce;
    shape.type = UZIP_FP32;
    shape.size = ranks;
    shape.count = bytes / sizeof(float);
    shape.ordered = ordered;
    shape.options.codec.codec = find_codec(codec);
    return std::string(from.select(shape)->algorithm->name);
  };
  for (int ranks : {2, 3, 4})
    for (size_t bytes : {size_t{64}, size_t{64} << 10, size_t{4} << 20})
      EXPECT_EQ(name_of(selector, ranks, bytes, false, "raw"), "binomial");
  EXPECT_NE(name_of(selector, 2, size_t{16} << 20, false, "raw"), "binomial");
  EXPECT_NE(name_of(selector, 8, size_t{1} << 20, false, "raw"), "binomial");
  EXPECT_NE(name_of(selector, 4, size_t{1} << 20, true, "raw"), "binomial");
  EXPECT_NE(name_of(selector, 4, size_t{1} << 20, false, "lev"), "binomial");
  config.reproducible = true;
  EXPECT_EQ(name_of(Selector(config, link_facts(true, nullptr)), 4, size_t{1} << 20, false, "raw"), "two_shot");
}

}  // namespace
}  // namespace uzip
