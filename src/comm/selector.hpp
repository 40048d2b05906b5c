// Chooses algorithm, codec and rounds for a call from facts that are the same on all ranks: never from the
// data, local timing or addresses. So all ranks agree without talking.
#pragma once

#include "algos/algorithm.hpp"
#include "base/config.hpp"
#include "comm/plan.hpp"

namespace uzip {

/// What the selector knows of the machine; equal on all ranks of a communicator.
struct LinkFacts {
  bool shared_memory = false;  ///< all ranks on one host
  double latency = 20e-6;      ///< seconds for a small message
  double bandwidth = 1e9;      ///< bytes per second and rank
};

LinkFacts link_facts(bool all_same_host);

class Selector {
 public:
  Selector(const Config& config, const LinkFacts& link) : config_(config), link_(link) {}

  /// A plan, or why there is none (an algorithm or codec that was asked for and can't do it).
  Result<Plan> select(const CallShape& shape) const;

  /// One line on what was chosen and why, for UZIP_COLL_TRACE.
  std::string explain(const Plan& plan) const;

 private:
  Status choose_codec(Plan& plan) const;
  void choose_rounds(Plan& plan) const;
  Status choose_algorithm(Plan& plan) const;
  CostModel cost_model() const;

  const Config& config_;
  LinkFacts link_;
};

}  // namespace uzip
