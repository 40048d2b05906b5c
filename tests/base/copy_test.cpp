// Copies: every byte that belongs there, and no other, on every target.
#include "base/copy.hpp"

#include "base/cpu.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

namespace uzip {
namespace {

class Copy : public testing::TestWithParam<CpuTarget> {
 protected:
  void SetUp() override { ASSERT_TRUE(set_cpu_target(cpu_target_name(GetParam())).ok()); }
  void TearDown() override { (void)set_cpu_target("auto"); }

  /// `bytes` from `source` to `target` of two arrays, in every way that there is.
  void check(size_t source, size_t target, size_t bytes) {
    check(copy_bytes, source, target, bytes);
#if defined(__x86_64__)
    if (GetParam() != CpuTarget::kScalar) check(copy_by_vectors, source, target, bytes);
#endif
  }

  void check(void (*copy)(void*, const void*, size_t), size_t source, size_t target, size_t bytes) {
    to_.assign(to_.size(), 0xee);
    copy(to_.data() + target, from_.data() + source, bytes);
    ASSERT_EQ(std::memcmp(to_.data() + target, from_.data() + source, bytes), 0)
        << bytes << " bytes from " << source << " to " << target;
    const auto untouched = [](unsigned char value) { return value == 0xee; };
    const auto begin = to_.begin() + static_cast<ptrdiff_t>(target), end = begin + static_cast<ptrdiff_t>(bytes);
    ASSERT_TRUE(std::all_of(to_.begin(), begin, untouched) && std::all_of(end, to_.end(), untouched))
        << bytes << " bytes from " << source << " to " << target;
  }

  static constexpr size_t kMost = (1 << 20) + 1000, kAround = 64;
  std::vector<unsigned char> from_ = [] {
    std::vector<unsigned char> values(kMost + 2 * kAround);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<unsigned char>(i * 7 + i / 251);
    return values;
  }();
  std::vector<unsigned char> to_ = std::vector<unsigned char>(6000 + 2 * kAround);
};

TEST_P(Copy, MovesEachByteAndNoOther) {
  for (size_t source = 0; source < kAround; source += 13)
    for (size_t target = 0; target < kAround; target += 3)
      for (size_t bytes : {0, 1, 31, 128, 2047, 2048, 2049, 2080, 2175, 2176, 2177, 4096, 5999}) check(source, target, bytes);
}

TEST_P(Copy, MovesEachLength) {
  for (size_t bytes = 2040; bytes < 2400; ++bytes) check(bytes % 7, bytes % 33, bytes);
}

TEST_P(Copy, MovesLongMemory) {
  to_.resize(from_.size());
  for (size_t bytes : {size_t{1} << 19, (size_t{1} << 20) - 1, size_t{1} << 20, (size_t{1} << 20) + 1, kMost}) check(5, 21, bytes);
}

TEST_P(Copy, TakesNullPointersOfNothing) { copy_bytes(nullptr, nullptr, 0); }

INSTANTIATE_TEST_SUITE_P(, Copy, testing::ValuesIn(available_cpu_targets().begin(), available_cpu_targets().end()),
                         [](const auto& info) { return cpu_target_name(info.param); });

}  // namespace
}  // namespace uzip
