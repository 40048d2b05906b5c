#include "element_types.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace perf {
namespace {

static_assert(std::endian::native == std::endian::little, "elements are stored little-endian");

constexpr ElementType kTypes[] = {
    {UZIP_INT8, "int8", 1, 0, 0, true},         {UZIP_UINT8, "uint8", 1, 0, 0, false},
    {UZIP_INT32, "int32", 4, 0, 0, true},       {UZIP_UINT32, "uint32", 4, 0, 0, false},
    {UZIP_INT64, "int64", 8, 0, 0, true},       {UZIP_UINT64, "uint64", 8, 0, 0, false},
    {UZIP_FP16, "half", 2, 5, 10, true},        {UZIP_FP32, "float", 4, 8, 23, true},
    {UZIP_FP64, "double", 8, 11, 52, true},     {UZIP_BF16, "bfloat16", 2, 8, 7, true},
    {UZIP_FP8_E4M3FN, "f8e4m3", 1, 4, 3, true}, {UZIP_FP8_E5M2, "f8e5m2", 1, 5, 2, true},
};

struct Alias {
  const char* name;
  uzip_dtype_t type;
};
constexpr Alias kAliases[] = {
    {"float16", UZIP_FP16}, {"float32", UZIP_FP32}, {"float64", UZIP_FP64}};

const ElementType* row_of(uzip_dtype_t type) {
  return std::ranges::find(kTypes, type, &ElementType::type);
}

}  // namespace

std::span<const ElementType> element_types() { return kTypes; }

const ElementType* find_element_type(std::string_view name) {
  for (const ElementType& row : kTypes) {
    if (name == row.name || name == uzip_dtype_name(row.type)) return &row;
  }
  for (const Alias& alias : kAliases) {
    if (name == alias.name) return row_of(alias.type);
  }
  return nullptr;
}

std::string element_type_names() {
  std::string names;
  for (const ElementType& row : kTypes) names += (names.empty() ? "" : " ") + std::string(row.name);
  return names;
}

uint64_t largest_finite(const ElementType& type) {
  // e4m3fn has no infinity: only the pattern of all ones is not a number.
  if (type.type == UZIP_FP8_E4M3FN) return 0x7e;
  const uint64_t all_ones_exponent = (uint64_t{1} << type.exponent_bits) - 1;
  return (all_ones_exponent << type.mantissa_bits) - 1;
}

uint64_t encode_float(const ElementType& type, double value) {
  if (type.type == UZIP_FP64) return std::bit_cast<uint64_t>(value);
  if (type.type == UZIP_FP32) return std::bit_cast<uint32_t>(static_cast<float>(value));
  const uint64_t sign = std::signbit(value) ? uint64_t{1} << (type.bits() - 1) : 0;
  if (value == 0) return sign;
  const int bias = (1 << (type.exponent_bits - 1)) - 1;
  const int exponent = std::max(std::ilogb(value), 1 - bias);
  // In units of the last place; a subnormal has fewer than mantissa_bits + 1 bits. A carry out of
  // the rounding moves into the exponent field by itself.
  const double units = std::nearbyint(std::ldexp(std::fabs(value), type.mantissa_bits - exponent));
  const uint64_t hidden = uint64_t{1} << type.mantissa_bits;
  uint64_t magnitude = static_cast<uint64_t>(units);
  if (magnitude >= hidden) {
    magnitude += (static_cast<uint64_t>(exponent + bias) << type.mantissa_bits) - hidden;
  }
  return sign | std::min(magnitude, largest_finite(type) + 1);
}

}  // namespace perf
