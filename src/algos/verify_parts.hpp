// The parts of the verifier and what they share. Used by verify*.cpp only.
#pragma once

#include "algos/access.hpp"
#include "algos/schedule.hpp"
#include "algos/symbols.hpp"
#include "base/status.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace uzip {

/// One step of one rank.
struct StepId {
  int rank = -1;  ///< -1: none
  uint32_t step = 0;
};

/// The schedules of all ranks, and facts about them.
struct Ensemble {
  std::span<const Schedule> schedules;
  const Shape& shape;
  std::vector<Shape> parts;     ///< Shape::of_rank(), where ranks know different things
  std::vector<size_t> counts;   ///< as in the shape, but never missing
  std::vector<size_t> offsets;  ///< of the blocks
  size_t total = 0;
  std::vector<MemoryMap> maps;                ///< by rank
  std::vector<std::vector<StepId>> partners;  ///< by rank and step: the other end of a send or
                                              ///< receive; filled in by match_messages()

  bool in_rank_order;  ///< what is promised: Algorithm::in_rank_order

  Ensemble(std::span<const Schedule> schedules, const Shape& shape, bool in_rank_order);

  /// What the schedule of `rank` was built from.
  const Shape& shape_of(int rank) const { return parts.empty() ? shape : parts[rank]; }
  int size() const { return static_cast<int>(schedules.size()); }
  const Step& step(StepId id) const { return schedules[id.rank].steps[id.step]; }
  StepId partner(StepId id) const { return partners[id.rank][id.step]; }
  /// kInput, kOutput or kScratch of `rank`, as one slice.
  Slice whole(Slot slot, int rank) const;
  /// "rank 2 step 5 (recv rank 1 #0 -> scratch[0,4))"
  std::string name(StepId id) const;
  /// An error about a step.
  Status fault(StepId id, const std::string& what) const;
};

/// Every step by itself: slices exist, lengths agree, inputs stay unwritten, dependencies point
/// backwards, frames are sent with their origin.
Status check_structure(const Ensemble& ensemble, int rank);

/// Every message has two ends that agree on its length and kind, and messages between two ranks are
/// numbered from 0 on. Fills in ensemble.partners.
Status match_messages(Ensemble& ensemble);

/// Every two steps that touch the same memory, one of them writing, are ordered by dependencies.
Status check_order(const Ensemble& ensemble, int rank);

/// Whether `output`, the symbols in the output of `rank`, is what the collective promises. `first`
/// is the output of the first rank that has one: where all reduce the same, they must do it in the
/// same order.
Status check_result(const Ensemble& ensemble, const Expressions& expressions, int rank,
                    const Symbols& output, const Symbols& first);

/// All ranks in random legal orders, one for each seed from `seed` on, without any buffering of
/// messages; then whether the outputs are what the collective promises.
Status run_symbolically(const Ensemble& ensemble, int orders, uint32_t seed);

}  // namespace uzip
