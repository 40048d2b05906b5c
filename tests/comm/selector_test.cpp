// Plans: the same on all ranks, bounded rounds for every size, what was asked for.
#include "comm/selector.hpp"

#include "base/cpu.hpp"
#include "comm/direct_exchange.hpp"
#include "comm/message_head.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

namespace uzip {
namespace {

constexpr LinkFacts kShared = {.shared_memory = true, .peer_reads = true, .latency = 0.5e-6, .bandwidth = 8e9};
constexpr LinkFacts kNetwork = {.shared_memory = false, .latency = 20e-6, .bandwidth = 1e9};

CallShape shape_of(CallKind kind, DataType type, int ranks, size_t count) {
  CallShape shape;
  shape.kind = kind;
  shape.type = type;
  shape.size = ranks;
  shape.count = kind == CallKind::kBarrier ? 0 : count;
  if (kind == CallKind::kAllgatherV || kind == CallKind::kReduceScatterV) {
    shape.counts.assign(static_cast<size_t>(ranks), 0);
    for (size_t r = 0; r < shape.counts.size(); ++r) shape.counts[r] = count * r / 2;
    shape.count = std::accumulate(shape.counts.begin(), shape.counts.end(), size_t{0});
  }
  return shape;
}

constexpr CallKind kKinds[] = {CallKind::kAllreduce,      CallKind::kReduceScatter,
                               CallKind::kReduceScatterV, CallKind::kAllgather,
                               CallKind::kAllgatherV,     CallKind::kBarrier,
                               CallKind::kSend,           CallKind::kRecv,
                               CallKind::kBcast,          CallKind::kReduce,
                               CallKind::kGather,         CallKind::kScatter,
                               CallKind::kAlltoall,       CallKind::kScan,
                               CallKind::kExscan};

// The rounds together are the call, each block piece by piece.
void expect_rounds_cover(const Plan& plan) {
  if (plan.shape.kind == CallKind::kBarrier) {
    EXPECT_EQ(plan.rounds, 1u);
    return;
  }
  std::vector<size_t> sums;
  size_t total = 0;
  for (uint32_t round = 0; round < plan.rounds; ++round) {
    const Shape shape = plan.round_shape(round);
    sums.resize(shape.counts.size());
    for (size_t r = 0; r < sums.size(); ++r) {
      EXPECT_LE(shape.counts[r], plan.chunk);
      sums[r] += shape.counts[r];
      total += shape.counts[r];
    }
    // Pieces begin where vectors do.
    EXPECT_TRUE(round + 1 == plan.rounds || plan.chunk % 64 == 0 || plan.chunk < 64);
  }
  const bool one_total = plan.of_vectors() || plan.point_to_point() ||
                         !plan.shape.counts.empty();
  const size_t ranks = static_cast<size_t>(plan.shape.size);
  EXPECT_EQ(total, one_total ? plan.shape.count : plan.shape.count * ranks);
  for (size_t r = 0; r < plan.shape.counts.size() && plan.rounds > 0; ++r) {
    EXPECT_EQ(sums[r], plan.shape.counts[r]);
  }
}

TEST(Selector, RoundsCoverTheCall) {
  const Config config;
  for (const LinkFacts& link : {kShared, kNetwork}) {
    const Selector selector(config, link);
    for (CallKind kind : kKinds) {
      for (int ranks : {1, 2, 3, 8}) {
        for (size_t count :
             {size_t{0}, size_t{1}, size_t{63}, size_t{65537}, size_t{1000003}, size_t{10556587}}) {
          const int size = is_point_to_point(kind) ? 1 : ranks;
          const auto plan = selector.select(shape_of(kind, UZIP_BF16, size, count));
          ASSERT_TRUE(plan.ok()) << plan.status().message();
          expect_rounds_cover(*plan);
          EXPECT_LE(plan->window, std::max(plan->rounds, 1u));
        }
      }
    }
  }
}

// Whether a process uses a GPU decides, and what was asked for stands above it.
TEST(Selector, JobsWithGpusHaveLargerPiecesOnNetworks) {
  const Config config;
  LinkFacts with_gpus[] = {kNetwork, kShared};
  for (LinkFacts& link : with_gpus) link.gpus = true;
  const auto chunk = [&](const LinkFacts& link, int ranks, size_t asked) {
    CallShape shape = shape_of(CallKind::kAllgather, UZIP_BF16, ranks, size_t{32} << 20);
    shape.options.chunk_bytes = asked;
    const auto plan = Selector(config, link).select(shape);
    EXPECT_TRUE(plan.ok());
    return plan->chunk * 2;
  };
  EXPECT_EQ(chunk(kNetwork, 2, 0), size_t{64} << 10);
  EXPECT_EQ(chunk(with_gpus[0], 2, 0), size_t{1} << 20);
  EXPECT_EQ(chunk(with_gpus[0], 2, 4096), 4096u);
  EXPECT_EQ(chunk(with_gpus[1], 2, 0), chunk(kShared, 2, 0));
  EXPECT_LE(chunk(with_gpus[0], 64, 0), size_t{128} << 10);
}

// Between buffers in caches, straight from sender to receiver.
TEST(Selector, MovesAtOnceWithinAHost) {
  const Config config;
  const size_t count = 512 * 1024;
  LinkFacts with_gpus = kShared, unread = kShared;
  with_gpus.gpus = true;
  unread.peer_reads = false;
  const auto rounds_of = [&](const LinkFacts& link, const CallShape& shape) {
    const auto plan = Selector(config, link).select(shape);
    EXPECT_TRUE(plan.ok());
    return plan.ok() ? plan->rounds : 0;
  };
  for (CallKind kind : {CallKind::kSend, CallKind::kRecv, CallKind::kAllgather, CallKind::kAlltoall, CallKind::kGather}) {
    CallShape shape = shape_of(kind, UZIP_FP32, is_point_to_point(kind) ? 1 : 2, count);
    if (kind == CallKind::kGather) shape.options.algorithm = find_algorithm(Coll::kGather, "direct");
    EXPECT_EQ(rounds_of(kShared, shape), 1u) << call_name(kind);
    EXPECT_GT(rounds_of(with_gpus, shape), 1u) << call_name(kind);
    EXPECT_GT(rounds_of(unread, shape), 1u) << call_name(kind);
    EXPECT_GT(rounds_of(kNetwork, shape), 1u) << call_name(kind);
    shape.options.chunk_bytes = 64 * 1024;
    EXPECT_EQ(rounds_of(kShared, shape), 32u) << call_name(kind);
    shape.options.chunk_bytes = 0;
    shape.count = 64 * count;  // more than caches hold
    EXPECT_GT(rounds_of(kShared, shape), 1u) << call_name(kind);
  }
  for (CallKind kind : {CallKind::kAllreduce, CallKind::kReduceScatter, CallKind::kAllgatherV})
    EXPECT_GT(rounds_of(kShared, shape_of(kind, UZIP_FP32, 2, count)), 1u) << call_name(kind);
  // Readers of a broadcast share one copy of each piece if there are enough of them.
  for (int ranks : {2, 3, 4, 8}) {
    const CallShape shape = shape_of(CallKind::kBcast, UZIP_FP32, ranks, count);
    EXPECT_STREQ(Selector(config, kShared).select(shape)->algorithm_name(), "direct") << ranks;
    EXPECT_EQ(rounds_of(kShared, shape) == 1, ranks < 4) << ranks;
  }
  CallShape ring = shape_of(CallKind::kAllgather, UZIP_FP32, 4, count);
  ring.options.algorithm = find_algorithm(Coll::kAllgather, "ring");
  EXPECT_GT(rounds_of(kShared, ring), 1u);
}

// Between Intel's cores what has one receiver is read from memory, too, in pieces that leave time for others.
TEST(Selector, ReadsLargeMessagesInLargePiecesWhereThatIsFaster) {
  const Config config;
  const Selector selector(config, kShared);
  for (CallKind kind : {CallKind::kSend, CallKind::kRecv, CallKind::kAlltoall, CallKind::kAllgather, CallKind::kReduceScatter}) {
    CallShape shape = shape_of(kind, UZIP_FP32, is_point_to_point(kind) ? 1 : 2, size_t{20} << 20);
    const bool reads = cpu_vendor() == CpuVendor::kIntel && kind != CallKind::kAllgather && kind != CallKind::kReduceScatter;
    auto plan = selector.select(shape);
    EXPECT_EQ(plan->reads, reads) << call_name(kind);
    EXPECT_EQ(plan->rounds, reads ? 5u : 320u) << call_name(kind);
    EXPECT_EQ(plan->body_use() == BodyUse::kMoved, reads) << call_name(kind);
    expect_rounds_cover(*plan);
    shape.in_place = true;
    EXPECT_EQ(selector.select(shape)->reads, reads && kind != CallKind::kAlltoall) << "its operands are copied first";
  }
}

TEST(Selector, JobsWithGpusCodeLargerSharesOnly) {
  Config config;
  LinkFacts with_gpus = kNetwork;
  with_gpus.gpus = true;
  const auto codes = [&](const LinkFacts& link, size_t bytes) {
    return Selector(config, link).select(shape_of(CallKind::kAllgather, UZIP_BF16, 2, bytes / 2))->codec != nullptr;
  };
  EXPECT_TRUE(codes(kNetwork, 64 << 10));
  EXPECT_FALSE(codes(with_gpus, 128 << 10));
  EXPECT_TRUE(codes(with_gpus, 256 << 10));
  config.codec_threshold = 64 << 10;
  EXPECT_TRUE(codes(with_gpus, 64 << 10));
}

// The GPUs reduce in rank order; calls that they don't carry out must have the same bits.
TEST(Selector, WhereGpusMayReduceAllReduceAlike) {
  Config config;
  config.gpu_peers = true;
  for (const int ranks : {2, 3, 8})
    for (const size_t count : {size_t{2}, size_t{5000}, size_t{1} << 22})
      for (const CallKind kind : {CallKind::kAllreduce, CallKind::kReduceScatter, CallKind::kReduce}) {
        const auto plan = Selector(config, kShared).select(shape_of(kind, UZIP_FP32, ranks, count));
        ASSERT_TRUE(plan.ok());
        EXPECT_EQ(plan->algorithm->order, Order::kRanks) << plan->algorithm->name;
      }
  CallShape ring = shape_of(CallKind::kAllreduce, UZIP_FP32, 3, 1000);
  ring.options.algorithm = find_algorithm(Coll::kAllreduce, "ring");
  EXPECT_TRUE(Selector(config, kShared).select(ring).ok());
}

TEST(Selector, AnyChunkSizeWorks) {
  const Config config;
  const Selector selector(config, kShared);
  for (DataType type : {UZIP_INT8, UZIP_FP64}) {
    for (CallKind kind : kKinds) {
      for (size_t chunk : {size_t{1}, size_t{7}, size_t{513}, size_t{1} << 40, SIZE_MAX / 2,
                           SIZE_MAX - 1, SIZE_MAX}) {
        CallShape shape = shape_of(kind, type, is_point_to_point(kind) ? 1 : 3, 1000);
        shape.options.chunk_bytes = chunk;
        const auto plan = selector.select(shape);
        ASSERT_TRUE(plan.ok());
        expect_rounds_cover(*plan);
      }
    }
  }
}

// Larger than any memory: the numbers must not overflow, and there are never too many rounds.
TEST(Selector, HugeCountsHaveFewRounds) {
  const Config config;
  const Selector selector(config, kNetwork);
  for (CallKind kind : {CallKind::kAllreduce, CallKind::kAllgather, CallKind::kSend}) {
    for (size_t chunk : {size_t{0}, size_t{1}}) {
      for (size_t bytes :
           {size_t{1} << 31, size_t{1} << 32, size_t{1} << 45, size_t{PTRDIFF_MAX} / 64}) {
        CallShape shape = shape_of(kind, UZIP_UINT8, kind == CallKind::kSend ? 1 : 48, bytes);
        shape.options.chunk_bytes = chunk;
        const auto plan = selector.select(shape);
        ASSERT_TRUE(plan.ok());
        EXPECT_LE(plan->rounds, MessageIndex::kInquiryRound);  // numbered below it
        EXPECT_GT(plan->rounds, 0u);
        const Shape last = plan->round_shape(plan->rounds - 1);
        EXPECT_GT(last.total(), 0u);
        EXPECT_LE(last.total(), plan->round_shape(0).total());
      }
    }
  }
}

TEST(Selector, DoesAsAsked) {
  const Config config;
  const Selector selector(config, kShared);
  CallShape shape = shape_of(CallKind::kAllreduce, UZIP_FP32, 4, 100000);
  for (const Algorithm* algorithm : algorithms()) {
    if (algorithm->coll != Coll::kAllreduce) continue;
    shape.options.algorithm = algorithm;
    const auto plan = selector.select(shape);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->algorithm, algorithm);
    EXPECT_NE(selector.explain(*plan).find("as asked"), std::string::npos);
  }
  shape.options.codec = {find_codec("lev"), CodecLevel::kFastest};
  shape.options.chunk_bytes = 40000;
  for (int split : {-1, 0, 1}) {
    shape.options.split_send = split;
    const auto plan = selector.select(shape);
    ASSERT_TRUE(plan.ok());
    EXPECT_EQ(plan->codec, find_codec("lev"));
    EXPECT_EQ(plan->level, CodecLevel::kFastest);
    EXPECT_LE(plan->chunk * 4, 40000u + 64 * 4);
    EXPECT_GT(plan->rounds, 1u);
    EXPECT_EQ(plan->split_rounds, split == 1 ? plan->rounds : 0);
  }
  // Integers are not coded, whatever is asked.
  shape.type = UZIP_INT32;
  EXPECT_EQ(selector.select(shape)->codec, nullptr);
}

TEST(Selector, CodesOnANetworkOnly) {
  Config config;
  const CallShape large = shape_of(CallKind::kAllreduce, UZIP_FP32, 2, 1000000);
  const CallShape small = shape_of(CallKind::kAllreduce, UZIP_FP32, 2, 100);
  EXPECT_EQ(Selector(config, kShared).select(large)->codec, nullptr);
  EXPECT_NE(Selector(config, kNetwork).select(large)->codec, nullptr);
  EXPECT_EQ(Selector(config, kNetwork).select(small)->codec, nullptr);
  config.codec_threshold = 100;
  EXPECT_NE(Selector(config, kNetwork).select(small)->codec, nullptr);
}

// The codec must not decide on the order of a reduction.
TEST(Selector, CodecChangesNeitherAlgorithmNorRounds) {
  const Config config;
  for (const LinkFacts& link : {kShared, kNetwork}) {
    const Selector selector(config, link);
    for (size_t count = 1; count < 100000000; count = count * 3 + 1) {
      for (int ranks : {2, 3, 8, 17}) {
        CallShape shape = shape_of(CallKind::kAllreduce, UZIP_BF16, ranks, count);
        const auto chosen = selector.select(shape);
        shape.options.codec.codec = find_codec("raw");
        const auto raw = selector.select(shape);
        shape.options.codec.codec = find_codec("lev");
        const auto lev = selector.select(shape);
        for (const auto* other : {&raw, &lev}) {
          EXPECT_EQ(chosen->algorithm, (*other)->algorithm);
          EXPECT_EQ(chosen->chunk, (*other)->chunk);
          EXPECT_EQ(chosen->rounds, (*other)->rounds);
        }
      }
    }
  }
}

std::shared_ptr<const TuningTable> tuning_table() {
  return std::make_shared<const TuningTable>(*TuningTable::parse(
      "uzipcoll-tuning 1\n"
      "link network latency 0.001 bandwidth 1e8\n"
      "choice network allreduce bf16 4 1048576 ring 16384 lev:smallest 0 0.1\n"
      "choice network allreduce bf16 4 64 recursive_doubling 0 raw 1 0.1\n"
      "choice network allgather fp32 4 1048576 ring 67108864 lev:fastest 1 0.1\n"
      "choice network send bf16 2 1048576 - 32768 lev:fastest 0 0.1\n"));
}

TEST(Selector, DoesWhatWasMeasured) {
  const Config config;
  const auto table = tuning_table();
  const Selector selector(config, link_facts(false, table.get()), {}, table);
  const auto reduce = selector.select(shape_of(CallKind::kAllreduce, UZIP_BF16, 4, 18 * 4 * 8192));
  EXPECT_STREQ(reduce->algorithm->name, "ring");
  EXPECT_EQ(reduce->chunk * 2, 16384u);
  EXPECT_EQ(reduce->level, CodecLevel::kSmallest);
  EXPECT_EQ(reduce->split_rounds, 0u);
  EXPECT_NE(selector.explain(*reduce).find("ring (measured), codec lev:smallest (measured)"), std::string::npos)
      << selector.explain(*reduce);
  const auto small = selector.select(shape_of(CallKind::kAllreduce, UZIP_BF16, 4, 10));
  EXPECT_STREQ(small->algorithm->name, "recursive_doubling");
  EXPECT_EQ(small->codec, nullptr);
  const auto send = selector.select(shape_of(CallKind::kSend, UZIP_BF16, 1, 30 * 16384));
  EXPECT_EQ(send->chunk * 2, 32768u);
  EXPECT_EQ(send->level, CodecLevel::kFastest);
  EXPECT_EQ(send->split_rounds, 0u);
  // What was not measured: other ranks, other types, another link.
  const CallShape others[] = {shape_of(CallKind::kAllreduce, UZIP_BF16, 3, 600000),
                              shape_of(CallKind::kAllreduce, UZIP_INT32, 4, 600000)};
  for (const CallShape& shape : others)
    EXPECT_EQ(selector.select(shape)->digest,
              Selector(config, link_facts(false, table.get())).select(shape)->digest);
  const CallShape shared = shape_of(CallKind::kAllreduce, UZIP_BF16, 4, 600000);
  EXPECT_EQ(Selector(config, link_facts(true, table.get()), {}, table).select(shared)->digest,
            Selector(config, link_facts(true, nullptr)).select(shared)->digest);
}

TEST(Selector, WhatWasMeasuredStandsBelowWhatIsAskedFor) {
  Config config;
  const auto table = tuning_table();
  CallShape shape = shape_of(CallKind::kAllreduce, UZIP_BF16, 4, 600000);
  shape.options.algorithm = find_algorithm(Coll::kAllreduce, "two_shot");
  shape.options.chunk_bytes = 8192;
  shape.options.codec.codec = find_codec("raw");
  const auto plan = Selector(config, kNetwork, {}, table).select(shape);
  EXPECT_STREQ(plan->algorithm->name, "two_shot");
  EXPECT_EQ(plan->chunk * 2, 8192u);
  EXPECT_EQ(plan->codec, nullptr);
  config.codec_threshold = size_t{1} << 30;
  EXPECT_EQ(Selector(config, kNetwork, {}, table).select(shape_of(CallKind::kAllreduce, UZIP_BF16, 4, 600000))->codec,
            nullptr);
}

// The order of a reduction, and with it the bits, is the same with any codec also under a table.
TEST(Selector, CodecChangesNeitherAlgorithmNorRoundsUnderATable) {
  const Config config;
  const auto table = tuning_table();
  const Selector selector(config, kNetwork, {}, table);
  for (size_t count = 1; count < 100000000; count = count * 3 + 1) {
    CallShape shape = shape_of(CallKind::kAllreduce, UZIP_BF16, 4, count);
    const auto chosen = selector.select(shape);
    for (const char* codec : {"raw", "lev"}) {
      shape.options.codec.codec = find_codec(codec);
      const auto other = selector.select(shape);
      EXPECT_EQ(chosen->algorithm, other->algorithm);
      EXPECT_EQ(chosen->chunk, other->chunk);
      EXPECT_EQ(chosen->rounds, other->rounds);
    }
  }
}

// On one host the hierarchical algorithm is the two-shot one, and costs the same, but for rounding.
TEST(Selector, OfEqualCostsTheFirstStands) {
  const Config config;
  const Selector selector(config, link_facts(true, nullptr));
  for (CallKind kind : {CallKind::kAllreduce, CallKind::kReduceScatter, CallKind::kAllgather})
    for (int ranks : {2, 3, 4, 8})
      for (size_t bytes = 4; bytes <= size_t{256} << 20; bytes *= 2) {
        const auto plan = selector.select(shape_of(kind, UZIP_FP32, ranks, bytes / 4));
        EXPECT_STRNE(plan->algorithm->name, "hierarchical") << call_name(kind) << ", " << ranks << " ranks, " << bytes;
      }
}

// Which takes half as long as the same messages by a schedule.
TEST(Selector, SmallCallsOnOneHostNeedNoSchedule) {
  const Config config;
  const Selector selector(config, link_facts(true, nullptr));
  for (CallKind kind : {CallKind::kAllreduce, CallKind::kReduceScatter, CallKind::kAllgather, CallKind::kBcast, CallKind::kGather,
                        CallKind::kScatter, CallKind::kAlltoall})
    for (int ranks : {2, 3, 4})
      for (size_t bytes : {4, 64, 1024}) {
        const auto plan = selector.select(shape_of(kind, UZIP_FP32, ranks, bytes / 4));
        EXPECT_TRUE(DirectExchange::suits(*plan)) << call_name(kind) << ", " << ranks << " ranks, " << bytes;
      }
}

// One more message costs more than it hides, but where a table says otherwise.
TEST(Selector, SplitsFramesOnlyAsAskedOrMeasured) {
  const Config config;
  const auto split_of = [&](const Selector& selector, CallKind kind, DataType type, int ranks, size_t count, int asked) {
    CallShape shape = shape_of(kind, type, ranks, count);
    shape.options.split_send = asked;
    const auto plan = selector.select(shape);
    EXPECT_TRUE(plan->split_rounds == 0 || plan->split_rounds == plan->rounds);
    return plan->split_rounds > 0;
  };
  const Selector untuned(config, kNetwork);
  const auto table = tuning_table();
  const Selector tuned(config, link_facts(false, table.get()), {}, table);
  for (size_t bytes : {16 << 10, 64 << 10, 1 << 20}) {
    EXPECT_FALSE(split_of(untuned, CallKind::kSend, UZIP_BF16, 1, bytes / 2, -1));
    EXPECT_TRUE(split_of(untuned, CallKind::kSend, UZIP_BF16, 1, bytes / 2, 1));
  }
  EXPECT_FALSE(split_of(tuned, CallKind::kSend, UZIP_BF16, 1, 1 << 19, -1));
  EXPECT_TRUE(split_of(tuned, CallKind::kAllgather, UZIP_FP32, 4, 1 << 16, -1));
  EXPECT_FALSE(split_of(tuned, CallKind::kAllgather, UZIP_FP32, 4, 1 << 16, 0));
}

// A rank has its share of its host's adapter.
TEST(Selector, RanksOfAHostShareItsLink) {
  const Config config;
  EXPECT_EQ(Selector(config, kNetwork).cost_model().seconds_per_byte, 1 / kNetwork.bandwidth);
  EXPECT_EQ(Selector(config, kNetwork, {0, 0, 1, 1}).cost_model().seconds_per_byte, 2 / kNetwork.bandwidth);
  const auto table = std::make_shared<const TuningTable>(*TuningTable::parse(
      "uzipcoll-tuning 1\n"
      "link network latency 1e-5 bandwidth 12e9\n"
      "codec lev:fastest bf16 encode 18e9 decode 40e9 ratio 0.7\n"
      "choice network allreduce bf16 8 1048576 ring 16384 lev:smallest 0 0.1\n"));
  const CallShape shape = shape_of(CallKind::kAllreduce, UZIP_BF16, 8, 1 << 20);
  const auto codec_on = [&](std::vector<int> hosts) {
    return Selector(config, link_facts(false, table.get()), std::move(hosts), table).select(shape)->codec;
  };
  EXPECT_EQ(codec_on({0, 0, 1, 1, 2, 2, 3, 3}), nullptr) << "6 GB/s a rank: not worth it";
  EXPECT_NE(codec_on({0, 0, 0, 0, 1, 1, 1, 1}), nullptr) << "3 GB/s a rank";
  EXPECT_NE(codec_on({}), nullptr) << "a choice for eight ranks on eight hosts";
}

// No table makes a call take more memory than it may without one.
TEST(Selector, ATablesChunkIsBounded) {
  const Config config;
  const auto table = tuning_table();
  const auto plan = Selector(config, kNetwork, {}, table).select(shape_of(CallKind::kAllgather, UZIP_FP32, 4, 100000000));
  EXPECT_LE(plan->chunk * 4 * 4 * 4, size_t{32} << 20);
}

TEST(Plan, DigestTellsPlansApart) {
  const Config config;
  const Selector selector(config, kShared);
  CallShape shape = shape_of(CallKind::kAllgatherV, UZIP_FP32, 3, 100);
  const uint16_t digest = selector.select(shape)->digest;
  EXPECT_EQ(selector.select(shape)->digest, digest);
  const auto differs = [&](auto change) {
    CallShape other = shape;
    change(other);
    return selector.select(other)->digest != digest;
  };
  EXPECT_TRUE(differs([](auto& s) { s.counts = {1, 99, 50}; }));
  EXPECT_TRUE(differs([](auto& s) { s.options.chunk_bytes = 64; }));
  EXPECT_TRUE(differs([](auto& s) { s.options.codec.codec = find_codec("lev"); }));
  EXPECT_TRUE(
      differs(
          [](auto& s) { s.options.algorithm = find_algorithm(Coll::kAllgather, "two_shot"); }) ||
      differs([](auto& s) { s.options.algorithm = find_algorithm(Coll::kAllgather, "ring"); }));
}

// Two ranks of a pairwise call know different counts, and must agree on all that their messages need.
TEST(Selector, CountsOfPairsDecideNothingThatRanksShare) {
  const Config config;
  for (const LinkFacts& link : {kShared, kNetwork}) {
    const Selector selector(config, link);
    for (int split : {-1, 0, 1}) {
      CallShape one = shape_of(CallKind::kAlltoallV, UZIP_FP32, 3, 0), other = one;
      one.options.split_send = other.options.split_send = split;
      one.counts = {5, 0, 1000000};
      one.recv_counts = {7, 1, 2};
      other.counts = other.recv_counts = {0, 0, 0};
      const auto first = selector.select(one), second = selector.select(other);
      ASSERT_TRUE(first.ok() && second.ok());
      EXPECT_EQ(first->digest, second->digest);
      EXPECT_EQ(first->chunk, second->chunk);
      EXPECT_EQ(first->codec, second->codec);
      EXPECT_EQ(first->split(0), second->split(0));
      EXPECT_EQ(first->split(9), second->split(9));
      EXPECT_EQ(first->rounds, (1000000 + first->chunk - 1) / first->chunk);
      EXPECT_EQ(second->rounds, 0u);
      EXPECT_EQ(first->round_shape(1).counts[2], std::min(first->chunk, 1000000 - first->chunk));
      EXPECT_EQ(first->round_shape(1).recv_counts[0], 0u);
    }
    CallShape huge = shape_of(CallKind::kAlltoallV, UZIP_UINT8, 2, 0);
    huge.counts = huge.recv_counts = {size_t{1} << 50, 0};
    EXPECT_EQ(selector.select(huge).status().code(), UZIP_ERR_UNSUPPORTED);
  }
}

}  // namespace
}  // namespace uzip
