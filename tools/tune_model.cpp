#include "tune_model.hpp"

#include "base/reduce.hpp"
#include "comm/calibration.hpp"
#include "comm/codec_speed.hpp"
#include "comm/cores.hpp"
#include "comm/threaded_executor.hpp"
#include "tune_memory.hpp"

#include <algorithm>
#include <chrono>

namespace uzip {
namespace {

using Clock = std::chrono::steady_clock;
using perf::World;

constexpr size_t kInCache = 128 << 10;
constexpr int kTag = 8;
constexpr int kMessages = 64;
/// What the library does with bodies of local peers, docs/ARCHITECTURE.md, "The transport over UCX".
constexpr double kReadBytes = 8192;
/// What one step costs besides its work: not seen from outside; as for the models that are always there.
constexpr double kStepSeconds = 0.3e-6;

double reduce_speed() {
  const std::vector<float> a(kInCache / sizeof(float), 1), b = a;
  std::vector<float> sum(a.size());
  const void* sources[] = {a.data(), b.data()};
  return 2.0 * kInCache /
         least_seconds(50, [&] { reduce(UZIP_SUM, UZIP_FP32, sum.data(), sources, sum.size(), 0); });
}

/// The shortest of some calls, whatever the ranks wait for.
template <class Action>
double seconds_of(int calls, Action action) {
  double least = 1e9;
  for (int i = 0; i < calls; ++i) {
    const auto start = Clock::now();
    action();
    least = std::min(least, std::chrono::duration<double>(Clock::now() - start).count());
  }
  return least;
}

/// Core time of a message at one end, from many that are in flight at a time. Collective.
double message_seconds(const World& world, const JobLinks& links) {
  const auto [to, from] = calibration_partners(links.hosts, world.rank(), world.ranks());
  char out = 0, in[kMessages] = {};
  const double seconds = seconds_of(20, [&] {
    uzip_request_t requests[2 * kMessages] = {};
    for (int i = 0; i < kMessages; ++i)
      perf::require(uzip_irecv(&in[i], 1, UZIP_UINT8, from, kTag, world.comm(), &requests[i]), "irecv");
    for (int i = 0; i < kMessages; ++i)
      perf::require(uzip_isend(&out, 1, UZIP_UINT8, to, kTag, world.comm(), &requests[kMessages + i]), "isend");
    perf::require(uzip_waitall(2 * kMessages, requests, nullptr), "waitall");
  });
  const double mine[] = {seconds / kMessages / 2};
  return std::ranges::max(world.gather(mine));
}

/// One of those that are always there.
MachineModel typical(std::string_view name) {
  const auto model = std::ranges::find_if(machine_models(), [&](const NamedModel& m) { return name == m.name; });
  return *parse_machine_model(model->text, model->name);
}

}  // namespace

MachineModel measure_model(const World& world, const JobLinks& links, const TuningTable& table, int codec_threads) {
  const bool shared = links.link == LinkClass::kShared;
  const int per_host = shared ? world.ranks() : largest_host(links.hosts);
  MachineModel model;
  model.name = shared ? "shared_memory" : "network";
  model.ranks_per_host = shared ? 1e6 : per_host;
  model.cores_per_host = cores().of_host;
  model.codec_threads = choose_codec_threads(codec_threads, per_host);
  measure_memory(world, model);
  model.reduce = reduce_speed();
  model.step = kStepSeconds;
  char nothing = 0;
  model.call = seconds_of(50, [&] {
    perf::require(uzip_allgather(&nothing, &nothing, 0, UZIP_UINT8, world.comm()), "allgather");
  });
  model.local = typical("shm").local;
  model.remote = typical("tcp1").remote;
  LinkModel& link = shared ? model.local : model.remote;
  const TunedLink& measured = table.link(links.link);
  link.bandwidth = measured.bandwidth;
  link.message = message_seconds(world, links);
  // A small exchange is a message out and one in, and the way between.
  link.latency = std::max(measured.latency - 2 * link.message, 0.1 * measured.latency);
  link.fetch = shared ? kReadBytes : 0;
  link.port = shared ? PortOwner::kRank : PortOwner::kHost;
  if (shared) measure_reads(world, calibration_partners(links.hosts, world.rank(), world.ranks()), model, link);
  for (const TunedCodec& speed : table.codecs) {
    if (speed.codec.level != CodecLevel::kBalanced) continue;
    model.codecs.push_back({speed.codec.codec->name, speed.type, speed.ratio, speed.plain, speed.encode, speed.decode});
  }
  return model;
}

std::string model_text(const MachineModel& model) {
  const char* kind = model.name == "network" ? "remote" : "local";
  std::string text = print_machine_model(model);
  const size_t first = text.find('\n') + 1;
  text.insert(first, std::string("# Written by uzip_tune: cores, codecs and link ") + kind +
                         " were measured; step, and the other link, are typical.\n");
  return text;
}

}  // namespace uzip
