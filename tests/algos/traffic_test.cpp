// What each rank sends, encodes and decodes, counted and compared with the formulas that the algorithms' files state.
#include "algos/algorithm.hpp"
#include "algos/collective_cases.hpp"
#include "algos/rank_math.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
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
  /// Unless P is a power of two, some ranks fold into their neighbours before and unfold after.
  size_t active() const {
    size_t active = 1;
    while (2 * active <= P) active *= 2;
    return active;
  }
  size_t active_hops() const { return static_cast<size_t>(doubling_rounds(static_cast<int>(active()))); }
  bool is_folded() const { return v < 2 * (P - active()) && v % 2 == 0; }
  bool stands_for_two() const { return v < 2 * (P - active()) && v % 2 == 1; }
  /// In the binomial tree.
  size_t children() const {
    size_t count = 0;
    while ((v & (size_t{1} << count)) == 0 && v + (size_t{1} << count) < P) ++count;
    return count;
  }
  size_t descendants() const { return v == 0 ? P : std::min(v & (~v + 1), P - v); }
};

/// In the double tree: messages to ranks below, for P shares, or from them.
size_t double_tree_edges(const Rank& r) {
  const size_t others = r.P - 1;
  const auto children = [&](size_t position) -> size_t {
    if (r.v == 0) return 1;
    const bool inside = position % 2 == 0;
    return (inside ? 1u : 0) + (inside && position < others ? 1u : 0);
  };
  const size_t mirrored = others % 2 == 0 ? others + 1 - r.v : r.v % others + 1;
  return (r.P + 1) / 2 * children(r.v) + r.P / 2 * children(mirrored);
}

struct Row {
  Coll coll;
  const char* algorithm;
  Traffic (*expected)(const Rank&);  ///< for at least two ranks
};

Traffic two_hops(const Rank& r) { return {2 * (r.P - 1), 2 * r.n / r.P * (r.P - 1), r.P, 2 * (r.P - 1)}; }
Traffic all_blocks_but_one(const Rank& r) { return {r.P - 1, r.n / r.P * (r.P - 1), r.P - 1, r.P - 1}; }
Traffic own_block_to_all(const Rank& r) { return {r.P - 1, r.n / r.P * (r.P - 1), 1, r.P - 1}; }

Traffic two_hops_to_root(const Rank& r) {
  if (r.is_root()) return {r.P - 1, r.n / r.P * (r.P - 1), r.P - 1, 2 * (r.P - 1)};
  return {r.P, r.n, r.P, r.P - 1};
}

Traffic recursive_doubling(const Rank& r) {
  if (r.is_folded()) return {1, r.n, 1, 1};
  const size_t sends = r.active_hops() + (r.stands_for_two() ? 1 : 0);
  return {sends, sends * r.n, sends, sends};
}

Traffic pipeline(const Rank& r) {
  const size_t sends = r.is_last() ? 0 : r.P;
  return {sends, r.is_last() ? 0 : r.n, sends, r.is_root() ? 0 : r.P};
}

/// One message for each power of two that leads to a rank, one from each that comes from one. Rank 0's value never
/// changes, so it is encoded once.
Traffic to_ranks_behind(const Rank& r) {
  Traffic traffic{};
  for (size_t distance = 1; distance < r.P; distance *= 2) {
    traffic.messages += r.v + distance < r.P;
    traffic.decodes += r.v >= distance;
  }
  traffic.elements = traffic.messages * r.n;
  // After the last arrival the value stays as it is.
  size_t values = 0;
  for (size_t distance = 1; distance < r.P; distance *= 2)
    values += r.v + distance < r.P && (distance == 1 || r.v >= distance / 2);
  traffic.encodes = values;
  return traffic;
}

const Row kRows[] = {
    {Coll::kAllreduce, "two_shot", two_hops},
    {Coll::kAllreduce, "ring", two_hops},
    {Coll::kAllreduce, "one_shot",
     [](const Rank& r) { return Traffic{r.P - 1, r.n * (r.P - 1), 1, r.P - 1}; }},
    {Coll::kAllreduce, "recursive_doubling", recursive_doubling},
    {Coll::kAllreduce, "rabenseifner",
     [](const Rank& r) {
       const size_t active = r.active(), hops = r.active_hops();
       if (r.is_folded()) return Traffic{1, r.n, 1, active};
       const size_t halves = r.n - r.n / active, folded = r.stands_for_two() ? 1 : 0;
       // Halves, each new; then shares, of which only the own one is. A folded rank gets all shares.
       return Traffic{hops + active - 1 + folded * active, 2 * halves + folded * r.n,
                      hops + (active > 1 || folded ? 1 : 0), folded + hops + active - 1};
     }},
    {Coll::kAllreduce, "hierarchical", two_hops},  // on one host
    {Coll::kReduceScatter, "recursive_halving",
     [](const Rank& r) {
       const size_t block = r.n / r.P, hops = r.active_hops();
       if (r.is_folded()) return Traffic{1, r.n, 1, 1};
       const size_t kept = r.stands_for_two() ? 2 * block : block, folded = r.stands_for_two() ? 1 : 0;
       return Traffic{hops + folded, r.n - kept + folded * block, hops + folded, hops + folded};
     }},
    {Coll::kReduceScatter, "two_shot", all_blocks_but_one},
    {Coll::kReduceScatter, "hierarchical", all_blocks_but_one},  // on one host
    {Coll::kReduceScatter, "ring", all_blocks_but_one},
    {Coll::kAllgather, "two_shot", own_block_to_all},
    {Coll::kAllgather, "ring", own_block_to_all},
    {Coll::kAllgather, "bruck", own_block_to_all},
    {Coll::kAllgather, "hierarchical", own_block_to_all},  // on one host
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
    {Coll::kBcast, "direct",
     [](const Rank& r) {
       if (r.is_root()) return Traffic{r.P - 1, r.n * (r.P - 1), 1, 0};
       return Traffic{0, 0, 0, 1};
     }},
    {Coll::kBcast, "chain",
     [](const Rank& r) {
       return Traffic{r.is_last() ? 0 : r.P, r.is_last() ? 0 : r.n, r.is_root() ? r.P : 0,
                      r.is_root() ? 0 : r.P};
     }},
    {Coll::kBcast, "double_tree",
     [](const Rank& r) {
       const size_t sends = double_tree_edges(r);
       return Traffic{sends, sends * r.n / r.P, r.is_root() ? r.P : 0, r.is_root() ? 0 : r.P};
     }},
    {Coll::kBcast, "hierarchical",  // on one host
     [](const Rank& r) {
       if (r.is_root()) return Traffic{r.P * (r.P - 1), r.n * (r.P - 1), r.P, 0};
       return Traffic{0, 0, 0, r.P};
     }},
    {Coll::kReduce, "two_shot", two_hops_to_root},
    {Coll::kReduce, "hierarchical", two_hops_to_root},  // on one host
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
    {Coll::kReduce, "double_tree",
     [](const Rank& r) {
       const size_t sends = r.is_root() ? 0 : r.P;
       return Traffic{sends, r.is_root() ? 0 : r.n, sends, double_tree_edges(r)};
     }},
    {Coll::kGather, "direct",
     [](const Rank& r) {
       if (r.is_root()) return Traffic{0, 0, 0, r.P - 1};
       return Traffic{1, r.n / r.P, 1, 0};
     }},
    {Coll::kGather, "binomial",
     [](const Rank& r) {
       if (r.is_root()) return Traffic{0, 0, 0, r.P - 1};
       return Traffic{r.descendants(), r.descendants() * r.n / r.P, 1, 0};
     }},
    {Coll::kScatter, "direct",
     [](const Rank& r) {
       if (r.is_root()) return Traffic{r.P - 1, r.n / r.P * (r.P - 1), r.P - 1, 0};
       return Traffic{0, 0, 0, 1};
     }},
    {Coll::kScatter, "binomial",
     [](const Rank& r) {
       const size_t passed_on = r.descendants() - 1;
       return Traffic{passed_on, passed_on * r.n / r.P, r.is_root() ? r.P - 1 : 0, r.is_root() ? 0 : 1u};
     }},
    {Coll::kAlltoall, "pairwise", all_blocks_but_one},
    {Coll::kAlltoallv, "pairwise", all_blocks_but_one},
    {Coll::kAlltoall, "bruck",
     [](const Rank& r) {
       size_t blocks = 0;  // one for each one bit of each distance
       for (size_t distance = 1; distance < r.P; ++distance) blocks += static_cast<size_t>(std::popcount(distance));
       return Traffic{blocks, blocks * r.n / r.P, r.P - 1, r.P - 1};
     }},
    {Coll::kScan, "linear", pipeline},
    {Coll::kExscan, "linear", pipeline},
    {Coll::kScan, "recursive_doubling", to_ranks_behind},
    {Coll::kExscan, "recursive_doubling", to_ranks_behind},
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
    traffic.decodes += step.verb == Verb::kDecode || step.verb == Verb::kDecodeReduce;
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
        for (Form form : kForms) {
          if (form == Form::kPlain) continue;
          const bool split = form == Form::kSplit || form == Form::kSplitFused;
          ASSERT_EQ(count_traffic(build_schedule(algorithm, shape, form, rank), split), expected)
              << describe(algorithm, shape, form) << ", rank " << rank;
        }
      }
    }
  }
}

// Without a codec, what takes the same hop shares a message.
TEST(TrafficOfPieces, IsOneMessageAHop) {
  const auto messages = [](Coll coll, const char* name, int rank) {
    return count_traffic(build_schedule(*find_algorithm(coll, name), even_shape(coll, 12, 10), Form::kPlain, rank), false)
        .messages;
  };
  for (int rank = 0; rank < 12; ++rank) {
    const Rank r{12, static_cast<size_t>(rank), 120};
    EXPECT_EQ(messages(Coll::kAllgather, "bruck", rank), r.hops());
    EXPECT_EQ(messages(Coll::kAlltoall, "bruck", rank), r.hops());
    EXPECT_EQ(messages(Coll::kGather, "binomial", rank), r.is_root() ? 0u : 1u);
    EXPECT_EQ(messages(Coll::kScatter, "binomial", rank), r.children());
  }
}

// Three hosts of four ranks: what stays on a host is not encoded, what leaves it is, once.
TEST(TrafficBetweenHosts, IsEncodedOnceAndNothingElseIs) {
  constexpr size_t kHosts = 3, kLocal = 4;
  const size_t n = 120 * kHosts * kLocal;
  for (Coll coll : {Coll::kAllreduce, Coll::kBcast, Coll::kReduce, Coll::kReduceScatter, Coll::kAllgather}) {
    Shape shape = even_shape(coll, static_cast<int>(kHosts * kLocal), is_of_vectors(coll) ? n : n / kHosts / kLocal);
    for (int rank = 0; rank < shape.size; ++rank) shape.hosts.push_back(rank / static_cast<int>(kLocal));
    const Algorithm& algorithm = *find_algorithm(coll, "hierarchical");
    for (int rank = 0; rank < shape.size; ++rank) {
      Traffic between{};
      for (const Step& step : build_schedule(algorithm, shape, Form::kLowered, rank).steps) {
        const bool message = step.verb == Verb::kSend || step.verb == Verb::kRecv;
        const Slice& body = step.verb == Verb::kSend ? step.src : step.dst;
        if (message) {
          EXPECT_EQ(body.slot == Slot::kWire, !shape.share_host(rank, step.peer)) << rank;
        }
        if (step.verb == Verb::kSend && body.slot == Slot::kWire) {
          ++between.messages;
          between.elements += body.length;
        }
        between.encodes += step.verb == Verb::kEncode;
        between.decodes += step.verb == Verb::kDecode;
      }
      const size_t share = n / kLocal, ranks = kHosts * kLocal;
      const size_t children = rank == 0 ? 2 : 0;  // of the tree of three hosts
      const bool leads = rank % static_cast<int>(kLocal) == 0;
      const Traffic reduced{2 * (kHosts - 1), 2 * share / kHosts * (kHosts - 1), kHosts, 2 * (kHosts - 1)};
      const Traffic copied{children * ranks, children * n, rank == 0 ? ranks : 0, leads && rank > 0 ? ranks : 0};
      // Of the root's host only the root gets more: the pieces that other hosts have reduced.
      const size_t others = kHosts - 1, piece = share / kHosts, to_root = rank < static_cast<int>(kLocal) ? 0 : 1;
      const Traffic to_root_only{others + to_root, (others + to_root) * piece, others + to_root,
                                 others + (rank == 0 ? others * kLocal : 0)};
      const Traffic scattered{others, others * piece, others, others};
      const Traffic gathered{others, others * piece, 1, others};
      const Traffic expected = coll == Coll::kAllreduce       ? reduced
                               : coll == Coll::kBcast         ? copied
                               : coll == Coll::kReduce        ? to_root_only
                               : coll == Coll::kReduceScatter ? scattered
                                                              : gathered;
      EXPECT_EQ(between, expected) << coll_name(coll) << ", rank " << rank;
    }
  }
}

// What crosses from one socket to another of its host: of every value one sum or one copy, whatever the number of ranks.
TEST(TrafficBetweenSockets, IsOneSumOrOneCopyOfEachValue) {
  constexpr size_t kRanks = 16, kSocket = 4, n = 1600;  // two hosts of two sockets
  for (Coll coll : {Coll::kAllreduce, Coll::kBcast, Coll::kReduce, Coll::kReduceScatter, Coll::kAllgather}) {
    Shape shape = even_shape(coll, kRanks, is_of_vectors(coll) ? n : n / kRanks);
    for (size_t rank = 0; rank < kRanks; ++rank) {
      shape.hosts.push_back(static_cast<int>(rank / (2 * kSocket)));
      shape.sockets.push_back(static_cast<int>(rank / kSocket % 2));
    }
    size_t crossing[kRanks / kSocket] = {}, messages = 0;
    for (size_t rank = 0; rank < kRanks; ++rank) {
      const Algorithm& algorithm = *find_algorithm(coll, "hierarchical");
      for (const Step& step : build_schedule(algorithm, shape, Form::kLowered, static_cast<int>(rank)).steps) {
        if (step.verb != Verb::kSend || !shape.share_host(static_cast<int>(rank), step.peer)) continue;
        if (static_cast<size_t>(step.peer) / kSocket == rank / kSocket) continue;
        crossing[rank / kSocket] += step.src.length;
        messages += coll == Coll::kAllreduce;
      }
    }
    // To the root of the reduction go, besides, the pieces that its host's other socket has reduced.
    const size_t root_only = coll == Coll::kReduce ? n / 4 : 0;
    const size_t both_ways = coll == Coll::kAllreduce ? n : coll == Coll::kBcast ? 0 : n / 2;
    EXPECT_EQ(crossing[0], coll == Coll::kBcast ? n : both_ways) << coll_name(coll);
    EXPECT_EQ(crossing[1], both_ways + root_only) << coll_name(coll);
    EXPECT_EQ(crossing[2], coll == Coll::kBcast ? n : both_ways) << coll_name(coll);
    EXPECT_EQ(crossing[3], both_ways) << coll_name(coll);
    // One each way, of all pieces together.
    EXPECT_EQ(messages, coll == Coll::kAllreduce ? 2 * kRanks : 0) << coll_name(coll);
  }
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(coll_name(info.param->coll)) + "_" + info.param->name;
}

INSTANTIATE_TEST_SUITE_P(All, TrafficTest, testing::ValuesIn(algorithms().begin(), algorithms().end()),
                         test_name);

}  // namespace
}  // namespace uzip
