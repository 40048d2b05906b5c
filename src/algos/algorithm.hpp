// The record that describes an algorithm, and the registry of all of them. Selection, uzip_info,
// the tests and the tools read the same records. A new algorithm is a file and a line in
// algorithm_registry.cpp.
#pragma once

#include "algos/schedule.hpp"

#include <algorithm>
#include <span>
#include <string_view>

namespace uzip {

/// Rank-invariant figures for predicting a time, in seconds and bytes.
struct CostModel {
  double latency = 0;           ///< of one message
  double seconds_per_byte = 0;  ///< on the wire, per rank
  double reduce_per_byte = 0;   ///< of original data
  double ratio = 1;             ///< wire bytes per original byte
  double codec_per_byte = 0;    ///< encoding plus decoding
  double local_latency = 0;     ///< between ranks of one host, if Shape::hosts or Shape::sockets tells them apart
  double local_seconds_per_byte = 0;
  double socket_latency = 0;  ///< between the sockets of a host
  double socket_seconds_per_byte = 0;  ///< of what all ranks of a socket send to others, or receive, together
  double ranks_per_socket = 0;         ///< of the largest, if hosts have several; 0: they don't, or nobody knows
  double chunk_bytes = 0;       ///< of one rank's share in one round; 0: the call is one round
};

/// What starting one more message to another peer costs while others are in flight, in latencies.
inline constexpr double kMessageStart = 0.05;

/// Shares that a pipeline cuts a round into, at most: more would keep no more ranks busy, and a round's messages between
/// two ranks are numbered with 12 bits.
inline constexpr int kMostShares = 256;

/// Bytes of one share of a pipeline, in a message of its own.
inline double share_bytes(const Shape& shape, double bytes, const CostModel& model) {
  const double round = model.chunk_bytes > 0 ? std::min(bytes, model.chunk_bytes * shape.size) : bytes;
  return round / std::min(shape.size, kMostShares);
}

/// A pipeline of shares along `hops` messages: a rank takes `per_byte` seconds for each byte that it passes on, and the
/// last share has waited for `waits` others on its way.
inline double pipeline_cost(const Shape& shape, double bytes, const CostModel& model, int hops, int waits, double per_byte) {
  const double share = share_bytes(shape, bytes, model);
  const double shares = share > 0 ? bytes / share : 1;
  return model.latency * (hops + kMessageStart * (shares - 1)) + (bytes + share * std::max(waits, 0)) * per_byte;
}

/// In what order a reduction takes its operands.
enum class Order : uint8_t {
  kMoves,    ///< nothing is reduced
  kRanks,    ///< all at once, in rank order: all such algorithms give the same bits
  kFixed,    ///< for every element in the same one, which is the algorithm's own
  kByPlace,  ///< in one that depends on the element's place in the call
};

struct Algorithm {
  const char* name;  ///< "two_shot"
  Coll coll;
  const char* summary;  ///< one sentence: how it works, steps and bytes, what it is good for
  bool (*supports)(const Shape& shape);
  Schedule (*build)(const Shape& shape, int rank);
  /// Predicted time of the whole call for `bytes` in total() elements.
  double (*cost)(const Shape& shape, double bytes, const CostModel& model);
  Order order = Order::kMoves;
  /// A reduction combines the ranks' values in rank order, for operations that are not commutative.
  bool in_rank_order = false;
};

std::span<const Algorithm* const> algorithms();
/// Those of `coll` that give an element the same bits whichever of them is taken: all that reduce in
/// rank order, or else the first that has one order for all elements. All, if nothing is reduced.
std::span<const Algorithm* const> reproducible_algorithms(Coll coll);
/// nullptr when there is none of this name for `coll`.
const Algorithm* find_algorithm(Coll coll, std::string_view name);

}  // namespace uzip
