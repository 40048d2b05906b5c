// Copies past the caches: every byte that belongs there, and no other.
#include "base/streaming_copy.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace uzip {
namespace {

TEST(StreamingCopy, CopiesEachByteAndNoOther) {
  constexpr size_t kMost = 400, kAround = 64;
  std::vector<unsigned char> from(kMost + 2 * kAround), to(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 7 + 1);
  for (size_t source = 0; source < kAround; source += 13) {
    for (size_t target = 0; target < kAround; ++target) {
      for (size_t bytes = 0; bytes <= kMost; bytes += bytes < 140 ? 1 : 37) {
        std::fill(to.begin(), to.end(), static_cast<unsigned char>(0xee));
        copy_past_caches(to.data() + target, from.data() + source, bytes);
        ASSERT_EQ(std::memcmp(to.data() + target, from.data() + source, bytes), 0) << bytes;
        for (size_t i = 0; i < to.size(); ++i) {
          const bool outside = i < target || i >= target + bytes;
          ASSERT_TRUE(!outside || to[i] == 0xee) << bytes << " bytes, at " << i;
        }
      }
    }
  }
  copy_past_caches(nullptr, nullptr, 0);
}

TEST(StreamingCopy, CopiesLongMemory) {
  std::vector<unsigned char> from(3 << 20), to(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 11 + i / 251);
  copy_past_caches(to.data(), from.data(), from.size());
  EXPECT_TRUE(to == from);
}

}  // namespace
}  // namespace uzip
