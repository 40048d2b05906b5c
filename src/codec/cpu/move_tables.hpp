// Shuffles that move the marked ones of some bytes or words to the front, and back. Included by kernel files, so
// everything has internal linkage.
#pragma once

#include <cstdint>

namespace uzip {
namespace {

/// Shuffles for each mask of as many things. Each table is an object of its own, so that its address can be a register.
template <unsigned kMasks>
struct MoveTable {
  alignas(64) uint8_t order[kMasks][8];
};
/// What moves the marked of eight things to the front: eight bytes, of which `first` is the number of the first, or
/// four pairs.
template <unsigned kThings>
constexpr MoveTable<1u << kThings> make_compress_table(unsigned first) {
  constexpr unsigned kSize = 8 / kThings;
  MoveTable<1u << kThings> table{};
  for (unsigned mask = 0; mask < 1u << kThings; ++mask) {
    unsigned next = 0;
    for (unsigned i = 0; i < 8; ++i)
      if ((mask >> i / kSize & 1) != 0) table.order[mask][next++] = static_cast<uint8_t>(first + i);
    while (next < 8) table.order[mask][next++] = 0x80;
  }
  return table;
}
template <unsigned kThings>
constexpr MoveTable<1u << kThings> make_expand_table() {
  constexpr unsigned kSize = 8 / kThings;
  MoveTable<1u << kThings> table{};
  for (unsigned mask = 0; mask < 1u << kThings; ++mask) {
    unsigned next = 0;
    for (unsigned i = 0; i < 8; ++i)
      table.order[mask][i] = static_cast<uint8_t>((mask >> i / kSize & 1) != 0 ? next++ : 0x80);
  }
  return table;
}
constexpr MoveTable kCompressLower = make_compress_table<8>(0);
constexpr MoveTable kCompressUpper = make_compress_table<8>(8);
constexpr MoveTable kExpand = make_expand_table<8>();

/// Added to the upper eight of sixteen bytes: how many the lower ones took.
struct AfterTable {
  alignas(64) uint8_t add[9][16];
};
constexpr AfterTable kAfter = [] {
  AfterTable table{};
  for (unsigned count = 0; count <= 8; ++count)
    for (unsigned i = 8; i < 16; ++i) table.add[count][i] = static_cast<uint8_t>(count);
  return table;
}();

}  // namespace
}  // namespace uzip
