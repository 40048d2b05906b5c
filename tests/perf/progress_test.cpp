// What is said of the time that a scan still takes.
#include "../../perf/progress.hpp"

#include <gtest/gtest.h>

namespace perf {
namespace {

constexpr size_t kKi = 1024;

TEST(Progress, SmallSizesSayNothingOfLargeOnes) {
  Scan scan({4, 64 * kKi, 128 * kKi}, 1);
  EXPECT_FALSE(scan.remaining());
  scan.finish_line(0.1);
  EXPECT_FALSE(scan.remaining());
  scan.finish_line(1);
  EXPECT_DOUBLE_EQ(scan.remaining().value(), 2);
  scan.finish_line(2);
  EXPECT_EQ(scan.remaining().value(), 0);
}

TEST(Progress, AnotherCaseTakesAsLongAgain) {
  Scan scan({4, 64 * kKi, 128 * kKi}, 3);
  EXPECT_EQ(scan.lines(), 9u);
  for (double seconds : {1.0, 2.0, 4.0, 1.0}) scan.finish_line(seconds);
  EXPECT_EQ(scan.finished(), 4u);
  EXPECT_DOUBLE_EQ(scan.remaining().value(), 2 + 4 + 1 + 2 + 4);
  scan.leave_out_case();
  EXPECT_DOUBLE_EQ(scan.remaining().value(), 2 + 4);
}

TEST(Progress, OnlySmallSizes) {
  Scan scan({4, 8}, 2);
  for (double seconds : {1.0, 1.0, 1.0}) scan.finish_line(seconds);
  EXPECT_DOUBLE_EQ(scan.remaining().value(), 1);
}

TEST(Progress, Durations) {
  EXPECT_EQ(format_duration(0.2), "1 s");
  EXPECT_EQ(format_duration(59.5), "1 min 0 s");
  EXPECT_EQ(format_duration(80), "1 min 20 s");
  EXPECT_EQ(format_duration(7500), "2 h 5 min");
}

std::string text_of(std::FILE* file) {
  std::rewind(file);
  std::string text(1000, 0);
  text.resize(std::fread(text.data(), 1, text.size(), file));
  return text;
}

TEST(Progress, OneLineOnATerminalAndFewElsewhere) {
  std::FILE* file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ProgressLine terminal(file, true, true);
  terminal.show("a");
  terminal.show("b");
  terminal.clear();
  EXPECT_EQ(text_of(file), "\r\033[Ka\r\033[Kb\r\033[K");
  std::fclose(file);

  file = std::tmpfile();
  ASSERT_NE(file, nullptr);
  ProgressLine log(file, true, false);
  log.show("a");
  log.show("too early");
  log.clear();
  ProgressLine silent(file, false, true);
  silent.show("a");
  silent.clear();
  EXPECT_EQ(text_of(file), "a\n");
  std::fclose(file);
}

}  // namespace
}  // namespace perf
