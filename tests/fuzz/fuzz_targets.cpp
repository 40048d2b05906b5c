#include "fuzz/fuzz_target.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace uzip {

std::span<const FuzzTarget> fuzz_targets() {
  static const auto targets = [] {
    std::vector<FuzzTarget> all = {{"frame", "frame", fuzz_frame, UZIP_INT8},
                                   {"config", "config", fuzz_config, UZIP_INT8}};
    for (const DataTypeInfo& info : datatypes()) {
      if (!is_float(info.type)) continue;
      const std::string tail = std::string("_") + info.name;
      all.push_back({"decode" + tail, "lev", fuzz_decode, info.type});
      all.push_back({"reduce" + tail, "lev", fuzz_reduce, info.type});
      all.push_back({"round_trip" + tail, "elements", fuzz_round_trip, info.type});
    }
    return all;
  }();
  return targets;
}

const FuzzTarget* find_fuzz_target(std::string_view name) {
  const auto all = fuzz_targets();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const FuzzTarget& t) { return t.name == name; });
  return found == all.end() ? nullptr : &*found;
}

void fail_fuzzing(const char* what) {
  std::fprintf(stderr, "fuzz target: %s\n", what);
  std::abort();
}

}  // namespace uzip
