#include "comm/calibration.hpp"

#include "base/log.hpp"
#include "comm/codec_speed.hpp"
#include "comm/communicator.hpp"
#include "comm/engine.hpp"
#include "comm/job.hpp"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <numeric>

namespace uzip {
namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kSmallestBytes = 64 << 10;
constexpr size_t kLargestBytes = 4 << 20;
constexpr size_t kStep = 4;
/// An exchange of this length is long enough to trust: bursts and the beginning weigh little.
constexpr double kLongEnough = 0.010;
/// Shorter ones, of the largest size, are repeated until together they take as long; the fastest counts.
constexpr int kMostRepetitions = 5;
/// For the codecs: pieces as they are on a network, and few of them.
constexpr size_t kPieceBytes = 64 << 10;
constexpr int kCodings = 3;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

class Measurement {
 public:
  explicit Measurement(CommunicatorHandle& handle)
      : handle_(handle), src_(kLargestBytes, std::byte{1}), dst_(kLargestBytes) {
    const Communicator& comm = *handle.comm;
    const auto [to, from] = calibration_partners(comm.hosts(), comm.rank(), comm.size());
    to_ = to;
    from_ = from;
    crosses_ = comm.hosts().empty() || comm.hosts()[static_cast<size_t>(comm.rank())] != comm.hosts()[static_cast<size_t>(to)];
  }

  Result<Calibration> run() {
    const auto start = Clock::now();
    Calibration result;
    UZIP_RETURN_IF_ERROR(measure_link(&result.bandwidth));
    UZIP_RETURN_IF_ERROR(measure_codecs(&result));
    result.seconds = seconds_since(start);
    return result;
  }

 private:
  Status call(const uzip_coll_args_t& args) {
    return run_internal(handle_, args, handle_.engine->config().timeout_limit);
  }

  Status exchange(size_t bytes) {
    uzip_neighbors_t neighbors = {};
    neighbors.struct_size = sizeof neighbors;
    neighbors.dest_count = neighbors.source_count = 1;
    neighbors.dests = &to_;
    neighbors.sources = &from_;
    neighbors.send_counts = neighbors.recv_counts = &bytes;
    uzip_coll_args_t args = internal_call(UZIP_NEIGHBOR_ALLTOALLV, src_.data(), dst_.data(), 0);
    args.neighbors = &neighbors;
    return call(args);
  }

  /// Every rank's numbers, in rank order.
  Status gather(const std::vector<double>& mine, std::vector<double>* all) {
    all->resize(mine.size() * static_cast<size_t>(handle_.comm->size()));
    return call(internal_call(UZIP_ALLGATHER, mine.data(), all->data(), mine.size() * sizeof(double)));
  }

  /// The same on all ranks: that of the slowest one whose bytes go to another host.
  Status time_exchange(size_t bytes, double* slowest) {
    UZIP_RETURN_IF_ERROR(call(internal_call(UZIP_BARRIER, nullptr, nullptr, 0)));
    const auto start = Clock::now();
    UZIP_RETURN_IF_ERROR(exchange(bytes));
    const double mine = seconds_since(start);
    std::vector<double> all;
    UZIP_RETURN_IF_ERROR(gather({crosses_ ? mine : 0}, &all));
    *slowest = std::max(std::ranges::max(all), 1e-9);
    return Status();
  }

  Status measure_link(double* bandwidth) {
    double slowest = 0;
    UZIP_RETURN_IF_ERROR(time_exchange(1, &slowest));  // connections are made
    for (size_t bytes = kSmallestBytes; bytes <= kLargestBytes; bytes *= kStep) {
      UZIP_RETURN_IF_ERROR(time_exchange(bytes, &slowest));
      double together = slowest;
      for (int i = 1; bytes == kLargestBytes && i < kMostRepetitions && together < kLongEnough; ++i) {
        double again = 0;
        UZIP_RETURN_IF_ERROR(time_exchange(bytes, &again));
        slowest = std::min(slowest, again);
        together += again;
      }
      *bandwidth = static_cast<double>(bytes) / slowest;
      if (slowest >= kLongEnough) break;
    }
    return Status();
  }

  /// All ranks at the same time, as in a call.
  Status measure_codecs(Calibration* result) {
    std::vector<DataType> types;
    for (const DataTypeInfo& info : datatypes()) types.push_back(info.type);
    result->codecs = measure_codec_speeds(types, kPieceBytes, kCodings);
    std::vector<double> mine = {static_cast<double>(handle_.engine->codec_threads())}, all;
    for (const TunedCodec& speed : result->codecs) mine.insert(mine.end(), {speed.encode, speed.decode, -speed.ratio});
    UZIP_RETURN_IF_ERROR(gather(mine, &all));
    for (size_t i = 0; i < all.size(); ++i) mine[i % mine.size()] = std::min(mine[i % mine.size()], all[i]);
    result->codec_threads = static_cast<int>(mine[0]);
    for (size_t i = 0; i < result->codecs.size(); ++i) {
      TunedCodec& speed = result->codecs[i];
      speed.encode = mine[1 + 3 * i];
      speed.decode = mine[2 + 3 * i];
      speed.ratio = -mine[3 + 3 * i];
    }
    return Status();
  }

  CommunicatorHandle& handle_;
  std::vector<std::byte> src_, dst_;
  int to_ = 0, from_ = 0;
  bool crosses_ = true;
};

}  // namespace

std::string describe(const Calibration& calibration) {
  char text[96];
  std::snprintf(text, sizeof text, "%.3g GB/s a rank to other hosts, %d codec thread(s), measured in %.0f ms",
                calibration.bandwidth / 1e9, calibration.codec_threads, calibration.seconds * 1e3);
  std::string result = text;
  for (const DataTypeInfo& info : datatypes()) {
    const CodecChoice choice =
        cheapest_codec(calibration.codecs, info.type, calibration.bandwidth, calibration.codec_threads);
    if (choice.codec) result += std::string("; ") + info.name + " " + tuned_codec_name(choice);
  }
  return result;
}

bool needs_all_ranks(CallKind kind) {
  return kind == CallKind::kAllreduce || kind == CallKind::kReduceScatter || kind == CallKind::kReduceScatterV ||
         kind == CallKind::kAllgather || kind == CallKind::kAllgatherV || kind == CallKind::kAlltoall;
}

std::pair<int, int> calibration_partners(const std::vector<int>& hosts, int rank, int size) {
  // A ring through the first rank of each host, then the second of each, and so on.
  std::vector<int> place(static_cast<size_t>(size)), ring(place.size());
  std::map<int, int> seen;
  for (size_t r = 0; r < hosts.size(); ++r) place[r] = seen[hosts[r]]++;
  std::iota(ring.begin(), ring.end(), 0);
  std::ranges::stable_sort(ring, {}, [&](int r) { return place[static_cast<size_t>(r)]; });
  const auto at = static_cast<size_t>(std::ranges::find(ring, rank) - ring.begin());
  return {ring[(at + 1) % ring.size()], ring[(at + ring.size() - 1) % ring.size()]};
}

Status calibrate_before(CommunicatorHandle& handle, CollArgs& args, std::unique_lock<std::mutex>& lock) {
  args.announced = true;
  if (!handle.comm->calibration_due(args)) return Status();
  UZIP_ASSIGN_OR_RETURN(const CalibrationVote* const vote, handle.comm->start_vote(true));
  handle.engine->wait(*vote->request, lock);
  if (!vote->request->status().ok()) {
    handle.comm->give_vote_up();
    return vote->request->status();
  }
  if (vote->least == std::byte{0}) return Status();
  lock.unlock();
  Result<Calibration> calibration = Measurement(handle).run();
  lock.lock();
  if (!calibration.ok()) return calibration.status();
  if (handle.engine->config().trace) log(LogLevel::kTrace, "calibrated: %s", describe(*calibration).c_str());
  handle.comm->set_calibration(std::make_shared<const Calibration>(std::move(*calibration)));
  return Status();
}

}  // namespace uzip
