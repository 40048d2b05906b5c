// Calls in which pairs of ranks have sizes of their own, and messages, on buffers in GPU memory; one rank has none.
#include "comm/gpu_job.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <numeric>
#include <string>
#include <vector>

namespace uzip {
namespace {

constexpr int kRanks = 3;
constexpr int kOnHost = 1;

/// What rank `from` sends to rank `to`; smooth, so that it can be coded.
float value(size_t from, size_t to, size_t index) {
  return 1 + static_cast<float>(from * 10 + to) / 64 + static_cast<float>(index % 50) / 1024;
}

/// A buffer of one rank: on its GPU, or in host memory.
class Elements {
 public:
  Elements(const TestGpu& gpu, int rank, std::vector<float> values) : values_(std::move(values)) {
    if (rank == kOnHost || values_.empty()) return;
    arrays_.push_back(GpuArray(gpu, gpu::MemoryKind::kDevice, rank, values_.size() * sizeof(float)));
    arrays_.back().write(values_.data());
  }
  void* data() { return arrays_.empty() ? static_cast<void*>(values_.data()) : arrays_.back().data(); }
  const std::vector<float>& fetch() {
    if (!arrays_.empty()) arrays_.back().read(values_.data());
    return values_;
  }

 private:
  std::vector<float> values_;
  std::vector<GpuArray> arrays_;
};

/// Rank i sends counts(i, j) elements to rank j, in order of ranks, and receives in order of ranks.
class Exchange {
 public:
  explicit Exchange(const TestGpu& gpu) : job_(gpu, kRanks, stormy_gpu_wire(31)) {
    for (size_t rank = 0; rank < kRanks; ++rank) {
      std::vector<float> out;
      size_t in = 0;
      for (size_t peer = 0; peer < kRanks; ++peer) {
        for (size_t i = 0; i < count(rank, peer); ++i) out.push_back(value(rank, peer, i));
        in += count(peer, rank);
        send_[rank].push_back(count(rank, peer));
        receive_[rank].push_back(count(peer, rank));
      }
      sources_.emplace_back(gpu, static_cast<int>(rank), std::move(out));
      results_.emplace_back(gpu, static_cast<int>(rank), std::vector<float>(in));
    }
  }

  std::string run(uzip_coll_t coll, const uzip_options_t& options) {
    const std::vector<int> all = {0, 1, 2};
    uzip_neighbors_t neighbors[kRanks] = {};
    const auto statuses = job_.run([&](int number) {
      const auto rank = static_cast<size_t>(number);
      uzip_coll_args_t call = make_call(coll, sources_[rank].data(), results_[rank].data(), 0);
      call.options = &options;
      call.src_counts = send_[rank].data();
      call.counts = receive_[rank].data();
      neighbors[rank] = {sizeof neighbors[rank], kRanks, kRanks, all.data(), send_[rank].data(), nullptr, all.data(),
                         receive_[rank].data(), nullptr};
      call.neighbors = &neighbors[rank];
      return call;
    });
    const std::string wrong = expect_all(statuses, UZIP_OK);
    return wrong.empty() ? check() : wrong;
  }

 private:
  static size_t count(size_t from, size_t to) { return (from * 3 + to * 5) % 7 * 2501; }

  std::string check() {
    for (size_t rank = 0; rank < kRanks; ++rank) {
      const std::vector<float>& got = results_[rank].fetch();
      size_t at = 0;
      for (size_t from = 0; from < kRanks; ++from)
        for (size_t i = 0; i < count(from, rank); ++i)
          if (got[at++] != value(from, rank, i)) return "rank " + std::to_string(rank) + ", from " + std::to_string(from);
    }
    return "";
  }

  GpuJob job_;
  std::vector<size_t> send_[kRanks], receive_[kRanks];
  std::vector<Elements> sources_, results_;
};

TEST(GpuExchanges, EachPairGetsItsElements) {
  for (uzip_coll_t coll : {UZIP_ALLTOALLV, UZIP_NEIGHBOR_ALLTOALLV}) {
    for (const char* codec : {"raw", "lev"}) {
      for (int split : {0, 1}) {
        Exchange exchange(fake_gpu_for_tests(static_cast<uint64_t>(split) + 5));
        uzip_options_t options = UZIP_OPTIONS_INIT;
        options.codec = codec;
        options.split_send = split;
        options.chunk_bytes = 16384;
        ASSERT_EQ(exchange.run(coll, options), "") << coll << " " << codec << " " << split;
        ASSERT_EQ(exchange.run(coll, options), "") << "again";
      }
    }
  }
}

TEST(GpuExchanges, MessagesInAnyDirection) {
  const TestGpu gpu = fake_gpu_for_tests(9);
  GpuJob job(gpu, kRanks, stormy_gpu_wire(33));
  for (const char* codec : {"raw", "lev"}) {
    uzip_options_t options = UZIP_OPTIONS_INIT;
    options.codec = codec;
    options.chunk_bytes = 8192;
    std::vector<Elements> out, in;
    std::vector<Started> started;
    for (int rank = 0; rank < kRanks; ++rank) {
      std::vector<float> values(30001);
      for (size_t i = 0; i < values.size(); ++i) values[i] = value(static_cast<size_t>(rank), 0, i);
      out.emplace_back(gpu, rank, values);
      in.emplace_back(gpu, rank, std::vector<float>(values.size()));
    }
    for (int rank = 0; rank < kRanks; ++rank) {
      const auto r = static_cast<size_t>(rank);
      started.push_back({rank, *job.start_send(rank, out[r].data(), 30001, UZIP_FP32, (rank + 1) % kRanks, 4, &options)});
      started.push_back({rank, *job.start_recv(rank, in[r].data(), 30001, UZIP_FP32, (rank + 2) % kRanks, 4, &options)});
    }
    ASSERT_EQ(expect_all(job.finish(started), UZIP_OK), "");
    for (size_t rank = 0; rank < kRanks; ++rank) EXPECT_EQ(in[rank].fetch(), out[(rank + 2) % kRanks].fetch());
  }
}

}  // namespace
}  // namespace uzip
