// usage: measure_transport [latency|stream|exchange] [sizes ...]
//
// Times messages between two processes through the Transport interface: half the time of a
// ping-pong, the rate of a stream in one direction, and the rate of each direction when both send
// at once. Not part of make check. Settings come from the environment: UZIP_PEER_READ,
// UZIP_UCX_TLS, UZIP_UCX_... .
#include "ucx/process_group.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>

#include <sched.h>

namespace uzip {
namespace {

constexpr size_t kHeadBytes = 80;

// Receives every message into one buffer as soon as it arrives.
class Taker : public TransportSink {
 public:
  Taker(Transport& transport, size_t bytes) : transport_(transport), buffer_(bytes + 64) {}

  bool on_message(Incoming& message) override {
    completion_.taker = this;
    const auto result = transport_.receive(message, buffer_, &completion_);
    if (!result.ok()) std::fprintf(stderr, "%s\n", result.status().message().c_str());
    if (result.ok() && *result == Progress::kDone) ++received;
    return true;
  }
  void on_peer_failed(int, const Status&) override {}

  size_t received = 0;

 private:
  struct Done : Completion {
    Done() {
      done = [](Completion* self, const Status&) { ++static_cast<Done*>(self)->taker->received; };
    }
    Taker* taker = nullptr;
  };

  Transport& transport_;
  std::vector<std::byte> buffer_;
  Done completion_;
};

struct Sent : Completion {
  Sent() {
    done = [](Completion* self, const Status&) { --static_cast<Sent*>(self)->pending; };
  }
  size_t pending = 0;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

struct Bench {
  Transport& transport;
  Taker& taker;
  Sent sent;
  std::vector<std::byte> source;
  std::byte head[kHeadBytes] = {};
  size_t expected =
      0;  // messages that should have come so far; some come before they are waited for

  void wait_until(auto condition) {
    while (!condition()) {
      if (!transport.progress()) sched_yield();
    }
  }
  void send() {
    const auto result = transport.send(1 - transport.rank(), head, source, &sent, {});
    if (result.ok() && *result == Progress::kPending) ++sent.pending;
  }
  void ping_pong(size_t rounds) {
    for (size_t i = 0; i < rounds; ++i) {
      if (transport.rank() == 0) send();
      ++expected;
      wait_until([&] { return taker.received >= expected; });
      if (transport.rank() == 1) send();
    }
    wait_until([&] { return sent.pending == 0; });
  }
  // Rank 0 sends (and rank 1 too if `both`), at most a few messages ahead.
  void stream(size_t rounds, bool both) {
    const bool sends = both || transport.rank() == 0;
    const bool receives = both || transport.rank() == 1;
    for (size_t i = 0; i < rounds && sends; ++i) {
      wait_until([&] { return sent.pending < 4; });
      send();
      transport.progress();
    }
    wait_until([&] { return sent.pending == 0; });
    if (receives) expected += rounds;
    wait_until([&] { return taker.received >= expected; });
  }
};

// Two processes on one core would measure the scheduler.
void pin_to_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

int measure(int rank, const std::string& mode, size_t bytes, const OutOfBandAllgather& allgather) {
  pin_to_core(rank);
  auto config = load_config();
  if (!config.ok()) return 1;
  auto transport = UcxTransport::create(**config, rank, 2, allgather);
  if (!transport.ok()) {
    std::fprintf(stderr, "%s\n", transport.status().message().c_str());
    return 1;
  }
  Taker taker(**transport, bytes);
  (*transport)->set_sink(&taker);
  Bench bench{**transport, taker, {}, std::vector<std::byte>(bytes, std::byte{1})};
  // Short batches: the best one was not disturbed by other work on the machine, the median is what
  // one gets.
  const size_t rounds = std::clamp<size_t>((size_t{1} << 21) / std::max<size_t>(bytes, 1), 2, 200);
  const size_t batches = bytes < (size_t{1} << 20) ? 200 : 20;
  bench.ping_pong(rounds);
  std::vector<double> times;
  for (size_t batch = 0; batch < batches; ++batch) {
    const double start = now();
    if (mode == "latency") {
      bench.ping_pong(rounds);
    } else {
      bench.stream(rounds, mode == "exchange");
    }
    times.push_back((now() - start) / static_cast<double>(rounds) / (mode == "latency" ? 2 : 1));
    if (mode != "latency") bench.ping_pong(1);
  }
  std::sort(times.begin(), times.end());
  if (rank == 0) {
    const double best = times.front();
    const double median = times[times.size() / 2];
    std::printf("%-8s %9zu B  best %10.3f us %7.3f GB/s  median %10.3f us %7.3f GB/s\n",
                mode.c_str(), bytes, best * 1e6, static_cast<double>(bytes) / best * 1e-9,
                median * 1e6, static_cast<double>(bytes) / median * 1e-9);
    std::fprintf(stderr, "%s\n", (*transport)->info().description.c_str());
  }
  bench.wait_until([&] { return (*transport)->flushed(); });
  return 0;
}

}  // namespace
}  // namespace uzip

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "latency";
  std::vector<size_t> sizes;
  for (int i = 2; i < argc; ++i) sizes.push_back(std::strtoull(argv[i], nullptr, 0));
  if (sizes.empty()) sizes = {8, 1024, 65536, 1 << 20, 64 << 20};
  for (size_t bytes : sizes) {
    uzip::ProcessGroup group(2);
    group.start([&](int rank, const auto& allgather) {
      return uzip::measure(rank, mode, bytes, allgather);
    });
    const std::string report = group.wait_for_all();
    if (!report.empty()) {
      std::fprintf(stderr, "%s\n", report.c_str());
      return 1;
    }
  }
  return 0;
}
