// Reads and checks any block descriptor of FORMAT.md on the device, as codec/block.cpp does on the
// CPU. Used by the general decoder; one thread does it.
#pragma once

#include "codec/block.hpp"
#include "gpu/codec_args.hpp"
#include "gpu/platform.hpp"

namespace uzip::gpu {

/// A sequence of bytes as its record says, and how far it has been read.
struct Sequence {
  uint32_t shift;
  uint32_t stored;
  uint32_t value;
  uint32_t place;
  uint32_t levels;
  uint32_t width[kMaxLevels];
  uint32_t bytes;                        ///< q
  uint32_t coded[kMaxLevels + 1];        ///< things of each level; the last are the escapes
  uint32_t position[kMaxLevels + 1];     ///< of them are read
  uint8_t symbols[kMaxLevels][16];
  const uint8_t* stored_at;
  const uint8_t* level_at[kMaxLevels + 1];  ///< levels == 0: [0] is the fields
};

enum SequenceIndex : unsigned { kKeptBits = kMaxTypeSize, kSignBits, kSequences };

struct GeneralBlock {
  uint32_t kind;
  uint32_t delta;
  uint32_t zeros;
  uint32_t rotation;
  uint32_t zero_sign;
  uint32_t values;
  uint32_t kept;
  uint64_t base;
  Sequence sequences[kSequences];
};

/// Reads as long as there is something; then everything is zero and ok is false.
struct ByteReader {
  const uint8_t* bytes;
  uint32_t size;
  uint32_t at;
  bool ok;

  UZIP_DEVICE uint32_t get(unsigned count) {
    ok = ok && count <= size - at;
    if (!ok) return 0;
    uint32_t value = 0;
    UZIP_NO_UNROLL
    for (unsigned i = 0; i < count; ++i) value |= static_cast<uint32_t>(bytes[at + i]) << (8 * i);
    at += count;
    return value;
  }
  UZIP_DEVICE uint64_t get64() {
    const uint64_t low = get(4);
    return low | static_cast<uint64_t>(get(4)) << 32;
  }
  UZIP_DEVICE void skip_to(unsigned alignment) {
    at = (at + alignment - 1) / alignment * alignment;
    if (at > size) {
      at = size;
      ok = false;
    }
  }
};

namespace detail {

UZIP_DEVICE uint64_t packed(uint64_t count, unsigned width) { return (count + 63) / 64 * 8 * width; }
UZIP_DEVICE uint64_t padded8(uint64_t bytes) { return (bytes + 7) / 8 * 8; }

UZIP_DEVICE_CALL bool read_sequence_record(ByteReader& in, uint32_t count, Sequence* s) {
  s->bytes = count;
  s->shift = in.get(1);
  s->stored = in.get(1);
  s->value = in.get(1);
  s->place = in.get(1);
  s->levels = 0;
  UZIP_NO_UNROLL
  for (unsigned l = 0; l <= kMaxLevels; ++l) s->coded[l] = s->position[l] = 0;
  s->coded[0] = count;
  if (s->shift > 8 || s->stored >> s->shift != 0 || s->value >> s->shift != 0 ||
      (s->value & s->stored) != 0 || s->place > 3)
    return false;
  if (s->shift == 8) return in.ok;
  s->levels = in.get(1);
  const uint32_t widths = in.get(2);
  if (in.get(1) != 0 || s->levels > kMaxLevels) return false;
  UZIP_NO_UNROLL
  for (unsigned l = 0; l < kMaxLevels; ++l) {
    s->width[l] = widths >> (4 * l) & 15u;
    if (l < s->levels ? s->width[l] < 1 || s->width[l] > 4 : s->width[l] != 0) return false;
  }
  UZIP_NO_UNROLL
  for (unsigned l = 0; l < s->levels; ++l) {
    s->coded[l + 1] = in.get(4);
    if (s->coded[l + 1] > s->coded[l]) return false;
  }
  uint32_t any = 0;
  UZIP_NO_UNROLL
  for (unsigned l = 0; l < s->levels; ++l) {
    UZIP_NO_UNROLL
    for (unsigned i = 0; i + 1 < 1u << s->width[l]; ++i) {
      const uint32_t symbol = in.get(1);
      s->symbols[l][i] = static_cast<uint8_t>(symbol);
      any |= symbol;
    }
  }
  in.skip_to(4);
  return in.ok && any >> (8 - s->shift) == 0;
}

/// Where a sequence's sections stand; both ends move on.
UZIP_DEVICE void take_sections(Sequence* s, const uint8_t* plain, const uint8_t* coded,
                               uint64_t* plain_at, uint64_t* coded_at) {
  const bool stored_coded = (s->place & kStoredInCoded) != 0;
  uint64_t* at = stored_coded ? coded_at : plain_at;
  s->stored_at = (stored_coded ? coded : plain) + *at;
  *at += s->stored == 0xffu ? padded8(s->bytes) : packed(s->bytes, count_bits(s->stored));
  if (s->shift == 8) return;
  const bool fields_coded = (s->place & kFieldsInCoded) != 0;
  at = fields_coded ? coded_at : plain_at;
  const uint8_t* const part = fields_coded ? coded : plain;
  s->level_at[0] = part + *at;
  if (s->levels == 0) {
    *at += s->shift == 0 ? padded8(s->bytes) : packed(s->bytes, 8 - s->shift);
    return;
  }
  UZIP_NO_UNROLL
  for (unsigned l = 0; l < s->levels; ++l) {
    s->level_at[l] = part + *at;
    *at += packed(s->coded[l], s->width[l]);
  }
  s->level_at[s->levels] = part + *at;
  *at += padded8(s->coded[s->levels]);
}

}  // namespace detail

/// Reads the descriptor of a plane block whose first bytes are at `image`, and finds its sections
/// in the parts, of which the table grants so many bytes.
UZIP_DEVICE_CALL DecodeFault read_general_block(const uint8_t* image, uint32_t image_bytes,
                                                const uint8_t* plain, uint32_t plain_bytes,
                                                const uint8_t* coded, uint32_t coded_bytes,
                                                uint32_t values, uint32_t type_size,
                                                GeneralBlock* block) {
  ByteReader in{image, image_bytes, 0, true};
  block->kind = in.get(1);
  const uint32_t flags = in.get(1);
  block->rotation = in.get(1);
  const uint32_t reserved = in.get(1);
  block->values = in.get(4);
  if (!in.ok || block->kind != static_cast<uint32_t>(BlockKind::kPlanes) || flags > 3 ||
      reserved != 0 || block->rotation >= 8 * type_size || block->values != values)
    return DecodeFault::kDescriptor;
  block->delta = flags & 1u;
  block->zeros = flags >> 1;
  block->kept = values;
  block->zero_sign = 0;
  block->base = 0;
  if (block->zeros != 0) {
    block->kept = in.get(4);
    block->zero_sign = in.get(4);
    if (block->kept > values || block->zero_sign > 2) return DecodeFault::kDescriptor;
  }
  if (block->delta != 0) {
    block->base = in.get64();
    if (type_size < 8 && block->base >> (8 * type_size) != 0) return DecodeFault::kDescriptor;
  }
  const bool signs = block->zeros != 0 && block->zero_sign == 2;
  Sequence* const sequences = block->sequences;
  if (block->zeros != 0 &&
      !detail::read_sequence_record(in, static_cast<uint32_t>(detail::packed(values, 1)),
                                    &sequences[kKeptBits]))
    return DecodeFault::kDescriptor;
  if (signs && !detail::read_sequence_record(
                   in, static_cast<uint32_t>(detail::packed(values - block->kept, 1)),
                   &sequences[kSignBits]))
    return DecodeFault::kDescriptor;
  UZIP_NO_UNROLL
  for (unsigned p = type_size; p-- > 0;)
    if (!detail::read_sequence_record(in, block->kept, &sequences[p]))
      return DecodeFault::kDescriptor;
  in.skip_to(8);
  if (!in.ok) return DecodeFault::kDescriptor;
  uint64_t plain_at = 0;
  uint64_t coded_at = in.at;
  if (block->zeros != 0)
    detail::take_sections(&sequences[kKeptBits], plain, coded, &plain_at, &coded_at);
  if (signs) detail::take_sections(&sequences[kSignBits], plain, coded, &plain_at, &coded_at);
  UZIP_NO_UNROLL
  for (unsigned p = type_size; p-- > 0;)
    detail::take_sections(&sequences[p], plain, coded, &plain_at, &coded_at);
  return coded_at <= coded_bytes && plain_at <= plain_bytes ? DecodeFault::kNone
                                                            : DecodeFault::kSections;
}

}  // namespace uzip::gpu
