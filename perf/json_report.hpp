// The results as JSON, with the keys of nccl-tests and some more.
#pragma once

#include "bench_report.hpp"

#include <cstdio>
#include <memory>
#include <string>
#include <vector>

namespace perf {

class JsonReport {
 public:
  /// Opens the file, so that a path that cannot be written is found before anything is measured.
  /// Throws Failure.
  explicit JsonReport(const std::string& path);
  /// Writes everything and closes the file. Throws Failure, so a full disk is noticed.
  void write(const RunFacts& facts, const std::vector<Row>& rows, const Verdict& verdict);

 private:
  std::string path_;
  std::unique_ptr<std::FILE, int (*)(std::FILE*)> file_;
};

}  // namespace perf
