// FNV-1a with 64 bits (Fowler, Noll, Vo): short digests for comparing plans and tables between ranks and for naming
// files. No protection against anybody who wants two things to look alike.
#pragma once

#include <cstdint>
#include <string_view>

namespace uzip {

class Fnv1a {
 public:
  /// A whole word at a time, not byte by byte.
  void add(uint64_t word) { value_ = (value_ ^ word) * 0x100000001b3ull; }
  void add(std::string_view text) {
    for (unsigned char c : text) add(uint64_t{c});
  }
  uint64_t value() const { return value_; }

 private:
  uint64_t value_ = 0xcbf29ce484222325ull;
};

}  // namespace uzip
