// The blocking, nonblocking and persistent form of every collective of the C API, one against the other.
#include "comm/api_job.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

namespace uzip {
namespace {

constexpr int kRanks = 3;
constexpr int kRoot = 1;
constexpr size_t kCount = 2000;

/// One rank's buffers, large enough for all collectives, and what describes its blocks.
struct Buffers {
  explicit Buffers(int of_rank) : rank(of_rank), src(4 * kRanks * kCount), dst(src.size()) {
    for (int peer = 0; peer < kRanks; ++peer) {
      // What goes from i to j has 100 i + 10 j elements, and goes where others do not.
      to.push_back(static_cast<size_t>(100 * rank + 10 * peer));
      from.push_back(static_cast<size_t>(100 * peer + 10 * rank));
      places.push_back(static_cast<size_t>(peer) * 700);
      from_root.push_back(static_cast<size_t>(100 * kRoot + 10 * peer));
      to_root.push_back(static_cast<size_t>(100 * peer + 10 * kRoot));
    }
    fill(0);
  }
  Buffers(const Buffers&) = delete;

  void fill(int turn) {
    std::iota(src.begin(), src.end(), 1000 * turn + 7 * rank);
    std::fill(dst.begin(), dst.end(), -1);
  }

  int rank;
  std::vector<int32_t> src, dst;
  std::vector<size_t> to, from, places, from_root, to_root;
  std::vector<size_t> uneven{0, kCount, 17};
  // A ring: to the right, from the left.
  int right = (rank + 1) % kRanks, left = (rank + kRanks - 1) % kRanks;
  size_t length = 500;
  uzip_neighbors_t ring() const {
    uzip_neighbors_t neighbors = {};
    neighbors.struct_size = sizeof neighbors;
    neighbors.dest_count = neighbors.source_count = 1;
    neighbors.dests = &right;
    neighbors.sources = &left;
    neighbors.send_counts = neighbors.recv_counts = &length;
    return neighbors;
  }
};

/// A collective in its three forms, with the same arguments.
struct Call {
  const char* name;
  uzip_status_t (*blocking)(Buffers&, uzip_comm_t);
  uzip_status_t (*nonblocking)(Buffers&, uzip_comm_t, uzip_request_t*);
  uzip_status_t (*persistent)(Buffers&, uzip_comm_t, uzip_request_t*);
};

std::ostream& operator<<(std::ostream& stream, const Call& call) { return stream << call.name; }

#define FORMS(NAME, ...)                                                                                             \
  Call {                                                                                                             \
    #NAME, [](Buffers& b, uzip_comm_t comm) { return (void)b, uzip_##NAME(__VA_ARGS__ comm); },                      \
        [](Buffers& b, uzip_comm_t comm, uzip_request_t* r) { return (void)b, uzip_i##NAME(__VA_ARGS__ comm, r); },  \
        [](Buffers& b, uzip_comm_t comm, uzip_request_t* r) { return (void)b, uzip_##NAME##_init(__VA_ARGS__ comm, r); } \
  }

const Call kCalls[] = {
    FORMS(allreduce, b.src.data(), b.dst.data(), kCount, UZIP_INT32, UZIP_SUM, ),
    FORMS(reduce_scatter, b.src.data(), b.dst.data(), kCount, UZIP_INT32, UZIP_MAX, ),
    FORMS(reduce_scatterv, b.src.data(), b.dst.data(), b.uneven.data(), UZIP_INT32, UZIP_SUM, ),
    FORMS(allgather, b.src.data(), b.dst.data(), kCount, UZIP_INT32, ),
    FORMS(allgatherv, b.src.data(), b.dst.data(), b.uneven.data(), UZIP_INT32, ),
    FORMS(bcast, b.src.data(), kCount, UZIP_INT32, kRoot, ),
    FORMS(reduce, b.src.data(), b.dst.data(), kCount, UZIP_INT32, UZIP_SUM, kRoot, ),
    FORMS(gather, b.src.data(), b.dst.data(), kCount, UZIP_INT32, kRoot, ),
    FORMS(gatherv, b.src.data(), b.to[kRoot], b.dst.data(), b.to_root.data(), b.places.data(), UZIP_INT32, kRoot, ),
    FORMS(scatter, b.src.data(), b.dst.data(), kCount, UZIP_INT32, kRoot, ),
    FORMS(scatterv, b.src.data(), b.from_root.data(), b.places.data(), b.dst.data(), b.from[kRoot], UZIP_INT32, kRoot, ),
    FORMS(alltoall, b.src.data(), b.dst.data(), kCount, UZIP_INT32, ),
    FORMS(alltoallv, b.src.data(), b.to.data(), b.places.data(), b.dst.data(), b.from.data(), b.places.data(),
          UZIP_INT32, ),
    FORMS(scan, b.src.data(), b.dst.data(), kCount, UZIP_INT32, UZIP_SUM, ),
    FORMS(exscan, b.src.data(), b.dst.data(), kCount, UZIP_INT32, UZIP_SUM, ),
    FORMS(barrier, ),
};

class Forms : public testing::TestWithParam<Call> {};

void expect_same_results(const Call& call) {
  LoopbackOptions wire;
  wire.random_modes = true;
  wire.longest_delay = 2;
  wire.eager_limit = 3000;
  ApiJob job(kRanks, wire);
  job.run([&](int rank, uzip_comm_t comm) {
    Buffers plain(rank), later(rank), again(rank);
    uzip_request_t persistent = UZIP_REQUEST_NULL;
    ASSERT_TRUE(succeeds(call.persistent(again, comm, &persistent)));
    for (int turn = 0; turn < 4; ++turn) {
      for (Buffers* buffers : {&plain, &later, &again}) buffers->fill(turn);
      ASSERT_TRUE(succeeds(call.blocking(plain, comm)));
      uzip_request_t request = UZIP_REQUEST_NULL;
      ASSERT_TRUE(succeeds(call.nonblocking(later, comm, &request)));
      ASSERT_TRUE(succeeds(uzip_wait(&request)));
      EXPECT_EQ(request, UZIP_REQUEST_NULL);
      ASSERT_TRUE(succeeds(uzip_start(&persistent)));
      int done = 0;
      while (!done) ASSERT_TRUE(succeeds(uzip_test(&persistent, &done)));
      EXPECT_NE(persistent, UZIP_REQUEST_NULL);
      EXPECT_TRUE(later.dst == plain.dst && later.src == plain.src) << "nonblocking, turn " << turn;
      EXPECT_TRUE(again.dst == plain.dst && again.src == plain.src) << "persistent, turn " << turn;
      const Buffers untouched(rank);
      // Something happened: the comparison above is not of nothing.
      if (rank == kRoot && std::string(call.name) != "barrier" && std::string(call.name) != "bcast") {
        EXPECT_FALSE(plain.dst == untouched.dst);
      }
      if (std::string(call.name) == "bcast") {
        Buffers sent(kRoot);
        sent.fill(turn);
        EXPECT_TRUE(std::equal(sent.src.begin(), sent.src.begin() + kCount, plain.src.begin()));
      }
    }
    ASSERT_TRUE(succeeds(uzip_request_free(&persistent)));
  });
}

TEST_P(Forms, GiveTheSame) { expect_same_results(GetParam()); }

std::string name_of(const testing::TestParamInfo<Call>& info) { return info.param.name; }
INSTANTIATE_TEST_SUITE_P(EveryCollective, Forms, testing::ValuesIn(kCalls), name_of);

TEST(FormsTest, OfTheExchangeWithNeighbors) {
  expect_same_results({"neighbor_alltoallv",
                       [](Buffers& b, uzip_comm_t comm) {
                         const uzip_neighbors_t ring = b.ring();
                         return uzip_neighbor_alltoallv(b.src.data(), b.dst.data(), &ring, UZIP_INT32, comm);
                       },
                       [](Buffers& b, uzip_comm_t comm, uzip_request_t* request) {
                         const uzip_neighbors_t ring = b.ring();
                         return uzip_ineighbor_alltoallv(b.src.data(), b.dst.data(), &ring, UZIP_INT32, comm, request);
                       },
                       [](Buffers& b, uzip_comm_t comm, uzip_request_t* request) {
                         const uzip_neighbors_t ring = b.ring();
                         return uzip_neighbor_alltoallv_init(b.src.data(), b.dst.data(), &ring, UZIP_INT32, comm,
                                                             request);
                       }});
}

}  // namespace
}  // namespace uzip
