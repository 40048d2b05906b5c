// Writes log lines to stderr. A line is formatted on the stack and written with one call, so lines
// of several ranks that share a terminal do not mix, and logging works when memory is short.
#include "base/log.hpp"

#include <unistd.h>
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstddef>
#include <cstdio>
#include <cstring>

namespace uzip {
namespace {

constexpr const char* kLevelNames[kLogLevelCount] = {"error", "warn", "info", "debug"};

std::atomic<int> current_level{static_cast<int>(LogLevel::kWarn)};
std::atomic<int> current_rank{-1};

// PIPE_BUF on Linux: up to here a write to a pipe is atomic.
constexpr size_t kLineBytes = 4096;

struct Line {
  char text[kLineBytes];
  size_t length = 0;

  void add(const char* format, va_list arguments) {
    const size_t room = kLineBytes - length;
    const int wanted = std::vsnprintf(text + length, room, format, arguments);
    if (wanted > 0) length = std::min(length + static_cast<size_t>(wanted), kLineBytes - 1);
  }

  [[gnu::format(printf, 2, 3)]] void add(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    add(format, arguments);
    va_end(arguments);
  }

  // A message is one line, and bytes from outside must not steer the terminal.
  void finish() {
    std::replace_if(
        text, text + length, [](unsigned char c) { return c < ' ' || c == 0x7f; }, '?');
    if (length == kLineBytes - 1) std::memcpy(text + length - 3, "...", 3);
    text[length++] = '\n';
  }
};

}  // namespace

const char* log_level_name(LogLevel level) {
  return level == LogLevel::kTrace ? "trace" : kLevelNames[static_cast<size_t>(level)];
}

void set_log_level(LogLevel level) {
  current_level.store(static_cast<int>(level), std::memory_order_relaxed);
}

LogLevel log_level() {
  return static_cast<LogLevel>(current_level.load(std::memory_order_relaxed));
}

void set_log_rank(int rank) { current_rank.store(rank, std::memory_order_relaxed); }

void log(LogLevel level, const char* format, ...) {
  if (static_cast<int>(level) > current_level.load(std::memory_order_relaxed)) return;
  const int saved_errno = errno;
  Line line;
  const int rank = current_rank.load(std::memory_order_relaxed);
  if (rank >= 0) {
    line.add("uzip[%d] ", rank);
  } else {
    line.add("uzip ");
  }
  line.add("%s: ", log_level_name(level));
  va_list arguments;
  va_start(arguments, format);
  line.add(format, arguments);
  va_end(arguments);
  line.finish();
  while (::write(STDERR_FILENO, line.text, line.length) < 0 && errno == EINTR) {
  }
  errno = saved_errno;
}

}  // namespace uzip
