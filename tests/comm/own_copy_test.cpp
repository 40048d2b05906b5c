// When a rank's own elements of a small all-gather are copied: once, at the latest at the end, earlier while it waits.
#include "comm/direct_exchange.hpp"

#include "comm/loopback_job.hpp"
#include "comm/request.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

namespace uzip {
namespace {

struct Gather {
  Gather(int ranks, size_t bytes, bool in_place) : bytes(bytes), in_place(in_place) {
    for (int r = 0; r < ranks; ++r) {
      in.emplace_back(bytes);
      for (size_t i = 0; i < bytes; ++i) in.back()[i] = static_cast<uint8_t>(i * 7 + static_cast<size_t>(r) * 31 + 1);
      out.emplace_back(static_cast<size_t>(ranks) * bytes);
      if (in_place) std::copy(in.back().begin(), in.back().end(), block(r, r));
    }
  }
  uint8_t* block(int rank, int from) { return out[static_cast<size_t>(rank)].data() + static_cast<size_t>(from) * bytes; }
  uzip_coll_args_t call(int rank) {
    const void* const src = in_place ? block(rank, rank) : in[static_cast<size_t>(rank)].data();
    return make_call(UZIP_ALLGATHER, src, out[static_cast<size_t>(rank)].data(), bytes, UZIP_UINT8);
  }
  bool has(int rank, int from) { return std::memcmp(block(rank, from), in[static_cast<size_t>(from)].data(), bytes) == 0; }
  bool complete() {
    const int ranks = static_cast<int>(in.size());
    for (int rank = 0; rank < ranks; ++rank)
      for (int from = 0; from < ranks; ++from)
        if (!has(rank, from)) return false;
    return true;
  }

  size_t bytes;
  bool in_place;
  std::vector<std::vector<uint8_t>> in, out;
};

constexpr size_t kSizes[] = {1, 4095, 4096, 65536, 65537, 100000, 1 << 20, (1 << 20) + 1, (8 << 20) - 64, (8 << 20) + 64};

/// Whether the exchange does it: longer ones have a schedule.
bool is_direct(int ranks, size_t bytes) { return bytes <= size_t{ranks == 2 ? 8u : 1u} << 20; }

TEST(OwnCopy, CopiesARanksOwnElementsWhileItWaits) {
  for (int ranks : {2, 3})
    for (size_t bytes : kSizes) {
      LoopbackJob job(ranks);
      Gather gather(ranks, bytes, false);
      const auto first = job.start(0, gather.call(0));
      ASSERT_TRUE(first.ok());
      const bool direct = is_direct(ranks, bytes), at_once = direct && bytes >= 4096 && (ranks > 2 || bytes <= 65536);
      EXPECT_EQ(gather.has(0, 0), at_once) << ranks << " ranks, " << bytes;
      int done = 0;
      for (int turn = 0; turn < 1000; ++turn) done += (*first)->work_while_idle();
      EXPECT_EQ(done, direct && bytes >= 4096 && !at_once ? 1 : 0) << ranks << " ranks, " << bytes;
      EXPECT_EQ(gather.has(0, 0), direct && bytes >= 4096) << ranks << " ranks, " << bytes;
      std::vector<Started> all = {{0, *first}};
      for (int rank = 1; rank < ranks; ++rank) all.push_back({rank, job.start(rank, gather.call(rank)).value()});
      EXPECT_EQ(expect_all(job.finish(all), UZIP_OK), "");
      EXPECT_TRUE(gather.complete()) << ranks << " ranks, " << bytes;
      EXPECT_FALSE((*first)->work_while_idle());
    }
}

TEST(OwnCopy, CopiesThemOnceWhateverTheOrderOfArrival) {
  for (uint64_t seed = 1; seed <= 12; ++seed)
    for (size_t bytes : kSizes)
      for (bool in_place : {false, true}) {
        LoopbackOptions wire;
        wire.seed = seed;
        wire.longest_delay = 6;
        wire.reorder_senders = wire.random_modes = true;
        LoopbackJob job(2, wire);
        Gather gather(2, bytes, in_place);
        EXPECT_EQ(expect_all(job.run([&](int rank) { return gather.call(rank); }), UZIP_OK), "");
        EXPECT_TRUE(gather.complete()) << bytes << " bytes, seed " << seed << (in_place ? ", in place" : "");
      }
}

}  // namespace
}  // namespace uzip
