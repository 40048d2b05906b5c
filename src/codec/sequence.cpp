// Level coding of a sequence: each level codes what the level before it could not.
#include "codec/sequence.hpp"

#include <cstring>

namespace uzip {
namespace {

void zero_padding(uint8_t* dst, size_t written, size_t total) {
  if (total > written) std::memset(dst + written, 0, total - written);
}

/// Code of every field at one level, and how the kernels see the symbols.
struct CodeTable {
  alignas(64) uint8_t codes[256];

  CodeTable(const uint8_t* symbols, unsigned width) {
    const unsigned escape = (1u << width) - 1;
    std::memset(codes, static_cast<int>(escape), sizeof codes);
    for (unsigned i = escape; i-- > 0;) codes[symbols[i]] = static_cast<uint8_t>(i);
  }
};

size_t encode_raw_fields(const CodecKernels& kernels, const SequenceRecord& record,
                         const uint8_t* bytes, size_t count, uint8_t* dst) {
  const size_t total = record.raw_field_bytes(count);
  if (record.shift == 0) {
    std::memcpy(dst, bytes, count);
    zero_padding(dst, count, total);
  } else {
    kernels.pack_bits(bytes, count, 0xffu << record.shift & 0xffu, dst);
  }
  return total;
}

Status decode_levels(const CodecKernels& kernels, const SequenceRecord& record, size_t count,
                     const uint8_t* fields, CodecScratch::State& scratch, uint8_t* dst) {
  std::array<const uint8_t*, kMaxLevels> words{};
  std::array<size_t, kMaxLevels + 1> coded{count};
  size_t symbols_before = 0;
  std::array<size_t, kMaxLevels> first_symbol{};
  for (unsigned l = 0; l < record.levels; ++l) {
    words[l] = fields;
    fields += packed_bytes(coded[l], record.widths[l]);
    coded[l + 1] = record.escapes[l];
    first_symbol[l] = symbols_before;
    symbols_before += (1u << record.widths[l]) - 1;
  }
  // Copied, because a damaged level may ask for more escapes than there are.
  uint8_t* escapes = scratch.escapes[record.levels & 1];
  if (coded[record.levels] > 0) std::memcpy(escapes, fields, coded[record.levels]);
  for (unsigned l = record.levels; l-- > 0;) {
    uint8_t* const out = l == 0 ? dst : scratch.escapes[l & 1];
    alignas(16) uint8_t symbols[16] = {};
    std::memcpy(symbols, &record.symbols[first_symbol[l]], (1u << record.widths[l]) - 1);
    const size_t used =
        kernels.decode_level[record.widths[l]](words[l], coded[l], symbols, escapes, out);
    if (used != coded[l + 1])
      return error(UZIP_ERR_CORRUPT, "lev block: level %u has %zu escapes, not %zu", l, used,
                   coded[l + 1]);
    escapes = out;
  }
  return {};
}

}  // namespace

size_t encode_stored(const CodecKernels& kernels, const SequenceRecord& record,
                     const uint8_t* bytes, size_t count, uint8_t* dst) {
  const size_t total = record.stored_bytes(count);
  if (record.stored == 0xff) {
    if (dst != bytes) std::memcpy(dst, bytes, count);
    zero_padding(dst, count, total);
  } else if (record.stored != 0) {
    kernels.pack_bits(bytes, count, record.stored, dst);
  }
  return total;
}

size_t encode_fields(const CodecKernels& kernels, const uint8_t* bytes, size_t count,
                     CodecScratch::State& scratch, SequenceRecord* record, uint8_t* dst) {
  if (record->levels == 0) return encode_raw_fields(kernels, *record, bytes, count, dst);
  const size_t raw = record->raw_field_bytes(count);
  const size_t described = 4 * size_t{record->levels} + padded(record->symbol_count(), 4);
  if (described > raw) return SIZE_MAX;
  const size_t limit = raw - described;
  size_t written = 0;
  const uint8_t* symbols = record->symbols.data();
  unsigned shift = record->shift;
  for (unsigned l = 0; l < record->levels; ++l) {
    const unsigned width = record->widths[l];
    const size_t bytes_of_level = packed_bytes(count, width);
    if (bytes_of_level > limit - written) return SIZE_MAX;
    const CodeTable table(symbols, width);
    uint8_t* const escapes = scratch.escapes[l & 1];
    const size_t escaped =
        kernels.encode_level[width](bytes, count, shift, table.codes, dst + written, escapes);
    record->escapes[l] = static_cast<uint32_t>(escaped);
    written += bytes_of_level;
    symbols += (1u << width) - 1;
    bytes = escapes;
    count = escaped;
    shift = 0;
  }
  if (padded(count, 8) > limit - written) return SIZE_MAX;
  if (count > 0) std::memcpy(dst + written, bytes, count);
  zero_padding(dst + written, count, padded(count, 8));
  return written + padded(count, 8);
}

Status decode_sequence(const CodecKernels& kernels, const SequenceRecord& record, size_t count,
                       const uint8_t* stored, const uint8_t* fields, CodecScratch::State& scratch,
                       uint8_t* dst, const uint8_t** result) {
  *result = dst;
  if (!record.has_fields()) {
    if (record.stored == 0xff) {
      *result = stored;
      return {};
    }
    if (record.stored == 0) {
      std::memset(dst, record.value, count);
      return {};
    }
    kernels.unpack_bits(stored, count, record.stored, dst);
    if (record.value != 0) kernels.combine(dst, nullptr, count, 0, record.value, dst);
    return {};
  }
  const uint8_t* low = nullptr;
  if (record.stored != 0) {
    kernels.unpack_bits(stored, count, record.stored, scratch.low);
    low = scratch.low;
  }
  if (record.levels > 0) {
    UZIP_RETURN_IF_ERROR(decode_levels(kernels, record, count, fields, scratch, dst));
  } else if (record.shift == 0) {
    *result = fields;
    return {};
  } else {
    kernels.unpack_bits(fields, count, (1u << (8 - record.shift)) - 1, dst);
  }
  if (record.shift > 0) kernels.combine(dst, low, count, record.shift, record.value, dst);
  return {};
}

}  // namespace uzip
