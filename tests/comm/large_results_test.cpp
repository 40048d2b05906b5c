// Which results are written past the caches, and what else follows from that.
#include "comm/selector.hpp"

#include "base/cpu.hpp"

#include <gtest/gtest.h>

namespace uzip {
namespace {

constexpr LinkFacts kShared = {.shared_memory = true, .peer_reads = true, .latency = 0.5e-6, .bandwidth = 8e9};
constexpr LinkFacts kNetwork = {.shared_memory = false, .latency = 20e-6, .bandwidth = 1e9};

CallShape shape_of(CallKind kind, DataType type, int ranks, size_t count) {
  CallShape shape;
  shape.kind = kind;
  shape.type = type;
  shape.size = ranks;
  shape.count = count;
  return shape;
}

// What does not stay in the caches is written past them; an all-gather of it goes through the stage, where its own part is
// copied with the same reading.
TEST(LargeResults, ArePastTheCachesThatCannotHoldThem) {
  const Config config;
  const bool intel = cpu_vendor() == CpuVendor::kIntel;
  const auto plan_of = [&](const LinkFacts& link, CallKind kind, int ranks, size_t result_bytes) {
    const size_t parts = kind == CallKind::kAllgather ? static_cast<size_t>(ranks) : 1;
    return *Selector(config, link).select(shape_of(kind, UZIP_FP32, ranks, result_bytes / parts / sizeof(float)));
  };
  for (CallKind kind : {CallKind::kAllgather, CallKind::kAllreduce, CallKind::kBcast, CallKind::kSend})
    for (int ranks : {2, 4, 8}) {
      if (kind == CallKind::kSend && ranks > 2) continue;
      const bool shares = intel && kind != CallKind::kSend;
      const size_t least = !shares ? size_t{32} << 20 : ranks == 2 ? size_t{16} << 20 : size_t{8} << 20;
      EXPECT_TRUE(plan_of(kShared, kind, ranks, least).streams) << call_name(kind) << ranks;
      EXPECT_FALSE(plan_of(kShared, kind, ranks, least - 64).streams) << call_name(kind) << ranks;
      EXPECT_FALSE(plan_of(kNetwork, kind, ranks, (size_t{32} << 20) - 64).streams) << call_name(kind) << ranks;
      EXPECT_TRUE(plan_of(kNetwork, kind, ranks, size_t{32} << 20).streams) << call_name(kind) << ranks;
    }
  const Plan read = plan_of(kShared, CallKind::kAllgather, 2, (size_t{16} << 20) - 64);
  EXPECT_EQ(read.body_use(), BodyUse::kMoved);
  EXPECT_EQ(read.rounds, 1u);
  const Plan staged = plan_of(kShared, CallKind::kAllgather, 2, size_t{16} << 20);
  EXPECT_EQ(staged.body_use(), intel ? BodyUse::kAny : BodyUse::kMoved);
  EXPECT_EQ(staged.rounds, intel ? 32u : 1u);
  CallShape in_place = staged.shape;
  in_place.in_place = true;
  EXPECT_FALSE(Selector(config, kShared).select(in_place)->streams) << "there are no sources besides";
  EXPECT_EQ(Selector(config, kShared).select(in_place)->body_use(), BodyUse::kMoved);
  in_place.size = 4;
  in_place.count /= 2;
  EXPECT_EQ(Selector(config, kShared).select(in_place)->body_use(), intel ? BodyUse::kAny : BodyUse::kMoved);
}

}  // namespace
}  // namespace uzip
