// How long an operation takes, and how many bytes it sends.
#pragma once

#include "peer.hpp"
#include "statistics.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace perf {

/// The calls of one participant, in seconds for one call, over the ranks as Options::average says.
struct CallTimes {
  double mean = 0;
  double p50 = 0;  ///< the median
  double p90 = 0;
  double p99 = 0;
  size_t calls = 0;
  std::vector<double> batches;  ///< see batch_values()

  /// Half of the 95 % confidence interval, as a part of the time.
  double precision() const { return half_width(batches) / perf::mean(batches); }
};

struct PeerTimes {
  PeerKind kind;
  std::string description;
  CallTimes times;
};

struct Timing {
  CallTimes times;
  double time = 0;                ///< the mean, or the median if Options::median
  std::vector<PeerTimes> versus;  ///< those that were measured
  /// Sums over the ranks, for one call.
  uint64_t payload_bytes = 0;
  uint64_t wire_bytes = 0;
  /// What the library chose; "-" where it does not say.
  std::string algorithm = "-";
  std::string codec = "-";
  size_t chunk_bytes = 0;

  /// Sent bytes in units of the original ones; none if nothing was sent.
  std::optional<double> ratio() const {
    if (payload_bytes == 0) return std::nullopt;
    return static_cast<double>(wire_bytes) / static_cast<double>(payload_bytes);
  }
  const PeerTimes* find(PeerKind kind) const {
    for (const PeerTimes& peer : versus)
      if (peer.kind == kind) return &peer;
    return nullptr;
  }
  /// How many times faster than a peer, by the medians; none if it was not measured.
  std::optional<double> speedup(PeerKind kind) const {
    const PeerTimes* peer = find(kind);
    if (peer == nullptr || times.p50 <= 0) return std::nullopt;
    return peer->times.p50 / times.p50;
  }
};

/// Times Options::iterations calls on realistic data after Options::warmup others, or more of them until
/// Options::precision is reached. The `peers` that can do it take turns with the library (out of place).
Timing time_calls(const Case& bench, size_t bytes, bool in_place,
                  const std::vector<std::unique_ptr<Peer>>& peers);

}  // namespace perf
