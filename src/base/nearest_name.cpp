#include "base/nearest_name.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace uzip {
namespace {

// Least number of inserted, deleted and replaced characters between two names (Levenshtein).
size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t{0});
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({row[j] + 1, row[j + 1] + 1, replaced});
    }
  }
  return row.back();
}

}  // namespace

const char* nearest_name(std::string_view name, std::span<const char* const> names) {
  // What lies beyond any real name's length cannot bring it nearer to one.
  constexpr size_t kCompared = 64;
  name = name.substr(0, kCompared);
  return *std::min_element(names.begin(), names.end(), [&](const char* a, const char* b) {
    return edit_distance(name, a) < edit_distance(name, b);
  });
}

}  // namespace uzip
