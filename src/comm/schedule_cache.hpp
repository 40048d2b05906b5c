// Schedules that were built once, with all that the engine can know about them before it has buffers.
#pragma once

#include "comm/copied_bodies.hpp"
#include "comm/lent_operands.hpp"
#include "comm/plan.hpp"

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <vector>

namespace uzip {

struct GpuDevice;

/// The other rank in the schedule of a point to point message, where this one is rank 0.
inline constexpr int kPeerInSchedule = 1;

/// A schedule prepared for running: memory layout, and receives by sender and message number.
struct PreparedSchedule {
  Schedule schedule;
  Shape shape;
  std::vector<size_t> block_begin[2];  ///< [kInput, kOutput] of each rank's block, if the slot is in blocks

  /// One wire place: offsets in the round's memory. The coded part of a split frame lies behind the plain
  /// part's capacity; a whole frame begins at `plain_offset` and may use all of `capacity`.
  struct Wire {
    size_t plain_offset, plain_capacity, coded_offset, coded_capacity, capacity;
  };
  std::vector<Wire> wires;
  size_t coded_wires = 0;            ///< frames of the plan's codec are in the first ones, raw ones in the others
  size_t memory_bytes = 0;           ///< scratch, then wires

  /// Of buffers in GPU memory `memory_bytes` are the wires' alone; for each there is a place where the GPU codes its
  /// frame, at offsets in a memory of its own.
  struct Place {
    size_t plain_offset, plain_bytes, coded_offset, coded_bytes;
  };
  std::vector<Place> places;
  size_t device_bytes = 0;           ///< scratch, then places

  std::vector<std::vector<uint32_t>> receives;  ///< [peer][message] -> step
  std::vector<uint32_t> ready;                  ///< steps without dependencies, in program order
  std::vector<bool> is_long;                    ///< steps that take too long for inside a callback
  std::vector<uint32_t> receivers;              ///< of the same body as a send's, see count_receivers()
  std::vector<uint32_t> copies;                 ///< see find_copies_of_bodies(); none for buffers in GPU memory
  LentOperands lent;                            ///< none for buffers in GPU memory
};

/// A plan and the schedules of its rounds, as far as they have been needed. Where all blocks are of one size there
/// are four at most: split or not, last or not.
struct PreparedPlan {
  Plan plan;
  std::shared_ptr<const PreparedSchedule> schedules[2][2];  ///< [split][last]
  std::vector<std::shared_ptr<const PreparedSchedule>> by_round;  ///< of unequal blocks: all of a persistent call, or
                                                                  ///< those of neighbours as far as needed
  bool staged = false;  ///< for buffers in GPU memory
  bool direct = false;  ///< done by DirectExchange or DirectMessage, without a schedule

  /// The different ones of those that are there.
  std::vector<std::shared_ptr<const PreparedSchedule>> kept() const;
};

/// Keeps the most recently used schedules of one rank of one communicator.
class ScheduleCache {
 public:
  /// `fuses`: whoever runs the schedules can reduce straight from frames.
  ScheduleCache(int rank, bool fuses) : rank_(rank), fuses_(fuses) {}

  /// The schedule of one round, built if it isn't there. `gpu`: of a staged plan, where its calls' buffers are.
  Result<std::shared_ptr<const PreparedSchedule>> get(PreparedPlan& prepared, uint32_t round,
                                                      const GpuDevice* gpu = nullptr);
  /// Builds the schedules of all rounds; the plan keeps them.
  Status keep_all(PreparedPlan& prepared, const GpuDevice* gpu = nullptr);

 private:
  struct Key {
    const Algorithm* algorithm = nullptr;
    CallKind kind{};  ///< point to point has no algorithm
    DataType type{};
    const Codec* codec = nullptr;
    bool split = false;
    bool fused = false;
    bool staged = false;
    Shape shape;
    bool operator==(const Key&) const = default;
  };
  struct Entry {
    Key key;
    std::shared_ptr<const PreparedSchedule> schedule;
  };

  Result<std::shared_ptr<const PreparedSchedule>> get_neighbor_round(PreparedPlan& prepared, uint32_t round,
                                                                     const GpuDevice* gpu);
  Result<std::shared_ptr<const PreparedSchedule>> find_or_build(const Plan& plan, uint32_t round, const GpuDevice* gpu);

  int rank_;
  bool fuses_;
  Key wanted_;                ///< of the round that is looked for; kept for its memory
  std::list<Entry> entries_;  ///< most recently used first
};

}  // namespace uzip
