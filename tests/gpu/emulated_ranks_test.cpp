// The kernels between ranks, run thread by thread on the CPU, for all ranks at a time or for some
// of them: what they compute, and that a rank that comes too late never takes wrong bytes for right
// ones. Needs no GPU.
#include "gpu/emulator.hpp"

#include "base/reduce.hpp"
#include "codec/samples.hpp"
#include "gpu/peer_small_kernel.hpp"
#include "gpu/peer_store_kernel.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace uzip::gpu {
namespace {

constexpr unsigned kRanks = 2;
constexpr uint64_t kDeadline = 20'000;

/// What a rank's region and tickets are in the plugin.
struct RankWords {
  uint64_t given_up = 0;
  uint64_t done = 0;
  uint64_t fault = 0;
  uint64_t reason = 0;
  uint32_t counter = 0;
};

class EmulatedRanks : public ::testing::Test {
 protected:
  CallEnd end_of(unsigned rank, uint64_t ticket) {
    CallEnd end{};
    for (unsigned r = 0; r < kRanks; ++r) end.given_up[r] = &words_[r].given_up;
    end.ticket = ticket;
    end.done = &words_[rank].done;
    end.fault = &words_[rank].fault;
    end.reason = &words_[rank].reason;
    end.counter = &words_[rank].counter;
    end.rank = rank;
    end.ranks = kRanks;
    return end;
  }
  void expect_outcome(unsigned rank, uint64_t ticket, uint64_t fault) {
    EXPECT_EQ(words_[rank].done, ticket) << rank;
    EXPECT_EQ(words_[rank].fault, fault) << rank;
  }
  static std::vector<uint8_t> input_of(unsigned rank, size_t count) {
    return make_sample(UZIP_BF16, SampleKind::kGaussian, count, rank + 1);
  }
  static std::vector<uint8_t> sum_of_inputs(size_t count) {
    const auto a = input_of(0, count);
    const auto b = input_of(1, count);
    std::vector<uint8_t> result(a.size());
    reduce(UZIP_SUM, UZIP_BF16, result.data(), std::vector<const void*>{a.data(), b.data()}, count,
           0);
    return result;
  }

  RankWords words_[kRanks];
};

// ---- Stores ----------------------------------------------------------------------------------------

class EmulatedStores : public EmulatedRanks {
 protected:
  static constexpr unsigned kBlocks = 2;
  static constexpr uint64_t kTile = 1024;

  struct Ring {
    std::vector<uint4> tiles = std::vector<uint4>(kBlocks * kStoreDepth * kTile / 16);
    uint64_t arrived[kBlocks * kStoreDepth] = {};
    uint64_t returned[kBlocks * kStoreDepth] = {};
    TileRing at(uint64_t sequence) {
      return {reinterpret_cast<uint8_t*>(tiles.data()), arrived, returned, sequence};
    }
  };

  /// All-reduce of `count` values of bf16, the call that is number `ticket`.
  StoreArgs allreduce(unsigned rank, uint64_t ticket, size_t count, std::vector<uint8_t>& data) {
    const unsigned other = 1 - rank;
    StoreArgs args{};
    args.chunks[0] = {0, count};
    args.chunks[1] = {count, count};
    args.rounds = static_cast<uint32_t>((count + kBlocks * kTile - 1) / (kBlocks * kTile));
    const uint64_t sequence = (ticket - 1) * args.rounds;
    StorePort& port = args.ports[other];
    port.push = pair_[rank].at(sequence);
    port.take = pair_[other].at(sequence);
    port.share = share_[rank].at(sequence);
    port.collect = share_[other].at(sequence);
    args.src = args.dst = data.data();
    args.own = args.own_result = data.data() + args.chunks[rank].begin;
    args.tile_bytes = args.slot_bytes = kTile;
    args.op = UZIP_SUM;
    args.pushes = args.combines = args.pulls = true;
    args.deadline_ns = kDeadline;
    args.end = end_of(rank, ticket);
    return args;
  }
  /// The ranks from `first` to `last`, at the same time.
  void run(const StoreArgs* args, unsigned first, unsigned last) {
    StepTiles tiles[kRanks * kBlocks];
    Emulator::get().launch_on(last - first + 1, kBlocks, kStoreThreads, [&] {
      const unsigned rank = first + Emulator::get().device();
      StoreExchange<UZIP_BF16, true>(args[rank], tiles[rank * kBlocks + block_index()]).run();
    });
  }

  Ring pair_[kRanks];  ///< by the rank that sends
  Ring share_[kRanks];
};

TEST_F(EmulatedStores, GiveTheBitsOfReduce) {
  const size_t count = 20000;
  std::vector<uint8_t> data[kRanks] = {input_of(0, count), input_of(1, count)};
  const StoreArgs args[] = {allreduce(0, 1, count, data[0]), allreduce(1, 1, count, data[1])};
  run(args, 0, 1);
  for (unsigned rank = 0; rank < kRanks; ++rank) {
    expect_outcome(rank, 1, 0);
    EXPECT_TRUE(data[rank] == sum_of_inputs(count)) << rank;
  }
}

TEST_F(EmulatedStores, ALateRankGetsAnError) {
  // So many tiles that a rank alone can't send all of them, and two calls, of which the second
  // works on what the first has left.
  const size_t count = 20000;
  std::vector<uint8_t> data[kRanks] = {input_of(0, count), input_of(1, count)};
  for (const uint64_t ticket : {1, 2}) {
    const StoreArgs args[] = {allreduce(0, ticket, count, data[0]), {}};
    run(args, 0, 0);
    expect_outcome(0, ticket, kTimedOut);
  }
  for (const uint64_t ticket : {1, 2}) {
    words_[1].fault = 0;
    const StoreArgs args[] = {{}, allreduce(1, ticket, count, data[1])};
    run(args, 1, 1);
    expect_outcome(1, ticket, kTimedOut);
  }
}

TEST_F(EmulatedStores, ARankThatWaitsHearsOfAFailure) {
  const size_t count = 20000;
  std::vector<uint8_t> data = input_of(0, count);
  words_[0].given_up = 1;  // as the other would write it
  const StoreArgs args[] = {allreduce(0, 1, count, data), {}};
  run(args, 0, 0);
  expect_outcome(0, 1, kTimedOut);
  for (const uint64_t word : pair_[0].arrived) EXPECT_EQ(word, 0u);
  EXPECT_EQ(words_[1].given_up, 1u);
}

// ---- Small calls -----------------------------------------------------------------------------------

class EmulatedSmallCalls : public EmulatedRanks {
 protected:
  static constexpr size_t kCount = 1000;

  SmallArgs allreduce(unsigned rank, uint64_t ticket, std::vector<uint8_t>& data) {
    const unsigned other = 1 - rank;
    SmallArgs args{};
    SmallPort& port = args.ports[other];
    port.out = slots_[rank][ticket % kSmallSlots];
    port.in = slots_[other][ticket % kSmallSlots];
    port.credit = &credits_[other][rank];
    port.out_sequence = port.in_sequence = ticket;
    args.credits = credits_[rank];
    args.src = data.data();
    args.dst = data.data();
    args.bytes = data.size();
    args.deadline_ns = kDeadline;
    args.end = end_of(rank, ticket);
    args.op = UZIP_SUM;
    args.reduces = true;
    return args;
  }
  void run(const SmallArgs* args, unsigned first, unsigned last) {
    Emulator::get().launch_on(last - first + 1, 2, kSmallThreads, [&] {
      SmallExchange<UZIP_BF16>(args[first + Emulator::get().device()]).run();
    });
  }

  uint4 slots_[kRanks][kSmallSlots][(2 * kCount + 7) / 8] = {};
  uint64_t credits_[kRanks][kRanks] = {};
};

TEST_F(EmulatedSmallCalls, GiveTheBitsOfReduce) {
  std::vector<uint8_t> data[kRanks] = {input_of(0, kCount), input_of(1, kCount)};
  const SmallArgs args[] = {allreduce(0, 1, data[0]), allreduce(1, 1, data[1])};
  run(args, 0, 1);
  for (unsigned rank = 0; rank < kRanks; ++rank) {
    expect_outcome(rank, 1, 0);
    EXPECT_TRUE(data[rank] == sum_of_inputs(kCount)) << rank;
    EXPECT_EQ(credits_[rank][1 - rank], 1u);
  }
}

TEST_F(EmulatedSmallCalls, ALateRankGetsAnError) {
  std::vector<uint8_t> data[kRanks] = {input_of(0, kCount), input_of(1, kCount)};
  for (const uint64_t ticket : {1, 2, 3}) {
    const SmallArgs args[] = {allreduce(0, ticket, data[0]), {}};
    run(args, 0, 0);
    expect_outcome(0, ticket, kTimedOut);
  }
  EXPECT_EQ(credits_[1][0], 0u);  // nothing was taken
  for (const uint64_t ticket : {1, 2, 3}) {
    words_[1].fault = 0;
    const SmallArgs args[] = {{}, allreduce(1, ticket, data[1])};
    run(args, 1, 1);
    expect_outcome(1, ticket, kTimedOut);
  }
}

}  // namespace
}  // namespace uzip::gpu
