// Reads, checks and writes block descriptors.
#include "codec/block.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

namespace uzip {
namespace {

constexpr uint8_t kDelta = 1;
constexpr uint8_t kZeros = 2;
constexpr size_t kHeadBytes = 8;
constexpr size_t kConstantHeadBytes = 24;

size_t record_bytes(const SequenceRecord& record) {
  if (!record.has_fields()) return 4;
  return 8 + 4 * size_t{record.levels} + padded(record.symbol_count(), 4);
}

/// Calls `visit(record, sequence length)` for every record in the format's order.
template <class Block, class Visit>
void for_each_record(Block& block, size_t type_size, Visit visit) {
  if (block.zeros) visit(block.kept_bits, block.kept_bits_bytes());
  if (block.has_signs()) visit(block.sign_bits, block.sign_bits_bytes());
  for (size_t p = type_size; p-- > 0;) visit(block.planes[p], size_t{block.kept});
}

class Writer {
 public:
  explicit Writer(std::byte* dst) : begin_(dst), dst_(dst) {}
  template <class T>
  void put(T value) {
    std::memcpy(dst_, &value, sizeof value);
    dst_ += sizeof value;
  }
  void put(const uint8_t* bytes, size_t count) {
    std::memcpy(dst_, bytes, count);
    dst_ += count;
  }
  void pad(size_t alignment) {
    while (written() % alignment != 0) put<uint8_t>(0);
  }
  size_t written() const { return static_cast<size_t>(dst_ - begin_); }

 private:
  std::byte* begin_;
  std::byte* dst_;
};

using SymbolWords = std::array<uint64_t, kSymbolRoom / 8>;

/// From byte kSymbolRoom - n on: as many bytes of symbols, of which the first n are kept.
constexpr std::array<uint8_t, 2 * kSymbolRoom> kKeeps = [] {
  std::array<uint8_t, 2 * kSymbolRoom> keeps{};
  for (size_t i = 0; i < kSymbolRoom; ++i) keeps[i] = 0xff;
  return keeps;
}();

/// Reads as long as there is something; after the end everything is zero and ok() is false.
class Reader {
 public:
  explicit Reader(std::span<const std::byte> src)
      : begin_(src.data()), at_(begin_), end_(begin_ + src.size()) {}
  template <class T>
  T get() {
    T value{};
    if (const std::byte* from = pass(sizeof value)) std::memcpy(&value, from, sizeof value);
    return value;
  }
  /// `count` bytes, and zeros behind them. All are copied at once, since what is written in parts
  /// would be waited for.
  SymbolWords get_symbols(size_t count) {
    SymbolWords words{};
    const std::byte* from = pass(count);
    if (from == nullptr) return words;
    if (static_cast<size_t>(end_ - from) < sizeof words) [[unlikely]] {
      std::memcpy(words.data(), from, count);
      return words;
    }
    SymbolWords keeps;
    std::memcpy(words.data(), from, sizeof words);
    std::memcpy(keeps.data(), &kKeeps[kSymbolRoom - count], sizeof keeps);
    for (size_t i = 0; i < words.size(); ++i) words[i] &= keeps[i];
    return words;
  }
  void skip_to(size_t alignment) { pass(padded(read(), alignment) - read()); }
  bool ok() const { return ok_; }
  size_t read() const { return static_cast<size_t>(at_ - begin_); }

 private:
  /// Where the next `count` bytes stand; null: there are fewer.
  const std::byte* pass(size_t count) {
    if (!ok_ || count > static_cast<size_t>(end_ - at_)) [[unlikely]] {
      ok_ = false;
      return nullptr;
    }
    return std::exchange(at_, at_ + count);
  }

  const std::byte* begin_;
  const std::byte* at_;
  const std::byte* end_;
  bool ok_ = true;
};

Status corrupt(const char* what, unsigned long long value) {
  return error(UZIP_ERR_CORRUPT, "lev block: %s is %llu", what, value);
}

void write_record(const SequenceRecord& record, Writer& out) {
  out.put<uint8_t>(record.shift);
  out.put<uint8_t>(record.stored);
  out.put<uint8_t>(record.value);
  out.put<uint8_t>(record.place);
  if (!record.has_fields()) return;
  out.put<uint8_t>(record.levels);
  out.put<uint8_t>(static_cast<uint8_t>(record.widths[0] | record.widths[1] << 4));
  out.put<uint8_t>(static_cast<uint8_t>(record.widths[2] | record.widths[3] << 4));
  out.put<uint8_t>(0);
  for (unsigned l = 0; l < record.levels; ++l) out.put<uint32_t>(record.escapes[l]);
  out.put(record.symbols.data(), record.symbol_count());
  out.pad(4);
}

Status read_levels(Reader& in, size_t count, SequenceRecord* record) {
  const auto head = in.get<uint32_t>();
  record->levels = static_cast<uint8_t>(head);
  if (record->levels > kMaxLevels) return corrupt("number of levels", record->levels);
  for (unsigned l = 0; l < kMaxLevels; ++l)
    record->widths[l] = static_cast<uint8_t>(head >> (8 + 4 * l) & 15);
  if (head >> 24 != 0) return corrupt("reserved", head >> 24);
  for (unsigned l = 0; l < kMaxLevels; ++l) {
    const unsigned width = record->widths[l];
    if (l < record->levels ? width < 1 || width > 4 : width != 0) return corrupt("a width", width);
  }
  size_t coded = count;
  for (unsigned l = 0; l < record->levels; ++l) {
    record->escapes[l] = in.get<uint32_t>();
    if (record->escapes[l] > coded) return corrupt("number of escapes", record->escapes[l]);
    coded = record->escapes[l];
  }
  const SymbolWords words = in.get_symbols(record->symbol_count());
  uint64_t any = 0;
  for (uint64_t word : words) any |= word;
  std::memcpy(record->symbols.data(), words.data(), sizeof words);
  const uint64_t too_large = 0xff & ~(uint64_t{0xff} >> record->shift);
  if ((any & too_large * 0x0101010101010101u) != 0)
    return corrupt("bits beyond the field in a symbol", record->shift);
  in.skip_to(4);
  return {};
}

Status read_record(Reader& in, size_t count, SequenceRecord* record) {
  record->drop_levels();
  const auto head = in.get<uint32_t>();
  record->shift = static_cast<uint8_t>(head);
  record->stored = static_cast<uint8_t>(head >> 8);
  record->value = static_cast<uint8_t>(head >> 16);
  record->place = static_cast<uint8_t>(head >> 24);
  if (record->shift > 8) return corrupt("field shift", record->shift);
  if (record->stored >> record->shift != 0) return corrupt("stored mask", record->stored);
  if (record->value >> record->shift != 0 || (record->value & record->stored) != 0)
    return corrupt("constant bits", record->value);
  if (record->place > (kStoredInCoded | kFieldsInCoded)) return corrupt("place", record->place);
  if (record->has_fields()) return read_levels(in, count, record);
  return {};
}

Status read_constant(Reader& in, std::span<const std::byte> coded, size_t type_size,
                     BlockDescriptor* block, size_t* bytes) {
  block->constant = in.get<uint64_t>();
  block->exceptions = in.get<uint32_t>();
  const auto reserved = in.get<uint32_t>();
  if (!in.ok()) return corrupt("size of a constant block", coded.size());
  if (reserved != 0) return corrupt("reserved", reserved);
  if (type_size < 8 && block->constant >> (8 * type_size) != 0)
    return corrupt("constant", block->constant);
  if (block->exceptions >= block->values) return corrupt("number of exceptions", block->exceptions);
  if (constant_block_bytes(*block, type_size) > coded.size())
    return corrupt("size of a constant block", coded.size());
  *bytes = in.read();
  uint32_t previous = 0;
  for (uint32_t e = 0; e < block->exceptions; ++e) {
    const auto position = in.get<uint16_t>();
    if (position >= block->values || (e > 0 && position <= previous))
      return corrupt("position of an exception", position);
    previous = position;
  }
  return {};
}

/// *sections: bytes of all that follows the descriptor, unpadded.
Status read_planes(Reader& in, size_t type_size, BlockDescriptor* block, PartSizes* sections) {
  block->kept = block->values;
  block->zero_sign = ZeroSign::kPlus;
  if (block->zeros) {
    block->kept = in.get<uint32_t>();
    const auto word = in.get<uint32_t>();
    if (block->kept > block->values) return corrupt("kept values", block->kept);
    if (word > static_cast<uint32_t>(ZeroSign::kBoth)) return corrupt("sign of zeros", word);
    block->zero_sign = static_cast<ZeroSign>(word);
  }
  if (block->delta) {
    block->base = in.get<uint64_t>();
    if (type_size < 8 && block->base >> (8 * type_size) != 0) return corrupt("base", block->base);
  }
  Status status;
  for_each_record(*block, type_size, [&](SequenceRecord& record, size_t count) {
    if (status.ok()) status = read_record(in, count, &record);
    if (!status.ok()) return;
    (record.place & kStoredInCoded ? sections->coded : sections->plain) +=
        record.stored_bytes(count);
    (record.place & kFieldsInCoded ? sections->coded : sections->plain) +=
        record.field_bytes(count);
  });
  in.skip_to(8);
  return status;
}

}  // namespace

size_t descriptor_bytes(const BlockDescriptor& block, size_t type_size) {
  size_t bytes = kHeadBytes + (block.zeros ? 8 : 0) + (block.delta ? 8 : 0);
  for_each_record(block, type_size,
                  [&](const SequenceRecord& record, size_t) { bytes += record_bytes(record); });
  return padded(bytes, 8);
}

size_t constant_block_bytes(const BlockDescriptor& block, size_t type_size) {
  return kConstantHeadBytes + padded(2 * size_t{block.exceptions}, 8) +
         padded(type_size * block.exceptions, 8);
}

size_t write_descriptor(const BlockDescriptor& block, size_t type_size, std::byte* dst) {
  Writer out(dst);
  out.put(static_cast<uint8_t>(block.kind));
  out.put(static_cast<uint8_t>((block.delta ? kDelta : 0) | (block.zeros ? kZeros : 0)));
  out.put<uint8_t>(block.rotation);
  out.put<uint8_t>(0);
  out.put<uint32_t>(block.values);
  if (block.kind == BlockKind::kConstant) {
    out.put<uint64_t>(block.constant);
    out.put<uint32_t>(block.exceptions);
    out.put<uint32_t>(0);
    return out.written();
  }
  if (block.zeros) {
    out.put<uint32_t>(block.kept);
    out.put<uint32_t>(static_cast<uint32_t>(block.zero_sign));
  }
  if (block.delta) out.put<uint64_t>(block.base);
  for_each_record(block, type_size,
                  [&](const SequenceRecord& record, size_t) { write_record(record, out); });
  out.pad(8);
  return out.written();
}

Status read_descriptor(std::span<const std::byte> coded, size_t plain_bytes, size_t values,
                       size_t type_size, BlockDescriptor* block, size_t* bytes) {
  Reader in(coded);
  const auto kind = in.get<uint8_t>();
  const auto flags = in.get<uint8_t>();
  block->rotation = in.get<uint8_t>();
  const auto reserved = in.get<uint8_t>();
  block->values = in.get<uint32_t>();
  block->kind = static_cast<BlockKind>(kind);
  block->delta = (flags & kDelta) != 0;
  block->zeros = (flags & kZeros) != 0;
  if (!in.ok() || block->values != values) return corrupt("number of values", block->values);
  if (reserved != 0) return corrupt("reserved", reserved);
  if (block->kind == BlockKind::kConstant) {
    if (flags != 0 || block->rotation != 0) return corrupt("flags of a constant block", flags);
    return read_constant(in, coded, type_size, block, bytes);
  }
  if (block->kind != BlockKind::kPlanes) return corrupt("kind", kind);
  if (flags > (kDelta | kZeros)) return corrupt("flags", flags);
  if (block->rotation >= 8 * type_size) return corrupt("rotation", block->rotation);
  PartSizes sections;
  UZIP_RETURN_IF_ERROR(read_planes(in, type_size, block, &sections));
  if (!in.ok()) return corrupt("size of a descriptor", coded.size());
  *bytes = in.read();
  if (sections.coded > coded.size() - *bytes) return corrupt("coded bytes", coded.size());
  if (sections.plain > plain_bytes) return corrupt("plain bytes", plain_bytes);
  return {};
}

}  // namespace uzip
