// Decodes any block that FORMAT.md allows: all levels, every plane coded, removed zeros,
// differences. Used by the decode kernel for the blocks that its fast way does not know, which are
// mostly those of CPUs.
//
// The block's threads read 2048 values at a time. Every sequence goes on where it stopped, so
// shared memory does not depend on the size of a block.
#pragma once

#include "gpu/emit.hpp"
#include "gpu/general_descriptor.hpp"

namespace uzip::gpu {

inline constexpr unsigned kGeneralValues = kThreads * kSegmentValues;

/// Where the fast way keeps other things.
template <unsigned kSize>
struct GeneralBuffers {
  alignas(16) uint8_t planes[kSize * kGeneralValues];
  uint8_t buffers[kMaxLevels + 1][kGeneralValues];
  uint8_t kept[kThreads];
  uint8_t signs[kThreads + 8];
  uint64_t group_sums[kGroups];
  uint64_t carry;  ///< the last value, rotated, for differences
};

template <int kType, unsigned kSize>
class GeneralDecoder {
 public:
  using Shared = GeneralBuffers<kSize>;

  UZIP_DEVICE GeneralDecoder(const DecodeArgs& args, GeneralBlock& block, Shared& shared,
                             ScanSums& sums, bool aligned)
      : args_(args), block_(block), shared_(shared), sums_(sums), aligned_(aligned) {}

  /// `first` is the block's first value in the frame. The descriptor has been read.
  UZIP_DEVICE DecodeFault decode(uint64_t first) {
    const GeneralBlock& block = block_;
    if (thread_index() == 0) shared_.carry = block.base;
    sync();
    uint32_t kept_before = 0;
    for (uint32_t done = 0; done < block.values; done += kGeneralValues) {
      const uint32_t rest = block.values - done;
      const unsigned values = rest < kGeneralValues ? rest : kGeneralValues;
      uint32_t kept = values;
      uint32_t mask = valid_bits(thread_index() * kSegmentValues, values);
      uint32_t rank = thread_index() * kSegmentValues;
      if (block.zeros != 0) {
        // Tiles but the last are whole, so a tile's bits are whole bytes.
        const uint32_t bytes = rest <= kGeneralValues
                                   ? block.sequences[kKeptBits].bytes - done / 8
                                   : kGeneralValues / 8;
        if (!read(kKeptBits, bytes, shared_.kept)) return DecodeFault::kEscapes;
        if (mask != 0) mask &= shared_.kept[thread_index()];
        rank = rank_threads(count_bits(mask), sums_, 1, &kept);  // read() goes on with 0
        const uint32_t zeros_left = block.values - block.kept - (done - kept_before);
        if (kept > block.kept - kept_before || values - kept > zeros_left)
          return DecodeFault::kZeros;
      }
      UZIP_NO_UNROLL
      for (unsigned p = 0; p < kSize; ++p)
        if (!read(p, kept, shared_.planes + p * kGeneralValues)) return DecodeFault::kEscapes;
      if (block.zeros != 0 && !read_signs(done - kept_before, values - kept))
        return DecodeFault::kEscapes;
      output(first + done, values, kept, mask, rank, done - kept_before);
      kept_before += kept;
      sync();
    }
    if (kept_before != block.kept) return DecodeFault::kZeros;
    return rest_is_right() ? DecodeFault::kNone : DecodeFault::kEscapes;
  }

 private:
  static constexpr unsigned kBits = 8 * kSize;
  static constexpr uint64_t kAll = kSize == 8 ? ~uint64_t{0} : (uint64_t{1} << (kBits % 64)) - 1;

  /// Eight bits of a packed sequence of `count` things, from thing `at` on.
  static UZIP_DEVICE uint32_t load_bits(const uint8_t* words, unsigned width, unsigned bit,
                                        uint32_t at, uint32_t count) {
    const auto* const first = reinterpret_cast<const uint64_t*>(words);
    const uint32_t group = at / 64;
    const unsigned shift = at % 64;
    uint64_t word = first[group * width + bit] >> shift;
    if (shift > 56 && (group + 1) * 64 < count)
      word |= first[(group + 1) * width + bit] << (64 - shift);
    return static_cast<uint32_t>(word) & 0xffu;
  }

  /// The next `count` bytes of a sequence; false when the codes contradict the descriptor.
  UZIP_DEVICE_CALL bool read(unsigned index, uint32_t count, uint8_t* out) {
    Sequence& s = block_.sequences[index];
    const unsigned first = thread_index() * kSegmentValues;
    const uint32_t valid = valid_bits(first, count);
    const uint32_t at = s.position[0] + first;
    bool right = true;
    uint32_t counts[kMaxLevels + 1] = {count, 0, 0, 0, 0};
    if (s.levels > 0) right = read_levels(s, first, counts);
    if (right && valid != 0) {
      const unsigned stored_width = count_bits(s.stored);
      UZIP_NO_UNROLL
      for (unsigned k = 0; k < kSegmentValues && (valid >> k & 1u) != 0; ++k) {
        uint32_t byte = s.value;
        if (s.stored == 0xffu) byte = s.stored_at[at + k];
        if (s.levels > 0) byte |= static_cast<uint32_t>(shared_.buffers[0][first + k]) << s.shift;
        if (s.shift == 0 && s.levels == 0) byte |= s.level_at[0][at + k];
        out[first + k] = static_cast<uint8_t>(byte);
      }
      if (s.stored != 0 && s.stored != 0xffu)
        add_bits(s.stored_at, s.stored, stored_width, at, s.bytes, valid, out + first);
      if (s.levels == 0 && s.shift > 0 && s.shift < 8)
        add_bits(s.level_at[0], 0xffu << s.shift & 0xffu, 8 - s.shift, at, s.bytes, valid,
                 out + first);
    }
    sync();
    if (thread_index() == 0)
      UZIP_NO_UNROLL
      for (unsigned l = 0; l <= s.levels; ++l) s.position[l] += counts[l];
    sync();
    return right;
  }

  /// Bits of `mask` of eight bytes, from words.
  static UZIP_DEVICE void add_bits(const uint8_t* words, uint32_t mask, unsigned width, uint32_t at,
                                   uint32_t count, uint32_t valid, uint8_t* out) {
    UZIP_NO_UNROLL
    for (unsigned b = 0; mask != 0; ++b, mask &= mask - 1) {
      const uint32_t bits = load_bits(words, width, b, at, count) & valid;
      const unsigned place = lowest_bit(mask);
      UZIP_NO_UNROLL
      for (unsigned k = 0; k < kSegmentValues && valid >> k != 0; ++k)
        out[k] = static_cast<uint8_t>(out[k] | (bits >> k & 1u) << place);
    }
  }

  /// Fields of counts[0] things into buffers[0]; fills in the other counts.
  UZIP_DEVICE bool read_levels(const Sequence& s, unsigned first,
                               uint32_t (&counts)[kMaxLevels + 1]) {
    uint32_t escaped[kMaxLevels];
    uint32_t ranks[kMaxLevels];
    UZIP_NO_UNROLL
    for (unsigned l = 0; l < s.levels; ++l) {
      const uint32_t valid = valid_bits(first, counts[l]);
      escaped[l] = valid;
      uint32_t codes[kMaxLevels] = {0, 0, 0, 0};
      UZIP_NO_UNROLL
      for (unsigned b = 0; b < s.width[l] && valid != 0; ++b) {
        codes[b] = load_bits(s.level_at[l], s.width[l], b, s.position[l] + first, s.coded[l]);
        escaped[l] &= codes[b];
      }
      UZIP_NO_UNROLL
      for (unsigned k = 0; k < kSegmentValues && valid >> k != 0; ++k) {
        uint32_t code = 0;
        UZIP_NO_UNROLL
        for (unsigned b = 0; b < 4; ++b) code |= (codes[b] >> k & 1u) << b;
        shared_.buffers[l][first + k] = s.symbols[l][code];
      }
      ranks[l] = rank_threads(count_bits(escaped[l]), sums_, l % 2, &counts[l + 1]);
      if (counts[l + 1] > s.coded[l + 1] - s.position[l + 1]) return false;
    }
    const unsigned last = s.levels;
    UZIP_NO_UNROLL
    for (unsigned k = first; k < first + kSegmentValues && k < counts[last]; ++k)
      shared_.buffers[last][k] = s.level_at[last][s.position[last] + k];
    UZIP_NO_UNROLL
    for (unsigned l = last; l-- > 0;) {
      sync();
      for (uint32_t mask = escaped[l]; mask != 0; mask &= mask - 1)
        shared_.buffers[l][first + lowest_bit(mask)] = shared_.buffers[l + 1][ranks[l]++];
    }
    return true;
  }

  /// Makes the signs of the zeros `before` ... `before` + `zeros` - 1 of the block available:
  /// signs[8 + ...] are the new bytes, signs[7] the one before.
  UZIP_DEVICE bool read_signs(uint32_t before, uint32_t zeros) {
    if (block_.zero_sign != 2) return true;
    const uint32_t have = (before + 7) / 8;
    const uint32_t need = (before + zeros + 7) / 8;
    return read(kSignBits, need - have, shared_.signs + 8);
  }

  UZIP_DEVICE bool zero_is_minus(uint32_t before, uint32_t zero) const {
    if (block_.zero_sign != 2) return block_.zero_sign == 1;
    const uint32_t bit = before + zero;
    const uint32_t have = (before + 7) / 8;
    return (shared_.signs[8 + bit / 8 - have] >> (bit % 8) & 1u) != 0;
  }

  static UZIP_DEVICE uint64_t rotate_right(uint64_t value, unsigned by) {
    return by == 0 ? value : (value >> by | value << (kBits - by)) & kAll;
  }

  /// Values from the planes, in place of their differences if that is what they are.
  UZIP_DEVICE void merge(uint32_t kept, uint64_t (&values)[kSegmentValues]) {
    const GeneralBlock& block = block_;
    const unsigned first = thread_index() * kSegmentValues;
    uint64_t sum = 0;
    UZIP_NO_UNROLL
    for (unsigned k = 0; k < kSegmentValues; ++k) {
      uint64_t value = 0;
      if (first + k < kept) {
        UZIP_NO_UNROLL
        for (unsigned p = 0; p < kSize; ++p)
          value |= static_cast<uint64_t>(shared_.planes[p * kGeneralValues + first + k]) << (8 * p);
        value = rotate_right(value, block.rotation);
        if (block.delta != 0) {
          value = (value >> 1 ^ (0 - (value & 1u))) & kAll;
          sum += value;
        }
      }
      values[k] = value;
    }
    if (block.delta != 0) {
      uint64_t value = before_thread(sum) + shared_.carry;
      UZIP_NO_UNROLL
      for (unsigned k = 0; k < kSegmentValues; ++k) values[k] = value += values[k];
      sync();
      if (thread_index() == kThreads - 1) shared_.carry = value;
    }
    UZIP_NO_UNROLL
    for (unsigned k = 0; k < kSegmentValues; ++k) values[k] = rotate_right(values[k] & kAll, 1);
  }

  UZIP_DEVICE uint64_t before_thread(uint64_t value) {
    uint64_t sum = value;
    for (unsigned distance = 1; distance < kGroupLanes; distance *= 2) {
      const uint32_t low = shuffle_up(static_cast<uint32_t>(sum), distance);
      const uint32_t high = shuffle_up(static_cast<uint32_t>(sum >> 32), distance);
      if (lane_index() >= distance) sum += static_cast<uint64_t>(high) << 32 | low;
    }
    if (lane_index() == kGroupLanes - 1) shared_.group_sums[group_index()] = sum;
    sync();
    sum -= value;
    for (unsigned g = 0; g < group_index(); ++g) sum += shared_.group_sums[g];
    return sum;
  }

  UZIP_DEVICE void output(uint64_t first, unsigned values, uint32_t kept, uint32_t mask,
                          uint32_t rank, uint32_t zeros_before) {
    uint64_t own[kSegmentValues];
    merge(kept, own);
    if (block_.zeros != 0) {
      sync();  // the planes have been read
      auto* const merged = shared_.planes;
      UZIP_NO_UNROLL
      for (unsigned k = 0; k < kSegmentValues; ++k)
        UZIP_NO_UNROLL
        for (unsigned b = 0; b < kSize; ++b)
          merged[(thread_index() * kSegmentValues + k) * kSize + b] =
              static_cast<uint8_t>(own[k] >> (8 * b));
      sync();
      uint32_t zero = thread_index() * kSegmentValues - rank;
      UZIP_NO_UNROLL
      for (unsigned k = 0; k < kSegmentValues; ++k) {
        if ((mask >> k & 1u) != 0)
          own[k] = load_value<kSize>(merged + rank++ * kSize);
        else if (thread_index() * kSegmentValues + k < values)
          own[k] = zero_is_minus(zeros_before, zero++) ? uint64_t{1} << (kBits - 1) : 0;
      }
      keep_last_sign(zeros_before, values - kept);
    }
    const unsigned at = thread_index() * kSegmentValues;
    if (at >= values) return;
    Words<kSize> words{};
    using Bits = typename AccumulatorOf<kType>::Type::Bits;
    UZIP_UNROLL
    for (unsigned k = 0; k < kSegmentValues; ++k)
      put_element<Bits>(words, k, static_cast<Bits>(own[k]));
    const unsigned count = values - at;
    emit<kType, kSize>(args_, first + at, count, aligned_, words);
  }

  /// The byte of signs that the next tile goes on with.
  UZIP_DEVICE void keep_last_sign(uint32_t before, uint32_t zeros) {
    sync();
    const uint32_t have = (before + 7) / 8;
    const uint32_t need = (before + zeros + 7) / 8;
    if (thread_index() == 0 && need > have) shared_.signs[7] = shared_.signs[8 + need - have - 1];
  }

  /// What is left of the signs is padding, but its codes count, too.
  UZIP_DEVICE bool rest_is_right() {
    const GeneralBlock& block = block_;
    const bool signs = block.zeros != 0 && block.zero_sign == 2;
    if (signs) {
      const Sequence& s = block.sequences[kSignBits];
      if (!read(kSignBits, s.bytes - s.position[0], shared_.signs + 8)) return false;
    }
    bool right = true;
    for (unsigned i = 0; i < kSequences; ++i) {
      if (i == kKeptBits ? block.zeros == 0 : i == kSignBits ? !signs : i >= kSize) continue;
      const Sequence& s = block.sequences[i];
      if (s.levels == 0) continue;
      UZIP_NO_UNROLL
      for (unsigned l = 0; l <= s.levels; ++l) right = right && s.position[l] == s.coded[l];
    }
    return right;
  }

  const DecodeArgs& args_;
  GeneralBlock& block_;
  Shared& shared_;
  ScanSums& sums_;
  bool aligned_;
};

}  // namespace uzip::gpu
