// Chooses algorithm, codec and rounds for a call from facts that are the same on all ranks: never from the
// data, local timing or addresses. So all ranks agree without talking.
#pragma once

#include "algos/algorithm.hpp"
#include "base/config.hpp"
#include "comm/calibration.hpp"
#include "comm/plan.hpp"
#include "comm/tuning_table.hpp"

#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace uzip {

/// What the selector knows of the machine; equal on all ranks of a communicator.
struct LinkFacts {
  bool shared_memory = false;  ///< all ranks on one host
  bool peer_reads = false;     ///< they read long messages from each other's memory
  bool gpus = false;           ///< some process of the job uses one
  double latency = 20e-6;      ///< seconds for a small message
  double bandwidth = 1e9;      ///< bytes per second and rank; of a network, which ranks of a host share, and host
};

/// As `tuning` says, which may be nullptr; what it does not know is typical of such links.
LinkFacts link_facts(bool all_same_host, const TuningTable* tuning);

class Selector {
 public:
  /// `hosts`: by rank, which host it is on; empty if all are on one, or each on its own.
  /// `sockets`: by rank, its group on the host (group_by_node()); empty if hosts have one.
  /// `tuning`: equal on all ranks, or nullptr. What is asked for by options and settings stands above it.
  Selector(const Config& config, const LinkFacts& link, std::vector<int> hosts = {},
           std::shared_ptr<const TuningTable> tuning = nullptr, std::vector<int> sockets = {})
      : config_(config), link_(link), hosts_(std::move(hosts)), sockets_(std::move(sockets)), tuning_(std::move(tuning)) {}

  /// Its network is slow enough to be worth knowing, and neither a table nor a calibration knows it.
  bool lacks_calibration() const;
  /// For calls whose shape says so (CallShape::calibrated); equal on all ranks.
  void set_calibration(std::shared_ptr<const Calibration> calibration) { calibration_ = std::move(calibration); }
  const std::shared_ptr<const Calibration>& calibration() const { return calibration_; }
  const std::vector<int>& hosts() const { return hosts_; }
  /// The ranks' GPUs may carry calls out among themselves (GpuPeers), as long as that gives the same bits.
  bool has_gpu_peers() const { return config_.gpu_peers && link_.shared_memory; }

  /// A plan, or why there is none (an algorithm or codec that was asked for and can't do it).
  Result<Plan> select(const CallShape& shape) const;

  /// What it predicts times by. Without the codec: the algorithm fixes the order of the reduction, and compression must
  /// not change the bits.
  CostModel cost_model() const;

  /// One line on what was chosen and why, for UZIP_COLL_TRACE.
  std::string explain(const Plan& plan) const;

 private:
  const TunedCall* tuned(const CallShape& shape) const;
  /// By the speed of the network, where it is known: raw, or a codec and how hard it tries.
  CodecChoice codec_for_link(const CallShape& shape) const;
  const TunedLink* tuned_network() const;
  void add_sockets(CostModel& model) const;
  bool worth_coding(const CallShape& shape, size_t threshold) const;
  Status choose_codec(Plan& plan, const TunedCall* tuned) const;
  size_t usual_chunk_bytes(size_t ranks) const;
  Status choose_rounds(Plan& plan, const TunedCall* tuned) const;
  Status choose_rounds_of_pairs(Plan& plan, size_t bytes) const;
  Status choose_neighbor_rounds(Plan& plan) const;
  Status choose_algorithm(Plan& plan, const TunedCall* tuned) const;
  bool streams(const Plan& plan) const;
  void move_in_large_pieces(Plan& plan) const;
  bool has_one_order(CallKind kind) const;
  /// Whether measurements, not formulas, choose the algorithm of a reduction to one rank.
  bool reduces_up_a_tree(const Plan& plan, std::span<const Algorithm* const> allowed) const;
  const Algorithm* cheapest_algorithm(const Plan& plan, std::span<const Algorithm* const> allowed) const;
  struct Expectation {
    double seconds;
    bool by_socket;  ///< the algorithm groups the ranks of a host by socket: faster, or for trying out
  };
  Expectation expect(const Plan& plan, const Algorithm& algorithm) const;

  const Config& config_;
  LinkFacts link_;
  std::vector<int> hosts_;
  std::vector<int> sockets_;
  std::shared_ptr<const TuningTable> tuning_;
  std::shared_ptr<const Calibration> calibration_;
};

}  // namespace uzip
