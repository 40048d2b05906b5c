// The exchange with neighbours: random graphs, halos within one array, disagreement, wrong arguments.
#include "comm/api_job.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <string>
#include <vector>

namespace uzip {
namespace {

LoopbackOptions mixed_wire() {
  LoopbackOptions wire;
  wire.random_modes = true;
  wire.longest_delay = 3;
  wire.reorder_senders = true;
  wire.eager_limit = 3000;
  return wire;
}

struct Edge {
  int from, to;
  size_t count;
};

/// Blocks between the ranks, also several from one to another, to oneself, and empty ones.
std::vector<Edge> random_graph(int ranks, std::mt19937_64& random) {
  std::vector<Edge> edges(random() % 25);
  const size_t sizes[] = {0, 0, 1, 63, 1000, 4096, 9000};
  for (Edge& edge : edges) {
    edge = {static_cast<int>(random() % static_cast<uint64_t>(ranks)),
            static_cast<int>(random() % static_cast<uint64_t>(ranks)), sizes[random() % 7]};
  }
  return edges;
}

float element(size_t edge, size_t i, int turn) {
  return 1.0F + static_cast<float>(edge) + static_cast<float>((i + static_cast<size_t>(turn)) % 64) / 64;
}

/// One rank's arguments: its edges in order, with gaps between the blocks or not.
class Side {
 public:
  Side(const std::vector<Edge>& edges, int rank, bool gaps) : edges_(edges), gaps_(gaps) {
    for (size_t e = 0; e < edges.size(); ++e) {
      if (edges[e].from == rank) add(e, edges[e].to, sends_);
      if (edges[e].to == rank) add(e, edges[e].from, receives_);
    }
    src.assign(sends_.end, -1.0F);
    dst.assign(receives_.end, -1.0F);
  }
  uzip_neighbors_t neighbors() const {
    return {sizeof(uzip_neighbors_t), static_cast<int>(sends_.peers.size()),
            static_cast<int>(receives_.peers.size()), sends_.peers.data(), sends_.counts.data(),
            gaps_ ? sends_.offsets.data() : nullptr, receives_.peers.data(), receives_.counts.data(),
            gaps_ ? receives_.offsets.data() : nullptr};
  }
  void fill(int turn) {
    for (size_t k = 0; k < sends_.edges.size(); ++k)
      for (size_t i = 0; i < sends_.counts[k]; ++i)
        src[sends_.offsets[k] + i] = element(sends_.edges[k], i, turn);
    dst.assign(dst.size(), -1.0F);
  }
  std::string check(int turn) const {
    std::vector<float> expected(dst.size(), -1.0F);
    for (size_t k = 0; k < receives_.edges.size(); ++k)
      for (size_t i = 0; i < receives_.counts[k]; ++i)
        expected[receives_.offsets[k] + i] = element(receives_.edges[k], i, turn);
    for (size_t i = 0; i < dst.size(); ++i)
      if (expected[i] != dst[i]) return "element " + std::to_string(i) + " of " + std::to_string(dst.size());
    return "";
  }

  std::vector<float> src, dst;

 private:
  struct List {
    std::vector<size_t> edges, counts, offsets;
    std::vector<int> peers;
    size_t end = 0;
  };
  void add(size_t edge, int peer, List& list) {
    list.edges.push_back(edge);
    list.peers.push_back(peer);
    list.counts.push_back(edges_[edge].count);
    if (gaps_) list.end += 5;
    list.offsets.push_back(list.end);
    list.end += edges_[edge].count;
  }

  const std::vector<Edge>& edges_;
  const bool gaps_;
  List sends_, receives_;
};

void exchange(const uzip_coll_args_t& args, uzip_comm_t comm, int form) {
  uzip_request_t request = UZIP_REQUEST_NULL;
  switch (form) {
    case 0: ASSERT_TRUE(succeeds(uzip_coll_run(&args, comm))); break;
    case 1:
      ASSERT_TRUE(succeeds(uzip_coll_start(&args, comm, &request)));
      ASSERT_TRUE(succeeds(uzip_wait(&request)));
      break;
    default:
      ASSERT_TRUE(succeeds(uzip_coll_init(&args, comm, &request)));
      ASSERT_TRUE(succeeds(uzip_start(&request)));
      ASSERT_TRUE(succeeds(uzip_wait(&request)));
      ASSERT_TRUE(succeeds(uzip_request_free(&request)));
  }
}

TEST(NeighborExchange, RandomGraphs) {
  std::mt19937_64 random(3);
  for (int ranks : {1, 2, 5}) {
    ApiJob job(ranks, mixed_wire());
    for (int graph = 0; graph < 5; ++graph) {
      const std::vector<Edge> edges = random_graph(ranks, random);
      for (const char* codec : {"raw", "lev"}) {
        const int split = graph % 3 - 1;
        job.run([&](int rank, uzip_comm_t comm) {
          Side side(edges, rank, graph % 2 == 0);
          uzip_options_t options = UZIP_OPTIONS_INIT;
          options.codec = codec;
          options.chunk_bytes = graph % 4 == 0 ? 0 : 5000;
          options.split_send = split;
          const uzip_neighbors_t neighbors = side.neighbors();
          uzip_coll_args_t args = {};
          args.struct_size = sizeof args;
          args.coll = UZIP_NEIGHBOR_ALLTOALLV;
          args.src = side.src.data();
          args.dst = side.dst.data();
          args.dtype = UZIP_FP32;
          args.options = &options;
          args.neighbors = &neighbors;
          for (int turn = 0; turn < 3; ++turn) {
            side.fill(turn);
            exchange(args, comm, (turn + rank) % 3);
            ASSERT_EQ(side.check(turn), "") << ranks << " ranks, graph " << graph << " " << codec;
          }
        });
      }
    }
  }
}

/// Cells of a periodic line, with a ghost cell block at either end of the same array; on two ranks both neighbours
/// are one, on one rank it is itself.
TEST(NeighborExchange, HalosWithinOneArray) {
  constexpr size_t kHalo = 1500, kInner = 8000;
  for (int ranks : {1, 2, 3}) {
    ApiJob job(ranks, mixed_wire());
    job.run([ranks](int rank, uzip_comm_t comm) {
      std::vector<double> field(kInner + 2 * kHalo, -1);
      const auto cell = [](int owner, size_t i) { return owner * 10000.0 + static_cast<double>(i); };
      for (size_t i = 0; i < kInner; ++i) field[kHalo + i] = cell(rank, i);
      const int left = (rank + ranks - 1) % ranks, right = (rank + 1) % ranks;
      // What goes left is received from the right: the k-th sent to a rank is the k-th received from it.
      const int dests[2] = {left, right}, sources[2] = {right, left};
      const size_t counts[2] = {kHalo, kHalo};
      const size_t from[2] = {kHalo, kInner}, to[2] = {kHalo + kInner, 0};
      const uzip_neighbors_t neighbors = {sizeof neighbors, 2, 2, dests, counts, from, sources, counts, to};
      ASSERT_TRUE(succeeds(uzip_neighbor_alltoallv(field.data(), field.data(), &neighbors, UZIP_FP64, comm)));
      for (size_t i = 0; i < kHalo; ++i) {
        ASSERT_EQ(field[i], cell(left, kInner - kHalo + i));
        ASSERT_EQ(field[kHalo + kInner + i], cell(right, i));
      }
      for (size_t i = 0; i < kInner; ++i) ASSERT_EQ(field[kHalo + i], cell(rank, i));
    });
  }
}

/// Rank 0 sends one block to rank 1, which expects something else.
void expect_mismatch(size_t sent, std::vector<size_t> expected, const char* said) {
  const QuietLog quiet;
  Config config;
  config.timeout = 0.2;
  ApiJob job(2, mixed_wire(), config);
  job.run([&](int rank, uzip_comm_t comm) {
    std::vector<float> data(100000), in(100000);
    const std::vector<int> peers(8, 1 - rank);
    uzip_neighbors_t neighbors = {};
    neighbors.struct_size = sizeof neighbors;
    if (rank == 0) {
      neighbors.dest_count = sent == SIZE_MAX ? 0 : 1;
      neighbors.dests = peers.data();
      neighbors.send_counts = &sent;
    } else {
      neighbors.source_count = static_cast<int>(expected.size());
      neighbors.sources = peers.data();
      neighbors.recv_counts = expected.data();
    }
    const uzip_status_t status = uzip_neighbor_alltoallv(data.data(), in.data(), &neighbors, UZIP_FP32, comm);
    if (rank == 1 || status != UZIP_OK) {
      EXPECT_TRUE(fails(status, UZIP_ERR_MISMATCH, said));
    }
    EXPECT_TRUE(succeeds(uzip_barrier(comm)));
  });
}

TEST(NeighborExchange, DisagreementIsFound) {
  expect_mismatch(1000, {999}, "a block of 1000 elements");
  expect_mismatch(1000, {0}, "1000");
  expect_mismatch(0, {1000}, "neighbor_alltoallv");
  expect_mismatch(90000, {90001}, "90000");
  expect_mismatch(90000, {10, 90000}, "90000");
  expect_mismatch(SIZE_MAX, {5}, "without a block");  // nothing is sent: found by asking
}

TEST(NeighborExchange, UnexpectedBlocksAreFound) {
  const QuietLog quiet;
  ApiJob job(3);
  job.run([&](int rank, uzip_comm_t comm) {
    // All wait for rank 2's block, which comes late; meanwhile rank 0's, which nobody expects, has come to rank 1.
    const int peers[2] = {1, 2}, from[1] = {2}, to[2] = {0, 1};
    const size_t counts[2] = {4, 4};
    float out[8] = {}, in[8] = {};
    uzip_neighbors_t neighbors = {};
    neighbors.struct_size = sizeof neighbors;
    neighbors.send_counts = neighbors.recv_counts = counts;
    neighbors.sources = from;
    neighbors.source_count = rank == 2 ? 0 : 1;
    neighbors.dests = rank == 0 ? peers : to;
    neighbors.dest_count = rank == 0 ? 1 : rank == 2 ? 2 : 0;
    if (rank == 2) {
      float late = 0;
      ASSERT_TRUE(succeeds(uzip_recv(&late, 1, UZIP_FP32, 1, 0, comm)));
    }
    uzip_request_t request;
    ASSERT_TRUE(succeeds(uzip_ineighbor_alltoallv(out, in, &neighbors, UZIP_FP32, comm, &request)));
    if (rank == 1) {
      int done = 0;
      while (done == 0) {
        const uzip_status_t status = uzip_test(&request, &done);
        if (done != 0) {
          EXPECT_TRUE(fails(status, UZIP_ERR_MISMATCH, "a block of 4 elements"));
        }
      }
      const float go = 1;
      ASSERT_TRUE(succeeds(uzip_send(&go, 1, UZIP_FP32, 2, 0, comm)));
    } else {
      (void)uzip_wait(&request);
    }
  });
}

TEST(NeighborExchange, WrongArguments) {
  ApiJob job(1);
  float data[100] = {};
  const int self[2] = {0, 0}, nobody[1] = {1};
  const size_t counts[2] = {10, 10}, same_place[2] = {0, 5}, apart[2] = {50, 60}, huge[2] = {SIZE_MAX, 1};
  const uzip_neighbors_t good = {sizeof good, 2, 2, self, counts, nullptr, self, counts, apart};
  const auto refused = [&](const uzip_neighbors_t* neighbors, uzip_status_t code, const char* said) {
    EXPECT_TRUE(fails(uzip_neighbor_alltoallv(data, data, neighbors, UZIP_FP32, job.comm(0)), code, said));
  };
  EXPECT_TRUE(succeeds(uzip_neighbor_alltoallv(data, data, &good, UZIP_FP32, job.comm(0))));
  refused(nullptr, UZIP_ERR_INVALID, "neighbors is NULL");
  uzip_neighbors_t bad = good;
  bad.struct_size = 8;
  refused(&bad, UZIP_ERR_INVALID, "struct_size");
  bad = good;
  bad.dest_count = -1;
  refused(&bad, UZIP_ERR_INVALID, "-1 destinations");
  bad = good;
  bad.sources = nullptr;
  refused(&bad, UZIP_ERR_INVALID, "must have 2 entries");
  bad = good;
  bad.dest_count = 1;
  bad.dests = nobody;
  refused(&bad, UZIP_ERR_INVALID, "rank 1");
  bad = good;
  bad.recv_offsets = same_place;
  refused(&bad, UZIP_ERR_INVALID, "overlap");
  bad = good;
  bad.recv_offsets = nullptr;  // where the sent blocks are
  refused(&bad, UZIP_ERR_INVALID, "overlap");
  bad = good;
  bad.send_counts = huge;
  refused(&bad, UZIP_ERR_INVALID, "memory can hold");
  bad = good;
  bad.source_count = 1;
  refused(&bad, UZIP_ERR_MISMATCH, "itself");
  EXPECT_TRUE(fails(uzip_neighbor_alltoallv(data, nullptr, &good, UZIP_FP32, job.comm(0)), UZIP_ERR_INVALID,
                    "dst is NULL"));
}

}  // namespace
}  // namespace uzip
