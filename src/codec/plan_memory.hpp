// Keeps the last plan of a frame and tells from a few values of the next block whether it still
// fits. Used by the planner: a full sample of every block would take longer than coding it.
#pragma once

#include "codec/block.hpp"
#include "codec/block_sample.hpp"

#include <array>
#include <cstddef>
#include <cstdint>

namespace uzip {

class PlanMemory {
 public:
  /// Keeps a plan of planes, made from `sample`, for the next `uses` blocks.
  void remember(const BlockDescriptor& plan, const BlockSample& sample, size_t type_size,
                unsigned uses);

  /// Fills in *plan and returns true when the plan fits the block of `count` values, whose full
  /// sample would be taken at `places`.
  bool recall(const uint8_t* src, size_t count, const SamplePlaces& places, BlockDescriptor* plan);

  /// Keeps what the last block that was planned needed instead of the plan's record of a plane: the
  /// sample had missed some of it, and would again. Not a record that relies on constant bits.
  void amend_plane(size_t plane, const SequenceRecord& record);
  /// Keeps the records of the bits of a block's zeros for plans that are recalled.
  void amend_bits(const BlockDescriptor& block);
  /// Fills in the records of the bits of a block whose zeros are out already; false: they are
  /// unknown, or of a block with another share of zeros.
  bool recall_bits(BlockDescriptor* block) const;

 private:
  /// What some values say about a plan.
  struct Signs {
    uint64_t any = 0;
    uint64_t every = ~uint64_t{0};
    size_t values = 0;
    size_t zeros = 0;      ///< of either sign
    uint64_t bits = 0;     ///< of the top fields of the others (no matter of a plan of differences)
    uint64_t lengths = 0;  ///< significant bits of differences, see near_usual()
    size_t differences = 0;
  };

  uint64_t turned(uint64_t value) const;
  unsigned near_usual(unsigned length) const;
  void expect_lengths(const BlockSample& sample);
  template <class T>
  Signs look_at_differences(const uint8_t* src, size_t runs, size_t step) const;
  template <class T>
  Signs look(const uint8_t* src, size_t runs, size_t step) const;
  bool fits(const Signs& seen) const;
  void price_fields(const SequenceRecord& top);

  BlockDescriptor plan_;
  bool has_bits_ = false;    ///< the plan has records for the bits of zeros, ...
  uint64_t kept_share_ = 0;  ///< ... made for this share of values that stay
  size_t type_size_ = 0;
  unsigned uses_ = 0;
  unsigned rotation_ = 0;            ///< of values that are no differences, beyond that of samples
  unsigned field_begin_ = 0;         ///< lowest bit of the top field, of values so rotated
  uint64_t varying_ = 0;             ///< bits of a value that the plan expects to vary
  unsigned usual_length_ = 0;        ///< of differences
  std::array<uint8_t, 256> bits_{};  ///< that the code of each top field takes
  Signs expected_;
};

}  // namespace uzip
