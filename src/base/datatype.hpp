// The one list of element types: all that a codec, a reduction or a message may ask about a type.
// A new type is a row in datatype.cpp and an appended value of uzip_dtype_t.
#pragma once

#include <uzipcoll/uzipcoll.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace uzip {

using DataType = uzip_dtype_t;

enum class NumberKind : uint8_t { kSigned, kUnsigned, kFloat };

/// A row of the list. Bit widths are those of the stored value, sign | exponent | mantissa from the top.
struct DataTypeInfo {
  DataType type;
  const char* name;
  NumberKind kind;
  uint8_t size;           ///< bytes
  uint8_t exponent_bits;  ///< 0 for integers
  uint8_t mantissa_bits;  ///< 0 for integers
  const char* aliases;    ///< other names that find_datatype() knows, separated by spaces
};

/// All types, in the order of their values.
std::span<const DataTypeInfo> datatypes();

/// True if `type` is in the list; every other function here requires it.
bool is_datatype(DataType type);
const DataTypeInfo& datatype_info(DataType type);
inline bool is_float(DataType type) { return datatype_info(type).kind == NumberKind::kFloat; }
constexpr size_t datatype_size(DataType type) {
  // The sizes of the list, four bits each and so without a look into memory: every step asks for one.
  return static_cast<size_t>(0x118422884411u >> (4 * static_cast<unsigned>(type)) & 0xf);
}

/// The type of this name ("bf16"; "bfloat16", "half", "float", ... as aliases), or nullptr.
const DataTypeInfo* find_datatype(std::string_view name);

}  // namespace uzip
