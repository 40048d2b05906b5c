// The element types as the measuring programs see them: names for the command line, widths, and the
// conversion of a number to a type's bits.
#pragma once

#include <uzipcoll/uzipcoll.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

namespace perf {

/// A row of the list of types.
struct ElementType {
  uzip_dtype_t type;
  const char*
      name;     ///< as nccl-tests spells it, "bfloat16"; the library's own name is accepted too
  size_t size;  ///< bytes
  int exponent_bits;  ///< 0 for integers
  int mantissa_bits;  ///< 0 for integers
  bool is_signed;

  bool is_float() const { return exponent_bits > 0; }
  int bits() const { return static_cast<int>(size) * 8; }
};

std::span<const ElementType> element_types();

/// The type of this name ("float", "fp32", "float32"), or nullptr.
const ElementType* find_element_type(std::string_view name);
/// All names of nccl-tests, separated by blanks.
std::string element_type_names();

/// Largest finite value's bits without the sign. Float types only.
uint64_t largest_finite(const ElementType& type);

/// The bits of `value`, rounded to nearest even; beyond the largest finite value infinity, or NaN
/// for fp8_e4m3fn. Float types only.
uint64_t encode_float(const ElementType& type, double value);

/// Writes the low bytes of `bits` as element `index` of `array` (little-endian machines only).
inline void store_bits(void* array, size_t index, size_t size, uint64_t bits) {
  std::memcpy(static_cast<std::byte*>(array) + index * size, &bits, size);
}

}  // namespace perf
