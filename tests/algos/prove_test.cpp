// Proofs of whole algorithms: what is looked at, and what a counterexample tells.
#include "algos/prove.hpp"

#include <gtest/gtest.h>

namespace uzip {
namespace {

bool supports_allgather(const Shape& shape) { return shape.coll == Coll::kAllgather; }
bool supports_nothing(const Shape&) { return false; }
double no_cost(const Shape&, double, const CostModel&) { return 0; }

const Algorithm& ring() { return *find_algorithm(Coll::kAllgather, "ring"); }

// Wrong only from four ranks on: the last rank writes the first block it receives one place too low.
Schedule build_wrong(const Shape& shape, int rank) {
  Schedule schedule = ring().build(shape, rank);
  if (shape.size < 4 || rank != shape.size - 1) return schedule;
  for (Step& step : schedule.steps) {
    if (step.verb != Verb::kRecv) continue;
    --step.dst.offset;
    break;
  }
  return schedule;
}

const Algorithm kWrong{"wrong", Coll::kAllgather, "", supports_allgather, build_wrong, no_cost};
const Algorithm kNever{"never", Coll::kAllgather, "", supports_nothing, build_wrong, no_cost};

TEST(Prove, CountsCases) {
  const Proof proof = prove(ring(), 3, 1, 1);
  EXPECT_TRUE(proof.holds());
  EXPECT_EQ(proof.cases, awkward_shapes(Coll::kAllgather, 3).size() * std::size(kForms));
  EXPECT_GT(proof.steps, proof.cases);
}

TEST(Prove, NothingIsNoProof) {
  const Proof proof = prove(kNever, 3, 1, 1);
  EXPECT_FALSE(proof.holds());
  EXPECT_FALSE(proof.counterexample);
  EXPECT_GT(proof.skipped, 0u);
}

TEST(Prove, FindsASmallCounterexample) {
  EXPECT_TRUE(prove(kWrong, 3, 1, 1).holds());
  const Proof proof = prove(kWrong, 4, 1, 1);
  ASSERT_TRUE(proof.counterexample);
  EXPECT_FALSE(proof.holds());
  EXPECT_LE(proof.counterexample->shape.total(), 8u);
  EXPECT_EQ(proof.counterexample->form, Form::kPlain);

  const std::string text = print_counterexample(kWrong, *proof.counterexample);
  EXPECT_NE(text.find("allgather wrong, 4 ranks, counts"), std::string::npos) << text;
  EXPECT_NE(text.find(proof.counterexample->fault), std::string::npos) << text;
  EXPECT_NE(text.find("rank 3: scratch"), std::string::npos) << text;
}

TEST(Prove, ShowsNoLongSchedules) {
  const std::string text =
      print_counterexample(kWrong, {even_shape(Coll::kAllgather, 16, 1), Form::kPlain, "a fault"});
  EXPECT_EQ(text.find("rank 0:"), std::string::npos) << text;
}

}  // namespace
}  // namespace uzip
