// The record that describes an algorithm, and the registry of all of them. Selection, uzip_info,
// the tests and the tools read the same records. A new algorithm is a file and a line in
// algorithm_registry.cpp.
#pragma once

#include "algos/cost_model.hpp"
#include "algos/schedule.hpp"

#include <algorithm>
#include <span>
#include <string_view>

namespace uzip {

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
  /// Each block goes straight from its rank to the one that needs it.
  bool one_hop = false;
};

std::span<const Algorithm* const> algorithms();
/// Those of `coll` that give an element the same bits whichever of them is taken: all that reduce in
/// rank order, or else the first that has one order for all elements. All, if nothing is reduced.
std::span<const Algorithm* const> reproducible_algorithms(Coll coll);
/// nullptr when there is none of this name for `coll`.
const Algorithm* find_algorithm(Coll coll, std::string_view name);

}  // namespace uzip
