// What hops on hosts and between hosts cost. Used by the cost() of hierarchical algorithms.
#pragma once

#include "algos/algorithm.hpp"
#include "algos/host_groups.hpp"

#include <algorithm>

namespace uzip {

struct HostCosts {
  HostCosts(const Shape& shape, const CostModel& costs) : model(costs) {
    const HostGroups groups(shape);
    hosts = groups.hosts();
    shares = groups.smallest();
    ranks = groups.largest();
    const bool one_link = shape.hosts.empty() || costs.local_latency == 0;
    local_latency = one_link ? costs.latency : costs.local_latency;
    local_byte = one_link ? costs.seconds_per_byte : costs.local_seconds_per_byte;
    in_vain = hosts > 1 ? 0 : kMessageStart * costs.latency;
  }

  /// A rank sends `messages` to others on its host, `bytes` together.
  double on_host(double messages, double bytes) const {
    return messages < 1 ? 0 : local_latency * (1 + kMessageStart * (messages - 1)) + bytes * local_byte;
  }
  /// A rank sends `messages` to other hosts.
  double between(double messages, double bytes) const {
    if (messages < 1) return 0;
    return model.latency * (1 + kMessageStart * (messages - 1)) +
           bytes * (model.ratio * model.seconds_per_byte + model.codec_per_byte);
  }

  const CostModel& model;
  double hosts;
  double shares;  ///< ranks of the smallest host
  double ranks;   ///< of the largest
  double local_latency;
  double local_byte;
  double in_vain;  ///< on one host there is no hierarchy, and direct algorithms do the same more simply
};

}  // namespace uzip
