// What a measuring program prints: the facts of the run, a line for each size, and the verdict.
#pragma once

#include "bench_overlap.hpp"
#include "bench_time.hpp"
#include "run_facts.hpp"

#include <cstdio>
#include <optional>
#include <string>
#include <vector>

namespace perf {

/// One form of one line.
struct Measured {
  Timing timing;
  double alg_bw = 0;  ///< GB/s of original bytes
  double bus_bw = 0;
  std::optional<size_t> wrong;  ///< none if not checked
};

struct Row {
  size_t size = 0;   ///< bytes of the larger of a rank's two buffers
  size_t count = 0;  ///< argument of the call
  const ElementType* type = nullptr;
  std::string redop = "none";
  Measured out_of_place;
  std::optional<Measured> in_place;
  std::optional<Overlap> overlap;  ///< with --overlap
};

struct Verdict {
  size_t wrong = 0;
  double mean_bus_bw = 0;
};

/// The table of nccl-tests, with columns for what compression did.
class TableReport {
 public:
  TableReport(std::FILE* out, const RunFacts& facts) : out_(out), facts_(facts) {}
  void begin() const;
  void note(const std::string& sentence) const;
  void row(const Row& row) const;
  void end(const Verdict& verdict) const;

 private:
  void print_settings() const;
  void print_ranks() const;
  void print_heads(const char* time) const;
  std::FILE* out_;
  const RunFacts& facts_;
};

/// The same as comma-separated values: one line of names, then numbers with full precision.
class CsvReport {
 public:
  CsvReport(std::FILE* out, const RunFacts& facts) : out_(out), facts_(facts) {}
  void begin() const;
  void row(const Row& row) const;

 private:
  std::FILE* out_;
  const RunFacts& facts_;
};

}  // namespace perf
