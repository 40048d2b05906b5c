// Encodes one block of a lev frame as planned. Used by lev_encode.cpp, block after block.
#pragma once

#include "codec/block.hpp"
#include "codec/codec.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/lev.hpp"
#include "codec/planner.hpp"
#include "codec/scratch.hpp"

namespace uzip {

class BlockEncoder {
 public:
  BlockEncoder(DataType type, CodecLevel level, CodecScratch::State& scratch)
      : kernels_(codec_kernels()),
        traits_(lev_traits(type)),
        level_(level),
        scratch_(scratch),
        planner_(type, level) {}

  /// Looks at the whole frame first. False: it is better sent raw.
  bool begin(const uint8_t* src, size_t count) { return planner_.begin(src, count); }

  /// Encodes the frame's next `count` values, behind which there are `after` more. `plain` or
  /// `coded` may be null: that part is not written, but its size is still right for `plain`, and
  /// zero for `coded`. Returned sizes are multiples of kBlockAlignment; there must be room for
  /// max_sizes(count).
  PartSizes encode(const uint8_t* src, size_t count, size_t after, uint8_t* plain, uint8_t* coded);

  /// Most bytes that a block of `count` values takes.
  static PartSizes max_sizes(const LevTraits& traits, size_t count);
  static size_t max_descriptor(const LevTraits& traits);
  /// Words and bytes are rounded up at the end of sections: all that a block can take for it beyond
  /// its elements. Only a frame's last block does; a block without its zeros has saved more.
  static constexpr size_t kRounding = 512;

 private:
  size_t top() const { return traits_.size - 1; }
  bool is_direct(size_t plane) const {
    return plane != top() && !block_.planes[plane].has_fields() &&
           block_.planes[plane].stored == 0xff;
  }

  bool fits_top_kernels() const;
  bool write_fused(uint8_t* plain, uint8_t* coded, PartSizes* sizes);
  size_t write_constant(const uint8_t* src, uint8_t* coded);
  void plan_bits(const uint8_t* bytes, size_t count, SequenceRecord* record);
  void plan_zero_bits();
  void prepare_values(const uint8_t* src, size_t count);
  bool remove_zeros(size_t count);
  void split_planes(const std::array<uint8_t*, kMaxTypeSize>& planes);
  bool layout_is_known() const;
  void refine(size_t plane);
  void place_top();
  size_t write_plain(uint8_t* plain, bool top_needed);
  size_t write_plain_plane(size_t plane, uint8_t* plain, size_t at);
  size_t write_coded(uint8_t* coded);
  size_t write_zero_bits(uint8_t* coded);
  bool write_sequence(SequenceRecord& record, const uint8_t* bytes, size_t count, uint8_t* coded,
                      size_t* at);
  size_t write_record(SequenceRecord& record, const uint8_t* bytes, size_t count, uint8_t* dst);

  const CodecKernels& kernels_;
  LevTraits traits_;
  CodecLevel level_;
  CodecScratch::State& scratch_;
  Planner planner_;
  BlockDescriptor block_;
  const uint8_t* values_ = nullptr;  ///< what is split into planes
  unsigned rotation_ = 1;            ///< before splitting
};

}  // namespace uzip
