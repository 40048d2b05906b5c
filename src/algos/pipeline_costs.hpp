// What pipelines and trees of neighbouring ranks cost. Used by the cost() of chains, trees and scans.
#pragma once

#include "algos/cost_model.hpp"
#include "algos/rank_groups.hpp"
#include "algos/rank_math.hpp"

#include <algorithm>

namespace uzip {

/// Shares that a pipeline cuts a round into, at most: more would keep no more ranks busy, and a round's messages between
/// two ranks are numbered with 12 bits.
inline constexpr int kMostShares = 256;

/// Bytes of one share of a pipeline, in a message of its own.
inline double share_bytes(const Shape& shape, double bytes, const CostModel& model) {
  return bytes / rounds_of(shape, bytes, model) / std::min(shape.size, kMostShares);
}

/// Where most ranks talk to ranks of their own host: one of each host has the way to the next one for itself, and one of
/// each socket that to the next socket.
inline CostModel between_neighbors(const Shape& shape, CostModel model) {
  const GroupSizes hosts = host_sizes(shape);
  if (hosts.count > 1) {
    model.seconds_per_byte = std::max(alone_per_byte(model), model.local_seconds_per_byte);
    model.cores_carry |= model.local_cores_carry;
  } else if (model.ranks_per_socket > 0 && model.ranks_per_socket < hosts.largest) {
    model.seconds_per_byte = std::max(model.local_seconds_per_byte, model.socket_seconds_per_byte);
  }
  return model;
}

/// Partners at distance 1, 2, 4, ...: `hops` with `work` each. Ranks of a host follow one another, so that the first hops
/// stay there.
inline double doubling_cost(const Shape& shape, double bytes, const CostModel& model, int hops, Work work) {
  const GroupSizes hosts = host_sizes(shape);
  const int within = hosts.count > 1 ? std::min(hops, doubling_rounds(hosts.largest)) : 0;
  const auto cost = [&](int number, const CostModel& link) {
    Work part = work;
    part.hops *= number;
    part.steps *= number;
    part.wire *= number;
    part.operands *= number;
    part.coded *= number;
    return number > 0 ? time_of(part, shape, bytes, link) : 0;
  };
  CostModel local = model;
  local.latency = model.local_latency;
  local.message = model.local_message;
  local.seconds_per_byte = model.local_seconds_per_byte;
  local.cores_carry = model.local_cores_carry;
  return cost(within, local) + cost(hops - within, model);
}

/// A pipeline of shares along `hops` messages, whose last share has waited for `waits` others on its way. Each rank passes
/// all bytes on; `wire`: how many times that its port is busy with them.
struct Pipeline {
  int hops = 1;
  int waits = 0;
  double wire = 1;
};

inline Work work_of(const Pipeline& pipeline, const Shape& shape, double bytes, const CostModel& model) {
  const double waited = share_bytes(shape, bytes, model) * std::max(pipeline.waits, 0);
  const bool hosts = host_sizes(shape).count > 1;
  const double near = hosts ? model.local_seconds_per_byte / model.seconds_per_byte : 1;
  double wire = model.cores_carry ? 1 : pipeline.wire;
  if (hosts && pipeline.wire > 1) wire *= model.cores_carry ? 1.6 : 0.5;
  return {.hops = 1.0 * pipeline.hops,
          .messages = std::min(shape.size, kMostShares) - 1.0,
          .wire = bytes * wire + waited * near,
          .coded = bytes};
}

/// Every rank adds its elements to what it passes on. A core takes all that arrives for rounds in flight before it reduces
/// what is there, while the next rank waits for that: as if it had to do these rounds twice.
inline Work work_of_reducing(const Pipeline& pipeline, const Shape& shape, double bytes, const CostModel& model) {
  constexpr double kInFlight = 4;
  const double again = 1 + std::min(1.0, kInFlight / rounds_of(shape, bytes, model));
  const double waited = share_bytes(shape, bytes, model) * std::max(pipeline.waits, 0);
  Work work = work_of(pipeline, shape, bytes, model);
  work.messages *= again;
  work.steps = again * std::min(shape.size, kMostShares);
  work.wire *= model.cores_carry ? again : 1;
  work.operands = 2 * (bytes + waited) * (model.cores_carry ? again : 1);
  work.coded = bytes + waited;
  return work;
}

}  // namespace uzip
