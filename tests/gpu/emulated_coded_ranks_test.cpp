// The kernel that codes tiles and stores them into other ranks' memory, run thread by thread on the
// CPU: its bits, damaged tiles, ranks that come late. Needs no GPU.
#include "gpu/emulator.hpp"

#include "base/reduce.hpp"
#include "codec/samples.hpp"
#include "gpu/peer_coded_kernel.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <vector>

namespace uzip::gpu {
namespace {

constexpr unsigned kMostRanks = 3;
constexpr uint64_t kRingSlots = 8;
constexpr unsigned kTileValues = tile_values(2);  ///< of types of 16 bits and more

struct Ring {
  uint8_t* memory = nullptr;
  uint64_t arrived[kRingSlots] = {};
  uint64_t returned[kRingSlots] = {};
  TileRing at(uint64_t sequence) { return {memory, arrived, returned, sequence}; }
};

struct CallSpec {
  bool scatters = true;
  bool gathers = true;
  uint8_t op = UZIP_SUM;
  uint32_t levels = 1;
  uint64_t sequence = 0;
  unsigned blocks = 2;
};

/// `ranks` ranks that make calls on `count` values; chunks are whole tiles, as even as these allow.
template <int kType>
class CodedRanks {
 public:
  static constexpr auto kDataType = static_cast<DataType>(kType);
  using Exchange = CodedExchange<kType>;
  static constexpr size_t kSize = Exchange::kSize;

  CodedRanks(unsigned ranks, size_t count, SampleKind kind = SampleKind::kGaussian)
      : ranks_(ranks), count_(count) {
    for (unsigned rank = 0; rank < ranks; ++rank)
      data[rank] = make_sample(kDataType, kind, count, rank + 1);
    uint8_t* next = region();
    for (auto* rings : {pair_, share_})
      for (unsigned from = 0; from < kMostRanks; ++from)
        for (unsigned to = 0; to < kMostRanks; ++to, next += kRingSlots * kCodedSlotBytes)
          rings[from][to].memory = next;
  }

  ElementRange chunk(unsigned rank) const {
    return chunk_of(count_, static_cast<int>(ranks_), static_cast<int>(rank), tile_values(kSize));
  }

  CodedArgs args(unsigned rank, const CallSpec& spec, uint64_t ticket = 1) {
    CodedArgs args{};
    uint64_t most = 0;
    for (unsigned r = 0; r < ranks_; ++r) {
      const ElementRange range = chunk(r);
      args.chunks[r] = {range.first, range.count};
      most = std::max(most, (range.count + tile_values(kSize) - 1) / tile_values(kSize));
      if (r == rank) continue;
      CodedPort& port = args.ports[r];
      if (spec.scatters) {
        port.push = pair_[rank][r].at(spec.sequence);
        port.take = pair_[r][rank].at(spec.sequence);
      }
      if (spec.gathers) {
        port.share = share_[rank][r].at(spec.sequence);
        port.collect = share_[r][rank].at(spec.sequence);
      }
    }
    args.src = args.dst = data[rank].data();
    args.own = args.own_result = args.dst + chunk(rank).first * kSize;
    args.slots = kRingSlots;
    args.rounds = static_cast<uint32_t>((most + spec.blocks - 1) / spec.blocks);
    args.turn_blocks = 1;
    args.turn_ns = 2000;
    args.op = spec.op;
    args.levels = spec.levels;
    args.pushes = args.reduces = spec.scatters;
    args.combines = true;
    args.pulls = spec.gathers;
    args.deadline_ns = 20'000;
    for (unsigned r = 0; r < ranks_; ++r) args.end.given_up[r] = &given_up[r];
    args.end.ticket = ticket;
    args.end.done = &done[rank];
    args.end.fault = &fault[rank];
    args.end.reason = &reason[rank];
    args.end.counter = &counter_[rank];
    args.coded_units = &coded_units_[rank];
    args.coded_bytes = &coded_bytes[rank];
    args.end.rank = rank;
    args.end.ranks = ranks_;
    args.pulling.dst = args.dst;
    args.combining.dst = args.own_result;
    args.combining.operand = args.own;
    args.spreading.dst = region();
    for (DecodeArgs* decoding : {&args.pulling, &args.combining, &args.spreading}) {
      decoding->type = kType;
      decoding->op = spec.op;
    }
    return args;
  }

  void run(const std::vector<CodedArgs>& args, const CallSpec& spec) {
    using Shared = typename Exchange::Shared;
    const auto devices = static_cast<unsigned>(args.size());
    std::vector<std::unique_ptr<Shared>> shared;
    for (unsigned i = 0; i < devices * spec.blocks; ++i) {
      shared.push_back(std::make_unique<Shared>());
      std::memset(static_cast<void*>(shared.back().get()), 0xdd, sizeof(Shared));
    }
    Emulator::get().launch_on(devices, spec.blocks, kCodedThreads, [&] {
      const unsigned device = Emulator::get().device();
      Exchange(args[device], *shared[device * spec.blocks + block_index()]).run();
    });
  }
  void run_all(const CallSpec& spec, uint64_t ticket = 1) {
    std::vector<CodedArgs> all;
    for (unsigned rank = 0; rank < ranks_; ++rank) all.push_back(args(rank, spec, ticket));
    run(all, spec);
  }

  /// What the ranks' values of a chunk reduce to.
  std::vector<uint8_t> reduced(uint8_t op) const {
    std::vector<const void*> sources;
    for (unsigned rank = 0; rank < ranks_; ++rank) sources.push_back(data[rank].data());
    std::vector<uint8_t> result(count_ * kSize);
    reduce(static_cast<ReduceOp>(op), kDataType, result.data(), sources, count_, 0);
    return result;
  }

  std::vector<uint8_t> data[kMostRanks];
  uint64_t given_up[kMostRanks] = {};
  uint64_t done[kMostRanks] = {};
  uint64_t fault[kMostRanks] = {};
  uint64_t reason[kMostRanks] = {};
  uint64_t coded_bytes[kMostRanks] = {};
  Ring pair_[kMostRanks][kMostRanks];
  Ring share_[kMostRanks][kMostRanks];

 private:
  unsigned ranks_;
  size_t count_;
  uint32_t counter_[kMostRanks] = {};
  uint32_t coded_units_[kMostRanks] = {};
  std::vector<uint4> memory_ =
      std::vector<uint4>(2 * kMostRanks * kMostRanks * kRingSlots * kCodedSlotBytes / 16);

  uint8_t* region() { return reinterpret_cast<uint8_t*>(memory_.data()); }
};

template <int kType>
void expect_allreduce(unsigned ranks, size_t count, const CallSpec& spec,
                      SampleKind kind = SampleKind::kGaussian) {
  CodedRanks<kType> group(ranks, count, kind);
  const auto expected = group.reduced(spec.op);
  group.run_all(spec);
  for (unsigned rank = 0; rank < ranks; ++rank) {
    EXPECT_EQ(group.done[rank], 1u);
    EXPECT_EQ(group.fault[rank], 0u);
    EXPECT_TRUE(group.data[rank] == expected)
        << kType << ", rank " << rank << " of " << ranks << ", " << count;
  }
}

TEST(EmulatedCodedRanks, AllreduceGivesTheBitsOfReduce) {
  expect_allreduce<UZIP_BF16>(2, 6 * kTileValues + 100, {});
  expect_allreduce<UZIP_BF16>(3, 7 * kTileValues - 3, {});
  expect_allreduce<UZIP_FP32>(2, 5 * kTileValues + 1, {});
  expect_allreduce<UZIP_FP32>(3, 3 * kTileValues, {});
  expect_allreduce<UZIP_FP8_E4M3FN>(2, 2 * tile_values(1) + 9, {});
  expect_allreduce<UZIP_FP8_E5M2>(3, 3 * tile_values(1) + 9, {});
  expect_allreduce<UZIP_FP16>(2, 2 * kTileValues, {.op = UZIP_MAX, .levels = 2});
  expect_allreduce<UZIP_BF16>(2, 100, {.levels = 2});  // the second rank has no chunk
}

TEST(EmulatedCodedRanks, AnyTileArrives) {
  for (const SampleKind kind :
       {SampleKind::kRandomBits, SampleKind::kConstant, SampleKind::kUniform}) {
    expect_allreduce<UZIP_BF16>(2, 3 * kTileValues + 7, {}, kind);
    expect_allreduce<UZIP_BF16>(3, 3 * kTileValues + 7, {.op = UZIP_MIN}, kind);
    expect_allreduce<UZIP_FP32>(2, 2 * kTileValues, {}, kind);
    expect_allreduce<UZIP_FP8_E4M3FN>(2, 2 * tile_values(1), {}, kind);
  }
}

TEST(EmulatedCodedRanks, SaysWhatTilesTook) {
  for (const SampleKind kind : {SampleKind::kGaussian, SampleKind::kRandomBits}) {
    CodedRanks<UZIP_BF16> group(2, 8 * kTileValues, kind);
    group.run_all({});
    for (unsigned rank = 0; rank < 2; ++rank) {  // both push four tiles and share four
      const double part = static_cast<double>(group.coded_bytes[rank]) / (8 * kTileValues * 2);
      if (kind == SampleKind::kRandomBits) EXPECT_EQ(part, 1);
      else EXPECT_TRUE(part > 0.65 && part < 0.75) << part;
    }
  }
}

TEST(EmulatedCodedRanks, RingsGoRound) {
  // Many more tiles than slots, one block, and calls one after another.
  CodedRanks<UZIP_BF16> group(2, 40 * kTileValues);
  uint64_t sequence = 0;
  for (const uint64_t ticket : {1, 2}) {
    const auto expected = group.reduced(UZIP_SUM);
    const CallSpec spec = {.sequence = sequence, .blocks = 1};
    group.run_all(spec, ticket);
    sequence += 20;
    for (unsigned rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(group.fault[rank], 0u);
      EXPECT_TRUE(group.data[rank] == expected) << rank << " " << ticket;
    }
  }
}

TEST(EmulatedCodedRanks, GatherAndScatter) {
  for (const unsigned ranks : {2u, 3u}) {
    CodedRanks<UZIP_BF16> gathering(ranks, 5 * kTileValues + 11);
    auto expected = gathering.data[0];
    for (unsigned rank = 0; rank < ranks; ++rank) {
      const ElementRange chunk = gathering.chunk(rank);
      std::copy_n(gathering.data[rank].begin() + static_cast<ptrdiff_t>(chunk.first * 2),
                  chunk.count * 2, expected.begin() + static_cast<ptrdiff_t>(chunk.first * 2));
    }
    gathering.run_all({.scatters = false});
    for (unsigned rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(gathering.fault[rank], 0u);
      EXPECT_TRUE(gathering.data[rank] == expected) << rank;
    }
    CodedRanks<UZIP_BF16> scattering(ranks, 5 * kTileValues + 11);
    expected = scattering.reduced(UZIP_SUM);
    scattering.run_all({.gathers = false});
    for (unsigned rank = 0; rank < ranks; ++rank) {
      EXPECT_EQ(scattering.fault[rank], 0u);
      const ElementRange chunk = scattering.chunk(rank);
      EXPECT_TRUE(std::equal(
          scattering.data[rank].begin() + static_cast<ptrdiff_t>(chunk.first * 2),
          scattering.data[rank].begin() + static_cast<ptrdiff_t>((chunk.first + chunk.count) * 2),
          expected.begin() + static_cast<ptrdiff_t>(chunk.first * 2)))
          << rank;
    }
  }
}

TEST(EmulatedCodedRanks, ALateRankGetsAnError) {
  CodedRanks<UZIP_BF16> group(2, 40 * kTileValues);
  for (const uint64_t ticket : {1, 2}) {
    group.run({group.args(0, {}, ticket)}, {});
    EXPECT_EQ(group.done[0], ticket);
    EXPECT_EQ(group.fault[0], kTimedOut);
  }
  group.run({group.args(1, {}, 1)}, {});
  EXPECT_EQ(group.done[1], 1u);
  EXPECT_EQ(group.fault[1], kTimedOut);
}

TEST(EmulatedCodedRanks, DamagedTilesAreFaults) {
  // What rank 0 has sent is damaged before rank 1 looks at it.
  unsigned faults = 0;
  for (unsigned turn = 0; turn < 60; ++turn) {
    CodedRanks<UZIP_BF16> group(2, 2 * kTileValues);
    const CallSpec spec = {.gathers = false, .blocks = 1};
    group.run({group.args(0, spec)}, spec);  // sends its tile, and waits in vain
    group.given_up[1] = 0;
    Ring& ring = group.pair_[0][1];
    ASSERT_NE(ring.arrived[0], 0u);
    if (turn < 4) {
      const uint64_t sizes[] = {0xffff, 1, 0x7fff,
                                kDecodeImageBytes<FormatOf<UZIP_BF16>::Type> / 16};
      ring.arrived[0] = (ring.arrived[0] & ~uint64_t{0xffff}) | sizes[turn];
    } else {
      ring.memory[kTileValues + (turn - 4) % 40] ^= static_cast<uint8_t>(1u << turn % 8);
    }
    group.run({group.args(1, spec)}, spec);
    EXPECT_EQ(group.done[1], 1u);
    if (group.fault[1] == 0) continue;
    ++faults;
    EXPECT_EQ(group.given_up[0], kDamaged);
  }
  EXPECT_GT(faults, 30u);
}

}  // namespace
}  // namespace uzip::gpu
