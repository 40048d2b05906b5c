// Turns codes into the fields of a thread's values, by bits, and joins these with the plain bits. Used by the fast decoder
// for 8-bit types.
#pragma once

#include "gpu/fast_block.hpp"
#include "gpu/second_level.hpp"
#include "gpu/sliced_fields.hpp"

namespace uzip::gpu {

/// As ByteDecoder. Of codes it knows at first only which are escapes; fields are made part after part.
template <class Format, bool kWhole>
class SlicedDecoder {
 public:
  using Ranks = SlicedRanks;
  using Escapes = SlicedMask;
  static constexpr unsigned kParts = kSlicedParts;

  UZIP_DEVICE explicit SlicedDecoder(unsigned values)
      : values_(values), first_(first_sliced(taken_anew(thread_index()), 0)) {}

  UZIP_DEVICE unsigned first_of(unsigned part, unsigned segment) const {
    return first_of_part(part) + segment * kSegmentValues;
  }

  UZIP_DEVICE Escapes find_escapes(const FastBlock& block, const uint8_t* image,
                                   const CodeTables&) {
    const uint8_t* const symbols = image + block.symbols_at();
    is_window_ = is_window(symbols, block.symbols0());
    Escapes escaped;
    UZIP_UNROLL
    for (unsigned p = 0; p < kParts; ++p) {
      uint32_t every = kWhole ? ~0u : sliced_valid(first_of_part(p), values_);
      UZIP_UNROLL
      for (unsigned b = 0; b < kMostWidth; ++b)
        if (b < block.width0()) every &= code_slice(block, image, p, b);
      escaped.part[p] = every;
    }
    return escaped;
  }

  UZIP_DEVICE Ranks rank(const Escapes& escaped, ScanSums& sums) const {
    return rank_sliced(escaped, sums, 0);
  }

  UZIP_DEVICE void decode_level_0(unsigned part, const FastBlock& block, const uint8_t* image,
                                  const Escapes& escaped) {
    uint32_t codes[kMostWidth];
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b)
      codes[b] = b < block.width0() ? code_slice(block, image, part, b) : 0;
    const uint8_t* const symbols = image + block.symbols_at();
    if (is_window_)
      add_base(codes, symbols[0]);
    else
      look_up(codes, symbols, block.symbols0());
    UZIP_UNROLL
    for (unsigned b = 0; b < Format::kFieldBits; ++b) field(b) &= ~escaped.part[part];
  }

  UZIP_DEVICE void put_few(unsigned part, const Escapes& escaped, const Ranks& ranks,
                           const uint8_t* escapes, uint8_t*) {
    const uint8_t* next = escapes + ranks.first[part];
    for (uint32_t mask = escaped.part[part]; mask != 0; mask &= mask - 1) {
      const uint32_t lowest = mask & (0u - mask);
      const uint32_t one = *next++;
      UZIP_UNROLL
      for (unsigned b = 0; b < Format::kFieldBits; ++b)
        if ((one >> b & 1u) != 0) field(b) |= lowest;
    }
  }
  UZIP_DEVICE void put_many(unsigned part, const Escapes& escaped, const Ranks& ranks,
                            const uint8_t* list, const CodeTables& tables) {
    constexpr uint32_t kFields = 0x01010101u * ((1u << Format::kFieldBits) - 1);
    uint32_t rank = ranks.first[part];
    UZIP_UNROLL
    for (unsigned i = 0; i < 2 * kSegments; ++i) {
      const uint32_t expand = tables.expand[escaped.part[part] >> (4 * i) & 15u];
      const uint32_t fields = pick_bytes(0, word_at(list, rank) & kFields, expand);
      joined_[i / 2].word[i % 2] |= fields << (Format::kFieldShift - 1);
      rank += expand >> 16;
    }
  }

  UZIP_DEVICE void load(unsigned part, const uint8_t* at) {
    const unsigned first = first_of_part(part);
    if (!kWhole && first / 64 * 64 >= values_) return;
    UZIP_UNROLL
    for (unsigned b = 0; b < Format::kFieldBits; ++b)
      field(b) = load_slice(at, first, Format::kFieldBits, b);
  }

  /// A part of the values from their fields and the plain bits.
  UZIP_DEVICE void prepare(unsigned part, const uint8_t* plain) {
    const unsigned first = first_of_part(part);
    if (!kWhole && first / 64 * 64 >= values_) return;
    UZIP_UNROLL
    for (unsigned b = 0; b < Format::kFieldShift; ++b)
      slices_.bit[b] = load_slice(plain, first, Format::kFieldShift, b);
    join_slices(slices_, joined_);
  }
  UZIP_DEVICE const Words<1>& join(unsigned, unsigned segment, const uint8_t*) const {
    return joined_[segment];
  }

 private:
  UZIP_DEVICE uint32_t& field(unsigned bit) { return slices_.bit[Format::kFieldShift + bit]; }
  UZIP_DEVICE unsigned first_of_part(unsigned part) const {
    return first_ + part * (kGroupLanes * kThreadValues);
  }
  UZIP_DEVICE uint32_t code_slice(const FastBlock& block, const uint8_t* image, unsigned part,
                                  unsigned bit) const {
    return load_slice(image + block.words0_at(), first_of_part(part), block.width0(), bit);
  }

  /// Whether the symbols, less than 32, are consecutive fields, as those of devices are.
  UZIP_DEVICE static bool is_window(const uint8_t* symbols, unsigned count) {
    const unsigned lane = lane_index();
    return ballot(lane < count && symbols[lane] != symbols[0] + lane) == 0;
  }

  UZIP_DEVICE void add_base(const uint32_t (&codes)[kMostWidth], uint32_t base) {
    uint32_t carry = 0;
    UZIP_UNROLL
    for (unsigned b = 0; b < Format::kFieldBits; ++b) {
      const uint32_t code = b < kMostWidth ? codes[b < kMostWidth ? b : 0] : 0;
      const uint32_t plus = bit_for_all(base, b);
      field(b) = code ^ plus ^ carry;
      carry = (code & (plus | carry)) | (plus & carry);
    }
  }

  UZIP_DEVICE void look_up(const uint32_t (&codes)[kMostWidth], const uint8_t* symbols,
                           unsigned count) {
    UZIP_UNROLL
    for (unsigned b = 0; b < Format::kFieldBits; ++b) field(b) = 0;
    UZIP_NO_UNROLL
    for (unsigned k = 0; k < count; ++k) {
      uint32_t equal = ~0u;
      UZIP_UNROLL
      for (unsigned b = 0; b < kMostWidth; ++b) equal &= ~(codes[b] ^ bit_for_all(k, b));
      UZIP_UNROLL
      for (unsigned b = 0; b < Format::kFieldBits; ++b)
        field(b) |= equal & bit_for_all(symbols[k], b);
    }
  }

  unsigned values_;
  unsigned first_;  ///< of this thread's values
  bool is_window_ = false;
  Slices slices_;                ///< of a part
  Words<1> joined_[kSegments];
};

}  // namespace uzip::gpu
