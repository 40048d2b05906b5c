// Every collective, algorithm and codec gives the right bits, whatever the order and the way in
// which messages arrive.
#include "algos/algorithm.hpp"
#include "comm/coll_case.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace uzip {
namespace {

constexpr int kMostRanks = 9;
constexpr uzip_dtype_t kTypes[] = {UZIP_BF16,  UZIP_FP32,       UZIP_FP64,
                                   UZIP_INT32, UZIP_FP8_E4M3FN, UZIP_FP8_E5M2};
constexpr uzip_op_t kOps[] = {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX, UZIP_AVG};
constexpr uzip_coll_t kColls[] = {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_REDUCE_SCATTERV,
                                  UZIP_ALLGATHER, UZIP_ALLGATHERV,     UZIP_BCAST,
                                  UZIP_REDUCE,    UZIP_GATHER,         UZIP_SCATTER,
                                  UZIP_ALLTOALL,  UZIP_SCAN,           UZIP_EXSCAN};

/// An average of a prefix is not defined.
uzip_op_t op_for(uzip_coll_t coll, uzip_op_t op) {
  const bool prefix = coll == UZIP_SCAN || coll == UZIP_EXSCAN;
  return prefix && op == UZIP_AVG ? UZIP_SUM : op;
}

/// Ways of coding; the last cuts the first pieces in two.
struct Coding {
  const char* codec;
  int split_send;
};
constexpr Coding kCodings[] = {{"raw", -1}, {"lev", 0}, {"lev", 1}, {"lev:fastest", -1}};

std::vector<const char*> algorithms_of(uzip_coll_t coll) {
  std::string name = facts_of(coll).name;
  if (facts_of(coll).has_counts) name.pop_back();  // the v forms share them
  std::vector<const char*> names;
  for (const Algorithm* algorithm : algorithms()) {
    if (coll_name(algorithm->coll) == name) names.push_back(algorithm->name);
  }
  return names;
}

bool is_v(uzip_coll_t coll) { return facts_of(coll).has_counts; }

/// Another one each turn; collectives without a root do not look at it.
int root_of(size_t turn, int ranks) { return static_cast<int>(turn * 7 % static_cast<size_t>(ranks)); }

/// Counts around everything that can go wrong for rounds of 64 elements a rank.
std::vector<std::vector<size_t>> awkward_counts(uzip_coll_t coll, int ranks) {
  const auto p = static_cast<size_t>(ranks);
  std::vector<std::vector<size_t>> list;
  for (size_t count : {size_t{0}, size_t{1}, p - 1, p, p + 1, size_t{63}, 64 * p, 64 * p + 1,
                       size_t{257}, 3 * 64 * p - 1}) {
    list.emplace_back(p, count);
  }
  if (!is_v(coll)) return list;
  for (size_t full : {size_t{0}, p - 1}) {
    list.emplace_back(p, 0);  // all in one place
    list.back()[full] = 333;
    list.emplace_back(p, 65);  // nothing in one place
    list.back()[full] = 0;
  }
  list.emplace_back();
  for (size_t r = 0; r < p; ++r) list.back().push_back(r * r * 7 % 150);
  return list;
}

LoopbackOptions quiet_wire() { return {}; }

/// Delays, other orders, and each message in a way of its own.
LoopbackOptions stormy_wire(uint64_t seed) {
  LoopbackOptions wire;
  wire.seed = seed;
  wire.longest_delay = static_cast<int>(seed % 3) * 8;
  wire.reorder_senders = true;
  wire.reorder_messages = seed % 2 == 1;
  wire.random_modes = true;
  wire.eager_limit = seed % 4 == 0 ? 0 : 700;
  return wire;
}

/// Runs the case; "" or what is wrong.
std::string run_case(LoopbackJob& job, CollCase& test, const uzip_options_t& options) {
  const auto statuses = job.run([&](int rank) { return test.args(rank, &options); });
  std::string wrong = expect_all(statuses, UZIP_OK);
  if (wrong.empty()) return test.check();
  return test.describe() + ", " + (options.algorithm ? options.algorithm : "auto") + ", " +
         (options.codec ? options.codec : "auto") + ": " + wrong;
}

uzip_options_t make_options(const char* algorithm, const Coding& coding, size_t chunk_bytes) {
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.algorithm = algorithm;
  options.codec = coding.codec;
  options.split_send = coding.split_send;
  options.chunk_bytes = chunk_bytes;
  return options;
}

class Collectives : public testing::TestWithParam<int> {};

TEST_P(Collectives, AreRightForAwkwardCounts) {
  const int ranks = GetParam();
  LoopbackJob job(ranks, stormy_wire(static_cast<uint64_t>(ranks)));
  size_t turn = 0;
  for (uzip_coll_t coll : kColls) {
    for (const char* algorithm : algorithms_of(coll)) {
      for (const auto& counts : awkward_counts(coll, ranks)) {
        for (uzip_dtype_t type : kTypes) {
          // The rest of the product is walked through diagonally.
          const Coding& coding = kCodings[turn % std::size(kCodings)];
          const uzip_op_t op = op_for(coll, kOps[turn / 3 % std::size(kOps)]);
          const Placement placement = kPlacements[turn / 7 % std::size(kPlacements)];
          CollCase test({coll, type, op, counts, placement, Values::kExact, turn,
                         root_of(turn, ranks)});
          const auto options = make_options(algorithm, coding, 64 * uzip_dtype_size(type));
          ASSERT_EQ(run_case(job, test, options), "");
          ++turn;
        }
      }
    }
  }
  job.settle();
  EXPECT_EQ(job.fabric().unfinished(), 0u);
}

// Large enough that blocks are really coded, and steps are queued instead of run at once.
TEST_P(Collectives, AreRightForCodedPieces) {
  const int ranks = GetParam();
  LoopbackJob job(ranks, stormy_wire(100 + static_cast<uint64_t>(ranks)));
  size_t turn = 0;
  for (uzip_coll_t coll : kColls) {
    for (const char* algorithm : algorithms_of(coll)) {
      for (const Coding& coding : kCodings) {
        const uzip_dtype_t type = kTypes[turn % std::size(kTypes)];
        std::vector<size_t> counts(static_cast<size_t>(ranks), 20001);
        if (is_v(coll)) counts[turn % counts.size()] = 70;
        const Placement placement = kPlacements[turn / 5 % std::size(kPlacements)];
        CollCase test({coll, type, UZIP_SUM, counts, placement, Values::kExact, turn,
                       root_of(turn, ranks)});
        ASSERT_EQ(run_case(job, test, make_options(algorithm, coding, 32768)), "");
        ++turn;
      }
    }
  }
  job.settle();
  EXPECT_EQ(job.fabric().unfinished(), 0u);
}

TEST_P(Collectives, MovesKeepEveryBit) {
  const int ranks = GetParam();
  LoopbackJob job(ranks, stormy_wire(200 + static_cast<uint64_t>(ranks)));
  size_t turn = 0;
  for (uzip_coll_t coll : kColls) {
    if (facts_of(coll).reduces) continue;
    for (const char* algorithm : algorithms_of(coll)) {
      for (const Coding& coding : kCodings) {
        for (uzip_dtype_t type : kTypes) {
          std::vector<size_t> counts(static_cast<size_t>(ranks), 5000);
          if (is_v(coll)) counts.back() = 4711;
          CollCase test({coll, type, UZIP_SUM, counts, Placement::kApart, Values::kBits, turn,
                         root_of(turn, ranks)});
          ++turn;
          ASSERT_EQ(run_case(job, test, make_options(algorithm, coding, 16384)), "");
        }
      }
    }
  }
}

// The order of a reduction is not decided by what arrives first, nor by the codec.
TEST_P(Collectives, SameCallSameBits) {
  const int ranks = GetParam();
  LoopbackJob calm(ranks, quiet_wire());
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    LoopbackJob stormy(ranks, stormy_wire(300 + seed));
    for (uzip_coll_t coll : {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTERV, UZIP_REDUCE, UZIP_SCAN, UZIP_EXSCAN}) {
      for (const char* algorithm : algorithms_of(coll)) {
        for (Values values : {Values::kSmooth, Values::kBits}) {
          const uzip_dtype_t type = kTypes[(seed + (values == Values::kBits)) % 3];
          std::vector<size_t> counts(static_cast<size_t>(ranks), 3001);
          if (is_v(coll)) counts[0] = 17;
          CollCase test({coll, type, UZIP_SUM, counts, Placement::kApart, values, seed});
          ASSERT_EQ(run_case(calm, test, make_options(algorithm, kCodings[0], 8192)), "");
          const uint64_t hash = test.hash();
          for (const Coding& coding : kCodings) {
            test.reset();
            ASSERT_EQ(run_case(stormy, test, make_options(algorithm, coding, 8192)), "");
            ASSERT_EQ(test.hash(), hash) << test.describe() << " " << algorithm << coding.codec;
          }
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Collectives, testing::Range(1, kMostRanks + 1));

// What the library chooses by itself, on shared memory and on a network.
TEST(CollectiveResults, OwnChoiceIsRight) {
  for (bool same_host : {true, false}) {
    LoopbackOptions wire = stormy_wire(7);
    wire.all_same_host = same_host;
    LoopbackJob job(4, wire);
    for (uzip_coll_t coll : kColls) {
      for (size_t count : {size_t{1}, size_t{1000}, size_t{300001}}) {
        const std::vector<size_t> counts(4, count);
        CollCase test({coll, UZIP_BF16, UZIP_SUM, counts, Placement::kApart, Values::kExact, 1});
        ASSERT_EQ(run_case(job, test, UZIP_OPTIONS_INIT), "");
      }
    }
  }
}

// Copies of a rank's own part go past the caches there, and moves in pieces of 16 MiB.
TEST(CollectiveResults, LargeMovesKeepEveryBit) {
  LoopbackOptions wire = quiet_wire();
  wire.all_same_host = true;
  LoopbackJob job(3, wire);
  for (uzip_coll_t coll : {UZIP_ALLGATHER, UZIP_BCAST, UZIP_SCATTER, UZIP_ALLTOALL}) {
    for (Placement placement : {Placement::kApart, Placement::kInPlace}) {
      const bool blocks = coll == UZIP_ALLGATHER || coll == UZIP_SCATTER || coll == UZIP_ALLTOALL;
      const std::vector<size_t> counts(3, (size_t{34} << 20) / 8 / (blocks ? 3 : 1) + 77);
      CollCase test({coll, UZIP_FP64, UZIP_SUM, counts, placement, Values::kBits, 5});
      ASSERT_EQ(run_case(job, test, make_options(nullptr, kCodings[0], 0)), "");
    }
  }
}

TEST(CollectiveResults, ReducedNanIsCanonical) {
  LoopbackJob job(3, stormy_wire(8));
  const uint32_t odd_nan = 0xffc12345, canonical = 0x7fc00000;
  std::vector<std::vector<uint32_t>> in(3, std::vector<uint32_t>(100)), out = in;
  in[1].assign(100, odd_nan);
  for (uzip_op_t op : kOps) {
    const auto statuses = job.run([&](int r) {
      const auto rank = static_cast<size_t>(r);
      return make_call(UZIP_ALLREDUCE, in[rank].data(), out[rank].data(), 100, UZIP_FP32, op);
    });
    ASSERT_EQ(expect_all(statuses, UZIP_OK), "");
    for (const auto& result : out) {
      ASSERT_EQ(result, std::vector<uint32_t>(100, canonical)) << uzip_op_name(op);
    }
  }
}

TEST(CollectiveResults, BarrierWaitsForTheLast) {
  for (int ranks = 1; ranks <= kMostRanks; ++ranks) {
    LoopbackJob job(ranks, stormy_wire(static_cast<uint64_t>(ranks)));
    std::vector<Started> started;
    const uzip_coll_args_t barrier = make_call(UZIP_BARRIER, nullptr, nullptr, 0);
    for (int rank = 0; rank + 1 < ranks; ++rank) {
      started.push_back({rank, *job.start(rank, barrier)});
    }
    job.settle();
    for (const Started& waiting : started) EXPECT_FALSE(waiting.request->done());
    started.push_back({ranks - 1, *job.start(ranks - 1, barrier)});
    EXPECT_EQ(expect_all(job.finish(started), UZIP_OK), "");
  }
}

// A message that was announced with its body for the time of the announcement only.
TEST(CollectiveResults, FleetingBodiesAreCopied) {
  Meddling meddling;
  meddling.fleeting = true;
  for (int ranks = 2; ranks <= 5; ++ranks) {
    LoopbackOptions wire = stormy_wire(static_cast<uint64_t>(ranks));
    wire.random_modes = false;
    wire.eager_limit = 4000;
    LoopbackJob job(ranks, wire, Config(), meddling);
    size_t turn = 0;
    for (uzip_coll_t coll : kColls) {
      for (size_t count : {size_t{3}, size_t{1001}, size_t{9000}}) {
        const Coding& coding = kCodings[++turn % std::size(kCodings)];
        const std::vector<size_t> counts(static_cast<size_t>(ranks), count);
        CollCase test({coll, UZIP_FP32, UZIP_SUM, counts, Placement::kApart, Values::kExact, 1});
        ASSERT_EQ(run_case(job, test, make_options(nullptr, coding, 3000)), "");
      }
    }
  }
}

}  // namespace
}  // namespace uzip
