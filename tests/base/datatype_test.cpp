// The list of element types agrees with the public enumeration and its names.
#include "base/datatype.hpp"

#include "base/float_reference.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>

namespace uzip {
namespace {

TEST(DataTypeTest, RowsStandInTheOrderOfTheirValues) {
  ASSERT_EQ(datatypes().size(), 12u);
  for (size_t i = 0; i < datatypes().size(); ++i) {
    EXPECT_EQ(static_cast<size_t>(datatypes()[i].type), i);
    EXPECT_EQ(&datatype_info(datatypes()[i].type), &datatypes()[i]);
  }
}

TEST(DataTypeTest, SizesAndWidths) {
  for (const DataTypeInfo& row : datatypes()) {
    EXPECT_EQ(row.size, reference::size_of(row.type)) << row.name;
    EXPECT_EQ(datatype_size(row.type), row.size) << row.name;
    EXPECT_EQ(is_float(row.type), reference::is_float(row.type)) << row.name;
    EXPECT_EQ(row.kind == NumberKind::kSigned, reference::is_signed_integer(row.type)) << row.name;
    EXPECT_EQ(row.exponent_bits, reference::format_of(row.type).exponent_bits) << row.name;
    EXPECT_EQ(row.mantissa_bits, reference::format_of(row.type).mantissa_bits) << row.name;
  }
}

TEST(DataTypeTest, OtherValuesAreNoTypes) {
  EXPECT_TRUE(is_datatype(UZIP_FP8_E5M2));
  EXPECT_FALSE(is_datatype(static_cast<DataType>(12)));
  EXPECT_FALSE(is_datatype(static_cast<DataType>(-1)));
}

TEST(DataTypeTest, NamesThatUsersKnow) {
  const std::map<std::string, DataType> names = {
      {"int8", UZIP_INT8},
      {"char", UZIP_INT8},
      {"uint8", UZIP_UINT8},
      {"int32", UZIP_INT32},
      {"int", UZIP_INT32},
      {"uint32", UZIP_UINT32},
      {"int64", UZIP_INT64},
      {"uint64", UZIP_UINT64},
      {"fp16", UZIP_FP16},
      {"half", UZIP_FP16},
      {"float16", UZIP_FP16},
      {"bf16", UZIP_BF16},
      {"bfloat16", UZIP_BF16},
      {"fp32", UZIP_FP32},
      {"float", UZIP_FP32},
      {"float32", UZIP_FP32},
      {"fp64", UZIP_FP64},
      {"double", UZIP_FP64},
      {"float64", UZIP_FP64},
      {"f8e4m3", UZIP_FP8_E4M3FN},
      {"fp8_e4m3fn", UZIP_FP8_E4M3FN},
      {"fp8_e4m3", UZIP_FP8_E4M3FN},
      {"float8_e4m3fn", UZIP_FP8_E4M3FN},
      {"f8e5m2", UZIP_FP8_E5M2},
      {"fp8_e5m2", UZIP_FP8_E5M2},
      {"float8_e5m2", UZIP_FP8_E5M2},
  };
  for (const auto& [name, type] : names) {
    ASSERT_NE(find_datatype(name), nullptr) << name;
    EXPECT_EQ(find_datatype(name)->type, type) << name;
  }
  for (const char* name :
       {"", " ", "fp", "f16 float16", "float16 half", "BF16", "bf16 ", "fp17", "%n"}) {
    EXPECT_EQ(find_datatype(name), nullptr) << name;
  }
}

TEST(DataTypeTest, NoNameMeansTwoTypes) {
  std::set<std::string> seen;
  for (const DataTypeInfo& row : datatypes()) {
    std::istringstream words(std::string(row.name) + " " + row.aliases);
    for (std::string word; words >> word;) EXPECT_TRUE(seen.insert(word).second) << word;
  }
}

}  // namespace
}  // namespace uzip
