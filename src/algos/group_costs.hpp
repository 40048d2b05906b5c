// What hops on hosts and between hosts cost. Used by the cost() of hierarchical algorithms.
#pragma once

#include "algos/algorithm.hpp"
#include "algos/rank_groups.hpp"

#include <algorithm>

namespace uzip {

struct GroupCosts {
  GroupCosts(const Shape& shape, const CostModel& costs) : model(costs) {
    const GroupSizes of_hosts = host_sizes(shape);
    hosts = of_hosts.count;
    shares = of_hosts.smallest;
    ranks = of_hosts.largest;
    total = shape.size;
    in_socket = socket_sizes(shape).largest;
    sockets = std::max(1.0, ranks / in_socket);
    one_link = (shape.hosts.empty() && shape.sockets.empty()) || costs.local_latency == 0;
    in_vain = hosts > 1 || sockets > 1 ? 1 : 1.05;
  }

  double local_latency() const { return one_link ? model.latency : model.local_latency; }
  bool local_cores_carry() const { return one_link ? model.cores_carry : model.local_cores_carry; }
  double local_message() const { return one_link ? model.message : model.local_message; }
  double local_seconds_per_byte() const { return one_link ? model.seconds_per_byte : model.local_seconds_per_byte; }

  /// The operands of `bytes` come from the ranks of a host to those that speak for it, or the results back: first within
  /// sockets, then between them, where the shape knows sockets. `apart`: each rank's piece is a message of its own.
  double on_host(double bytes, bool apart) const {
    const double pieces = apart ? total : in_socket;
    const double within = inside(pieces * (in_socket - 1) / in_socket, bytes * (in_socket - 1) / in_socket);
    return within + across((apart ? total / in_socket : sockets) * (sockets - 1) / sockets,
                           bytes / in_socket * (sockets - 1) / sockets, in_socket);
  }
  /// A rank sends `messages` to others of its group, `bytes` together. If the group has several sockets, of which the
  /// shape knows nothing, ranks wait for one another where these are joined.
  double inside(double messages, double bytes) const {
    if (messages < 1) return 0;
    double seconds = bytes * local_seconds_per_byte();
    if (one_link) seconds = bytes * (model.ratio * model.seconds_per_byte + model.codec_per_byte);
    if (sockets == 1 && model.ranks_per_socket > 0 && model.ranks_per_socket < ranks && !one_link) {
      const double crossing = bytes * (ranks - model.ranks_per_socket) / std::max(ranks - 1, 1.0);
      seconds = std::max(seconds, crossing * model.ranks_per_socket * model.socket_seconds_per_byte);
    }
    return local_latency() + 2 * local_message() * (messages - 1) + seconds;
  }
  /// One rank of the group sends `bytes` to each other one, `messages` together. Where cores carry them those of the
  /// receivers do so at the same time, but the sender's socket has one way to others.
  double star(double messages, double bytes) const {
    if (in_socket < 2) return 0;
    double seconds = bytes * local_seconds_per_byte() * (local_cores_carry() ? 1 : in_socket - 1);
    if (sockets == 1 && model.ranks_per_socket > 0 && model.ranks_per_socket < ranks)
      seconds = std::max(seconds, bytes * (ranks - model.ranks_per_socket) * model.socket_seconds_per_byte);
    return local_latency() + local_message() * messages + seconds;
  }
  /// `senders` ranks of each socket send `messages` to other sockets, `bytes` each.
  double across(double messages, double bytes, double senders) const {
    if (sockets <= 1) return 0;
    return model.socket_latency + 2 * local_message() * std::max(messages - 1, 0.0) +
           bytes * std::max(local_seconds_per_byte(), senders * model.socket_seconds_per_byte);
  }
  /// The operands of `bytes` are reduced at each level, of which the ranks have ever smaller parts.
  double reductions(double bytes) const {
    const double of_sockets = in_socket > 1 ? bytes : 0, of_host = sockets > 1 ? bytes / in_socket : 0;
    const double of_hosts = hosts > 1 ? bytes / shares : 0;
    const int levels = (in_socket > 1) + (sockets > 1) + (hosts > 1);
    return model.step * levels + (of_sockets + of_host + of_hosts) * model.reduce_per_byte;
  }
  /// A rank sends `messages` to other hosts.
  double between(double messages, double bytes) const {
    if (messages < 1) return 0;
    return model.latency + std::max(2 * model.message * (messages - 1), bytes * model.ratio * model.seconds_per_byte) +
           bytes * model.codec_per_byte;
  }

  const CostModel& model;
  double hosts;
  double shares;     ///< ranks of the smallest host
  double ranks;      ///< of the largest
  double total;      ///< of all
  double in_socket;  ///< of the largest socket; of the largest host, if the shape knows no sockets
  double sockets;    ///< of the largest host, that the shape knows of
  bool one_link;     ///< all ranks are as far from one another
  double in_vain;    ///< times as long: where no ranks are nearer than others simpler algorithms do the same
};

}  // namespace uzip
