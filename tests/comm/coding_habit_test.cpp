// How soon a sender gives up trying to code what does not compress, and how soon it notices that it does again.
#include "comm/coding_habit.hpp"

#include "codec/samples.hpp"
#include "comm/loopback_job.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace uzip {
namespace {

/// Attempts among `frames` frames, of which those for which `in_vain` holds do not compress.
template <class InVain>
int attempts(CodingHabit& habit, int frames, InVain in_vain) {
  int tried = 0;
  for (int i = 0; i < frames; ++i) {
    if (habit.skips()) continue;
    ++tried;
    habit.tried(in_vain(i));
  }
  return tried;
}

TEST(CodingHabit, TriesAllThatCompresses) {
  CodingHabit habit;
  EXPECT_EQ(attempts(habit, 100, [](int) { return false; }), 100);
}

TEST(CodingHabit, TriesEveryEighthOfWhatDoesNot) {
  CodingHabit habit;
  EXPECT_LE(attempts(habit, 800, [](int) { return true; }), 104);
  EXPECT_GE(attempts(habit, 800, [](int) { return true; }), 99);
}

TEST(CodingHabit, SingleFramesThatDoNotAreNoReasonToSkip) {
  CodingHabit habit;
  EXPECT_EQ(attempts(habit, 100, [](int i) { return i % 2 == 0; }), 100);
}

TEST(CodingHabit, RecoversWithinEightFrames) {
  CodingHabit habit;
  attempts(habit, 1000, [](int) { return true; });
  EXPECT_GE(attempts(habit, 100, [](int) { return false; }), 93);
}

/// A message that is random bits first: what compresses behind them is found.
TEST(CodingHabit, AMessageOfBothKindsIsCodedWhereItCompresses) {
  constexpr size_t kHalf = 400000;  // bf16: 25 pieces of 32 KiB
  const auto noise = make_sample(UZIP_BF16, SampleKind::kRandomBits, kHalf);
  const auto smooth = make_sample(UZIP_BF16, SampleKind::kGaussian, kHalf);
  std::vector<std::vector<uint8_t>> in(2), out(2);
  for (auto& values : in) {
    values.resize(4 * kHalf);
    std::memcpy(values.data(), noise.data(), 2 * kHalf);
    std::memcpy(values.data() + 2 * kHalf, smooth.data(), 2 * kHalf);
  }
  for (auto& values : out) values.resize(8 * kHalf);
  LoopbackJob job(2);
  uzip_options_t options = UZIP_OPTIONS_INIT;
  options.codec = "lev";
  options.chunk_bytes = 32 << 10;
  uzip_coll_info_t info = {sizeof info, nullptr, nullptr, 0, 0, 0};
  const auto statuses = job.run([&](int r) {
    const auto rank = static_cast<size_t>(r);
    uzip_coll_args_t call = make_call(UZIP_ALLGATHER, in[rank].data(), out[rank].data(), 2 * kHalf, UZIP_BF16);
    call.options = &options;
    if (rank == 0) call.info = &info;
    return call;
  });
  EXPECT_EQ(expect_all(statuses, UZIP_OK), "");
  for (const auto& values : out) {
    EXPECT_EQ(std::memcmp(values.data(), in[0].data(), 4 * kHalf), 0);
    EXPECT_EQ(std::memcmp(values.data() + 4 * kHalf, in[1].data(), 4 * kHalf), 0);
  }
  const double ratio = static_cast<double>(info.wire_bytes) / static_cast<double>(info.payload_bytes);
  EXPECT_LT(ratio, 0.9);   // both kinds apart: 1.0 and 0.68
  EXPECT_GT(ratio, 0.83);
}

}  // namespace
}  // namespace uzip
