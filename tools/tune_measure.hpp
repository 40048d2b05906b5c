// What uzip_tune measures, on all ranks of a job together: the link, the codecs, and calls one way and another. It
// sees the library from outside, as programs do; only names and figures come from the library's own tables.
#pragma once

#include "../perf/sample_data.hpp"
#include "../perf/world.hpp"
#include "comm/tuning_table.hpp"

#include <functional>
#include <string>
#include <vector>

namespace uzip {

/// What can be tuned.
inline constexpr CallKind kTunableKinds[] = {CallKind::kAllreduce, CallKind::kReduceScatter, CallKind::kAllgather,
                                             CallKind::kBcast,     CallKind::kReduce,        CallKind::kAlltoall,
                                             CallKind::kGather,    CallKind::kScatter,       CallKind::kSend};

struct TuneOptions {
  std::vector<DataType> types;
  std::vector<CallKind> kinds;
  size_t largest = size_t{64} << 20;  ///< bytes of a call, see tuned_bytes()
  double seconds = 60;                ///< for all calls together, more or less
  /// What is coded; at least one. A way counts by the mean of what it takes with each, and is not chosen if it takes clearly
  /// longer with one of them than sending that as it is.
  std::vector<perf::DataSource> data = {{perf::DataKind::kGauss, ""}, {perf::DataKind::kRandom, ""}};
};

/// Over what the ranks of a job talk, and which share a host.
struct JobLinks {
  LinkClass link = LinkClass::kShared;
  std::vector<int> hosts;  ///< by rank, if some share one and others don't; else empty
};

/// As the library itself finds it out, with its `ranks_per_host` setting. Collective.
JobLinks links_of(const perf::World& world, int ranks_per_host);

/// Latency of a small message, and the bandwidth while all ranks send and receive: of each, or on a network of each
/// host's adapter. `busy`: times differ so much that something else must be going on here. Collective.
TunedLink measure_link(const perf::World& world, const JobLinks& links, bool* busy);

/// Finds the best way of each call, for sizes from some hundred bytes, eight times larger each, until the time is used
/// up. Adds to choices and tried of `table`, on rank 0 what counts. `tell` is called on rank 0 before each size.
/// Collective; throws perf::Failure.
void measure_calls(const perf::World& world, const JobLinks& links, const TuneOptions& options, TuningTable* table,
                   const std::function<void(const std::string&)>& tell);

}  // namespace uzip
