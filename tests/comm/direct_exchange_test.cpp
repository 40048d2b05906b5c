// Small collectives of one hop without a schedule: every kind, number of ranks and root, while the ranks take what is there
// before it is announced, or are told of it, as it comes.
#include "comm/direct_exchange.hpp"

#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <random>
#include <string>
#include <vector>

namespace uzip {
namespace {

struct Kind {
  uzip_coll_t coll;
  bool rooted;
  bool vectors;  ///< one for each rank in both buffers, else blocks in one of them or both
};
constexpr Kind kKinds[] = {{UZIP_ALLREDUCE, false, true}, {UZIP_REDUCE_SCATTER, false, false}, {UZIP_ALLGATHER, false, false},
                           {UZIP_ALLTOALL, false, false}, {UZIP_BCAST, true, true},            {UZIP_GATHER, true, false},
                           {UZIP_SCATTER, true, false},   {UZIP_BARRIER, false, true}};

/// Element `i` of what `rank` passes.
int32_t passed(int rank, size_t i) { return (rank + 1) * 1000000 + static_cast<int32_t>(i); }

/// Element `i` of the result at `rank`; INT32_MIN where the call leaves nothing.
int32_t expected(const Kind& kind, int ranks, int rank, int root, size_t count, size_t i) {
  const auto own = static_cast<size_t>(rank);
  const size_t block = i / count, within = i % count;
  const auto sum = [&](size_t at) {
    int32_t total = 0;
    for (int r = 0; r < ranks; ++r) total += passed(r, at);
    return total;
  };
  switch (kind.coll) {
    case UZIP_ALLREDUCE: return block == 0 ? sum(i) : INT32_MIN;
    case UZIP_REDUCE_SCATTER: return block == 0 ? sum(own * count + i) : INT32_MIN;
    case UZIP_ALLGATHER: return passed(static_cast<int>(block), within);
    case UZIP_ALLTOALL: return passed(static_cast<int>(block), own * count + within);
    case UZIP_BCAST: return block == 0 ? passed(root, i) : INT32_MIN;
    case UZIP_GATHER: return rank == root ? passed(static_cast<int>(block), within) : INT32_MIN;
    case UZIP_SCATTER: return block == 0 ? passed(root, own * count + i) : INT32_MIN;
    default: return INT32_MIN;
  }
}

/// Runs the call on all ranks, which poll, move and start in random order; "" or what is wrong.
std::string run(LoopbackJob& job, const Kind& kind, int root, size_t count, std::mt19937& random) {
  const int ranks = job.size();
  const size_t all = count * static_cast<size_t>(ranks);
  std::vector<std::vector<int32_t>> in(static_cast<size_t>(ranks), std::vector<int32_t>(all));
  std::vector<std::vector<int32_t>> out(static_cast<size_t>(ranks), std::vector<int32_t>(all, INT32_MIN));
  std::vector<Request*> requests(static_cast<size_t>(ranks));
  int started = 0;
  const auto start = [&] {
    const int rank = started++;
    const auto r = static_cast<size_t>(rank);
    for (size_t i = 0; i < all; ++i) in[r][i] = passed(rank, i);
    uzip_coll_args_t call = make_call(kind.coll, in[r].data(), out[r].data(), count, UZIP_INT32);
    call.root = root;
    requests[r] = *job.start(rank, call);
  };
  while (started < ranks) {
    start();
    if (random() % 2) job.step();
  }
  for (int turn = 0; turn < 100000; ++turn) {
    Request* const request = requests[random() % requests.size()];
    if (request->expects() && random() % 2) request->poll();
    else job.step();
    if (std::all_of(requests.begin(), requests.end(), [](const Request* one) { return one->done(); })) break;
  }
  std::string wrong;
  for (int rank = 0; rank < ranks; ++rank) {
    const auto r = static_cast<size_t>(rank);
    const Status status = requests[r]->done() ? requests[r]->status() : error(UZIP_ERR_TIMEOUT, "stuck");
    if (!status.ok()) wrong = status.message();
    for (size_t i = 0; wrong.empty() && i < all; ++i)
      if (out[r][i] != expected(kind, ranks, rank, root, count, i))
        wrong = "rank " + std::to_string(rank) + ", element " + std::to_string(i) + ": " + std::to_string(out[r][i]);
    if (!requests[r]->done()) requests[r]->fail(status, false);
    job.engine(rank).release(requests[r]);
  }
  return wrong;
}

class DirectExchangeTest : public ::testing::TestWithParam<size_t> {};

TEST_P(DirectExchangeTest, LeavesWhatItShould) {
  const Kind& kind = kKinds[GetParam()];
  std::mt19937 random(1);
  for (int ranks : {2, 3, 5}) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      LoopbackOptions wire;
      wire.seed = seed;
      wire.random_modes = seed > 1;
      wire.reorder_senders = true;
      wire.longest_delay = 5;
      wire.eager_limit = 5000;
      LoopbackJob job(ranks, wire);
      for (size_t count : {size_t{1}, size_t{100}, size_t{1000}, size_t{1025}, size_t{5000}})
        for (int root = 0; root < (kind.rooted ? ranks : 1); ++root)
          for (int again = 0; again < 2; ++again)
            ASSERT_EQ(run(job, kind, root, count, random), "") << ranks << " ranks, " << count << " elements, root " << root;
      job.settle();
      EXPECT_EQ(job.fabric().unfinished(), 0u);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, DirectExchangeTest, ::testing::Range<size_t>(0, std::size(kKinds)),
                         [](const auto& info) { return "of_kind_" + std::to_string(kKinds[info.param].coll); });

// Who has sent all, and has nothing to receive, has done; who waits says for whom.
TEST(DirectExchange, WaitsForThoseWhoMatter) {
  LoopbackOptions wire;
  wire.eager_limit = 100;  // longer ones stay with their sender until they are received
  LoopbackJob job(3, wire);
  std::vector<int32_t> in(300, 7), out(300);
  const auto start = [&](int rank, uzip_coll_t coll, size_t count) {
    uzip_coll_args_t call = make_call(coll, in.data(), out.data(), count, UZIP_INT32);
    call.root = 1;
    Request* const request = *job.start(rank, call);
    EXPECT_TRUE(DirectExchange::suits(request->plan()));
    return request;
  };
  Request* const gather = start(0, UZIP_GATHER, 10);
  EXPECT_TRUE(gather->done());
  Request* const longer = start(0, UZIP_GATHER, 100);
  EXPECT_EQ(longer->waits_for(), std::vector<int>{1});
  Request* const scatter = start(0, UZIP_SCATTER, 10);
  EXPECT_EQ(scatter->waits_for(), std::vector<int>{1});
  Request* const broadcast = start(0, UZIP_BCAST, 10);
  EXPECT_EQ(broadcast->waits_for(), std::vector<int>{1});
  for (Request* given_up : {longer, scatter, broadcast}) given_up->fail(error(UZIP_ERR_INVALID, "given up"), false);
  job.finish({{0, gather}, {0, longer}, {0, scatter}, {0, broadcast}});
}

}  // namespace
}  // namespace uzip
