#include "progress.hpp"

#include <algorithm>
#include <cmath>

namespace perf {
namespace {

// From this size on time grows with the size; below, latency decides.
constexpr size_t kTellingBytes = 64 << 10;
constexpr std::chrono::seconds kPause{2};

}  // namespace

// A line that was measured in another case takes as long again. A larger size than any that was measured
// takes longer in proportion, which is too much rather than too little.
std::optional<double> Scan::remaining() const {
  if (finished() == lines()) return 0;
  if (seconds_.empty()) return std::nullopt;
  const size_t known = std::min(finished(), sizes_.size());
  if (known < sizes_.size() && sizes_[known - 1] < kTellingBytes) return std::nullopt;
  std::vector<double> expected(seconds_.begin(), seconds_.begin() + static_cast<std::ptrdiff_t>(known));
  for (size_t i = known; i < sizes_.size(); ++i) {
    expected.push_back(expected[known - 1] * static_cast<double>(sizes_[i]) /
                       static_cast<double>(std::max<size_t>(sizes_[known - 1], 1)));
  }
  double seconds = 0;
  for (size_t line = finished(); line < lines(); ++line) seconds += expected[line % sizes_.size()];
  return seconds;
}

std::string format_duration(double seconds) {
  const auto total = static_cast<long>(std::ceil(std::clamp(seconds, 0.0, 1e9)));
  if (total < 60) return std::to_string(total) + " s";
  if (total < 3600) return std::to_string(total / 60) + " min " + std::to_string(total % 60) + " s";
  return std::to_string(total / 3600) + " h " + std::to_string(total / 60 % 60) + " min";
}

void ProgressLine::show(const std::string& text) {
  if (!shown_) return;
  const auto now = std::chrono::steady_clock::now();
  if (terminal_) {
    std::fprintf(out_, "\r\033[K%s", text.c_str());
  } else if (!last_ || now - *last_ >= kPause) {
    std::fprintf(out_, "%s\n", text.c_str());
    last_ = now;
  }
  std::fflush(out_);
}

void ProgressLine::clear() {
  if (!shown_ || !terminal_) return;
  std::fputs("\r\033[K", out_);
  std::fflush(out_);
}

}  // namespace perf
