// Ranks on several hosts: results are the same as anywhere, what passes within a host is not encoded, and the library's
// own choice takes the hosts into account.
#include "algos/algorithm.hpp"
#include "comm/api_job.hpp"
#include "comm/coll_case.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace uzip {
namespace {

LoopbackOptions wire_of(std::vector<int> hosts, uint64_t seed) {
  LoopbackOptions wire;
  wire.seed = seed;
  wire.longest_delay = 8;
  wire.reorder_senders = wire.reorder_messages = wire.random_modes = true;
  wire.all_same_host = false;
  wire.hosts = std::move(hosts);
  return wire;
}

const std::vector<std::vector<int>> kHosts = {
    {0, 0, 2, 2}, {0, 1, 0, 1, 0}, {0, 0, 0, 3, 3, 3, 6}, {0, 1, 1, 1, 1, 1}, {0, 0, 0}, {0, 1, 2}};

TEST(HostsTest, EveryAlgorithmIsRight) {
  constexpr uzip_coll_t kColls[] = {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_ALLGATHER, UZIP_BCAST,
                                    UZIP_REDUCE,    UZIP_GATHER,         UZIP_SCATTER,   UZIP_ALLTOALL,
                                    UZIP_SCAN};
  size_t turn = 0;
  for (const std::vector<int>& hosts : kHosts) {
    const int ranks = static_cast<int>(hosts.size());
    LoopbackJob job(ranks, wire_of(hosts, ++turn));
    for (uzip_coll_t coll : kColls) {
      for (const Algorithm* algorithm : algorithms()) {
        if (std::strcmp(coll_name(algorithm->coll), facts_of(coll).name) != 0) continue;
        const std::vector<size_t> counts(hosts.size(), 4001);
        CollCase test({coll, UZIP_BF16, UZIP_SUM, counts, turn % 2 ? Placement::kApart : Placement::kInPlace,
                       Values::kExact, turn, static_cast<int>(turn % hosts.size())});
        uzip_options_t options = UZIP_OPTIONS_INIT;
        options.algorithm = algorithm->name;
        options.codec = "lev";
        options.chunk_bytes = 3000;
        options.split_send = static_cast<int>(turn++ % 2);
        const auto statuses = job.run([&](int rank) { return test.args(rank, &options); });
        ASSERT_EQ(expect_all(statuses, UZIP_OK), "") << algorithm->name;
        ASSERT_EQ(test.check(), "") << algorithm->name;
      }
    }
  }
}

/// What one large all-reduce of the library's own choice did on rank 0.
uzip_coll_info_t info_of_allreduce(std::vector<int> hosts) {
  const auto ranks = hosts.size();
  LoopbackJob job(static_cast<int>(ranks), wire_of(std::move(hosts), 1));
  std::vector<std::vector<float>> in(ranks, std::vector<float>(100000, 1)), out = in;
  uzip_coll_info_t info = {};
  info.struct_size = sizeof info;
  const auto statuses = job.run([&](int r) {
    const auto rank = static_cast<size_t>(r);
    uzip_coll_args_t call = make_call(UZIP_ALLREDUCE, in[rank].data(), out[rank].data(), 100000);
    if (r == 0) call.info = &info;
    return call;
  });
  EXPECT_EQ(expect_all(statuses, UZIP_OK), "");
  return info;
}

TEST(HostsTest, OwnChoiceIsHierarchicalWhereSomeShareAHost) {
  EXPECT_STREQ(info_of_allreduce({0, 0, 0, 0, 4, 4, 4, 4}).algorithm, "hierarchical");
  EXPECT_STREQ(info_of_allreduce({0, 1, 2, 3}).algorithm, "two_shot");
}

// What counts is where the ranks of the communicator are, not those of the whole job.
TEST(HostsTest, PartsOfAJobAreJudgedByThemselves) {
  Config pretended;
  pretended.ranks_per_host = 2;
  for (bool pretend : {false, true}) {
    ApiJob job(4, pretend ? LoopbackOptions() : wire_of({0, 0, 2, 2}, 1), pretend ? pretended : Config());
    job.run([](int rank, uzip_comm_t world) {
      const auto codec_of = [](uzip_comm_t comm) {
        std::vector<float> in(100000, 1), out(in.size());
        uzip_coll_info_t info = {};
        info.struct_size = sizeof info;
        uzip_coll_args_t call = make_call(UZIP_ALLREDUCE, in.data(), out.data(), in.size());
        call.info = &info;
        EXPECT_TRUE(succeeds(uzip_coll_run(&call, comm)));
        return std::string(info.codec);
      };
      uzip_comm_t host, across, alone;
      ASSERT_TRUE(succeeds(uzip_comm_split(world, rank / 2, 0, &host)));
      ASSERT_TRUE(succeeds(uzip_comm_split(world, rank % 2, 0, &across)));
      ASSERT_TRUE(succeeds(uzip_comm_split(world, rank, 0, &alone)));
      EXPECT_EQ(codec_of(world), "lev");
      EXPECT_EQ(codec_of(host), "raw");
      EXPECT_EQ(codec_of(across), "lev");
      EXPECT_EQ(codec_of(alone), "raw");
      for (uzip_comm_t* comm : {&host, &across, &alone}) ASSERT_TRUE(succeeds(uzip_comm_free(comm)));
    });
  }
}

TEST(HostsTest, PretendedHostsAreOnes) {
  Config config;
  config.ranks_per_host = 2;
  LoopbackJob job(4, {}, config);
  std::vector<std::vector<float>> in(4, std::vector<float>(100000, 1)), out = in;
  uzip_coll_info_t info = {};
  info.struct_size = sizeof info;
  const auto statuses = job.run([&](int r) {
    const auto rank = static_cast<size_t>(r);
    uzip_coll_args_t call = make_call(UZIP_ALLREDUCE, in[rank].data(), out[rank].data(), 100000);
    if (r == 0) call.info = &info;
    return call;
  });
  EXPECT_EQ(expect_all(statuses, UZIP_OK), "");
  EXPECT_STREQ(info.algorithm, "hierarchical");
  EXPECT_STREQ(info.codec, "lev");
}

}  // namespace
}  // namespace uzip
