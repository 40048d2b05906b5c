// What each rank sends, encodes and decodes, counted and compared with the formulas that the algorithms' files state.
#include "algos/algorithm.hpp"
#include "algos/collective_cases.hpp"
#include "algos/rank_math.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>

namespace uzip {
namespace {

/// Of one rank. Elements count for each message that they are in.
struct Traffic {
  size_t messages, elements, encodes, decodes;

  bool operator==(const Traffic&) const = default;
};

std::ostream& operator<<(std::ostream& stream, const Traffic& traffic) {
  return stream << traffic.messages << " messages of " << traffic.elements << " elements, "
                << traffic.encodes << " encoded, " << traffic.decodes << " decoded";
}

/// P ranks, n elements in all (of a vector, or of all blocks together); the rank is v, or of a rooted collective v
/// places after the root. n is a multiple of P and of P-1.
struct Rank {
  size_t P, v, n;

  bool is_root() const { return v == 0; }
  bool is_last() const { return v == P - 1; }
  size_t hops() const { return static_cast<size_t>(doubling_rounds(static_cast<int>(P))); }
  /// In the binomial tree.
  size_t children() const {
    size_t count = 0;
    while ((v & (size_t{1} << count)) == 0 && v + (size_t{1} << count) < P) ++count;
    return count;
  }
};

struct Row {
  Coll coll;
  const char* algorithm;
  Traffic (*expected)(const Rank&);  ///< for at least two ranks
};

Traffic two_hops(const Rank& r) { return {2 * (r.P - 1), 2 * r.n / r.P * (r.P - 1), r.P, 2 * (r.P - 1)}; }
Traffic all_blocks_but_one(const Rank& r) { return {r.P - 1, r.n / r.P * (r.P - 1), r.P - 1, r.P - 1}; }
Traffic own_block_to_all(const Rank& r) { return {r.P - 1, r.n / r.P * (r.P - 1), 1, r.P - 1}; }

/// Pairs fold before and unfold after, unless P is a power of two.
Traffic recursive_doubling(const Rank& r) {
  size_t active = 1;
  while (2 * active <= r.P) active *= 2;
  const size_t folded = r.P - active;
  if (r.v < 2 * folded && r.v % 2 == 0) return {1, r.n, 1, 1};
  const size_t hops = static_cast<size_t>(doubling_rounds(static_cast<int>(active)));
  const size_t sends = hops + (r.v < 2 * folded ? 1 : 0);
  return {sends, sends * r.n, sends, sends};
}

const Row kRows[] = {
    {Coll::kAllreduce, "two_shot", two_hops},
    {Coll::kAllreduce, "ring", two_hops},
    {Coll::kAllreduce, "one_shot",
     [](const Rank& r) { return Traffic{r.P - 1, r.n * (r.P - 1), 1, r.P - 1}; }},
    {Coll::kAllreduce, "recursive_doubling", recursive_doubling},
    {Coll::kReduceScatter, "two_shot", all_blocks_but_one},
    {Coll::kReduceScatter, "ring", all_blocks_but_one},
    {Coll::kAllgather, "two_shot", own_block_to_all},
    {Coll::kAllgather, "ring", own_block_to_all},
    {Coll::kAllgather, "bruck",
     [](const Rank& r) {
       // A last hop of one block sends the own one again.
       const size_t again = r.P > 2 && r.P == (size_t{1} << (r.hops() - 1)) + 1 ? 1 : 0;
       return Traffic{r.hops(), r.n / r.P * (r.P - 1), r.hops() - again, r.hops()};
     }},
    {Coll::kBarrier, "dissemination", [](const Rank& r) { return Traffic{r.hops(), 0, 0, 0}; }},
    {Coll::kBcast, "scatter_allgather",
     [](const Rank& r) {
       if (r.is_root()) return Traffic{r.P - 1, r.n, r.P - 1, 0};
       return Traffic{r.P - 2, r.n / (r.P - 1) * (r.P - 2), 0, r.P - 1};
     }},
    {Coll::kBcast, "binomial",
     [](const Rank& r) {
       return Traffic{r.children(), r.children() * r.n, r.is_root() ? 1u : 0, r.is_root() ? 0 : 1u};
     }},
    {Coll::kBcast, "chain",
     [](const Rank& r) {
       return Traffic{r.is_last() ? 0 : r.P, r.is_last() ? 0 : r.n, r.is_root() ? r.P : 0,
                      r.is_root() ? 0 : r.P};
     }},
    {Coll::kReduce, "two_shot",
     [](const Rank& r) {
       if (r.is_root()) return Traffic{r.P - 1, r.n / r.P * (r.P - 1), r.P - 1, 2 * (r.P - 1)};
       return Traffic{r.P, r.n, r.P, r.P - 1};
     }},
    {Coll::kReduce, "binomial",
     [](const Rank& r) {
       const size_t sends = r.is_root() ? 0 : 1;
       return Traffic{sends, sends * r.n, sends, r.children()};
     }},
    {Coll::kReduce, "chain",
     [](const Rank& r) {
       const size_t sends = r.is_root() ? 0 : r.P;
       return Traffic{sends, r.is_root() ? 0 : r.n, sends, r.is_last() ? 0 : r.P};
     }},
};

const Row* row_of(const Algorithm& algorithm) {
  const auto row = std::find_if(std::begin(kRows), std::end(kRows), [&](const Row& each) {
    return each.coll == algorithm.coll && std::string(each.algorithm) == algorithm.name;
  });
  return row == std::end(kRows) ? nullptr : row;
}

Traffic count_traffic(const Schedule& schedule, bool split) {
  Traffic traffic{};
  for (const Step& step : schedule.steps) {
    if (step.part == Part::kPlain) continue;  // each frame once
    if (split && step.src.slot == Slot::kWire && step.verb == Verb::kSend) {
      EXPECT_EQ(step.part, Part::kCoded);
    }
    if (step.verb == Verb::kSend) {
      ++traffic.messages;
      traffic.elements += step.src.length;
    }
    traffic.encodes += step.verb == Verb::kEncode;
    traffic.decodes += step.verb == Verb::kDecode;
  }
  return traffic;
}

class TrafficTest : public testing::TestWithParam<const Algorithm*> {};

TEST_P(TrafficTest, IsWhatTheFileSays) {
  const Algorithm& algorithm = *GetParam();
  const Row* row = row_of(algorithm);
  ASSERT_NE(row, nullptr) << "give " << algorithm.name << " a row";
  for (int size : {1, 2, 3, 4, 5, 7, 8, 16}) {
    const size_t ranks = static_cast<size_t>(size);
    const size_t n = 10 * ranks * std::max<size_t>(ranks - 1, 1);
    for (bool in_place : {false, true}) {
      Shape shape = even_shape(algorithm.coll, size, is_of_vectors(algorithm.coll) ? n : n / ranks, in_place);
      if (is_rooted(algorithm.coll)) shape.root = size / 2;
      for (int rank = 0; rank < size; ++rank) {
        const size_t place = static_cast<size_t>(rank_after(rank, -shape.root, size));
        const Traffic expected = size == 1 ? Traffic{} : row->expected({ranks, place, n});
        for (Form form : {Form::kLowered, Form::kSplit}) {
          ASSERT_EQ(count_traffic(build_schedule(algorithm, shape, form, rank), form == Form::kSplit), expected)
              << describe(algorithm, shape, form) << ", rank " << rank;
        }
      }
    }
  }
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(coll_name(info.param->coll)) + "_" + info.param->name;
}

INSTANTIATE_TEST_SUITE_P(All, TrafficTest, testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         test_name);

}  // namespace
}  // namespace uzip
