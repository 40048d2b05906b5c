// What a step of a schedule takes a core of a modelled machine, by where its bytes are. Used by simulated_programs.cpp.
#pragma once

#include "algos/simulate.hpp"

#include <map>
#include <utility>

namespace uzip {

struct StepCost {
  double core = 0;    ///< seconds
  double memory = 0;  ///< seconds that bytes of the memory take besides, while nobody else uses it
  double bytes = 0;   ///< of a message, its head included
};

/// Where a body lies that the receiver's core reads: seconds that each byte takes besides the link's bandwidth.
struct SourceCost {
  double core = 0;
  double memory = 0;
};

/// Costs of the steps of one schedule at a time.
///
/// A place is in the core's own cache, in the last cache of the host, or in memory. What does not fit a cache goes round
/// and round in it, so that of twice as much as fits nothing is found again, and of less a part. Of the caller's buffers
/// all ranks of the host count. Scratch and wire places are used again by later rounds: those in flight of the ranks that
/// share a core count. What several ranks read in the same round comes from memory once.
class StepCosts {
 public:
  /// `host`: ranks of a host.
  StepCosts(const CallModel& call, const MachineModel& machine, int host);

  /// The schedule that of() is asked about, of a rank of a round of this shape. Both must outlive it.
  void enter(const Schedule& schedule, const Shape& shape, int rank);
  StepCost of(const Step& step, Distance distance) const;
  /// Whether it is given to a codec thread that has nothing to do: long pieces, but no frame's stages (src/comm).
  bool for_threads(const Step& step) const;
  SourceCost source_of(const Step& send, Distance distance) const;

 private:
  enum class Use { kRead, kWrite };
  struct Penalty {
    double core = 0;    // seconds of a byte
    double memory = 0;
  };
  Penalty penalty(const Slice& slice, Use use) const;
  double message_bytes(const Step& step) const;
  double elements_bytes(const Slice& slice) const;
  double place_bytes(const Slice& slice) const;
  double work(const Step& step, Distance distance) const;
  bool reads_from_peer(const Step& step, Distance distance) const;
  bool takes_core(const Step& step, Distance distance) const;
  double readers(const Slice& slice) const;

  const CallModel& call_;
  const MachineModel& machine_;
  double element_;
  double ranks_of_core_;
  double ranks_of_host_;
  double callers_far_;     // which part of the caller's buffers is not in a core's own cache
  double callers_memory_;  // not in the host's last cache
  double round_far_ = 0;   // the same of scratch and wire places
  double round_memory_ = 0;
  std::map<std::pair<Slot, size_t>, double> readers_;  // steps that read what begins there
};

}  // namespace uzip
