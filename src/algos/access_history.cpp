// Hazards by an interval map for each memory: comparing all pairs of steps would be quadratic.
#include "algos/access_history.hpp"

#include <algorithm>

namespace uzip {

const std::vector<uint32_t>& AccessHistory::follow(const Step& step, uint32_t number) {
  accesses_.clear();
  found_.clear();
  for_each_access(map_, step, [&](const Access& access) { accesses_.push_back(access); });
  for (const Access& access : accesses_) {
    memory(access).for_each(access.begin, access.end, [&](const Touched& touched) {
      if (access.writes && !touched.readers.empty()) {
        // The readers have waited for the writer.
        found_.insert(found_.end(), touched.readers.begin(), touched.readers.end());
      } else if (touched.writer != kNobody) {
        found_.push_back(touched.writer);
      }
    });
  }
  // Reads first: what a step writes in place has itself as writer, not as reader, for those that
  // follow.
  for (const Access& access : accesses_) {
    if (access.writes) continue;
    memory(access).for_each(access.begin, access.end, [&](Touched& touched) {
      if (touched.readers.empty() || touched.readers.back() != number)
        touched.readers.push_back(number);
    });
  }
  for (const Access& access : accesses_) {
    if (access.writes) memory(access).assign(access.begin, access.end, {number, {}});
  }
  std::sort(found_.begin(), found_.end());
  found_.erase(std::unique(found_.begin(), found_.end()), found_.end());
  return found_;
}

}  // namespace uzip
