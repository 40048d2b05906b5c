// What a job measures at its first large call: the same on all ranks, whoever waits for the call and whoever doesn't,
// and what the selector makes of it.
#include "comm/calibration.hpp"

#include "comm/api_calls.hpp"
#include "comm/api_job.hpp"
#include "comm/codec_speed.hpp"
#include "comm/selector.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>
#include <vector>

namespace uzip {
namespace {

TunedCodec speed_of(CodecLevel level, double encode, double decode, double ratio) {
  return {{find_codec("lev"), level}, UZIP_BF16, encode, decode, ratio};
}

/// As measured on one core with AVX-512.
std::vector<TunedCodec> usual_speeds() {
  return {speed_of(CodecLevel::kFastest, 18e9, 40e9, 0.702), speed_of(CodecLevel::kBalanced, 14e9, 30e9, 0.683),
          speed_of(CodecLevel::kSmallest, 5e9, 20e9, 0.670)};
}

std::string name_for(double bandwidth, int threads = 0) {
  return tuned_codec_name(cheapest_codec(usual_speeds(), UZIP_BF16, bandwidth, threads));
}

TEST(CodecForLink, SlowerLinksGetSmallerFrames) {
  EXPECT_EQ(name_for(0.01e9), "lev:smallest");
  EXPECT_EQ(name_for(0.0625e9), "lev:smallest");
  EXPECT_EQ(name_for(0.6e9), "lev:balanced");
  EXPECT_EQ(name_for(2.5e9), "lev:fastest");
  EXPECT_EQ(name_for(12e9), "raw");
}

TEST(CodecForLink, ThreadsMakeCodingCheaper) {
  EXPECT_EQ(name_for(5e9), "raw");
  EXPECT_EQ(name_for(5e9, 2), "lev:fastest");
}

TEST(CodecForLink, NothingIsSaidOfATypeThatWasNotMeasured) {
  EXPECT_EQ(cheapest_codec(usual_speeds(), UZIP_FP32, 1e8, 0).codec, nullptr);
}

TEST(CodecSpeed, EveryFloatTypeIsMeasuredAndCompresses) {
  std::vector<DataType> types;
  for (const DataTypeInfo& info : datatypes()) types.push_back(info.type);
  std::set<DataType> measured;
  for (const TunedCodec& speed : measure_codec_speeds(types, 32 << 10, 1)) {
    measured.insert(speed.type);
    EXPECT_GT(speed.encode, 1e6);
    EXPECT_GT(speed.decode, 1e6);
    EXPECT_LT(speed.ratio, 0.98) << datatype_info(speed.type).name;
    EXPECT_GT(speed.ratio, 0.5) << datatype_info(speed.type).name;
  }
  for (DataType type : types) EXPECT_EQ(measured.count(type), is_float(type)) << datatype_info(type).name;
}

TEST(CalibrationPartners, EachHasOneOfEitherAndOnAnotherHost) {
  const std::vector<std::vector<int>> jobs = {{}, {0, 0, 1, 1}, {0, 1, 0, 1, 0}, {0, 0, 0, 1, 1, 1, 2}, {5, 5, 5, 9, 9, 9}};
  for (const std::vector<int>& hosts : jobs) {
    const int size = hosts.empty() ? 3 : static_cast<int>(hosts.size());
    std::set<int> receivers;
    int within = 0;
    for (int rank = 0; rank < size; ++rank) {
      const auto [to, from] = calibration_partners(hosts, rank, size);
      EXPECT_EQ(calibration_partners(hosts, to, size).second, rank);
      EXPECT_EQ(calibration_partners(hosts, from, size).first, rank);
      receivers.insert(to);
      within += !hosts.empty() && hosts[static_cast<size_t>(rank)] == hosts[static_cast<size_t>(to)];
    }
    EXPECT_EQ(receivers.size(), static_cast<size_t>(size));
    EXPECT_LE(within, 1) << "ranks on the larger host cannot all have partners elsewhere";
  }
}

// ---- Jobs ------------------------------------------------------------------------------------------------

constexpr size_t kCount = 300000;  // 1.2 MB of fp32: a large call

LoopbackOptions network() {
  LoopbackOptions wire;
  wire.all_same_host = false;
  return wire;
}

Communicator& communicator(uzip_comm_t comm) { return *(*find(comm))->comm; }

/// An all-reduce of ones; whether the sums are right.
uzip_status_t reduce_ones(uzip_comm_t comm, bool waits, size_t count = kCount) {
  int size = 0;
  uzip_comm_size(comm, &size);
  std::vector<float> in(count, 1), out(count);
  uzip_status_t status = UZIP_OK;
  if (waits) {
    status = uzip_allreduce(in.data(), out.data(), count, UZIP_FP32, UZIP_SUM, comm);
  } else {
    uzip_request_t request = UZIP_REQUEST_NULL;
    status = uzip_iallreduce(in.data(), out.data(), count, UZIP_FP32, UZIP_SUM, comm, &request);
    if (status == UZIP_OK) status = uzip_wait(&request);
  }
  EXPECT_EQ(out, std::vector<float>(count, static_cast<float>(size)));
  return status;
}

void expect_the_same_everywhere(const ApiJob& job) {
  const auto first = communicator(job.comm(0)).calibration();
  for (int rank = 0; rank < job.size(); ++rank) {
    const auto other = communicator(job.comm(rank)).calibration();
    ASSERT_NE(other, nullptr) << rank;
    EXPECT_EQ(other->bandwidth, first->bandwidth);
    EXPECT_EQ(other->codec_threads, first->codec_threads);
    ASSERT_EQ(other->codecs.size(), first->codecs.size());
    for (size_t i = 0; i < first->codecs.size(); ++i) {
      EXPECT_EQ(other->codecs[i].encode, first->codecs[i].encode);
      EXPECT_EQ(other->codecs[i].decode, first->codecs[i].decode);
      EXPECT_EQ(other->codecs[i].ratio, first->codecs[i].ratio);
    }
  }
  EXPECT_GT(first->bandwidth, 0);
  EXPECT_FALSE(first->codecs.empty());
}

TEST(Calibration, HappensAtTheFirstLargeCallOnly) {
  for (int ranks : {2, 3}) {
    ApiJob job(ranks, network());
    job.run([&](int, uzip_comm_t comm) {
      EXPECT_TRUE(succeeds(reduce_ones(comm, true, 1000)));
      EXPECT_EQ(communicator(comm).calibration(), nullptr);
      EXPECT_TRUE(succeeds(reduce_ones(comm, true)));
      EXPECT_NE(communicator(comm).calibration(), nullptr);
    });
    expect_the_same_everywhere(job);
    const auto first = communicator(job.comm(0)).calibration();
    job.run([&](int, uzip_comm_t comm) { EXPECT_TRUE(succeeds(reduce_ones(comm, true))); });
    EXPECT_EQ(communicator(job.comm(0)).calibration(), first);
  }
}

TEST(Calibration, ARankThatDoesNotWaitPutsItOff) {
  ApiJob job(3, network());
  for (int call = 1; call <= 5; ++call) {
    job.run([&](int rank, uzip_comm_t comm) { EXPECT_TRUE(succeeds(reduce_ones(comm, rank != call % 3))); });
    for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(communicator(job.comm(rank)).calibration(), nullptr);
  }
  // The ranks ask each other again before the eighth large call.
  for (int call = 6; call <= 8; ++call) {
    EXPECT_EQ(communicator(job.comm(0)).calibration(), nullptr);
    job.run([&](int, uzip_comm_t comm) { EXPECT_TRUE(succeeds(reduce_ones(comm, true))); });
  }
  expect_the_same_everywhere(job);
  // From now on calls are alike whoever waits for them.
  job.run([&](int rank, uzip_comm_t comm) { EXPECT_TRUE(succeeds(reduce_ones(comm, rank == 1))); });
}

/// Each rank makes its persistent operation before or after the calibration, as it likes; a start goes by what all know then.
TEST(Calibration, PersistentOperationsTakeItAtTheirNextStart) {
  ApiJob job(2, network());
  job.run([&](int rank, uzip_comm_t comm) {
    std::vector<uint16_t> in(kCount, 0x3f80), out(kCount);  // ones
    uzip_coll_info_t info = {};
    info.struct_size = sizeof info;
    uzip_coll_args_t args = {};
    args.struct_size = sizeof args;
    args.coll = UZIP_ALLREDUCE;
    args.src = in.data();
    args.dst = out.data();
    args.count = kCount;
    args.dtype = UZIP_BF16;
    args.op = UZIP_SUM;
    args.info = &info;
    uzip_request_t request = UZIP_REQUEST_NULL;
    const auto init = [&] { EXPECT_TRUE(succeeds(uzip_coll_init(&args, comm, &request))); };
    const auto codec_of_start = [&] {
      EXPECT_TRUE(succeeds(uzip_start(&request)));
      EXPECT_TRUE(succeeds(uzip_wait(&request)));
      EXPECT_EQ(out, std::vector<uint16_t>(kCount, 0x4000));
      return std::string(info.codec);
    };
    if (rank == 0) init();
    if (rank == 0) EXPECT_EQ(codec_of_start(), "lev");
    else EXPECT_TRUE(succeeds(uzip_coll_run(&args, comm)));
    communicator(comm).set_calibration(std::make_shared<const Calibration>(Calibration{1e12, 0, usual_speeds(), 0.1}));
    if (rank == 1) init();
    EXPECT_EQ(codec_of_start(), "raw") << "as calibrated for a very fast link";
    // With a plain call on another rank, too.
    if (rank == 0) EXPECT_EQ(codec_of_start(), "raw");
    else EXPECT_TRUE(succeeds(uzip_coll_run(&args, comm)));
    EXPECT_EQ(codec_of_start(), "raw");
    EXPECT_TRUE(succeeds(uzip_request_free(&request)));
  });
}

/// A vote and the call after it have a number each, the other rank's short call has only one: so rank 0's second call and
/// rank 1's third one have the same number and are alike, but are not the same.
TEST(Calibration, CallsAfterAVoteOfSomeRanksAreNoMatch) {
  ApiJob job(2, network());
  job.run([&](int rank, uzip_comm_t comm) {
    std::vector<float> in(kCount, 1), out(kCount);
    const auto reduce_one = [&] { return uzip_allreduce(in.data(), out.data(), 1, UZIP_FP32, UZIP_SUM, comm); };
    if (rank == 0) {
      uzip_request_t large = UZIP_REQUEST_NULL;
      ASSERT_TRUE(succeeds(uzip_iallreduce(in.data(), out.data(), kCount, UZIP_FP32, UZIP_SUM, comm, &large)));
      EXPECT_EQ(uzip_wait(&large), UZIP_ERR_MISMATCH);
    } else {
      EXPECT_EQ(reduce_one(), UZIP_ERR_MISMATCH);
      EXPECT_EQ(reduce_one(), UZIP_ERR_MISMATCH);
    }
    EXPECT_EQ(reduce_one(), UZIP_ERR_MISMATCH);
  });
}

TEST(Calibration, IsInheritedBySplitCommunicators) {
  ApiJob job(4, network());
  job.run([&](int rank, uzip_comm_t comm) {
    EXPECT_TRUE(succeeds(reduce_ones(comm, true)));
    uzip_comm_t part = nullptr;
    EXPECT_TRUE(succeeds(uzip_comm_split(comm, rank / 2, 0, &part)));
    EXPECT_EQ(communicator(part).calibration(), communicator(comm).calibration());
    EXPECT_TRUE(succeeds(reduce_ones(part, true)));
    EXPECT_TRUE(succeeds(uzip_comm_free(&part)));
  });
}

TEST(Calibration, IsNotNeededWhereTheCodecIsKnown) {
  const auto never = [](const LoopbackOptions& wire, const Config& config) {
    ApiJob job(2, wire, config);
    job.run([&](int, uzip_comm_t comm) { EXPECT_TRUE(succeeds(reduce_ones(comm, true))); });
    return communicator(job.comm(0)).calibration() == nullptr;
  };
  Config asked, off;
  asked.codec = "lev";
  off.calibrate = false;
  EXPECT_FALSE(never(network(), Config()));
  EXPECT_TRUE(never(network(), asked));
  EXPECT_TRUE(never(network(), off));
  EXPECT_TRUE(never(LoopbackOptions(), Config())) << "shared memory";
}

TEST(Calibration, OneThatCallsSomethingElseIsFound) {
  const QuietLog quiet;
  ApiJob job(2, network());
  job.run([&](int rank, uzip_comm_t comm) {
    std::vector<float> in(kCount, 1), out(kCount);
    EXPECT_TRUE(fails(uzip_allreduce(in.data(), out.data(), rank == 0 ? kCount : 5, UZIP_FP32, UZIP_SUM, comm),
                      UZIP_ERR_MISMATCH, "its first large collective"));
  });
}

// ---- The selector ----------------------------------------------------------------------------------------

TEST(Calibration, DecidesTheCodecButNotWhatTheBitsDependOn) {
  const Config config;
  const LinkFacts link = link_facts(false, nullptr);
  for (double bandwidth : {0.01e9, 0.6e9, 2.5e9, 50e9}) {
    Selector selector(config, link);
    CallShape shape;
    shape.kind = CallKind::kAllreduce;
    shape.type = UZIP_BF16;
    shape.size = 4;
    shape.count = 8 << 20;
    const Result<Plan> before = selector.select(shape);
    selector.set_calibration(std::make_shared<const Calibration>(Calibration{bandwidth, 0, usual_speeds(), 0.1}));
    shape.calibrated = true;
    const Result<Plan> after = selector.select(shape);
    ASSERT_TRUE(before.ok() && after.ok());
    EXPECT_EQ(after->algorithm, before->algorithm);
    EXPECT_EQ(after->chunk, before->chunk);
    const CodecChoice wanted = cheapest_codec(usual_speeds(), UZIP_BF16, bandwidth, 0);
    if (wanted.codec->id == kCodecRaw) {
      EXPECT_EQ(after->codec, nullptr);
    } else {
      EXPECT_EQ(after->codec, wanted.codec);
      EXPECT_EQ(after->level, wanted.level);
    }
    EXPECT_NE(selector.explain(*after).find("as calibrated"), std::string::npos);
    shape.calibrated = false;
    EXPECT_EQ(selector.select(shape)->level, CodecLevel::kBalanced);
  }
}

}  // namespace
}  // namespace uzip
