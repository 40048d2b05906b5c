// The simulator against what can be computed by hand, and against what must hold for any algorithm.
#include "algos/simulate.hpp"

#include "algos/symmetry.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <numeric>
#include <string_view>
#include <tuple>

namespace uzip {
namespace {

constexpr double kHead = 80;
constexpr double kLatency = 3e-6;
constexpr double kBandwidth = 2e9;
constexpr double kReduce = 5e9;

// Hosts of one rank, links that take time, cores that reduce and take no time for anything else.
MachineModel ideal() {
  MachineModel machine;
  machine.copy = 1e18;
  machine.reduce = kReduce;
  machine.remote.latency = machine.local.latency = kLatency;
  machine.remote.bandwidth = machine.local.bandwidth = kBandwidth;
  return machine;
}

double wire_time(double elements) { return (kHead + 4 * elements) / kBandwidth; }

Prediction predict(const CallModel& call, const MachineModel& machine) {
  const Result<Prediction> prediction = simulate(call, machine);
  EXPECT_TRUE(prediction.ok()) << prediction.status().message();
  return prediction.ok() ? *prediction : Prediction();
}

double seconds(Coll coll, const char* name, int ranks, size_t count, const MachineModel& machine) {
  const Algorithm& algorithm = *find_algorithm(coll, name);
  return predict(one_round(algorithm, even_shape(coll, ranks, count), Form::kPlain, UZIP_FP32),
                 machine)
      .seconds;
}

#define EXPECT_SAME_TIME(a, b) EXPECT_NEAR((a) / (b), 1, 1e-9)

TEST(Simulate, RingTakesItsClosedForm) {
  for (int ranks : {2, 3, 8, 40, 64}) {
    const double share = 500;
    const double expected =
        2 * (ranks - 1) * (kLatency + wire_time(share)) + (ranks - 1) * 2 * 4 * share / kReduce;
    EXPECT_SAME_TIME(
        seconds(Coll::kAllreduce, "ring", ranks, 500 * static_cast<size_t>(ranks), ideal()),
        expected);
  }
}

TEST(Simulate, TwoShotTakesItsClosedForm) {
  for (int ranks : {2, 3, 8, 40, 64}) {
    const double share = 500;
    const double expected =
        2 * (kLatency + (ranks - 1) * wire_time(share)) + ranks * 4 * share / kReduce;
    EXPECT_SAME_TIME(
        seconds(Coll::kAllreduce, "two_shot", ranks, 500 * static_cast<size_t>(ranks), ideal()),
        expected);
  }
}

TEST(Simulate, RecursiveDoublingTakesItsClosedForm) {
  for (int ranks : {2, 8, 64, 256}) {
    const double expected =
        std::log2(ranks) * (kLatency + wire_time(1024) + 2 * 4 * 1024 / kReduce);
    EXPECT_SAME_TIME(seconds(Coll::kAllreduce, "recursive_doubling", ranks, 1024, ideal()),
                     expected);
  }
}

TEST(Simulate, GathersTakeTheirClosedForms) {
  for (int ranks : {2, 5, 40}) {
    EXPECT_SAME_TIME(seconds(Coll::kAllgather, "ring", ranks, 700, ideal()),
                     (ranks - 1) * (kLatency + wire_time(700)));
  }
  EXPECT_SAME_TIME(seconds(Coll::kAllgather, "bruck", 8, 700, ideal()),
                   3 * kLatency + wire_time(700) + wire_time(2 * 700) + wire_time(4 * 700));
  EXPECT_SAME_TIME(seconds(Coll::kBarrier, "dissemination", 9, 0, ideal()),
                   4 * (kLatency + wire_time(0)));
}

TEST(Simulate, LargeBodiesAreAskedFor) {
  MachineModel machine = ideal();
  machine.remote.fetch = 1000;
  // The announcement, the question and the body.
  EXPECT_SAME_TIME(seconds(Coll::kAllgather, "ring", 2, 700, machine),
                   3 * kLatency + wire_time(700));
  EXPECT_SAME_TIME(seconds(Coll::kAllgather, "ring", 2, 100, machine), kLatency + wire_time(100));
  // The receiver's core moves the body.
  machine.remote.carrier = Carrier::kReceiver;
  machine.remote.message = 1e-6;
  EXPECT_SAME_TIME(seconds(Coll::kAllgather, "ring", 2, 700, machine),
                   1e-6 + kLatency + 1e-6 + wire_time(700) + kLatency);
}

TEST(Simulate, HostsShareTheirPort) {
  MachineModel machine = ideal();
  machine.ranks_per_host = 2;
  machine.remote.port = PortOwner::kHost;
  // Recursive doubling: the first hop is within hosts, the second between them, two ranks at a
  // time.
  EXPECT_SAME_TIME(seconds(Coll::kAllreduce, "recursive_doubling", 4, 1000, machine),
                   2 * (kLatency + 2 * 4 * 1000 / kReduce) + wire_time(1000) + 2 * wire_time(1000));
}

TEST(Simulate, SocketsShareTheirPort) {
  MachineModel machine = ideal();
  machine.ranks_per_host = 4;
  machine.ranks_per_socket = 2;
  machine.socket = machine.local;
  machine.socket.port = PortOwner::kSocket;
  // Recursive doubling: the first hop is within sockets, the second between them, two ranks at a time.
  const double reductions = 2 * 2 * 4 * 1000 / kReduce;
  EXPECT_SAME_TIME(seconds(Coll::kAllreduce, "recursive_doubling", 4, 1000, machine),
                   2 * kLatency + reductions + wire_time(1000) + 2 * wire_time(1000));
  // A core that reads the other socket's memory waits for its turn at the port, and is not faster than it can be.
  machine.socket.carrier = Carrier::kReceiver;
  machine.socket.fetch = 1000;
  machine.socket.latency = 0;
  EXPECT_SAME_TIME(seconds(Coll::kAllreduce, "recursive_doubling", 4, 1000, machine),
                   kLatency + reductions + wire_time(1000) + 2 * wire_time(1000));
  machine.socket.byte_cpu = 3 / kBandwidth;
  EXPECT_SAME_TIME(seconds(Coll::kAllreduce, "recursive_doubling", 4, 1000, machine),
                   kLatency + reductions + wire_time(1000) + 3 * wire_time(1000));
}

TEST(Simulate, RanksShareTheirHostsCores) {
  MachineModel machine = ideal();
  machine.ranks_per_host = 4;
  machine.cores_per_host = 4;
  const double apart = seconds(Coll::kAllreduce, "two_shot", 4, 1000000, machine);
  machine.cores_per_host = 2;
  const double two = seconds(Coll::kAllreduce, "two_shot", 4, 1000000, machine);
  // A second turn of reductions, whose results may meet those of the first in the ports.
  EXPECT_GE((two - apart) / (4 * 4 * 250000 / kReduce), 1 - 1e-9);
  EXPECT_LE(two - apart, 4 * 4 * 250000 / kReduce + 2 * wire_time(250000));
}

TEST(Simulate, WhatDoesNotFitTheCacheTakesLonger) {
  MachineModel machine = ideal();
  machine.cache = 8000;
  machine.memory = 1e-9;
  // A rank has an input and an output of 4 bytes an element, and scratch of as many; it reduces the input and the scratch
  // into the output.
  const auto missing = [&](size_t count) {
    const double elements = static_cast<double>(count);
    const double all = seconds(Coll::kAllreduce, "recursive_doubling", 2, count, machine);
    return (all - kLatency - wire_time(elements) - 2 * 4 * elements / kReduce) / (4 * elements * machine.memory);
  };
  EXPECT_NEAR(missing(600), 0, 1e-6);
  EXPECT_SAME_TIME(missing(1000), 0.5);           // of the scratch: 12 kB a round
  EXPECT_SAME_TIME(missing(1500), 0.5 + 0.5 + 1);
  EXPECT_SAME_TIME(missing(1000000), 3);
  // The host's last cache is large enough, a core's own is not.
  machine.core_cache = 8000;
  machine.cache = 1e9;
  machine.far = 1e-9;
  EXPECT_SAME_TIME(missing(1500), 0.5 + 0.5 + 1);
  EXPECT_SAME_TIME(missing(1000000), 3);
}

TEST(Simulate, CoresShareTheMemory) {
  MachineModel machine = ideal();
  machine.ranks_per_host = 2;
  machine.cache = 8000;
  machine.memory = 1e-9;
  const auto time = [&] { return seconds(Coll::kAllreduce, "recursive_doubling", 2, 100000, machine); };
  const double uncrowded = time();
  machine.crowd = 1.5;
  EXPECT_SAME_TIME(time() - uncrowded, 0.5 * 3 * 4 * 100000 * machine.memory);
}

// The first hop is of what has long been there, the second of what has just come.
TEST(Simulate, WhatAPeerHasJustWrittenTakesLonger) {
  MachineModel machine = ideal();
  machine.ranks_per_host = 3;
  machine.local.fetch = 1000;
  machine.local.carrier = Carrier::kReceiver;
  const auto time = [&] { return seconds(Coll::kAllgather, "ring", 3, 1000, machine); };
  const double same = time();
  machine.local.fresh = 1e-9;
  EXPECT_SAME_TIME(time() - same, (kHead + 4000) * machine.local.fresh);
  machine.local.fresh = 0;
  machine.cache = 8000;
  machine.local.memory = 1e-9;
  EXPECT_GT(time(), same);
}

TEST(Simulate, RanksThatShareACoreTakeTurns) {
  MachineModel machine = ideal();
  machine.ranks_per_host = 4;
  machine.cores_per_host = 1;
  const double before = seconds(Coll::kAllreduce, "two_shot", 4, 1000000, machine);
  machine.change = 1e-6;
  const double after = seconds(Coll::kAllreduce, "two_shot", 4, 1000000, machine);
  EXPECT_GE(after - before, 4 * machine.change * 0.999);  // each reduces once, after another one
}

TEST(Simulate, FramesTakeTheCodecsTimeAndFewerBytes) {
  const Algorithm& ring = *find_algorithm(Coll::kAllgather, "ring");
  const CodecModel codec{"lev", UZIP_FP32, 0.5, 0.25, 4e9, 8e9};
  const CallModel call =
      one_round(ring, even_shape(Coll::kAllgather, 3, 1000), Form::kLowered, UZIP_FP32, &codec);
  const double body = 4 * 1000;
  // A frame is forwarded before it is decoded; the last one is decoded at the end.
  EXPECT_SAME_TIME(predict(call, ideal()).seconds,
                   body / codec.encode + 2 * (kLatency + (kHead + 0.5 * body) / kBandwidth) +
                       body / codec.decode);
  CallModel without = call;
  without.codec = nullptr;
  EXPECT_EQ(simulate(without, ideal()).status().code(), UZIP_ERR_INVALID);
}

TEST(Simulate, ThreadsCodeBesideTheCaller) {
  MachineModel machine = ideal();
  machine.remote.bandwidth = machine.copy = 1e24;
  const CodecModel codec{"lev", UZIP_FP32, 0.5, 0.25, 4e9, 8e9};
  const auto time = [&](size_t count) {
    const Algorithm& direct = *find_algorithm(Coll::kAllgather, "two_shot");
    const Shape shape = even_shape(Coll::kAllgather, 4, count);
    return predict(one_round(direct, shape, Form::kLowered, UZIP_FP32, &codec), machine).seconds;
  };
  const double bytes = 4 * 1000000, encoding = bytes / codec.encode, decoding = bytes / codec.decode;
  EXPECT_SAME_TIME(time(1000000), encoding + kLatency + 3 * decoding);
  machine.codec_threads = 1;
  EXPECT_SAME_TIME(time(1000000), encoding + kLatency + 2 * decoding);
  machine.codec_threads = 2;
  EXPECT_SAME_TIME(time(1000000), encoding + kLatency + decoding);
  machine.cores_per_host = 1;  // the threads find no core
  EXPECT_SAME_TIME(time(1000000), encoding + kLatency + 3 * decoding);
  machine.cores_per_host = 0;
  const double small = 4 * 1000;  // is not worth waking a thread
  EXPECT_SAME_TIME(time(1000), small / codec.encode + kLatency + 3 * small / codec.decode);
}

TEST(Simulate, RoundsInFlightOverlap) {
  const Algorithm& ring = *find_algorithm(Coll::kAllreduce, "ring");
  CallModel call = one_round(ring, even_shape(Coll::kAllreduce, 4, 40000), Form::kPlain, UZIP_FP32);
  const double one = predict(call, ideal()).seconds;
  call.rounds.assign(10, 0);
  EXPECT_SAME_TIME(predict(call, ideal()).seconds, 10 * one);
  call.window = 4;
  const double four = predict(call, ideal()).seconds;
  EXPECT_LT(four, 8 * one);
  // Not faster than the port.
  EXPECT_GT(four, 10 * 6 * wire_time(10000));
}

class SimulateTest : public testing::TestWithParam<const Algorithm*> {};

const CodecModel kCodec{"lev", UZIP_FP32, 0.7, 0.5, 4e9, 8e9};

MachineModel busy() {
  MachineModel machine = ideal();
  machine.ranks_per_host = 3;
  machine.cores_per_host = 2;
  machine.copy = 1e10;
  machine.step = 1e-7;
  machine.local.message = machine.remote.message = 2e-7;
  machine.local.byte_cpu = 1e-10;
  machine.local.fetch = 4096;
  machine.local.carrier = Carrier::kReceiver;
  machine.remote.fetch = 9000;
  machine.remote.port = PortOwner::kHost;
  return machine;
}

TEST_P(SimulateTest, WhatIsSentIsReceived) {
  for (int ranks = 1; ranks <= 9; ++ranks) {
    for (Form form : kForms) {
      const Shape shape = even_shape(GetParam()->coll, ranks, 10001);
      CallModel call = one_round(*GetParam(), shape, form, UZIP_FP32, &kCodec);
      call.rounds = {0, 0, 0};
      call.window = 2;
      const Prediction prediction = predict(call, busy());
      double sent = 0, received = 0, core = 0;
      uint64_t messages = 0;
      for (const RankLoad& load : prediction.loads) {
        sent += load.sent;
        received += load.received;
        messages += load.messages;
        core += load.core;
        EXPECT_LE(load.core, prediction.seconds * (1 + 1e-9));
      }
      EXPECT_NEAR(sent, received, 1e-6 * sent);
      size_t sends = 0;
      for (const Schedule& schedule : build_schedules(*GetParam(), shape, form)) {
        for (const Step& step : schedule.steps) sends += step.verb == Verb::kSend;
      }
      EXPECT_EQ(messages, call.rounds.size() * sends);
    }
  }
}

// Where ranks wait for cores, another order can gain or lose a little (R. L. Graham: Bounds on
// Multiprocessing Timing Anomalies, 1969).
constexpr double kAnomaly = 0.2;

TEST_P(SimulateTest, MoreTakesLonger) {
  const auto time = [&](size_t count, const MachineModel& machine) {
    return predict(one_round(*GetParam(), even_shape(GetParam()->coll, 8, count), Form::kLowered,
                             UZIP_FP32, &kCodec),
                   machine)
        .seconds;
  };
  for (const auto& [machine, slack] : {std::pair(ideal(), 1e-9), std::pair(busy(), kAnomaly)}) {
    for (size_t count : {1000, 100000}) {
      const double now = time(count, machine) * (1 - slack);
      EXPECT_GT(now, 0);
      EXPECT_LE(now, time(4 * count, machine));
      MachineModel slower = machine;
      slower.remote.latency *= 4;
      EXPECT_LE(now, time(count, slower));
      slower = machine;
      slower.remote.bandwidth /= 4;
      slower.local.bandwidth /= 4;
      EXPECT_LE(now, time(count, slower));
      slower = machine;
      slower.reduce /= 4;
      slower.copy /= 4;
      EXPECT_LE(now, time(count, slower));
    }
  }
}

// Where ranks are alike, one host tells the same as all of them.
TEST_P(SimulateTest, SymmetryChangesNothing) {
  // What happens at the same time may come in another order, which counts where cores are short.
  for (auto [machine, slack] : {std::pair(ideal(), 1e-9), std::pair(busy(), 0.02)}) {
    for (int host : {1, 4}) {
      machine.ranks_per_host = host;
      for (int ranks : {48, 64}) {
        Shape shape = even_shape(GetParam()->coll, ranks, 4800 * 64);
        for (int rank = 0; host > 1 && rank < ranks; ++rank) shape.hosts.push_back(rank / host);
        CallModel call = one_round(*GetParam(), shape, Form::kLowered, UZIP_FP32, &kCodec);
        const Prediction few = predict(call, machine);
        if (few.simulated.size() == static_cast<size_t>(ranks)) continue;
        EXPECT_EQ(few.simulated.size(), static_cast<size_t>(host));
        call.every_rank = true;
        const Prediction all = predict(call, machine);
        EXPECT_EQ(all.simulated.size(), static_cast<size_t>(ranks));
        EXPECT_NEAR(few.seconds / all.seconds, 1, slack);
        EXPECT_EQ(few.loads[0].messages, all.loads[0].messages);
      }
    }
  }
}

// Those that thousands of ranks need: none of them is simulated for every rank.
TEST(SimulateSymmetry, IsFoundInWhatHasNoRoot) {
  for (const Algorithm* algorithm : algorithms()) {
    const bool scan = algorithm->coll == Coll::kScan || algorithm->coll == Coll::kExscan;
    if (is_rooted(algorithm->coll) || scan || algorithm->coll == Coll::kAlltoallv) continue;
    for (int host : {1, 4}) {
      Shape shape = even_shape(algorithm->coll, 64, 4800 * 64);
      for (int rank = 0; host > 1 && rank < 64; ++rank) shape.hosts.push_back(rank / host);
      EXPECT_NE(find_symmetry(*algorithm, shape, host), Symmetry::kNone) << coll_name(algorithm->coll) << " " << algorithm->name;
    }
  }
}

std::string test_name(const testing::TestParamInfo<const Algorithm*>& info) {
  return std::string(coll_name(info.param->coll)) + "_" + info.param->name;
}

INSTANTIATE_TEST_SUITE_P(All, SimulateTest,
                         testing::ValuesIn(algorithms().begin(), algorithms().end()), test_name);

TEST(Symmetry, IsFound) {
  const auto of = [](const char* name, int ranks, size_t count, int host) {
    return find_symmetry(*find_algorithm(Coll::kAllreduce, name),
                         even_shape(Coll::kAllreduce, ranks, count), host);
  };
  EXPECT_EQ(of("ring", 48, 4800, 1), Symmetry::kRotation);
  EXPECT_EQ(of("ring", 48, 4800, 8), Symmetry::kRotation);
  EXPECT_EQ(of("ring", 48, 4801, 8), Symmetry::kNone);
  EXPECT_EQ(of("ring", 48, 4800, 7), Symmetry::kNone);
  EXPECT_EQ(of("recursive_doubling", 64, 128, 8), Symmetry::kExclusive);
  EXPECT_EQ(of("recursive_doubling", 48, 4800, 8), Symmetry::kNone);
}

Schedule build_deaf(const Shape& shape, int rank) {
  Schedule schedule = find_algorithm(Coll::kAllgather, "ring")->build(shape, rank);
  schedule.steps.pop_back();
  for (auto& dependents : schedule.dependents) dependents.clear();
  for (Step& step : schedule.steps) step.depends_on.clear();
  link_dependents(schedule);
  return schedule;
}

TEST(Simulate, WrongSchedulesAreErrors) {
  const Algorithm deaf{"deaf",     Coll::kAllgather, "", [](const Shape&) { return true; },
                       build_deaf, nullptr};
  const Result<Prediction> prediction = simulate(
      one_round(deaf, even_shape(Coll::kAllgather, 3, 10), Form::kPlain, UZIP_FP32), ideal());
  ASSERT_FALSE(prediction.ok());
  EXPECT_NE(prediction.status().message().find("nobody receives"), std::string::npos);
}

TEST(Simulate, TracesHaveEveryMessageAndNoOverlap) {
  const Algorithm& ring = *find_algorithm(Coll::kAllreduce, "ring");
  const CallModel call =
      one_round(ring, even_shape(Coll::kAllreduce, 4, 40000), Form::kPlain, UZIP_FP32);
  std::vector<TraceEvent> events;
  const Result<Prediction> prediction = simulate(call, ideal(), &events);
  ASSERT_TRUE(prediction.ok());
  std::map<std::pair<int, int>, double> free;  // by rank and lane
  size_t sends = 0;
  for (const TraceEvent& event : events) {
    double& before = free[{event.rank, static_cast<int>(event.lane)}];
    EXPECT_GE(event.begin, before - 1e-12);
    EXPECT_LE(event.end, prediction->seconds + 1e-12);
    before = event.end;
    sends += event.lane == TraceEvent::Lane::kOut;
  }
  EXPECT_EQ(sends, 4u * 6u);
  const Result<std::string> text = print_trace(call, ideal());
  ASSERT_TRUE(text.ok());
  EXPECT_NE(text->find("send input[30000,40000) -> rank 1 #0"), std::string::npos);
}

// A sample tells what all ranks do, where each talks to each but the root does something else.
TEST(Simulate, ASampleTellsNearlyTheSame) {
  for (const char* name : {"bcast:scatter_allgather", "reduce:two_shot"}) {
    const std::string_view both = name;
    const Coll coll = both.starts_with("bcast") ? Coll::kBcast : Coll::kReduce;
    const Algorithm& algorithm = *find_algorithm(coll, both.substr(both.find(':') + 1));
    for (auto [ranks, host, root] : {std::tuple(256, 1, 0), {257, 1, 200}, {256, 4, 5}, {258, 4, 257}}) {
      for (size_t count : {20000, 2000000}) {
        MachineModel machine = count < 100000 ? ideal() : busy();
        machine.ranks_per_host = host;
        Shape shape = even_shape(coll, ranks, count);
        shape.root = root;
        CallModel call = one_round(algorithm, shape, Form::kFused, UZIP_FP32, &kCodec);
        call.rounds = {0, 0};
        call.window = 2;
        call.most_steps = 64 * 515.0;
        const Prediction few = predict(call, machine);
        EXPECT_LE(few.simulated.size(), 64u + 2u * static_cast<size_t>(host));
        call.every_rank = true;
        const Prediction all = predict(call, machine);
        EXPECT_EQ(all.simulated.size(), static_cast<size_t>(ranks));
        EXPECT_NEAR(few.seconds / all.seconds, 1, 0.1) << name << " " << ranks << " " << host << " " << count;
      }
    }
  }
}

Prediction predict_thousands(const Algorithm& algorithm, int host) {
  constexpr int kRanks = 2048;
  MachineModel machine = ideal();
  machine.ranks_per_host = host;
  Shape shape = even_shape(algorithm.coll, kRanks, is_of_vectors(algorithm.coll) ? kRanks * 100 : 100);
  for (int rank = 0; 1 < host && host < kRanks && rank < kRanks; ++rank) shape.hosts.push_back(rank / host);
  const Prediction prediction = predict(one_round(algorithm, shape, Form::kPlain, UZIP_FP32), machine);
  EXPECT_EQ(prediction.ranks, kRanks) << coll_name(algorithm.coll) << " " << algorithm.name;
  return prediction;
}

// Processor time and memory of this process, so that what else runs has no part in it.
TEST(Simulate, ThousandsOfRanks) {
  rusage before{}, after{};
  getrusage(RUSAGE_SELF, &before);
  for (const Algorithm* algorithm : algorithms()) {
    // What each rank would have to be told of each pair fills hundreds of megabytes.
    if (algorithm->coll == Coll::kAlltoallv) continue;
    const bool for_hosts = algorithm->name == std::string_view("hierarchical");
    predict_thousands(*algorithm, for_hosts ? 8 : 1);
  }
  for (const char* name : {"ring", "two_shot", "recursive_doubling"}) {
    const Algorithm& algorithm = *find_algorithm(Coll::kAllreduce, name);
    for (int host : {1, 2048}) EXPECT_EQ(predict_thousands(algorithm, host).simulated.size(), 1u);
  }
  getrusage(RUSAGE_SELF, &after);
  const long seconds = after.ru_utime.tv_sec - before.ru_utime.tv_sec;
  EXPECT_LT(seconds, 100);
  EXPECT_LT(after.ru_maxrss, 1500l << 10) << "KiB";
}

}  // namespace
}  // namespace uzip
