// Level coding of a sequence: each level codes what the level before it could not.
#include "codec/sequence.hpp"

#include <bit>
#include <cstring>
#include <utility>

namespace uzip {
namespace {

void zero_padding(uint8_t* dst, size_t written, size_t total) {
  if (total > written) std::memset(dst + written, 0, total - written);
}

/// Bytes that the levels of `count` fields may take, so that they are worth their description.
size_t level_limit(const SequenceRecord& record, size_t count) {
  const size_t raw = record.raw_field_bytes(count);
  const size_t described = 4 * size_t{record.levels} + padded(record.symbol_count(), 4);
  return raw > described ? raw - described : 0;
}

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

Status wrong_escapes(unsigned level, size_t found, size_t expected) {
  return error(UZIP_ERR_CORRUPT, "lev block: level %u has %zu escapes, not %zu", level, found,
               expected);
}

}  // namespace

CodeTable::CodeTable(const uint8_t* symbols, unsigned width) {
  const unsigned escape = (1u << width) - 1;
  std::memset(codes, static_cast<int>(escape), sizeof codes);
  for (unsigned i = escape; i-- > 0;) codes[symbols[i]] = static_cast<uint8_t>(i);
}

SymbolTable::SymbolTable(const SequenceRecord& record, unsigned level) {
  size_t first = 0;
  for (unsigned l = 0; l < level; ++l) first += (1u << record.widths[l]) - 1;
  using Symbols [[gnu::vector_size(16)]] = uint8_t;
  static constexpr Symbols kPlaces = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
  // At once: what is written in parts can't be read as a whole for a while.
  Symbols all;
  std::memcpy(&all, &record.symbols[first], sizeof all);
  const auto coded = static_cast<uint8_t>((1u << record.widths[level]) - 1);
  all &= static_cast<Symbols>(kPlaces < coded);
  std::memcpy(symbols, &all, sizeof symbols);
}

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
  const unsigned width = record->widths[0];
  if (packed_bytes(count, width) > level_limit(*record, count)) return SIZE_MAX;
  const CodeTable table(record->symbols.data(), width);
  const size_t escaped = kernels.encode_level[width](bytes, count, record->shift, table.codes, dst,
                                                     scratch.escapes[0]);
  return encode_further_levels(kernels, count, escaped, scratch, record, dst);
}

size_t encode_further_levels(const CodecKernels& kernels, size_t count, size_t escaped,
                             CodecScratch::State& scratch, SequenceRecord* record, uint8_t* dst) {
  const size_t limit = level_limit(*record, count);
  size_t written = packed_bytes(count, record->widths[0]);
  const uint8_t* symbols = &record->symbols[(1u << record->widths[0]) - 1];
  const uint8_t* fields = scratch.escapes[0];
  record->escapes[0] = static_cast<uint32_t>(escaped);
  for (unsigned l = 1; l < record->levels; ++l) {
    const unsigned width = record->widths[l];
    const size_t bytes_of_level = packed_bytes(escaped, width);
    if (bytes_of_level > limit - written) return SIZE_MAX;
    const CodeTable table(symbols, width);
    uint8_t* const rest = scratch.escapes[l & 1];
    escaped = kernels.encode_level[width](fields, escaped, 0, table.codes, dst + written, rest);
    record->escapes[l] = static_cast<uint32_t>(escaped);
    written += bytes_of_level;
    symbols += (1u << width) - 1;
    fields = rest;
  }
  const size_t last = padded(escaped, 8);
  if (last > limit - written) return SIZE_MAX;
  if (escaped > 0) std::memcpy(dst + written, fields, escaped);
  zero_padding(dst + written, escaped, last);
  return written + last;
}

Status decode_further_levels(const CodecKernels& kernels, const SequenceRecord& record,
                             size_t count, const uint8_t* fields, CodecScratch::State& scratch,
                             uint8_t* escapes) {
  std::array<const uint8_t*, kMaxLevels> level_words{};
  std::array<size_t, kMaxLevels + 1> coded{count};
  for (unsigned l = 0; l < record.levels; ++l) {
    level_words[l] = fields;
    fields += packed_bytes(coded[l], record.widths[l]);
    coded[l + 1] = record.escapes[l];
  }
  // Copied, because a damaged level may ask for more escapes than there are.
  uint8_t* rest = record.levels == 1 ? escapes : scratch.escapes[record.levels & 1];
  if (coded[record.levels] > 0) std::memcpy(rest, fields, coded[record.levels]);
  for (unsigned l = record.levels - 1u; l > 0; --l) {
    uint8_t* const out = l == 1 ? escapes : scratch.escapes[l & 1];
    const size_t used = kernels.decode_level[record.widths[l]](
        level_words[l], coded[l], SymbolTable(record, l).symbols, rest, out);
    if (used != coded[l + 1]) return wrong_escapes(l, used, coded[l + 1]);
    rest = out;
  }
  return {};
}

Status check_levels(const CodecKernels& kernels, const SequenceRecord& record, size_t count,
                    const uint8_t* fields) {
  for (unsigned l = 0; l < record.levels; ++l) {
    const unsigned width = record.widths[l];
    const size_t found = kernels.count_escapes[width](fields, count);
    if (found != record.escapes[l]) return wrong_escapes(l, found, record.escapes[l]);
    fields += packed_bytes(count, width);
    count = found;
  }
  return {};
}

Status SequenceDecoder::start(const CodecKernels& kernels, const SequenceRecord& record,
                              size_t count, const uint8_t* stored, const uint8_t* fields,
                              CodecScratch::State& scratch, uint8_t* escapes) {
  kernels_ = &kernels;
  shift_ = record.shift;
  mask_ = record.stored;
  value_ = record.value;
  width_ = record.widths[0];
  stored_ = stored;
  fields_ = fields;
  escapes_used_ = 0;
  escapes_expected_ = 0;
  if (record.levels == 0) return {};
  symbols_ = SymbolTable(record, 0);
  escapes_ = escapes;
  escapes_expected_ = record.escapes[0];
  return decode_further_levels(kernels, record, count, fields, scratch, escapes);
}

const uint8_t* SequenceDecoder::take(size_t count, uint8_t* low, uint8_t* dst) {
  if (shift_ == 8) return take_stored(count, dst);
  const uint8_t* const fields = take_fields(count, dst);
  if (shift_ == 0) return fields;
  const uint8_t* const bits = mask_ == 0 ? nullptr : low;
  if (bits != nullptr) kernels_->unpack_bits(stored_, count, mask_, low);
  stored_ += packed_bytes(count, static_cast<size_t>(std::popcount(mask_)));
  kernels_->combine(fields, bits, count, shift_, value_, dst);
  return dst;
}

const uint8_t* SequenceDecoder::take_stored(size_t count, uint8_t* dst) {
  if (mask_ == 0xff) return std::exchange(stored_, stored_ + count);
  if (mask_ == 0) {
    std::memset(dst, value_, count);
    return dst;
  }
  kernels_->unpack_bits(stored_, count, mask_, dst);
  stored_ += packed_bytes(count, static_cast<size_t>(std::popcount(mask_)));
  if (value_ != 0) kernels_->combine(dst, nullptr, count, 0, value_, dst);
  return dst;
}

const uint8_t* SequenceDecoder::take_fields(size_t count, uint8_t* dst) {
  if (width_ == 0 && shift_ == 0) return std::exchange(fields_, fields_ + count);
  const unsigned bits = width_ == 0 ? 8u - shift_ : width_;
  if (width_ == 0) {
    kernels_->unpack_bits(fields_, count, (1u << bits) - 1, dst);
  } else {
    const size_t used =
        kernels_->decode_level[width_](fields_, count, symbols_.symbols, escapes_, dst);
    escapes_ += used;
    escapes_used_ += used;
  }
  fields_ += packed_bytes(count, bits);
  return dst;
}

Status SequenceDecoder::finish() const {
  if (escapes_used_ == escapes_expected_) return {};
  return wrong_escapes(0, escapes_used_, escapes_expected_);
}

Status decode_sequence(const CodecKernels& kernels, const SequenceRecord& record, size_t count,
                       const uint8_t* stored, const uint8_t* fields, CodecScratch::State& scratch,
                       uint8_t* dst, const uint8_t** result) {
  SequenceDecoder decoder;
  UZIP_RETURN_IF_ERROR(
      decoder.start(kernels, record, count, stored, fields, scratch, scratch.escapes[1]));
  *result = decoder.take(count, scratch.low, dst);
  return decoder.finish();
}

}  // namespace uzip
