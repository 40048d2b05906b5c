// The one list of element types.
#include "base/datatype.hpp"

#include <array>
#include <cassert>

namespace uzip {
namespace {

constexpr NumberKind kSigned = NumberKind::kSigned;
constexpr NumberKind kUnsigned = NumberKind::kUnsigned;
constexpr NumberKind kFloat = NumberKind::kFloat;

// The aliases are the names that PyTorch, NumPy and nccl-tests use.
constexpr std::array<DataTypeInfo, 12> kDataTypes = {{
    {UZIP_INT8, "int8", kSigned, 1, 0, 0, "i8 char"},
    {UZIP_UINT8, "uint8", kUnsigned, 1, 0, 0, "u8 byte"},
    {UZIP_INT32, "int32", kSigned, 4, 0, 0, "i32 int"},
    {UZIP_UINT32, "uint32", kUnsigned, 4, 0, 0, "u32 uint"},
    {UZIP_INT64, "int64", kSigned, 8, 0, 0, "i64 long"},
    {UZIP_UINT64, "uint64", kUnsigned, 8, 0, 0, "u64 ulong"},
    {UZIP_FP16, "fp16", kFloat, 2, 5, 10, "f16 float16 half"},
    {UZIP_BF16, "bf16", kFloat, 2, 8, 7, "bfloat16"},
    {UZIP_FP32, "fp32", kFloat, 4, 8, 23, "f32 float32 float"},
    {UZIP_FP64, "fp64", kFloat, 8, 11, 52, "f64 float64 double"},
    {UZIP_FP8_E4M3FN, "fp8_e4m3fn", kFloat, 1, 4, 3, "fp8_e4m3 f8e4m3 f8e4m3fn float8_e4m3fn e4m3"},
    {UZIP_FP8_E5M2, "fp8_e5m2", kFloat, 1, 5, 2, "f8e5m2 float8_e5m2 e5m2"},
}};

constexpr bool rows_are_consistent() {
  for (size_t i = 0; i < kDataTypes.size(); ++i) {
    const DataTypeInfo& row = kDataTypes[i];
    if (static_cast<size_t>(row.type) != i || row.size != datatype_size(row.type)) return false;
    if (row.kind == kFloat && 1 + row.exponent_bits + row.mantissa_bits != 8 * row.size)
      return false;
  }
  return true;
}
static_assert(rows_are_consistent());

// Whether `name` is one of the words of `words`, which are separated by single spaces.
bool contains_word(std::string_view words, std::string_view name) {
  while (!words.empty()) {
    const size_t end = words.find(' ');
    if (words.substr(0, end) == name) return true;
    words = end == std::string_view::npos ? std::string_view() : words.substr(end + 1);
  }
  return false;
}

}  // namespace

std::span<const DataTypeInfo> datatypes() { return kDataTypes; }

bool is_datatype(DataType type) { return static_cast<size_t>(type) < kDataTypes.size(); }

const DataTypeInfo& datatype_info(DataType type) {
  assert(is_datatype(type));
  return kDataTypes[static_cast<size_t>(type)];
}

const DataTypeInfo* find_datatype(std::string_view name) {
  for (const DataTypeInfo& row : kDataTypes) {
    if (name == row.name || contains_word(row.aliases, name)) return &row;
  }
  return nullptr;
}

}  // namespace uzip
