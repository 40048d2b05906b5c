// Which earlier steps of a schedule a step has to follow. Used by the builder to derive
// dependencies and by the verifier to check them.
#pragma once

#include "algos/access.hpp"
#include "algos/interval_map.hpp"

#include <array>
#include <vector>

namespace uzip {

/// Steps are given in program order. Every piece of memory remembers who wrote it last and who has
/// read it since, so a step finds its predecessors without looking at all earlier steps.
class AccessHistory {
 public:
  AccessHistory(const Shape& shape, int rank) : map_(shape, rank) {}

  const MemoryMap& map() const { return map_; }

  /// The steps that `step` conflicts with (read after write, write after read, write after write),
  /// ascending, except those that the ones given have to follow themselves; then remembers `step`
  /// under its number, which is larger than all before. The reference is good until the next call.
  const std::vector<uint32_t>& follow(const Step& step, uint32_t number);

 private:
  static constexpr uint32_t kNobody = UINT32_MAX;

  struct Touched {
    uint32_t writer = kNobody;
    std::vector<uint32_t> readers;  // since `writer`, ascending
  };

  IntervalMap<Touched>& memory(const Access& access) {
    return memory_[static_cast<size_t>(access.memory)];
  }

  MemoryMap map_;
  std::array<IntervalMap<Touched>, 4> memory_;  // by slot
  std::vector<Access> accesses_;                // of the step at hand
  std::vector<uint32_t> found_;
};

}  // namespace uzip
