// Where ranks are on their hosts: what /sys says, what ranks tell one another, how they are grouped and who leads, and what
// calls make of it.
#include "comm/topology.hpp"

#include "comm/api_job.hpp"
#include "comm/coll_case.hpp"
#include "comm/cores.hpp"
#include "comm/loopback_job.hpp"
#include "comm/sysfs.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <sched.h>
#include <unistd.h>

namespace uzip {
namespace {

namespace fs = std::filesystem;
using Bytes = std::vector<std::byte>;

/// A host with the processors 0 to 3 on node 0 and socket 0, 4 and 5 on node 1 and socket 0, 6 and 7 on node 3 and socket 1.
class FakeHost {
 public:
  FakeHost() {
    root_ = fs::temp_directory_path() / ("uzip_topology_test_" + std::to_string(getpid()));
    constexpr int kNodes[] = {0, 0, 0, 0, 1, 1, 3, 3};
    for (int cpu = 0; cpu < 8; ++cpu) {
      const std::string folder = "devices/system/cpu/cpu" + std::to_string(cpu);
      write(folder + "/topology/physical_package_id", cpu < 6 ? "0" : "1");
      fs::create_directories(root_ / folder / ("node" + std::to_string(kNodes[cpu])));
      fs::create_directories(root_ / "devices/system/node" / ("node" + std::to_string(kNodes[cpu])));
    }
    write("devices/system/node/possible", "0-3");
    write("bus/pci/devices/0000:1b:00.0/numa_node", "3");
    write("bus/pci/devices/0000:1c:00.0/numa_node", "-1");
  }
  ~FakeHost() { fs::remove_all(root_); }
  void write(const std::string& file, const std::string& text) {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file) << text << "\n";
  }
  std::string sys() const { return root_.string(); }

 private:
  fs::path root_;
};

TEST(Sysfs, TellsNodesAndSockets) {
  const FakeHost host;
  const auto numa = [&](std::vector<int> cpus) { return numa_of_cpus(cpus, host.sys()); };
  const auto socket = [&](std::vector<int> cpus) { return socket_of_cpus(cpus, host.sys()); };
  EXPECT_EQ(numa({1, 3}), 0);
  EXPECT_EQ(numa({6}), 3);
  EXPECT_EQ(numa({3, 4}), -1) << "two nodes";
  EXPECT_EQ(socket({3, 4}), 0);
  EXPECT_EQ(socket({5, 6}), -1);
  EXPECT_EQ(numa({7, 8}), -1) << "a processor that is not there";
  EXPECT_EQ(numa({}), -1);
  EXPECT_EQ(numa_nodes(host.sys()), 3);
  EXPECT_EQ(numa_nodes("/no such folder"), 1);
  EXPECT_EQ(numa_of_pci("0000:1B:00.0", host.sys()), 3);
  EXPECT_EQ(numa_of_pci("0000:1c:00.0", host.sys()), -1);
  EXPECT_EQ(numa_of_pci("0000:ff:00.0", host.sys()), -1);
  EXPECT_EQ(numa_of_pci("../../../devices/x", host.sys()), -1);
}

TEST(Sysfs, PrefersInfiniband) {
  FakeHost host;
  EXPECT_TRUE(network_devices(host.sys()).empty());
  for (const char* name : {"eth0", "eth1", "lo"}) host.write(std::string("class/net/") + name + "/operstate", "up");
  host.write("class/net/eth1/operstate", "down");
  host.write("class/net/eth0/device/numa_node", "1");
  host.write("class/net/eth1/device/numa_node", "0");
  ASSERT_EQ(network_devices(host.sys()).size(), 1u);
  EXPECT_EQ(network_devices(host.sys())[0].name, "eth0");
  EXPECT_EQ(network_devices(host.sys())[0].numa, 1);
  host.write("class/infiniband/mlx5_0/device/numa_node", "3");
  ASSERT_EQ(network_devices(host.sys()).size(), 1u);
  EXPECT_EQ(network_devices(host.sys())[0].name, "mlx5_0");
}

// hwloc and /sys mean the same.
TEST(Locality, OfABoundProcessIsThatOfItsProcessor) {
  cpu_set_t before, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof before, &before), 0);
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &before)) continue;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    const Locality found = own_locality();
    EXPECT_EQ(found.numa, numa_of_cpus(std::vector{cpu})) << cpu;
    EXPECT_EQ(found.socket, socket_of_cpus(std::vector{cpu})) << cpu;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof before, &before), 0);
}

std::vector<RankLocation> on_nodes(const std::vector<int>& nodes, int network = -1) {
  std::vector<RankLocation> locations;
  for (int node : nodes) {
    RankLocation one;
    one.numa = node;
    one.near_network = node >= 0 && node == network;
    locations.push_back(one);
  }
  return locations;
}

using Numbers = std::vector<int>;

TEST(GroupByNode, TheLargestNodeLeads) {
  const Numbers one_host(6);
  EXPECT_EQ(group_by_node(on_nodes({4, 2, 2, 2, 4, 7}), one_host), (Numbers{1, 0, 0, 0, 1, 2}));
  EXPECT_EQ(group_by_node(on_nodes({2, 1, 2, 1, 2, 1}), one_host), (Numbers{0, 1, 0, 1, 0, 1})) << "that of rank 0";
}

TEST(GroupByNode, TheNetworksNodeLeads) {
  const Numbers one_host(6);
  EXPECT_EQ(group_by_node(on_nodes({4, 2, 2, 2, 4, 7}, 7), one_host), (Numbers{2, 1, 1, 1, 2, 0}));
  EXPECT_EQ(group_by_node(on_nodes({4, 2, 2, 2, 4, 7}, 9), one_host), (Numbers{1, 0, 0, 0, 1, 2})) << "nobody is near";
}

TEST(GroupByNode, IsWithinEachHost) {
  EXPECT_EQ(group_by_node(on_nodes({0, 1, 0, 0, 1, 1, 1}), Numbers{5, 5, 5, 0, 0, 0, 5}), (Numbers{0, 1, 0, 1, 0, 0, 1}));
  // A rank that is not bound: its host is one group.
  EXPECT_EQ(group_by_node(on_nodes({0, 1, 0, 0, 1, 1, -1}), Numbers{5, 5, 5, 0, 0, 0, 5}), (Numbers{0, 0, 0, 1, 0, 0, 0}));
}

TEST(GroupByNode, IsNothingWhereNothingIsTold) {
  EXPECT_EQ(group_by_node({}, Numbers{0, 0}), Numbers());
  EXPECT_EQ(group_by_node(on_nodes({0, 0, 0}), Numbers{0, 0, 0}), Numbers());
  EXPECT_EQ(group_by_node(on_nodes({-1, 1, 0}), Numbers{0, 0, 0}), Numbers());
  EXPECT_EQ(group_by_node(on_nodes({0, 1, 2}), Numbers{0, 0, 0}), Numbers()) << "each has a node of its own";
  EXPECT_EQ(group_by_node(on_nodes({0, 1, 1}), Numbers{0, 1, 2}), Numbers()) << "each has a host of its own";
}

TEST(GroupByNode, TakesTheNodeOfTheGpuOfRanksThatAreNotBound) {
  std::vector<RankLocation> locations = on_nodes({-1, -1, 0, -1});
  locations[0].gpu_numa = locations[1].gpu_numa = 1;
  locations[2].gpu_numa = 1;  // it is bound elsewhere
  locations[3].gpu_numa = 0;
  EXPECT_EQ(group_by_node(locations, Numbers(4)), (Numbers{0, 0, 1, 1}));
}

std::string text_of_topology(const std::string& setting, int ranks) {
  Config config;
  config.topology = setting;
  const auto locations = pretended_locations(config, ranks);
  if (!locations.ok()) return locations.status().message();
  std::string text;
  for (const RankLocation& one : *locations) text += std::to_string(one.numa) + (one.near_network ? "n " : " ");
  return text;
}

TEST(PretendedTopology, IsReadOrRefused) {
  EXPECT_EQ(text_of_topology("auto", 4), "");
  EXPECT_EQ(text_of_topology("none", 3), "-1 -1 -1 ");
  EXPECT_EQ(text_of_topology("2", 5), "0 0 1 1 2 ");
  EXPECT_EQ(text_of_topology("2,1n", 7), "0 0 1n 2 2 3n 4 ");
  EXPECT_EQ(text_of_topology("1000000", 2), "0 0 ");
  for (const char* wrong : {"", ",", "2,", "0", "-1", "2 ,3", "2nn", "n", "99999999999", "8x", "Auto"}) {
    const std::string text = text_of_topology(wrong, 4);
    EXPECT_NE(text.find("UZIP_TOPOLOGY='" + std::string(wrong) + "' is not allowed; allowed is auto, none"), std::string::npos) << text;
  }
}

/// Answers an all-gather with what the test says.
class ScriptedBootstrap final : public Bootstrap {
 public:
  int rank() const override { return 0; }
  int size() const override { return 2; }
  Status all_gather(std::span<const std::byte> mine, std::vector<Bytes>* all) override {
    sent.assign(mine.begin(), mine.end());
    *all = {sent, answer ? *answer : sent};
    return Status();
  }
  Bytes sent;
  std::unique_ptr<Bytes> answer;
};

TEST(ExchangeLocations, BringsAllOfIt) {
  RankLocation mine;
  mine.socket = 1;
  mine.numa = 3;
  mine.gpu = "0000:1b:00.0";
  mine.gpu_numa = 2;
  mine.near_network = true;
  ScriptedBootstrap bootstrap;
  const auto all = exchange_locations(bootstrap, mine);
  ASSERT_TRUE(all.ok()) << all.status().message();
  EXPECT_EQ(*all, (std::vector{mine, mine}));
}

TEST(ExchangeLocations, RefusesWhatIsNone) {
  ScriptedBootstrap bootstrap;
  ASSERT_TRUE(exchange_locations(bootstrap, {}).ok());
  const Bytes good = bootstrap.sent;
  const auto refused = [&](Bytes answer) {
    bootstrap.answer = std::make_unique<Bytes>(std::move(answer));
    const auto all = exchange_locations(bootstrap, {});
    return !all.ok() && all.status().code() == UZIP_ERR_MISMATCH && all.status().message().starts_with("rank 1 sent");
  };
  EXPECT_FALSE(refused(good));
  EXPECT_TRUE(refused({}));
  EXPECT_TRUE(refused(Bytes(good.begin(), good.end() - 1)));
  for (size_t field : {0, 4, 8}) {  // socket, node, node of the GPU
    Bytes wrong = good;
    const int32_t number = -2;
    std::memcpy(wrong.data() + field, &number, sizeof number);
    EXPECT_TRUE(refused(wrong)) << field;
  }
  Bytes wrong = good;
  wrong[12] = std::byte{2};
  EXPECT_TRUE(refused(wrong));
  wrong = good;
  std::fill(wrong.begin() + 16, wrong.end(), std::byte{'a'});  // a text without an end
  EXPECT_TRUE(refused(wrong));
  wrong = good;
  wrong[16] = std::byte{7};
  EXPECT_TRUE(refused(wrong));
}

// Results are right, and the same, whatever the topology.
TEST(Topology, EveryHierarchicalAlgorithmIsRight) {
  size_t turn = 0;
  for (const char* topology : {"none", "2", "3,1n", "1,4"}) {
    for (int ranks : {1, 4, 9, 13}) {
      for (int per_host : {0, 6}) {
        Config config;
        config.topology = topology;
        config.ranks_per_host = per_host;
        LoopbackOptions wire;
        wire.seed = ++turn;
        wire.longest_delay = 4;
        wire.reorder_senders = wire.random_modes = true;
        LoopbackJob job(ranks, wire, config);
        for (uzip_coll_t coll : {UZIP_ALLREDUCE, UZIP_REDUCE_SCATTER, UZIP_ALLGATHER, UZIP_BCAST, UZIP_REDUCE}) {
          const std::vector<size_t> counts(static_cast<size_t>(ranks), 2001);
          CollCase test({coll, UZIP_BF16, UZIP_SUM, counts, turn % 2 ? Placement::kApart : Placement::kInPlace, Values::kExact,
                         turn, static_cast<int>(turn) % ranks});
          uzip_options_t options = UZIP_OPTIONS_INIT;
          options.algorithm = "hierarchical";
          options.codec = "lev";
          options.chunk_bytes = 3000;
          options.split_send = static_cast<int>(turn++ % 2);
          const auto statuses = job.run([&](int rank) { return test.args(rank, &options); });
          ASSERT_EQ(expect_all(statuses, UZIP_OK), "") << topology << ", " << ranks << " ranks";
          ASSERT_EQ(test.check(), "") << topology << ", " << ranks << " ranks";
        }
      }
    }
  }
}

// Grouped only where a group has so many ranks that the way between the nodes would be full.
TEST(Topology, IsUsedWhereItPays) {
  Config config;
  const auto groups = [&](int ranks, int per_node, size_t count, const char* algorithm) {
    Numbers sockets;
    for (int rank = 0; rank < ranks; ++rank) sockets.push_back(rank / per_node);
    Selector selector(config, link_facts(true, nullptr), {}, nullptr, sockets);
    CallShape shape;
    shape.kind = CallKind::kAllreduce;
    shape.type = UZIP_FP32;
    shape.size = ranks;
    shape.count = count;
    shape.options.algorithm = algorithm ? find_algorithm(Coll::kAllreduce, algorithm) : nullptr;
    const auto plan = selector.select(shape);
    EXPECT_TRUE(plan.ok());
    EXPECT_TRUE(plan->sockets.empty() || plan->sockets == sockets);
    EXPECT_EQ(plan->round_shape(0).sockets, plan->sockets);
    return std::string(plan->algorithm_name()) + (plan->sockets.empty() ? "" : " by socket");
  };
  EXPECT_EQ(groups(128, 64, size_t{1} << 24, nullptr), "hierarchical by socket");
  EXPECT_EQ(groups(128, 64, size_t{1} << 24, "two_shot"), "two_shot");
  EXPECT_EQ(groups(4, 2, size_t{1} << 24, nullptr), "two_shot");
  EXPECT_EQ(groups(4, 2, 1000, "hierarchical"), "hierarchical");
  config.topology = "2";  // whatever is predicted
  EXPECT_EQ(groups(4, 2, 1000, "hierarchical"), "hierarchical by socket");
  EXPECT_EQ(groups(4, 2, 1000, "two_shot"), "two_shot");
}

}  // namespace
}  // namespace uzip
