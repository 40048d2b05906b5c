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

/// Decodes all levels but the first. *words are those of level 0, *escapes the fields that it
/// lacks.
Status decode_further_levels(const CodecKernels& kernels, const SequenceRecord& record,
                             size_t count, const uint8_t* fields, CodecScratch::State& scratch,
                             const uint8_t** words, const uint8_t** escapes);

/// The symbols of a level, as the kernels take them.
struct SymbolTable {
  alignas(16) uint8_t symbols[16] = {};
  SymbolTable() = default;
  SymbolTable(const SequenceRecord& record, unsigned level);
};

/// Counts the escapes of all levels; an error when they contradict the record.
Status check_levels(const CodecKernels& kernels, const SequenceRecord& record, size_t count,
                    const uint8_t* fields);

/// Decodes `count` bytes to `dst` (slack), from sections whose lengths are checked already. *result
/// is `dst`, or `stored` itself when the sequence is stored as it is. An error says that the levels
/// contradict the descriptor.
Status decode_sequence(const CodecKernels& kernels, const SequenceRecord& record, size_t count,
                       const uint8_t* stored, const uint8_t* fields, CodecScratch::State& scratch,
                       uint8_t* dst, const uint8_t** result);

}  // namespace uzip
