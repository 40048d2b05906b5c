#include "pattern.hpp"

#include <algorithm>
#include <cstring>

namespace perf {

void Pattern::fill(void* dst, size_t first, size_t count) const {
  auto* out = static_cast<std::byte*>(dst);
  size_t at = first % period_;
  for (size_t done = 0; done < count;) {
    const size_t run = std::min(count - done, period_ - at);
    std::memcpy(out + done * size_, bytes_.data() + at * size_, run * size_);
    done += run;
    at = 0;
  }
}

size_t Pattern::count_differences(const void* actual, size_t first, size_t count) const {
  const auto* in = static_cast<const std::byte*>(actual);
  size_t differences = 0;
  size_t at = first % period_;
  for (size_t done = 0; done < count;) {
    const size_t run = std::min(count - done, period_ - at);
    differences +=
        count_differing_elements(in + done * size_, bytes_.data() + at * size_, run, size_);
    done += run;
    at = 0;
  }
  return differences;
}

size_t count_differing_elements(const void* a, const void* b, size_t count, size_t size) {
  if (count == 0 || std::memcmp(a, b, count * size) == 0) return 0;
  const auto* left = static_cast<const std::byte*>(a);
  const auto* right = static_cast<const std::byte*>(b);
  size_t differences = 0;
  for (size_t i = 0; i < count; ++i) {
    differences += std::memcmp(left + i * size, right + i * size, size) != 0;
  }
  return differences;
}

}  // namespace perf
