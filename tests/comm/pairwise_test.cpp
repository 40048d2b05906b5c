// gatherv, scatterv and alltoallv: blocks of any size at any place, of which each rank knows only its own, and what is
// said when two ranks disagree.
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <vector>

namespace uzip {
namespace {

using Matrix = std::vector<std::vector<size_t>>;  // [from][to]

constexpr uint16_t kUntouched = 0xeeee;

/// Element `i` of what `from` sends `to`; any bits.
uint16_t element(size_t from, size_t to, size_t i) {
  return static_cast<uint16_t>(from * 7919 + to * 104729 + i * 31 + (i >> 3));
}

/// The blocks of one side of one rank, with gaps between them if wanted.
struct Side {
  Side(std::vector<size_t> block_counts, size_t gap) : counts(std::move(block_counts)) {
    size_t end = 0;
    for (size_t count : counts) {
      end += gap;
      begins.push_back(end);
      end += count;
    }
    memory.assign(end + gap, kUntouched);
  }
  uint16_t* block(size_t r) { return memory.data() + begins[r]; }

  std::vector<size_t> counts, begins;
  std::vector<uint16_t> memory;
};

class Pairwise : public testing::TestWithParam<int> {
 protected:
  /// Runs an alltoallv and checks every element, and that what lies between the blocks stays as it was.
  std::string alltoallv(LoopbackJob& job, const Matrix& matrix, size_t gap, bool in_place, const uzip_options_t& options) {
    const size_t ranks = matrix.size();
    std::vector<Side> sources, results;
    for (size_t rank = 0; rank < ranks; ++rank) {
      std::vector<size_t> received;
      for (size_t from = 0; from < ranks; ++from) received.push_back(matrix[from][rank]);
      sources.emplace_back(matrix[rank], gap);
      results.emplace_back(received, gap);
      Side& filled = in_place ? results.back() : sources.back();
      for (size_t to = 0; to < ranks; ++to)
        for (size_t i = 0; i < matrix[rank][to]; ++i) filled.block(to)[i] = element(rank, to, i);
    }
    const auto statuses = job.run([&](int r) {
      const auto rank = static_cast<size_t>(r);
      Side &source = sources[rank], &result = results[rank];
      uzip_coll_args_t call = make_call(UZIP_ALLTOALLV, in_place ? UZIP_IN_PLACE : source.memory.data(),
                                        result.memory.data(), 0, UZIP_BF16);
      call.counts = result.counts.data();
      call.displs = gap ? result.begins.data() : nullptr;
      if (!in_place) {
        call.src_counts = source.counts.data();
        call.src_displs = gap ? source.begins.data() : nullptr;
      }
      call.options = &options;
      return call;
    });
    if (std::string wrong = expect_all(statuses, UZIP_OK); !wrong.empty()) return wrong;
    for (size_t rank = 0; rank < ranks; ++rank) {
      std::vector<uint16_t> expected(results[rank].memory.size(), kUntouched);
      for (size_t from = 0; from < ranks; ++from)
        for (size_t i = 0; i < matrix[from][rank]; ++i)
          expected[results[rank].begins[from] + i] = element(from, rank, i);
      if (results[rank].memory != expected) return "rank " + std::to_string(rank) + " has a wrong result";
    }
    return "";
  }
};

uzip_options_t options_of(const char* codec, int split) {
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.codec = codec;
  options.split_send = split;
  options.chunk_bytes = 2 * 300;
  return options;
}

LoopbackOptions stormy(uint64_t seed) {
  LoopbackOptions wire;
  wire.seed = seed;
  wire.longest_delay = 8;
  wire.reorder_senders = wire.reorder_messages = wire.random_modes = true;
  return wire;
}

TEST_P(Pairwise, AlltoallvIsRight) {
  const auto ranks = static_cast<size_t>(GetParam());
  LoopbackJob job(GetParam(), stormy(ranks));
  std::vector<Matrix> matrices(5, Matrix(ranks, std::vector<size_t>(ranks)));
  for (size_t from = 0; from < ranks; ++from) {
    for (size_t to = 0; to < ranks; ++to) {
      matrices[0][from][to] = 3;
      matrices[1][from][to] = (from * 5 + to * 3) % 7 * 200;  // some empty, some of several pieces
      matrices[2][from][to] = from == 0 ? 1000 : 0;           // one sends, as the root of a scatterv
      matrices[3][from][to] = to == ranks - 1 ? 301 : 0;
      matrices[4][from][to] = 0;
    }
  }
  size_t turn = 0;
  for (const Matrix& matrix : matrices) {
    for (const char* codec : {"raw", "lev"}) {
      for (size_t gap : {size_t{0}, size_t{5}}) {
        ASSERT_EQ(alltoallv(job, matrix, gap, false, options_of(codec, static_cast<int>(++turn % 2))), "");
      }
    }
  }
  // In place what goes to a rank and what comes from it have one size.
  Matrix symmetric(ranks, std::vector<size_t>(ranks));
  for (size_t from = 0; from < ranks; ++from)
    for (size_t to = 0; to < ranks; ++to) symmetric[from][to] = (from + to) % 4 * 250;
  for (const char* codec : {"raw", "lev"}) {
    ASSERT_EQ(alltoallv(job, symmetric, 0, true, options_of(codec, 0)), "");
    ASSERT_EQ(alltoallv(job, symmetric, 9, true, options_of(codec, 1)), "");
  }
  job.settle();
  EXPECT_EQ(job.fabric().unfinished(), 0u);
}

TEST_P(Pairwise, GathervAndScattervAreRight) {
  const auto ranks = static_cast<size_t>(GetParam());
  LoopbackJob job(GetParam(), stormy(100 + ranks));
  for (size_t root = 0; root < ranks; ++root) {
    for (bool in_place : {false, true}) {
      for (size_t gap : {size_t{0}, size_t{3}}) {
        const uzip_options_t options = options_of(gap ? "lev" : "raw", -1);
        std::vector<size_t> counts;
        for (size_t r = 0; r < ranks; ++r) counts.push_back((r + root) % 3 * 350 + r % 2);
        Side whole(counts, gap);  // at the root
        std::vector<std::vector<uint16_t>> blocks;
        for (size_t r = 0; r < ranks; ++r) {
          blocks.emplace_back();
          for (size_t i = 0; i < counts[r]; ++i) blocks.back().push_back(element(r, root, i));
        }
        if (in_place) std::copy(blocks[root].begin(), blocks[root].end(), whole.block(root));
        const auto call_of = [&](uzip_coll_t coll, int r) {
          const auto rank = static_cast<size_t>(r);
          const bool is_root = rank == root, gathers = coll == UZIP_GATHERV;
          void* own = is_root && in_place ? UZIP_IN_PLACE : blocks[rank].data();
          void* all = is_root ? whole.memory.data() : nullptr;
          uzip_coll_args_t call = make_call(coll, gathers ? own : all, gathers ? all : own, counts[rank], UZIP_BF16);
          call.root = static_cast<int>(root);
          call.counts = is_root ? counts.data() : nullptr;
          call.displs = is_root && gap ? whole.begins.data() : nullptr;
          call.options = &options;
          return call;
        };
        ASSERT_EQ(expect_all(job.run([&](int r) { return call_of(UZIP_GATHERV, r); }), UZIP_OK), "");
        std::vector<uint16_t> expected(whole.memory.size(), kUntouched);
        for (size_t r = 0; r < ranks; ++r)
          std::copy(blocks[r].begin(), blocks[r].end(), expected.begin() + static_cast<ptrdiff_t>(whole.begins[r]));
        ASSERT_EQ(whole.memory, expected);
        // And back again.
        const auto before = blocks;
        for (size_t r = 0; r < ranks; ++r)
          if (r != root || !in_place) blocks[r].assign(counts[r], kUntouched);
        ASSERT_EQ(expect_all(job.run([&](int r) { return call_of(UZIP_SCATTERV, r); }), UZIP_OK), "");
        ASSERT_EQ(blocks, before);
        ASSERT_EQ(whole.memory, expected);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, Pairwise, testing::Values(1, 2, 3, 5, 8));

/// Rank 1 of three expects another count from rank 0 than that sends.
std::vector<Status> disagree(LoopbackJob& job, size_t sent, size_t expected) {
  static std::vector<std::vector<size_t>> sends, receives;
  sends.assign(3, std::vector<size_t>(3, 4));
  receives = sends;
  sends[0][1] = sent;
  receives[1][0] = expected;
  std::vector<std::vector<float>> in(3, std::vector<float>(2000)), out = in;
  return job.run([&](int r) {
    const auto rank = static_cast<size_t>(r);
    uzip_coll_args_t call = make_call(UZIP_ALLTOALLV, in[rank].data(), out[rank].data(), 0);
    call.src_counts = sends[rank].data();
    call.counts = receives[rank].data();
    return call;
  }, 20000);
}

TEST(PairwiseErrors, RanksThatDisagreeAreFound) {
  const QuietLog quiet;
  for (const auto& [sent, expected] : {std::pair<size_t, size_t>{5, 6}, {0, 4}, {1000, 999}, {7, 0}}) {
    LoopbackJob job(3, {});
    const std::vector<Status> statuses = disagree(job, sent, expected);
    // Whoever needs something from the other learns of it; a rank that has all it wants may be done before.
    const Status& told = statuses[1].ok() ? statuses[0] : statuses[1];
    if (expected > 0) {
      EXPECT_EQ(told.code(), UZIP_ERR_MISMATCH) << sent << " " << expected << ": " << told.message();
    }
    for (const Status& status : statuses)
      EXPECT_TRUE(status.ok() || status.code() == UZIP_ERR_MISMATCH) << status.message();
    EXPECT_EQ(job.works(), "");
  }
}

}  // namespace
}  // namespace uzip
