// What algorithms predict of themselves, against the simulator: who takes the one that predicts the shortest time gets one
// that is nearly as fast as the fastest. On every model that is always there, for every collective.
#include "algos/simulate.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <string>
#include <vector>

namespace uzip {
namespace {

/// So many times the simulated time of the fastest, at most.
constexpr double kBound = 1.3;
/// As the selector cuts calls into rounds, where the model does not say.
constexpr double kSharedMemoryChunk = 256 << 10;
constexpr double kNetworkChunk = 64 << 10;
constexpr uint32_t kSharedMemoryWindow = 3;
constexpr uint32_t kNetworkWindow = 8;

double seconds_per_byte(const LinkModel& link) {
  return link.carrier == Carrier::kReceiver ? std::max(1 / link.bandwidth, link.byte_cpu) : 1 / link.bandwidth;
}

/// Some ranks of a model, as the library knows them.
struct Job {
  const MachineModel& machine;
  int ranks;
  bool one_host;
  std::vector<int> hosts = {}, sockets = {};
  CostModel costs = {};
};

Job job_on(const MachineModel& machine, int ranks) {
  const int host = static_cast<int>(std::min<double>(machine.ranks_per_host, ranks));
  Job job{machine, ranks, host == ranks};
  const bool several_sockets = machine.socket_of(host - 1) > 0;
  for (int rank = 0; rank < ranks; ++rank) {
    if (!job.one_host && host > 1) job.hosts.push_back(machine.host_of(rank));
    if (several_sockets) job.sockets.push_back(machine.socket_of(rank));
  }
  const LinkModel &link = job.one_host ? machine.local : machine.remote, &local = machine.local;
  const double sharing = !job.one_host && link.port == PortOwner::kHost ? host : 1;
  CostModel& costs = job.costs;
  costs.latency = link.latency + 2 * link.message;
  costs.message = link.message;
  costs.step = machine.step;
  costs.reduce_per_byte = 1 / machine.reduce;
  costs.alone_per_byte = seconds_per_byte(link);
  costs.seconds_per_byte = costs.alone_per_byte * sharing;
  costs.cores_carry = link.carrier == Carrier::kReceiver;
  costs.local_latency = local.latency + 2 * local.message;
  costs.local_message = local.message;
  costs.local_seconds_per_byte = seconds_per_byte(local);
  costs.local_cores_carry = local.carrier == Carrier::kReceiver;
  if (!several_sockets) return job;
  costs.ranks_per_socket = machine.ranks_per_socket;
  costs.socket_latency = machine.socket.latency + 2 * machine.socket.message;
  costs.socket_seconds_per_byte = 1 / machine.socket.bandwidth;
  const double crossing = (ranks - costs.ranks_per_socket) / (ranks - 1) * costs.ranks_per_socket;
  if (job.one_host)
    costs.seconds_per_byte = std::max(costs.seconds_per_byte, crossing * costs.socket_seconds_per_byte);
  return job;
}

/// An algorithm for one call: what it predicts, and what it takes.
class Contest {
 public:
  Contest(const Job& job, Coll coll, double bytes) : job_(job), bytes_(bytes), costs_(job.costs) {
    const double usual = job.one_host ? kSharedMemoryChunk : kNetworkChunk;
    const double chunk = job.machine.chunk > 0 ? job.machine.chunk : usual, share = bytes / job.ranks;
    rounds_ = static_cast<uint32_t>(std::max(share / chunk, 1.0));
    costs_.chunk_bytes = std::min(share, chunk);
    const auto elements = static_cast<size_t>(bytes / 4 / rounds_);
    shape_ = even_shape(coll, job.ranks, is_of_vectors(coll) ? elements : elements / static_cast<size_t>(job.ranks));
    shape_.hosts = job.hosts;
  }

  /// Simulated time of the one that predicts the least, and of the fastest. Ranks of a host are grouped by socket where
  /// that is predicted to be faster, as the selector does.
  void run(double* of_chosen, double* of_fastest, std::string* times) {
    double least = std::numeric_limits<double>::infinity();
    *of_fastest = least;
    for (const Algorithm* algorithm : algorithms()) {
      if (algorithm->coll != shape_.coll || !algorithm->supports(shape_)) continue;
      Shape shape = shape_;
      double predicted = algorithm->cost(shape_, bytes_, costs_);
      shape.sockets = job_.sockets;
      const double grouped = algorithm->cost(shape, bytes_, costs_);
      if (grouped < predicted * (1 - 1e-9)) predicted = grouped;
      else shape.sockets.clear();
      const double simulated = simulate_call(*algorithm, shape);
      if (predicted < least * (1 - 1e-9)) {
        least = predicted;
        *of_chosen = simulated;
      }
      *of_fastest = std::min(*of_fastest, simulated);
      *times += std::string("\n") + algorithm->name + ": predicted " + std::to_string(1e6 * predicted) + " us, simulated " +
                std::to_string(1e6 * simulated);
    }
  }

 private:
  double simulate_call(const Algorithm& algorithm, const Shape& shape) const {
    CallModel call = one_round(algorithm, shape, Form::kPlain, UZIP_FP32);
    call.rounds.assign(rounds_, 0);
    call.window = job_.machine.window > 0 ? static_cast<uint32_t>(job_.machine.window)
                  : job_.one_host         ? kSharedMemoryWindow
                                          : kNetworkWindow;
    const Result<Prediction> prediction = simulate(call, job_.machine);
    EXPECT_TRUE(prediction.ok()) << algorithm.name << ": " << prediction.status().message();
    return prediction.ok() ? prediction->seconds : 0;
  }

  const Job& job_;
  double bytes_;
  CostModel costs_;
  uint32_t rounds_;
  Shape shape_;
};

class Predictions : public testing::TestWithParam<NamedModel> {};

TEST_P(Predictions, ChooseNearlyTheFastest) {
  const Result<MachineModel> machine = parse_machine_model(GetParam().text, GetParam().name);
  ASSERT_TRUE(machine.ok());
  for (int ranks : {2, 3, 4, 8, 16, 32, 64}) {
    const Job job = job_on(*machine, ranks);
    for (int number = 0; number < kCollCount; ++number) {
      const Coll coll = static_cast<Coll>(number);
      if (coll == Coll::kAlltoallv || coll == Coll::kBarrier) continue;  // one algorithm each
      for (double bytes : {8.0, 1024.0, 16384.0, 262144.0, 4194304.0, 67108864.0}) {
        if (!is_of_vectors(coll) && bytes < 4 * ranks) continue;
        if (bytes > 1e7 && ranks > 16) continue;  // takes long, and is as with 16
        double chosen = 0, fastest = 0;
        std::string times;
        Contest(job, coll, bytes).run(&chosen, &fastest, &times);
        EXPECT_LE(chosen, kBound * fastest) << coll_name(coll) << ", " << ranks << " ranks, " << bytes << " bytes" << times;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Predictions, testing::ValuesIn(machine_models().begin(), machine_models().end()),
                         [](const testing::TestParamInfo<NamedModel>& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace uzip
