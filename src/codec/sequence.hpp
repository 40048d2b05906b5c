// Codes one sequence of bytes as its record says, and back. Used for planes and for the bits of
// removed zeros.
#pragma once

#include "base/status.hpp"
#include "codec/block.hpp"
#include "codec/cpu/kernels.hpp"
#include "codec/scratch.hpp"

namespace uzip {

/// Writes the stored bits of `count` bytes; returns record.stored_bytes(count).
size_t encode_stored(const CodecKernels& kernels, const SequenceRecord& record,
                     const uint8_t* bytes, size_t count, uint8_t* dst);

/// Writes the fields of `count` bytes: the levels, filling in record->escapes, or the plain fields
/// when record->levels is 0. Writes at most record->raw_field_bytes(count) and returns what it
/// wrote, or SIZE_MAX when the levels, their description included, would take more than that.
size_t encode_fields(const CodecKernels& kernels, const uint8_t* bytes, size_t count,
                     CodecScratch::State& scratch, SequenceRecord* record, uint8_t* dst);

/// The code of every field at one level, as the kernels take it.
struct CodeTable {
  alignas(64) uint8_t codes[256];
  CodeTable(const uint8_t* symbols, unsigned width);
};

/// What encode_fields() does after level 0, when that has been done to `dst` already and left
/// `escaped` fields in scratch.escapes[0]. Writes and returns as encode_fields().
size_t encode_further_levels(const CodecKernels& kernels, size_t count, size_t escaped,
                             CodecScratch::State& scratch, SequenceRecord* record, uint8_t* dst);

/// Decodes all levels but the first, to `escapes` (room for `count`, slack): the fields that level 0 lacks. Works in
/// scratch.escapes, of which `escapes` may be the second.
Status decode_further_levels(const CodecKernels& kernels, const SequenceRecord& record,
                             size_t count, const uint8_t* fields, CodecScratch::State& scratch,
                             uint8_t* escapes);

/// The symbols of a level, as the kernels take them.
struct SymbolTable {
  alignas(16) uint8_t symbols[16] = {};
  SymbolTable() = default;
  SymbolTable(const SequenceRecord& record, unsigned level);
};

/// Counts the escapes of all levels; an error when they contradict the record.
Status check_levels(const CodecKernels& kernels, const SequenceRecord& record, size_t count,
                    const uint8_t* fields);

/// Decodes a sequence piece by piece, from sections whose lengths are checked already. They must stay until the last
/// piece.
class SequenceDecoder {
 public:
  /// Decodes what has to be known before the first piece. `escapes` is as for decode_further_levels(), and must stay, too.
  Status start(const CodecKernels& kernels, const SequenceRecord& record, size_t count,
               const uint8_t* stored, const uint8_t* fields, CodecScratch::State& scratch,
               uint8_t* escapes);
  /// The next `count` bytes: a multiple of 64, or all that are left. They are put into `dst` (slack), or stand in a
  /// section as they are. `low` is room for as many.
  const uint8_t* take(size_t count, uint8_t* low, uint8_t* dst);
  /// Whether the bytes are the fields of levels: a kernel may then decode level 0 itself, with
  /// level() as it is, and say afterwards how many bytes it took and escapes it met.
  bool is_level() const { return shift_ == 0 && width_ > 0; }
  LevelSource level() const { return {width_, fields_, symbols_.symbols, escapes_}; }
  void took(size_t count, size_t escapes) {
    fields_ += packed_bytes(count, width_);
    escapes_ += escapes;
    escapes_used_ += escapes;
  }
  /// After the last piece: an error when the levels contradicted the descriptor.
  Status finish() const;

 private:
  const uint8_t* take_stored(size_t count, uint8_t* dst);
  const uint8_t* take_fields(size_t count, uint8_t* dst);

  const CodecKernels* kernels_ = nullptr;
  uint8_t shift_ = 8;
  uint8_t mask_ = 0;
  uint8_t value_ = 0;
  uint8_t width_ = 0;  ///< of level 0; 0: the fields are stored
  const uint8_t* stored_ = nullptr;
  const uint8_t* fields_ = nullptr;
  SymbolTable symbols_;
  const uint8_t* escapes_ = nullptr;
  size_t escapes_used_ = 0;
  size_t escapes_expected_ = 0;
};

/// Decodes all of a sequence to `dst` (slack). *result is `dst`, or `stored` itself when it is stored as it is.
Status decode_sequence(const CodecKernels& kernels, const SequenceRecord& record, size_t count,
                       const uint8_t* stored, const uint8_t* fields, CodecScratch::State& scratch,
                       uint8_t* dst, const uint8_t** result);

}  // namespace uzip
