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

TEST(StreamingCopy, CopiesTwiceEachByteAndNoOther) {
  constexpr size_t kMost = 330, kAround = 64;
  std::vector<unsigned char> from(kMost + 2 * kAround), near(from.size()), far(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 13 + 5);
  for (size_t source = 0; source < kAround; source += 21) {
    for (size_t target = 0; target < kAround; target += 3) {
      for (size_t bytes = 0; bytes <= kMost; bytes += bytes < 140 ? 1 : 31) {
        const size_t other = (target * 7 + source) % kAround;
        std::fill(near.begin(), near.end(), static_cast<unsigned char>(0xee));
        std::fill(far.begin(), far.end(), static_cast<unsigned char>(0xee));
        copy_twice(near.data() + other, far.data() + target, from.data() + source, bytes);
        ASSERT_EQ(std::memcmp(near.data() + other, from.data() + source, bytes), 0) << bytes;
        ASSERT_EQ(std::memcmp(far.data() + target, from.data() + source, bytes), 0) << bytes;
        for (size_t i = 0; i < from.size(); ++i) {
          ASSERT_TRUE((i >= other && i < other + bytes) || near[i] == 0xee) << bytes << " bytes, at " << i;
          ASSERT_TRUE((i >= target && i < target + bytes) || far[i] == 0xee) << bytes << " bytes, at " << i;
        }
      }
    }
  }
  copy_twice(nullptr, nullptr, nullptr, 0);
}

TEST(StreamingCopy, CopiesLongMemory) {
  std::vector<unsigned char> from(3 << 20), to(from.size());
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<unsigned char>(i * 11 + i / 251);
  copy_past_caches(to.data(), from.data(), from.size());
  EXPECT_TRUE(to == from);
  std::vector<unsigned char> near(from.size()), far(from.size());
  copy_twice(near.data(), far.data(), from.data(), from.size());
  EXPECT_TRUE(near == from && far == from);
}

}  // namespace
}  // namespace uzip
