// Encodes a frame of the lev codec in one pass: each block of threads takes tiles of 8192 values in
// turn, codes their top plane in shared memory, learns where its bytes belong, and writes them.
// Instantiated by kernels_*.cu.
//
// Where a tile's bytes belong depends on the sizes of all tiles before it. Each tile says its own
// in a word of memory; one block of threads adds the words up and answers in their place.
#pragma once

#include "codec/lev_layout.hpp"
#include "gpu/codec_args.hpp"
#include "gpu/encode_plan.hpp"
#include "gpu/value_planes.hpp"

namespace uzip::gpu {

/// Of a tile: descriptor, and the fields as they are.
inline constexpr unsigned kImageBytes = kTileValues + 256;

enum WordState : uint32_t { kEmpty = 0, kOwn = 1, kSum = 2 };

/// A tile that is coded, until its place is known.
template <class Format>
struct TileSlot {
  alignas(16) uint8_t image[kImageBytes];  ///< coded bytes
  alignas(16) uint8_t low[Format::kFieldShift == 0 ? 16 : kTileValues / 8 * Format::kFieldShift];
};

template <class Format>
struct EncodeShared {
  TileSlot<Format> slots[2];
  alignas(16) uint8_t escapes[kTileValues];
  uint32_t bins[kHistogramBins + kHistogramPadding];
  ScanSums sums;
  uint32_t plan;  ///< pack_plan()
  uint32_t ticket;
  uint32_t samples;
  uint64_t before;
  uint64_t found[kGroups];
};

/// What is known of a coded tile.
struct CodedTile {
  uint32_t tile;
  uint32_t values;
  uint32_t coded_bytes;
  bool constant;
};

constexpr uint64_t kUnitMask = (uint64_t{1} << kUnitBits) - 1;
constexpr uint64_t kSumMask = (uint64_t{1} << kStateShift) - 1;

UZIP_DEVICE uint64_t word_of(uint32_t epoch, WordState state, uint64_t sums) {
  return static_cast<uint64_t>(epoch) << kEpochShift | static_cast<uint64_t>(state) << kStateShift |
         sums;
}
UZIP_DEVICE bool has_state(uint64_t word, uint32_t epoch, WordState state) {
  return word >> kEpochShift == epoch && (word >> kStateShift & 3u) >= state;
}
UZIP_DEVICE uint64_t wait_for_word(const uint64_t* place, uint32_t epoch, WordState state) {
  uint64_t word;
  do {
    word = load_shared_word(place);
  } while (!has_state(word, epoch, state));
  return word & kSumMask;
}

/// The blocks of threads of a large frame but the first one code tiles; the first one adds up what
/// tiles take, as far as they are coded, for all others. So a tile's place costs one look at one
/// word, and by the time that is needed, after the next tile is coded, it is there.
UZIP_DEVICE void sum_tiles(uint64_t* words, uint32_t epoch, uint32_t tiles, ScanSums& sums,
                           uint64_t* found) {
  uint64_t carry = 0;
  for (uint32_t done = 0; done < tiles;) {
    const uint32_t index = done + thread_index();
    const uint64_t word = index < tiles ? load_shared_word(words + index) : 0;
    const uint32_t ready = ballot(index < tiles && has_state(word, epoch, kOwn));
    if (lane_index() == 0) found[group_index()] = ready;
    sync();
    uint32_t count = 0;
    for (unsigned g = 0; g < kGroups; ++g) {
      const auto bits = static_cast<uint32_t>(found[g]);
      count += bits == ~0u ? kGroupLanes : lowest_bit(~bits);
      if (bits != ~0u) break;
    }
    const bool counts = thread_index() < count;
    const auto own_units = static_cast<uint32_t>(counts ? word & kUnitMask : 0);
    const auto own_plains = static_cast<uint32_t>(counts ? (word & kSumMask) >> kUnitBits : 0);
    uint32_t units = 0;
    uint32_t plains = 0;
    const uint32_t units_before = rank_threads(own_units, sums, 0, &units);
    const uint32_t plains_before = rank_threads(own_plains, sums, 1, &plains);
    if (counts)
      store_shared_word(words + index,
                        word_of(epoch, kSum,
                                carry + (static_cast<uint64_t>(plains_before + own_plains)
                                         << kUnitBits) + units_before + own_units));
    carry += (static_cast<uint64_t>(plains) << kUnitBits) + units;
    done += count;
  }
}

static_assert(kDirectTiles <= kThreads);  // one thread for each tile before

/// Encodes tiles. `kWhole`: they have all their values, and these are aligned.
template <class Format, bool kWhole>
class TileEncoder {
 public:
  static constexpr unsigned kSize = Format::kSize;

  UZIP_DEVICE TileEncoder(const EncodeArgs& args, EncodeShared<Format>& shared,
                          TileSlot<Format>& slot, uint32_t epoch)
      : args_(args), shared_(shared), slot_(slot), epoch_(epoch) {}

  /// Codes a tile into the slot, and says to the others what it takes.
  UZIP_DEVICE CodedTile encode(uint32_t tile) {
    tile_ = tile;
    const uint64_t begin = static_cast<uint64_t>(tile) << kTileLog2;
    const uint64_t left = args_.begin.count - begin;
    values_ = left < kTileValues ? static_cast<unsigned>(left) : kTileValues;
    src_ = args_.src + begin * kSize;
    first_ = load_first();
    const bool constant = !read_fields();
    if (constant) {
      described_ = 24;
      coded_bytes_ = 32;
      plan_ = LevelPlan{};
      publish(kOwn, own_sums(true));
      write_constant();
    } else {
      if (group_index() == 0) {
        const LevelPlan plan =
            plan_levels(shared_.bins, shared_.samples, Format::kFieldBits, args_.levels);
        if (lane_index() == 0) shared_.plan = pack_plan(plan);
      }
      sync();
      plan_ = unpack_plan(shared_.plan);
      code_fields();
    }
    return {tile, values(), coded_bytes_, constant};
  }

  /// Writes the lower planes of a tile that encode() has left out. `plain` is the tile's.
  UZIP_DEVICE void write_lower_planes(const CodedTile& coded, uint8_t* plain) {
    values_ = coded.values;
    src_ = args_.src + (static_cast<uint64_t>(coded.tile) << kTileLog2) * kSize;
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = first_value(i);
      write_lower(plain, first, split_values<kSize>(load(first)));
    }
  }

 private:
  static constexpr unsigned kStride = Format::plain_bytes(kTileValues);

  UZIP_DEVICE unsigned values() const { return kWhole ? kTileValues : values_; }
  /// Which values of a segment exist.
  UZIP_DEVICE uint32_t valid(unsigned first) const {
    return kWhole ? 0xffu : valid_bits(first, values_);
  }

  UZIP_DEVICE uint64_t load_first() const {
    if constexpr (!kWhole || kSize == 1) return load_value<kSize>(src_);
    if constexpr (kSize == 2) return *reinterpret_cast<const uint16_t*>(src_);
    if constexpr (kSize == 4) return *reinterpret_cast<const uint32_t*>(src_);
    return *reinterpret_cast<const uint64_t*>(src_);
  }

  UZIP_DEVICE Words<kSize> load(unsigned first) const {
    if constexpr (kWhole) {
      return load_values<kSize>(src_ + first * kSize);
    } else {
      const unsigned count = first < values_ ? values_ - first : 0;
      return load_some_values<kSize>(src_ + first * kSize,
                                     count < kSegmentValues ? count : kSegmentValues, first_);
    }
  }

  /// Reads the tile: keeps the fields, counts some of them, and writes the planes if their place is
  /// fixed. False: all values are the same.
  UZIP_DEVICE bool read_fields() {
    bool differs = false;
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = first_value(i);
      const Words<kSize> words = load(first);
      differs |= any_other(words);
      const Planes<kSize> planes = split_values<kSize>(words);
      take_top(i, planes);
      if (args_.fixed_plain != 0)
        write_lower(args_.plain + static_cast<uint64_t>(tile_) * kStride, first, planes);
    }
    count_sample(0, fields_[0][0] & 0xffu);
    count_sample(2, fields_[2][1] & 0xffu);
    return sync_or(differs);
  }

  UZIP_DEVICE void count_sample(unsigned segment, uint32_t field) {
    if (first_value(segment) + (segment == 0 ? 0 : 4) >= values()) return;
    atomic_add(&shared_.bins[field], 1);
    if constexpr (!kWhole) atomic_add(&shared_.samples, 1);
  }

  UZIP_DEVICE bool any_other(const Words<kSize>& words) const {
    uint32_t low = static_cast<uint32_t>(first_);
    if constexpr (kSize == 1) low = repeat_byte(low);
    if constexpr (kSize == 2) low |= low << 16;
    const uint32_t high = kSize == 8 ? static_cast<uint32_t>(first_ >> 32) : low;
    uint32_t other = 0;
    UZIP_UNROLL
    for (unsigned i = 0; i < 2 * kSize; i += 2)
      other |= (words.word[i] ^ low) | (words.word[i + 1] ^ high);
    return other != 0;
  }

  /// Splits the top plane into fields and the bits below.
  UZIP_DEVICE void take_top(unsigned segment, const Planes<kSize>& planes) {
    UZIP_UNROLL
    for (unsigned half = 0; half < 2; ++half) {
      const uint32_t top = planes.plane[kSize - 1][half];
      fields_[segment][half] =
          top >> Format::kFieldShift & repeat_byte(0xffu >> Format::kFieldShift);
    }
    if constexpr (Format::kFieldShift > 0) {
      const uint32_t exists = valid(first_value(segment));
      UZIP_UNROLL
      for (unsigned b = 0; b != Format::kFieldShift; ++b) {
        const uint32_t bits = gather_bits(planes.plane[kSize - 1][0] >> b) |
                              gather_bits(planes.plane[kSize - 1][1] >> b) << 4;
        put_bits(slot_.low, segment, Format::kFieldShift, b, bits & exists);
      }
    }
  }

  /// Eight bits of a sequence that is stored in `width` words for each 64 values.
  UZIP_DEVICE void put_bits(uint8_t* words, unsigned segment, unsigned width, unsigned bit,
                            uint32_t bits) const {
    const unsigned first = first_value(segment);
    if (first / 64 * 64 < values())
      words[(first / 64 * width + bit) * 8 + first % 64 / 8] = static_cast<uint8_t>(bits);
  }

  UZIP_DEVICE void write_lower(uint8_t* plain, unsigned first, const Planes<kSize>& planes) const {
    if constexpr (kSize > 1) {
      uint8_t* const dst = plain + Format::low_bytes(values()) + first;
      const unsigned stride = Format::plane_bytes(values());
      const uint32_t exists = valid(first);
      if (exists == 0) return;
      uint32_t mask[2] = {~0u, ~0u};
      if (exists != 0xffu) {
        mask[0] = scatter_bits(exists & 15u) * 0xffu;
        mask[1] = scatter_bits(exists >> 4) * 0xffu;
      }
      UZIP_UNROLL
      for (unsigned p = 0; p + 1 < kSize; ++p)
        *reinterpret_cast<uint2*>(dst + (kSize - 2 - p) * stride) =
            make_uint2(planes.plane[p][0] & mask[0], planes.plane[p][1] & mask[1]);
    }
  }

  UZIP_DEVICE unsigned descriptor_bytes() const {
    unsigned symbols = 0;
    for (unsigned l = 0; l < plan_.levels; ++l) symbols += plan_.symbols(l);
    const unsigned bytes = 16 + 4 * (kSize - 1) + 4 * plan_.levels + (symbols + 3) / 4 * 4;
    return (bytes + 7) / 8 * 8;
  }
  UZIP_DEVICE unsigned packed_bytes(unsigned count, unsigned width) const {
    return (count + 63) / 64 * 8 * width;
  }
  UZIP_DEVICE unsigned raw_field_bytes() const {
    return Format::kFieldShift == 0 ? (values() + 7) / 8 * 8
                                    : packed_bytes(values(), Format::kFieldBits);
  }

  UZIP_DEVICE uint64_t own_sums(bool constant) const {
    const uint64_t plains = constant && args_.fixed_plain == 0 ? 0 : 1;
    return plains << kUnitBits | coded_bytes_ / 16;
  }
  UZIP_DEVICE void publish(WordState state, uint64_t sums) const {
    if (thread_index() == 0) store_shared_word(args_.words + tile_, word_of(epoch_, state, sums));
  }

  /// Builds the tile's coded bytes in shared memory; publishes their number as soon as it is known.
  UZIP_DEVICE void code_fields() {
    described_ = descriptor_bytes();
    if (plan_.levels > 0) code_levels();
    if (plan_.levels > 0) return;
    const uint32_t counts[kMostDeviceLevels] = {0, 0};
    described_ = descriptor_bytes();
    finish(raw_field_bytes());
    store_fields();
    write_descriptor(counts);
  }

  /// Sets plan_.levels to 0 and leaves the image to others when the levels don't pay.
  UZIP_DEVICE void code_levels() {
    const unsigned width = plan_.width[0];
    uint32_t bits[kMostWidth];
    const uint32_t escaped = code_level_0(bits);
    const SegmentRanks ranks = rank_segments(escaped, shared_.sums, 0);
    uint32_t counts[kMostDeviceLevels] = {ranks.total, 0};
    uint32_t last = ranks.total;
    unsigned written = packed_bytes(values(), width);
    const bool two = plan_.levels == 2;
    if (!pays(written + (two ? packed_bytes(last, plan_.width[1]) : (last + 7) / 8 * 8))) return;
    if (two) {
      list_many_escapes(escaped, ranks, shared_.escapes);
      sync();
      counts[1] = code_level_1(last, described_ + written);
      written += packed_bytes(last, plan_.width[1]);
      last = counts[1];
      if (!pays(written + (last + 7) / 8 * 8)) return sync();
    }
    finish(written + (last + 7) / 8 * 8);
    store_words(bits);
    if (!two) list_few_escapes(escaped, ranks, slot_.image + described_ + written);
    for (unsigned i = described_ + written + last + thread_index(); i < coded_bytes_; i += kThreads)
      slot_.image[i] = 0;
    write_descriptor(counts);
  }

  UZIP_DEVICE bool pays(unsigned section_bytes) {
    if (section_bytes + described_ <= raw_field_bytes() + 16) return true;
    plan_.levels = 0;
    return false;
  }

  UZIP_DEVICE void finish(unsigned section_bytes) {
    coded_bytes_ = (described_ + section_bytes + 15) / 16 * 16;
    publish(kOwn, own_sums(false));
  }

  static constexpr unsigned kMostWidth = 4;

  /// Codes of all fields, byte i of bits[b] for segment i; returns which are escapes.
  UZIP_DEVICE uint32_t code_level_0(uint32_t (&bits)[kMostWidth]) const {
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b) bits[b] = 0;
    switch (plan_.width[0]) {
      case 1: return code_level_0_of<1>(bits);
      case 2: return code_level_0_of<2>(bits);
      case 3: return code_level_0_of<3>(bits);
      default: return code_level_0_of<4>(bits);
    }
  }

  template <unsigned kWidth>
  UZIP_DEVICE uint32_t code_level_0_of(uint32_t (&bits)[kMostWidth]) const {
    const uint32_t base = repeat_byte(plan_.base[0]);
    uint32_t escaped = 0;
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const uint32_t exists = valid(first_value(i));
      uint32_t every = exists;
      uint32_t index[2];
      uint32_t outside[2];
      UZIP_UNROLL
      for (unsigned half = 0; half < 2; ++half) {
        index[half] = subtract_bytes(fields_[i][half], base);
        outside[half] = nonzero_bytes(index[half] & repeat_byte(0xffu << kWidth & 0xffu));
      }
      UZIP_UNROLL
      for (unsigned b = 0; b < kWidth; ++b) {
        const uint32_t byte = gather_bits(index[0] >> b | outside[0]) |
                              gather_bits(index[1] >> b | outside[1]) << 4;
        bits[b] |= (byte & exists) << (8 * i);
        every &= byte;
      }
      escaped |= every << (8 * i);
    }
    return escaped;
  }

  UZIP_DEVICE void store_words(const uint32_t (&bits)[kMostWidth]) {
    const unsigned width = plan_.width[0];
    UZIP_UNROLL
    for (unsigned b = 0; b < kMostWidth; ++b) {
      if (b >= width) continue;
      UZIP_UNROLL
      for (unsigned i = 0; i < kSegments; ++i)
        put_bits(slot_.image + described_, i, width, b, byte_of(bits[b], i));
    }
  }

  /// The field of a value, from its last two bytes in memory.
  UZIP_DEVICE uint32_t load_field(unsigned index) const {
    uint32_t field = 0;
    if constexpr (kSize == 1) {
      const uint32_t value = src_[index];
      field = (value << 1 | value >> 7) & 0xffu;
    } else {
      const uint8_t* const top = src_ + index * kSize + (kSize - 2);
      const uint32_t value = kWhole ? *reinterpret_cast<const uint16_t*>(top)
                                    : top[0] | static_cast<uint32_t>(top[1]) << 8;
      field = value >> 7 & 0xffu;
    }
    return field >> Format::kFieldShift;
  }

  /// The escaped fields, in the order of the values. A thread has one or two of 32: it loads them
  /// again, because registers can't be indexed.
  UZIP_DEVICE void list_few_escapes(uint32_t escaped, const SegmentRanks& ranks,
                                    uint8_t* list) const {
    const uint32_t low = ranks.first[0] | ranks.first[1] << 16;
    const uint32_t high = ranks.first[2] | ranks.first[3] << 16;
    for (uint32_t mask = escaped; mask != 0; mask &= mask - 1) {
      const unsigned bit = lowest_bit(mask);
      const unsigned segment = bit / 8;
      const uint32_t before = escaped & ((1u << bit) - 1) & (~0u << (8 * segment));
      const uint32_t rank = ((segment < 2 ? low : high) >> (segment % 2 * 16) & 0xffffu) +
                            count_bits(before);
      list[rank] = static_cast<uint8_t>(load_field(first_value(segment) + bit % 8));
    }
  }

  /// The same without branches.
  UZIP_DEVICE void list_many_escapes(uint32_t escaped, const SegmentRanks& ranks,
                                     uint8_t* list) const {
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      uint32_t rank = ranks.first[i];
      UZIP_UNROLL
      for (unsigned k = 0; k < kSegmentValues; ++k) {
        if ((escaped >> (8 * i + k) & 1u) == 0) continue;
        list[rank++] = static_cast<uint8_t>(fields_[i][k / 4] >> (8 * (k % 4)));
      }
    }
  }

  /// Codes `count` fields of the list into the image at `at`, and what is left behind the codes.
  /// Each thread codes 32 fields. Returns how many are left.
  UZIP_DEVICE uint32_t code_level_1(uint32_t count, unsigned at) {
    const unsigned first = thread_index() * 32;
    const unsigned valid = first >= count ? 0 : count - first < 32 ? count - first : 32;
    const uint32_t exists = valid == 32 ? ~0u : (1u << valid) - 1;
    const uint32_t base = repeat_byte(plan_.base[1]);
    const uint32_t skipped = repeat_byte((plan_.base[0] + plan_.symbols(0)) & 0xffu);
    const bool skips = plan_.base[0] + plan_.symbols(0) < 256;
    const uint32_t above = repeat_byte(0xffu << plan_.width[1] & 0xffu);
    uint32_t bits[4] = {0, 0, 0, 0};
    uint32_t every = exists;
    uint32_t fields[8];
    UZIP_UNROLL
    for (unsigned k = 0; k < 8; ++k) {
      fields[k] = first < count ? reinterpret_cast<const uint32_t*>(shared_.escapes + first)[k] : 0;
      const uint32_t behind = skips ? not_less_bytes(fields[k], skipped) : 0;
      const uint32_t index = subtract_bytes(subtract_bytes(fields[k], base),
                                            behind * plan_.symbols(0));
      const uint32_t outside = nonzero_bytes(index & above);
      UZIP_UNROLL
      for (unsigned b = 0; b < 4; ++b) bits[b] |= gather_bits(index >> b | outside) << (4 * k);
    }
    const unsigned width = plan_.width[1];
    UZIP_UNROLL
    for (unsigned b = 0; b < 4; ++b) {
      if (b >= width) continue;
      every &= bits[b];
      if (first / 64 * 64 < count)
        *reinterpret_cast<uint32_t*>(slot_.image + at + (first / 64 * width + b) * 8 +
                                     first % 64 / 8) = bits[b] & exists;
    }
    uint32_t left = 0;
    uint32_t rank = rank_threads(count_bits(every), shared_.sums, 1, &left);
    uint8_t* const list = slot_.image + at + packed_bytes(count, width);
    // More than fits makes the levels not pay, and the fields are stored instead.
    if (at + packed_bytes(count, width) + left > kImageBytes) return left;
    UZIP_UNROLL
    for (unsigned k = 0; k < 8; ++k) {
      uint32_t mask = every >> (4 * k) & 15u;
      while (mask != 0) {
        list[rank++] = static_cast<uint8_t>(fields[k] >> (8 * lowest_bit(mask)));
        mask &= mask - 1;
      }
    }
    return left;
  }

  /// The fields as they are.
  UZIP_DEVICE void store_fields() {
    uint8_t* const dst = slot_.image + described_;
    UZIP_UNROLL
    for (unsigned i = 0; i < kSegments; ++i) {
      const unsigned first = first_value(i);
      const uint32_t exists = valid(first);
      if constexpr (Format::kFieldShift == 0) {
        if (exists == 0) continue;
        const uint32_t low = scatter_bits(exists & 15u) * 0xffu;
        const uint32_t high = scatter_bits(exists >> 4) * 0xffu;
        *reinterpret_cast<uint2*>(dst + first) =
            make_uint2(fields_[i][0] & low, fields_[i][1] & high);
      } else {
        UZIP_UNROLL
        for (unsigned b = 0; b < Format::kFieldBits; ++b)
          put_bits(dst, i, Format::kFieldBits, b,
                   (gather_bits(fields_[i][0] >> b) | gather_bits(fields_[i][1] >> b) << 4) & exists);
      }
    }
    for (unsigned i = described_ + raw_field_bytes() + thread_index(); i < coded_bytes_;
         i += kThreads)
      slot_.image[i] = 0;
  }

  /// One thread writes each word of the descriptor.
  UZIP_DEVICE void write_descriptor(const uint32_t (&counts)[kMostDeviceLevels]) {
    const unsigned w = thread_index();
    if (w >= described_ / 4) return;
    uint32_t word = 0;
    if (w == 0) word = static_cast<uint32_t>(BlockKind::kPlanes);
    if (w == 1) word = values();
    if (w == 2)
      word = Format::kFieldShift | Format::kLowMask << 8 |
             static_cast<uint32_t>(kFieldsInCoded) << 24;
    if (w == 3 && plan_.levels > 0)
      word = plan_.levels | plan_.width[0] << 8 | (plan_.levels > 1 ? plan_.width[1] << 12 : 0);
    unsigned at = 4;
    if (w >= at && w < at + plan_.levels) word = counts[w - at];
    at += plan_.levels;
    const unsigned symbols0 = plan_.levels > 0 ? plan_.symbols(0) : 0;
    const unsigned symbols = symbols0 + (plan_.levels > 1 ? plan_.symbols(1) : 0);
    const unsigned symbol_words = (symbols + 3) / 4;
    if (w >= at && w < at + symbol_words) {
      for (unsigned k = 0; k < 4; ++k) {
        const unsigned i = (w - at) * 4 + k;
        if (i >= symbols) break;
        const uint32_t symbol = i < symbols0 ? plan_.symbol(0, i) : plan_.symbol(1, i - symbols0);
        word |= symbol << (8 * k);
      }
    }
    at += symbol_words;
    if (w >= at && w < at + kSize - 1) word = 8u | 0xffu << 8;  // a lower plane as it is
    reinterpret_cast<uint32_t*>(slot_.image)[w] = word;
  }

  UZIP_DEVICE void write_constant() {
    const unsigned w = thread_index();
    if (w >= 8) return;
    uint32_t word = 0;
    if (w == 0) word = static_cast<uint32_t>(BlockKind::kConstant);
    if (w == 1) word = values();
    if (w == 2) word = static_cast<uint32_t>(first_);
    if (w == 3) word = static_cast<uint32_t>(first_ >> 32);
    reinterpret_cast<uint32_t*>(slot_.image)[w] = word;
  }

  const EncodeArgs& args_;
  EncodeShared<Format>& shared_;
  TileSlot<Format>& slot_;
  uint32_t epoch_;
  uint32_t tile_ = 0;
  const uint8_t* src_ = nullptr;
  unsigned values_ = 0;
  uint64_t first_ = 0;  ///< the bits of the tile's first value
  uint32_t fields_[kSegments][2];
  LevelPlan plan_;
  unsigned described_ = 0;
  unsigned coded_bytes_ = 0;
};

/// For tiles at the end of a frame, and for elements that are not aligned: calls, so that the common
/// way keeps its registers.
template <class Format>
UZIP_DEVICE_CALL CodedTile encode_odd_tile(const EncodeArgs& args, EncodeShared<Format>& shared,
                                           TileSlot<Format>& slot, uint32_t epoch, uint32_t tile) {
  return TileEncoder<Format, false>(args, shared, slot, epoch).encode(tile);
}
template <class Format>
UZIP_DEVICE_CALL void write_odd_planes(const EncodeArgs& args, EncodeShared<Format>& shared,
                                       TileSlot<Format>& slot, CodedTile coded, uint8_t* plain) {
  TileEncoder<Format, false>(args, shared, slot, 0).write_lower_planes(coded, plain);
}

template <class Format>
class FrameEncoder {
 public:
  UZIP_DEVICE FrameEncoder(const EncodeArgs& args, EncodeShared<Format>& shared)
      : args_(args),
        shared_(shared),
        tiles_(static_cast<uint32_t>((args.begin.count + kTileValues - 1) >> kTileLog2)),
        epoch_(args.state->epoch),
        aligned_(is_aligned<Format::kSize>(args.src)) {}

  UZIP_DEVICE void encode() {
    if (tiles_ > kDirectTiles && block_index() == 0)
      sum_tiles(args_.words, epoch_, tiles_, shared_.sums, shared_.found);
    else
      encode_tiles();
    if (thread_index() == 0) leave();
  }

 private:
  UZIP_DEVICE void encode_tiles() {
    CodedTile waiting{};
    bool waits = false;
    uint32_t next = thread_index() == 0 ? atomic_add(&args_.state->ticket, 1) : 0;
    unsigned slot = 0;
    for (;; slot ^= 1) {
      if (thread_index() == 0) {
        shared_.ticket = next;
        shared_.samples = is_whole(next) ? kSamples : 0;
      }
      for (unsigned i = thread_index(); i < kHistogramBins + kHistogramPadding; i += kThreads)
        shared_.bins[i] = 0;
      sync();
      const uint32_t tile = shared_.ticket;
      if (tile >= tiles_) break;
      TileSlot<Format>& own = shared_.slots[slot];
      const CodedTile coded =
          is_whole(tile) ? TileEncoder<Format, true>(args_, shared_, own, epoch_).encode(tile)
                         : encode_odd_tile<Format>(args_, shared_, own, epoch_, tile);
      // Not earlier: tiles should be coded in their order, nearly, because places follow from it.
      if (thread_index() == 0) next = atomic_add(&args_.state->ticket, 1);
      if (waits) place(waiting, shared_.slots[slot ^ 1]);
      waiting = coded;
      waits = true;
    }
    if (waits) place(waiting, shared_.slots[slot ^ 1]);
  }

  UZIP_DEVICE bool is_whole(uint32_t tile) const {
    return aligned_ &&
           args_.begin.count >= (static_cast<uint64_t>(tile) + 1) << kTileLog2;
  }

  UZIP_DEVICE static uint64_t sums_of(const CodedTile& coded, bool fixed_plain) {
    const uint64_t plains = coded.constant && !fixed_plain ? 0 : 1;
    return plains << kUnitBits | coded.coded_bytes / 16;
  }

  /// What the tiles before this one take. Ends with a barrier, or has one behind all writes before.
  UZIP_DEVICE uint64_t find_place(const CodedTile& coded) {
    if (tiles_ > kDirectTiles) {
      if (thread_index() == 0)
        shared_.before = wait_for_word(args_.words + coded.tile, epoch_, kSum) -
                         sums_of(coded, args_.fixed_plain != 0);
      sync();
      return shared_.before;
    }
    const uint64_t own = thread_index() < coded.tile
                             ? wait_for_word(args_.words + thread_index(), epoch_, kOwn)
                             : 0;
    const uint64_t sum =
        static_cast<uint64_t>(group_sum(static_cast<uint32_t>(own >> kUnitBits))) << kUnitBits |
        group_sum(static_cast<uint32_t>(own & kUnitMask));
    if (lane_index() == 0) shared_.found[group_index()] = sum;
    sync();
    uint64_t before = 0;
    for (unsigned g = 0; g < kGroups; ++g) before += shared_.found[g];
    return before;
  }

  /// Copies a coded tile to where it belongs.
  UZIP_DEVICE void place(const CodedTile& coded, TileSlot<Format>& slot) {
    const bool fixed = args_.fixed_plain != 0;
    const uint64_t before = find_place(coded);
    const uint64_t units = before & kUnitMask;
    const uint64_t plains = fixed ? coded.tile : before >> kUnitBits;
    uint8_t* const plain = args_.plain + plains * Format::plain_bytes(kTileValues);
    uint4* const dst = reinterpret_cast<uint4*>(args_.coded + lev_first_block(tiles_)) + units;
    const uint4* const image = reinterpret_cast<const uint4*>(slot.image);
    for (unsigned i = thread_index(); i < coded.coded_bytes / 16; i += kThreads) dst[i] = image[i];
    if (!coded.constant) write_plain(coded, slot, plain);
    const bool has_plain = !coded.constant || fixed;
    const unsigned plain_bytes = has_plain ? Format::plain_bytes(coded.values) : 0;
    if (thread_index() != 0) return;
    reinterpret_cast<uint2*>(args_.coded + sizeof(LevHead))[coded.tile] =
        make_uint2(plain_bytes, coded.coded_bytes);
    if (coded.tile + 1 == tiles_)
      write_heads(plains * Format::plain_bytes(kTileValues) + plain_bytes,
                  lev_first_block(tiles_) + units * 16 + coded.coded_bytes);
  }

  UZIP_DEVICE void write_plain(const CodedTile& coded, TileSlot<Format>& slot, uint8_t* plain) {
    if constexpr (Format::kFieldShift > 0) {
      const unsigned words = Format::low_bytes(coded.values) / 8;
      for (unsigned i = thread_index(); i < words; i += kThreads)
        reinterpret_cast<uint2*>(plain)[i] = reinterpret_cast<const uint2*>(slot.low)[i];
    }
    const unsigned used = Format::low_bytes(coded.values) +
                          Format::kLowerPlanes * Format::plane_bytes(coded.values);
    if (used < Format::plain_bytes(coded.values) && thread_index() == 0)
      *reinterpret_cast<uint2*>(plain + used) = make_uint2(0, 0);
    if (Format::kLowerPlanes == 0 || args_.fixed_plain != 0) return;
    // The values are in the second-level cache still: cheaper than to keep them meanwhile.
    if (is_whole(coded.tile))
      TileEncoder<Format, true>(args_, shared_, slot, epoch_).write_lower_planes(coded, plain);
    else
      write_odd_planes<Format>(args_, shared_, slot, coded, plain);
  }

  UZIP_DEVICE void write_heads(uint64_t plain_bytes, uint64_t coded_bytes) const {
    *reinterpret_cast<uint2*>(args_.coded) = make_uint2(kTileLog2, tiles_);
    const uint64_t table_end =
        sizeof(LevHead) + static_cast<uint64_t>(tiles_) * sizeof(LevTableEntry);
    if (table_end < lev_first_block(tiles_))
      *reinterpret_cast<uint2*>(args_.coded + table_end) = make_uint2(0, 0);
    FrameHeader header = args_.begin;
    header.codec = 1;
    header.plain_bytes = plain_bytes;
    header.coded_bytes = coded_bytes;
    const uint64_t raw_bytes = args_.begin.count * Format::kSize;
    if (args_.may_be_raw != 0 && plain_bytes + coded_bytes >= raw_bytes) {
      header.codec = kCodecRaw;
      header.plain_bytes = raw_bytes;
      header.coded_bytes = 0;
    }
    *args_.header = header;
  }

  /// The last block of threads leaves the state as the next frame expects it.
  UZIP_DEVICE void leave() const {
    if (atomic_add(&args_.state->exited, 1) + 1 != grid_size()) return;
    args_.state->ticket = 0;
    args_.state->exited = 0;
    args_.state->epoch = (epoch_ + 1) % kEpochs;
    if (args_.state->epoch == 0)
      for (uint32_t i = 0; i < args_.state->word_count; ++i) args_.words[i] = 0;
  }

  const EncodeArgs& args_;
  EncodeShared<Format>& shared_;
  uint32_t tiles_;
  uint32_t epoch_;
  bool aligned_;
};

}  // namespace uzip::gpu
