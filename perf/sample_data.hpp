// Realistic inputs for timing: for a compressing library the data decide the result.
#pragma once

#include "pattern.hpp"

#include <optional>
#include <string>
#include <string_view>

namespace perf {

enum class DataKind { kGauss, kUniform, kZeros, kRandom, kMixed, kFile };

struct DataSource {
  DataKind kind = DataKind::kGauss;
  std::string path;  ///< of kFile: raw little-endian elements of the type measured
};

/// "gauss", ..., "file:PATH".
std::string to_string(const DataSource& source);
/// What to_string() gives, back; nothing for any other text.
std::optional<DataSource> find_data_source(std::string_view text);
/// For people, what find_data_source() knows.
inline constexpr const char* kDataSources = "gauss uniform zeros random mixed file:PATH";
/// What the data are, in a few words.
std::string describe(const DataSource& source);

/// A sequence of the source's elements, the same on all ranks. Its period is at least `wanted`, or
/// about four million elements, or the file. Throws Failure if the file cannot be used.
Pattern sample_pattern(const DataSource& source, const ElementType& type, size_t wanted);

/// Where in that sequence a rank begins, so that the ranks' data are alike but not equal.
inline size_t sample_start(int rank) { return static_cast<size_t>(rank) * 1000003; }

}  // namespace perf
