// What log() writes to stderr.
#include "base/log.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <unistd.h>

namespace uzip {
namespace {

// Redirects file descriptor 2 into a file while it lives.
class CapturedStderr {
 public:
  CapturedStderr() {
    char path[] = "/tmp/uzip_log_test.XXXXXX";
    file_ = mkstemp(path);
    unlink(path);
    saved_ = dup(STDERR_FILENO);
    dup2(file_, STDERR_FILENO);
    // Several writers append.
    fcntl(STDERR_FILENO, F_SETFL, O_APPEND);
  }
  ~CapturedStderr() {
    dup2(saved_, STDERR_FILENO);
    close(saved_);
    close(file_);
  }
  CapturedStderr(const CapturedStderr&) = delete;
  CapturedStderr& operator=(const CapturedStderr&) = delete;

  std::string text() const {
    std::string all;
    char buffer[4096];
    lseek(file_, 0, SEEK_SET);
    for (ssize_t n; (n = read(file_, buffer, sizeof buffer)) > 0;)
      all.append(buffer, static_cast<size_t>(n));
    return all;
  }

 private:
  int file_ = -1;
  int saved_ = -1;
};

class LogTest : public testing::Test {
 protected:
  void TearDown() override {
    set_log_level(LogLevel::kWarn);
    set_log_rank(-1);
  }
};

TEST_F(LogTest, OneLineWithLevelAndRank) {
  const CapturedStderr captured;
  log(LogLevel::kWarn, "%d of %s", 3, "four");
  set_log_rank(7);
  log(LogLevel::kError, "again");
  EXPECT_EQ(captured.text(), "uzip warn: 3 of four\nuzip[7] error: again\n");
}

TEST_F(LogTest, LevelsFilter) {
  const CapturedStderr captured;
  std::string expected;
  for (int level = 0; level < kLogLevelCount; ++level) {
    set_log_level(static_cast<LogLevel>(level));
    EXPECT_EQ(log_level(), static_cast<LogLevel>(level));
    for (int line = 0; line < kLogLevelCount; ++line) {
      const auto line_level = static_cast<LogLevel>(line);
      log(line_level, "%d", level);
      if (line <= level)
        expected +=
            std::string("uzip ") + log_level_name(line_level) + ": " + std::to_string(level) + "\n";
    }
  }
  EXPECT_EQ(captured.text(), expected);
}

TEST_F(LogTest, ControlCharactersAndLengthCannotBreakTheLine) {
  const CapturedStderr captured;
  log(LogLevel::kError, "a\nb\x1b[31mc\rd\te\x7f");
  log(LogLevel::kError, "%s", std::string(100000, 'x').c_str());
  const std::string text = captured.text();
  const size_t end = text.find('\n');
  EXPECT_EQ(text.substr(0, end), "uzip error: a?b?[31mc?d?e?");
  const std::string second = text.substr(end + 1);
  EXPECT_EQ(second.size(), 4096u);
  EXPECT_EQ(second.substr(second.size() - 5), "x...\n");
  EXPECT_EQ(second.find('\n'), second.size() - 1);
}

TEST_F(LogTest, BytesBeyondAsciiStay) {
  const CapturedStderr captured;
  log(LogLevel::kError, "gr\xc3\xbc\xc3\x9f");
  EXPECT_EQ(captured.text(), "uzip error: gr\xc3\xbc\xc3\x9f\n");
}

TEST_F(LogTest, ErrnoIsKeptAndCanBeShown) {
  const CapturedStderr captured;
  errno = ENOENT;
  log(LogLevel::kError, "%m");
  EXPECT_EQ(errno, ENOENT);
  EXPECT_EQ(captured.text(), "uzip error: No such file or directory\n");
}

TEST_F(LogTest, LinesOfSeveralThreadsDoNotMix) {
  const CapturedStderr captured;
  constexpr int kThreads = 4, kLines = 200;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < kLines; ++i)
        log(LogLevel::kError, "%s", std::string(200, static_cast<char>('a' + t)).c_str());
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::string text = captured.text();
  const std::string head = "uzip error: ";
  const size_t line = head.size() + 200 + 1;
  ASSERT_EQ(text.size(), line * kThreads * kLines);
  for (size_t at = 0; at < text.size(); at += line) {
    ASSERT_EQ(text.compare(at, head.size(), head), 0);
    ASSERT_EQ(text.substr(at + head.size(), 200), std::string(200, text[at + head.size()]));
    ASSERT_EQ(text[at + line - 1], '\n');
  }
}

}  // namespace
}  // namespace uzip
