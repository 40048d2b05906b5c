// The loops of the lev codec that touch every value, one table for each CPU target.
// Used by sequence.cpp, lev_encode.cpp, lev_decode.cpp and planner.cpp; every target writes the
// same bytes.
//
// All kernels take any count and any alignment. They read and write exactly the bytes that their
// arguments name, except where a parameter is said to have slack (kKernelSlack readable or writable
// bytes beyond).
#pragma once

#include "base/cpu.hpp"
#include "base/datatype.hpp"

#include <cstddef>
#include <cstdint>

namespace uzip {

inline constexpr size_t kKernelSlack = 128;
/// Index of a kernel by the size of the type: 1, 2, 4, 8 bytes.
inline constexpr size_t kSizeClasses = 4;
inline constexpr unsigned kMaxWidth = 4;

/// How the top plane of 1- and 2-byte values is stored, for the fused kernels: its field (byte >>
/// shift) is coded by a level, and all bits below are stored. What is encoded has the shift of its
/// type (lev_traits(): 0 or 3 for values of two bytes, 2 or 3 for those of one), and kernels are made
/// for these alone; what is decoded comes from the wire and may have any up to 7.
struct TopPlane {
  unsigned shift;
  uint8_t* words;      ///< of the level
  uint8_t* low_words;  ///< of the bits below the field; not used when shift is 0
  uint8_t* other;      ///< 2-byte values: the lower plane as it is
};
struct ConstTopPlane {
  unsigned shift;
  const uint8_t* words;
  const uint8_t* low_words;
  const uint8_t* other;
};

/// Other values that decoded ones are added to, in this order: `before` sources, the decoded value,
/// the other sources. As base/reduce.hpp's reduce(), whose floating point environment it needs.
struct Sum {
  DataType type;
  const uint8_t* const* sources;  ///< each with as many values as are decoded
  size_t before;
  size_t count;  ///< of all sources, > 0
};

/// Where a kernel writes values, and what it asks for meanwhile.
struct Output {
  uint8_t* values;
  const uint8_t* ahead;  ///< as many bytes as it writes are brought into the cache from here on;
                         ///< any address; `values`: nothing is
  bool streams = false;  ///< nobody reads the values soon: they may go past the caches, and
                         ///< `ahead` doesn't matter; see finish_streaming()
  const Sum* sum = nullptr;  ///< if not null, sums are written, of a multiple of 64 values; `values`
                             ///< may be a source, and `ahead` doesn't matter. See `sums`
  size_t sum_begin = 0;      ///< bytes of each source that stand before those to add
};
/// How far kernels ask ahead for what they read and write in memory. Hardware prefetchers stop at pages and lag behind a
/// loop with many instructions a line. Lines go to the second cache from far ahead, since the first can wait for few at a
/// time, and what is read goes to the first from near ahead. So does what is written: stores leave in their order, and those
/// to several outputs in turns would wait for one line after another.
inline constexpr size_t kFarAhead = 8192;
inline constexpr size_t kNearAhead = 2048;
inline constexpr size_t kWriteAhead = 1024;

/// Kernels that do in registers what split, pack_bits and encode_level do one after another, and
/// the inverse, for values rotated left by one. Index 0 for 1-byte values, 1 for 2-byte values;
/// then the level's width.
/// An entry may be null.
struct TopKernels {
  using Encode = size_t (*)(const uint8_t* src, size_t count, const uint8_t* codes_of,
                            const TopPlane& top, uint8_t* escapes);
  using Decode = size_t (*)(const ConstTopPlane& top, size_t count, const uint8_t* symbols,
                            const uint8_t* escapes, const Output& dst);
  Encode encode[2][kMaxWidth + 1];
  Decode decode[2][kMaxWidth + 1];
};

/// One level, to decode: see CodecKernels::DecodeLevel.
struct LevelSource {
  unsigned width;
  const uint8_t* words;
  const uint8_t* symbols;
  const uint8_t* escapes;
};

struct CodecKernels {
  /// Plane p, if not null, receives byte p (0 = lowest) of each value rotated left by `rotation`.
  using Split = void (*)(const uint8_t* src, size_t count, unsigned rotation,
                         uint8_t* const* planes);
  /// The inverse: no plane is null.
  using Merge = void (*)(const uint8_t* const* planes, size_t count, unsigned rotation,
                         const Output& dst);
  /// Merge that decodes the top plane itself; planes[size - 1] is not used. Returns how many escapes it met.
  using MergeLevel = size_t (*)(const uint8_t* const* planes, const LevelSource& top, size_t count,
                                unsigned rotation, const Output& dst);
  /// dst[i] = zigzag(r[i] - r[i - 1]), r = value rotated left by 1, r[-1] = base.
  using Delta = void (*)(const uint8_t* src, size_t count, uint64_t base, uint8_t* dst);
  /// The inverse; dst.values may be `src`. Returns the last value, rotated left by 1: the base of what follows.
  using Undelta = uint64_t (*)(const uint8_t* src, size_t count, uint64_t base, const Output& dst);
  /// Takes the zeros of both signs out. Writes the other values to `dst` (slack), one bit for each
  /// value to `kept`, one for each zero to `signs` (whole words, slack). Returns how many values stay.
  using RemoveZeros = size_t (*)(const uint8_t* src, size_t count, uint8_t* dst, uint8_t* kept,
                                 uint8_t* signs);
  /// The inverse. `src` holds the kept values (slack), `kept` and `signs` the bits.
  using InsertZeros = void (*)(const uint8_t* src, const uint8_t* kept, const uint8_t* signs,
                               size_t count, uint8_t* dst);

  Split split[kSizeClasses];
  Merge merge[kSizeClasses];
  MergeLevel merge_level[kSizeClasses] = {};  ///< an entry may be null
  Delta delta[kSizeClasses];
  Undelta undelta[kSizeClasses];
  RemoveZeros remove_zeros[kSizeClasses];
  InsertZeros insert_zeros[kSizeClasses];

  /// Writes w = popcount(mask) words for each 64 bytes of `bytes` (FORMAT.md, "Bit order").
  void (*pack_bits)(const uint8_t* bytes, size_t count, unsigned mask, uint8_t* words);
  /// bytes[i] = the bits of `mask` from `words`, all others 0.
  void (*unpack_bits)(const uint8_t* words, size_t count, unsigned mask, uint8_t* bytes);

  /// One level. codes_of[field] is the code of each field (2^w - 1: escape), field = byte >> shift. Every code has one field
  /// or none, code 0 has one.
  /// Writes the code words, and the escaped fields to `escapes` (slack). Returns the number of
  /// escapes.
  using EncodeLevel = size_t (*)(const uint8_t* bytes, size_t count, unsigned shift,
                                 const uint8_t* codes_of, uint8_t* words, uint8_t* escapes);
  /// dst[i] = symbols[code], or the next of `escapes` (slack) where the code is 2^w - 1. Returns
  /// how many escapes it met; at most `count` are read, so `escapes` must be that long. `symbols`
  /// has 16 entries, that of the escape is 0.
  using DecodeLevel = size_t (*)(const uint8_t* words, size_t count, const uint8_t* symbols,
                                 const uint8_t* escapes, uint8_t* dst);
  /// How many escapes decode_level would meet.
  using CountEscapes = size_t (*)(const uint8_t* words, size_t count);
  EncodeLevel encode_level[kMaxWidth + 1];  ///< by width; 0 is null
  DecodeLevel decode_level[kMaxWidth + 1];
  CountEscapes count_escapes[kMaxWidth + 1];

  const TopKernels* top;  ///< null: none
  /// Bit t is 1 when merge, decode, and undelta of at least 4 bytes, of values of type t take Output::sum.
  uint32_t sums;
  /// Those that are worth it where the result is one of the operands, and memory keeps the kernel waiting less.
  uint32_t sums_in_place = 0;

  /// dst[i] = fields[i] << shift | low[i] | value; `low` null: no stored bits. `dst` may be an
  /// operand.
  void (*combine)(const uint8_t* fields, const uint8_t* low, size_t count, unsigned shift,
                  unsigned value, uint8_t* dst);
  /// After the last value that was streamed, before anybody else may know of them.
  void (*finish_streaming)();
  /// OR and AND of all bytes; count > 0.
  void (*bit_range)(const uint8_t* bytes, size_t count, uint8_t* all_or, uint8_t* all_and);
  /// How many of the first `bits` bits of whole words are 1.
  size_t (*count_ones)(const uint8_t* words, size_t bits);
  /// Length of the longest prefix, in bytes, in which every byte equals the byte `period` before
  /// (the first `period` bytes are taken as given). period is 1, 2, 4 or 8; bytes is a multiple of
  /// it.
  size_t (*repeat_length)(const uint8_t* bytes, size_t count, unsigned period);
};

/// The kernels for the CPU target in force.
const CodecKernels& codec_kernels();

extern const CodecKernels kScalarCodecKernels;
extern const CodecKernels kAvx2CodecKernels;
extern const CodecKernels kAvx512CodecKernels;

}  // namespace uzip
