// One line on stderr for what a user should know, by level. Whoever decides that something is an error logs
// it once; everybody else returns a Status.
#pragma once

namespace uzip {

/// kTrace is for what the user asked for by a setting of its own (UZIP_COLL_TRACE): always shown.
enum class LogLevel : int { kTrace = -1, kError = 0, kWarn = 1, kInfo = 2, kDebug = 3 };
inline constexpr int kLogLevelCount = 4;

/// "error", "warn", "info" or "debug".
const char* log_level_name(LogLevel level);

/// Set once from UZIP_LOG_LEVEL; the default is kWarn.
void set_log_level(LogLevel level);
LogLevel log_level();

/// Rank to show in front of every line, -1 for none yet.
void set_log_rank(int rank);

/// Writes "uzip[rank] level: message\n" with one write(2) when `level` is enabled.
[[gnu::format(printf, 2, 3)]] void log(LogLevel level, const char* format, ...);

}  // namespace uzip
