// Chooses algorithm, codec and rounds for a call from facts that are the same on all ranks: never from the
// data, local timing or addresses. So all ranks agree without talking.
#pragma once

#include "algos/algorithm.hpp"
#include "base/config.hpp"
#include "comm/plan.hpp"

#include <utility>
#include <vector>

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
  /// `hosts`: by rank, which host it is on; empty if all are on one, or each on its own.
  Selector(const Config& config, const LinkFacts& link, std::vector<int> hosts = {})
      : config_(config), link_(link), hosts_(std::move(hosts)) {}

  /// A plan, or why there is none (an algorithm or codec that was asked for and can't do it).
  Result<Plan> select(const CallShape& shape) const;

  /// One line on what was chosen and why, for UZIP_COLL_TRACE.
  std::string explain(const Plan& plan) const;

 private:
  Status choose_codec(Plan& plan) const;
  Status choose_rounds(Plan& plan) const;
  Status choose_rounds_of_pairs(Plan& plan, size_t bytes) const;
  Status choose_algorithm(Plan& plan) const;
  CostModel cost_model() const;

  const Config& config_;
  LinkFacts link_;
  std::vector<int> hosts_;
};

}  // namespace uzip
