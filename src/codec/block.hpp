// The descriptor of one block of the lev codec: how its planes are stored. docs/FORMAT.md,
// sections 3.1 to 3.4. The encoder's planner fills one in; the decoder reads one from the wire and
// checks it.
#pragma once

#include "base/status.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace uzip {

inline constexpr unsigned kMinBlockLog2 = 12;
inline constexpr unsigned kMaxBlockLog2 = 16;
inline constexpr size_t kMaxBlockValues = size_t{1} << kMaxBlockLog2;
inline constexpr size_t kMaxTypeSize = 8;
inline constexpr unsigned kMaxLevels = 4;
inline constexpr size_t kMaxSymbols = kMaxLevels * 15;
/// Sixteen bytes can be read from where the symbols of any level begin.
inline constexpr size_t kSymbolRoom = 64;
inline constexpr size_t kBlockAlignment = 16;

/// `place` of a record.
inline constexpr uint8_t kStoredInCoded = 1;
inline constexpr uint8_t kFieldsInCoded = 2;

enum class BlockKind : uint8_t { kPlanes = 1, kConstant = 2 };
enum class ZeroSign : uint8_t { kPlus = 0, kMinus = 1, kBoth = 2 };

constexpr size_t padded(size_t bytes, size_t alignment) {
  return (bytes + alignment - 1) / alignment * alignment;
}
/// How many bits of a mask are 1: not all processors have an instruction for it.
constexpr size_t ones_of(uint8_t mask) {
  unsigned ones = mask - (mask >> 1 & 0x55u);
  ones = (ones & 0x33) + (ones >> 2 & 0x33);
  return (ones + (ones >> 4)) & 0xf;
}
/// Bytes of `count` things of `width` bits.
constexpr size_t packed_bytes(size_t count, size_t width) { return (count + 63) / 64 * 8 * width; }

/// How one sequence of bytes is stored: level-coded field | stored bits | constant bits.
struct SequenceRecord {
  uint8_t shift = 8;   ///< the field is byte >> shift; 8: no field
  uint8_t stored = 0;  ///< mask of the bits that are stored as they are
  uint8_t value = 0;   ///< the other bits below `shift`
  uint8_t place = 0;
  uint8_t levels = 0;  ///< 0: the fields are stored, not coded
  std::array<uint8_t, kMaxLevels> widths{};
  std::array<uint32_t, kMaxLevels> escapes{};
  std::array<uint8_t, kSymbolRoom> symbols{};  ///< those of level 0, then of level 1, ...

  bool has_fields() const { return shift < 8; }
  /// Stores the fields instead of coding them.
  void drop_levels() {
    levels = 0;
    widths = {};
  }
  unsigned symbol_count() const {
    unsigned count = 0;
    for (unsigned l = 0; l < levels; ++l) count += (1u << widths[l]) - 1;
    return count;
  }
  /// Bytes of the sections for a sequence of `count` bytes.
  size_t stored_bytes(size_t count) const {
    return stored == 0xff ? padded(count, 8) : packed_bytes(count, ones_of(stored));
  }
  size_t raw_field_bytes(size_t count) const {
    return shift == 0 ? padded(count, 8) : packed_bytes(count, 8u - shift);
  }
  size_t field_bytes(size_t count) const {
    if (!has_fields()) return 0;
    if (levels == 0) return raw_field_bytes(count);
    size_t bytes = 0;
    size_t coded = count;
    for (unsigned l = 0; l < levels; ++l) {
      bytes += packed_bytes(coded, widths[l]);
      coded = escapes[l];
    }
    return bytes + padded(coded, 8);
  }
};

struct PartSizes {
  size_t plain = 0;
  size_t coded = 0;
};

struct BlockDescriptor {
  BlockKind kind = BlockKind::kPlanes;
  bool delta = false;
  bool zeros = false;
  uint8_t rotation = 0;
  ZeroSign zero_sign = ZeroSign::kPlus;
  uint32_t values = 0;
  uint32_t kept = 0;  ///< values that are in the planes
  uint64_t base = 0;
  SequenceRecord kept_bits;
  SequenceRecord sign_bits;
  std::array<SequenceRecord, kMaxTypeSize> planes;  ///< by significance, 0 = lowest byte

  // Constant blocks.
  uint64_t constant = 0;
  uint32_t exceptions = 0;

  bool has_signs() const { return zeros && zero_sign == ZeroSign::kBoth; }
  size_t kept_bits_bytes() const { return packed_bytes(values, 1); }
  size_t sign_bits_bytes() const { return packed_bytes(values - kept, 1); }
};

/// A block's descriptor, and the sections that read_descriptor() found to lie within its parts.
struct BlockSections {
  BlockDescriptor descriptor;
  const uint8_t* plain = nullptr;
  const uint8_t* coded = nullptr;
};

/// Bytes of the descriptor of a plane block (without sections).
size_t descriptor_bytes(const BlockDescriptor& block, size_t type_size);
/// Bytes of a whole constant block.
size_t constant_block_bytes(const BlockDescriptor& block, size_t type_size);

/// Writes the descriptor (of a constant block: its first 24 bytes), padded; returns its bytes.
size_t write_descriptor(const BlockDescriptor& block, size_t type_size, std::byte* dst);

/// Reads and checks a descriptor. `coded` is all that the table grants; `values` is the block's
/// expected size. On success all sections lie within `coded` and `plain_bytes`, and *bytes is the
/// descriptor's length. What the descriptor doesn't have of *block may be left from another one.
Status read_descriptor(std::span<const std::byte> coded, size_t plain_bytes, size_t values,
                       size_t type_size, BlockDescriptor* block, size_t* bytes);

}  // namespace uzip
