// How far a scan is, and how long it will take, on standard error while tables go elsewhere.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace perf {

/// The lines of a scan: the same sizes, in ascending order, for each of some cases.
class Scan {
 public:
  Scan(std::vector<size_t> sizes, size_t cases) : sizes_(std::move(sizes)), cases_(cases) {}

  size_t lines() const { return sizes_.size() * cases_; }
  size_t finished() const { return seconds_.size(); }
  /// The next line is done, and took so long.
  void finish_line(double seconds) { seconds_.push_back(seconds); }
  /// A case is left out: none of its lines is done.
  void leave_out_case() { --cases_; }
  /// Seconds for all lines that are left. None while nothing is known but lines so small that their
  /// time says nothing of large ones.
  std::optional<double> remaining() const;

 private:
  std::vector<size_t> sizes_;
  size_t cases_;
  std::vector<double> seconds_;  // of the lines that are done
};

/// "40 s", "3 min 20 s", "2 h 5 min".
std::string format_duration(double seconds);

/// One line that is overwritten on a terminal, or a line every few seconds elsewhere.
class ProgressLine {
 public:
  ProgressLine(std::FILE* out, bool shown, bool terminal)
      : out_(out), shown_(shown), terminal_(terminal) {}
  void show(const std::string& text);
  /// Makes place for a line of a table on the same terminal.
  void clear();

 private:
  std::FILE* out_;
  bool shown_;
  bool terminal_;
  std::optional<std::chrono::steady_clock::time_point> last_;
};

}  // namespace perf
