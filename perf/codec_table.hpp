// The table that perf/codec prints: our settings beside other compressors, on many data.
#pragma once

#include "base/datatype.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace uzip {

/// Elements, and what they are called.
struct TableData {
  std::string name;
  DataType type;
  std::vector<uint8_t> bytes;
};

struct TableOptions {
  bool cached = false;  ///< the same piece again and again, instead of a walk through memory
  std::string match;    ///< only rows whose "type data codec" contain it
  std::vector<TableData> data;
};

/// Prints one line for each data and codec. False when a codec did not give the elements back.
bool print_codec_table(const TableOptions& options);

}  // namespace uzip
