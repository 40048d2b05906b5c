// Calls drawn at random from all that the library offers: collective, type, operation, counts, placement, root, ranks,
// hosts, algorithm, codec, chunk, split, settings and the behaviour of the wire; up to four of them in flight. Each
// result is compared with the naive one. LONG_TESTS=1 draws fifty times as many; UZIP_TEST_SEED=N begins elsewhere.
#include "algos/algorithm.hpp"
#include "comm/coll_case.hpp"
#include "comm/loopback_job.hpp"
#include "support/long_tests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <deque>
#include <random>
#include <string>
#include <vector>

namespace uzip {
namespace {

constexpr uzip_coll_t kColls[] = {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_REDUCE_SCATTERV, UZIP_ALLGATHER,
                                  UZIP_ALLGATHERV, UZIP_BCAST, UZIP_REDUCE, UZIP_GATHER, UZIP_SCATTER, UZIP_ALLTOALL,
                                  UZIP_SCAN, UZIP_EXSCAN};
constexpr uzip_dtype_t kTypes[] = {UZIP_INT8, UZIP_UINT8, UZIP_INT32, UZIP_UINT32, UZIP_INT64, UZIP_UINT64,
                                   UZIP_FP16, UZIP_BF16, UZIP_FP32, UZIP_FP64, UZIP_FP8_E4M3FN, UZIP_FP8_E5M2};
constexpr uzip_op_t kOps[] = {UZIP_SUM, UZIP_PROD, UZIP_MIN, UZIP_MAX, UZIP_AVG};

class Draw {
 public:
  explicit Draw(uint64_t seed) : random_(seed) {}

  size_t below(size_t end) { return random_() % end; }
  bool chance(size_t percent) { return below(100) < percent; }
  template <class Array>
  auto one_of(const Array& array) {
    return *(std::begin(array) + below(std::size(array)));
  }
  /// Mostly small, around powers of two now and then, seldom large.
  size_t count() {
    if (chance(15)) return below(3);
    if (chance(40)) return (size_t{1} << below(12)) + below(3) - 1;
    return below(chance(15) ? 60000 : 3000);
  }

  LoopbackOptions wire(int ranks) {
    LoopbackOptions wire;
    wire.seed = random_();
    wire.longest_delay = static_cast<int>(below(4)) * 5;
    wire.reorder_senders = chance(70);
    wire.reorder_messages = chance(50);
    wire.random_modes = chance(70);
    wire.eager_limit = chance(20) ? 0 : size_t{1} << below(16);
    if (chance(60)) {
      wire.all_same_host = false;
      const int hosts = 1 + static_cast<int>(below(4));
      for (int rank = 0; rank < ranks; ++rank) {
        // In a row, or dealt round, or anyhow.
        if (wire.seed % 3 == 0) wire.hosts.push_back(rank * hosts / ranks);
        else if (wire.seed % 3 == 1) wire.hosts.push_back(rank % hosts);
        else wire.hosts.push_back(static_cast<int>(below(static_cast<size_t>(hosts))));
      }
    }
    return wire;
  }

  Config config() {
    Config config;
    config.reproducible = chance(15);
    config.checksum = chance(30);
    config.codec_threshold = chance(30) ? 1 + below(4096) : 0;
    return config;
  }

  CaseShape shape(int ranks) {
    CaseShape shape;
    shape.coll = one_of(kColls);
    shape.type = one_of(kTypes);
    shape.op = one_of(kOps);
    const bool prefix = shape.coll == UZIP_SCAN || shape.coll == UZIP_EXSCAN;
    if (prefix && shape.op == UZIP_AVG) shape.op = UZIP_SUM;  // of a prefix there is none
    shape.counts.assign(static_cast<size_t>(ranks), count());
    if (facts_of(shape.coll).has_counts)
      for (size_t& one : shape.counts) one = count();
    shape.placement = one_of(kPlacements);
    shape.values = !facts_of(shape.coll).reduces && chance(50) ? Values::kBits : Values::kExact;
    shape.seed = random_() % 1000;
    shape.root = static_cast<int>(below(static_cast<size_t>(ranks)));
    return shape;
  }

  uzip_options_t options(const CaseShape& shape, bool reproducible) {
    static const char* const kCodecs[] = {nullptr, "raw", "lev", "lev", "lev:fastest"};
    uzip_options_t options = UZIP_OPTIONS_INIT;
    std::string name = facts_of(shape.coll).name;
    if (facts_of(shape.coll).has_counts) name.pop_back();
    std::vector<const char*> names;
    for (const Algorithm* algorithm : algorithms())
      if (coll_name(algorithm->coll) == name) names.push_back(algorithm->name);
    if (!reproducible && chance(80)) options.algorithm = one_of(names);
    options.codec = one_of(kCodecs);
    options.split_send = static_cast<int>(below(3)) - 1;
    // At most some hundred rounds: more would take more steps than a job has.
    const size_t least = 1 + *std::max_element(shape.counts.begin(), shape.counts.end()) / 300;
    if (chance(70)) options.chunk_bytes = uzip_dtype_size(shape.type) * (least + below(chance(50) ? 100 : 8000));
    return options;
  }

 private:
  std::mt19937_64 random_;
};

/// Starts all calls on every rank, in the same order on each but at any time, and finishes them; "" or what is wrong.
std::string run_together(LoopbackJob& job, std::deque<CollCase>& tests, const std::vector<uzip_options_t>& options,
                         Draw& draw) {
  std::vector<size_t> next(static_cast<size_t>(job.size()), 0);
  std::vector<Started> started;
  for (size_t left = next.size() * tests.size(); left > 0;) {
    const size_t rank = draw.below(next.size());
    for (size_t steps = draw.below(20); steps > 0; --steps) job.step();
    if (next[rank] == tests.size()) continue;
    const size_t call = next[rank]++;
    const auto request = job.start(static_cast<int>(rank), tests[call].args(static_cast<int>(rank), &options[call]));
    if (!request.ok()) return tests[call].describe() + ": " + request.status().message();
    started.push_back({static_cast<int>(rank), *request});
    --left;
  }
  std::string wrong = expect_all(job.finish(started), UZIP_OK);
  for (size_t call = 0; call < tests.size() && wrong.empty(); ++call) wrong = tests[call].check();
  if (wrong.empty()) return wrong;
  for (size_t call = 0; call < tests.size(); ++call) {
    const uzip_options_t& asked = options[call];
    wrong += "\n" + tests[call].describe() + ", algorithm " + (asked.algorithm ? asked.algorithm : "auto") + ", codec " +
             (asked.codec ? asked.codec : "auto") + ", chunk " + std::to_string(asked.chunk_bytes) + ", split " +
             std::to_string(asked.split_send);
  }
  return wrong;
}

TEST(RandomCalls, GiveWhatTheNaiveOnesGive) {
  const char* from = std::getenv("UZIP_TEST_SEED");
  const uint64_t first = from != nullptr ? std::strtoull(from, nullptr, 0) : 1;
  const uint64_t jobs = long_tests() ? 3000 : 60;
  for (uint64_t seed = first; seed < first + jobs; ++seed) {
    Draw draw(seed);
    const int ranks = 1 + static_cast<int>(draw.below(9));
    const LoopbackOptions wire = draw.wire(ranks);
    const Config config = draw.config();
    LoopbackJob job(ranks, wire, config);
    for (int batch = 0; batch < 4; ++batch) {
      std::deque<CollCase> tests;
      std::vector<uzip_options_t> options;
      for (size_t calls = 1 + draw.below(4); calls > 0; --calls) {
        const CaseShape shape = draw.shape(ranks);
        tests.emplace_back(shape);
        options.push_back(draw.options(shape, config.reproducible));
      }
      ASSERT_EQ(run_together(job, tests, options, draw), "") << ranks << " ranks, UZIP_TEST_SEED=" << seed;
    }
    job.settle();
    ASSERT_EQ(job.fabric().unfinished(), 0u) << "UZIP_TEST_SEED=" << seed;
  }
}

}  // namespace
}  // namespace uzip
