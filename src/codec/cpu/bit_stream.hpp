// Bits one after another in words of 8 bytes, some at a time. Included by kernel files, so
// everything has internal linkage and no object compiled for another processor can pick it up.
#pragma once

#include <cstddef>
#include <cstdint>

namespace uzip {
namespace {

/// The lowest `count` bits; count <= 64.
[[gnu::always_inline]] inline uint64_t lowest_bits(size_t count) {
  return count == 0 ? 0 : ~uint64_t{0} >> (64 - count);
}

/// How many of the first `count` codes of `kWidth` bits have all bits set; `ones` counts the bits
/// of a word.
template <unsigned kWidth, class Ones>
[[gnu::always_inline]] inline size_t count_full_codes(const uint8_t* words, size_t count,
                                                      Ones ones) {
  size_t full = 0;
  for (size_t at = 0; at < count; at += 64) {
    uint64_t all = count - at < 64 ? lowest_bits(count - at) : ~uint64_t{0};
#pragma GCC unroll 4
    for (unsigned b = 0; b < kWidth; ++b, words += 8) {
      uint64_t word;
      __builtin_memcpy(&word, words, 8);
      all &= word;
    }
    full += ones(all);
  }
  return full;
}

/// The same for processors that count the bits of a word at once.
template <unsigned kWidth>
size_t count_full_codes_by_words(const uint8_t* words, size_t count) {
  return count_full_codes<kWidth>(words, count, [](uint64_t word) {
    return static_cast<size_t>(__builtin_popcountll(word));
  });
}

/// Collects bits in words; writes a word beyond the last bit, too.
class BitWriter {
 public:
  explicit BitWriter(uint8_t* dst) : dst_(dst) {}
  /// Those of `bits` beyond `count` are 0.
  [[gnu::always_inline]] void put(uint64_t bits, size_t count) {
    // Without a branch: whether a word is full cannot be foreseen.
    word_ |= bits << used_;
    __builtin_memcpy(dst_, &word_, 8);
    const bool full = used_ + count >= 64;
    dst_ += full ? 8 : 0;
    word_ = full ? bits >> 1 >> (63 - used_) : word_;
    __builtin_memcpy(dst_, &word_, 8);
    used_ = (used_ + count) % 64;
  }

 private:
  uint8_t* dst_;
  uint64_t word_ = 0;
  size_t used_ = 0;
};

/// Hands out bits; reads whole words, and no word before it is needed.
class BitReader {
 public:
  explicit BitReader(const uint8_t* src) : src_(src) {}
  [[gnu::always_inline]] uint64_t get(size_t count) {
    if (count == 0) return 0;
    const size_t word = at_ / 64;
    const size_t bit = at_ % 64;
    // What a word that is not needed gives lies beyond `count`: no branch, which nobody could
    // foresee.
    const uint64_t next = word_at(word + (bit + count > 64 ? 1 : 0));
    const uint64_t bits = word_at(word) >> bit | next << 1 << (63 - bit);
    at_ += count;
    return bits & lowest_bits(count);
  }

 private:
  uint64_t word_at(size_t index) const {
    uint64_t word;
    __builtin_memcpy(&word, src_ + 8 * index, 8);
    return word;
  }
  const uint8_t* src_;
  size_t at_ = 0;
};

}  // namespace
}  // namespace uzip
