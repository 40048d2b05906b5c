// The command line of the measuring programs; nccl-tests' options where it has them.
#pragma once

#include "bench_operation.hpp"
#include "device_runtime.hpp"
#include "element_types.hpp"
#include "sample_data.hpp"
#include "world.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace perf {

/// Whose time is reported; the values of nccl-tests' -a.
enum class Average { kRank0 = 0, kMean = 1, kMin = 2, kMax = 3 };

/// What the library is compared with.
enum class PeerKind {
  kRaw,  ///< the library itself, without compression
  kMpi,
  kUcc,
  kNccl  ///< for memory of a GPU
};

/// Whether something long tells how far it is.
enum class ShowProgress { kAuto, kOn, kOff };

/// Which result is falsified on purpose, to see that the check notices.
enum class Corruption { kNone, kExact, kBits, kRanks, kGuard };

struct Options {
  size_t min_bytes = size_t{32} << 20;
  size_t max_bytes = size_t{32} << 20;
  size_t step_bytes = size_t{1} << 20;
  size_t step_factor = 1;  ///< more than 1: sizes are multiplied, and step_bytes is not used
  int iterations = 20;
  int warmup = 5;
  int checks = 1;
  std::vector<uzip_op_t> ops = {UZIP_SUM};
  std::vector<const ElementType*> types = {find_element_type("float")};
  Average average = Average::kMean;

  std::string algorithm = "auto";
  std::string codec = "auto";
  size_t chunk_bytes = 0;
  int split_send = -1;
  DataSource data;
  MemoryKind memory = MemoryKind::kHost;

  std::vector<PeerKind> versus;
  /// Measure until the confidence interval is within this part of the time; 0: Options::iterations calls.
  double precision = 0;
  bool median = false;
  bool percentiles = false;
  bool overlap = false;
  bool csv = false;
  std::string json_file;
  std::string plot;  ///< "", "tty" or a file
  ShowProgress progress = ShowProgress::kAuto;
  Launch launch = Launch::kAuto;
  Corruption corruption = Corruption::kNone;
  bool help = false;

  /// The size after `bytes` in the scan.
  size_t next_size(size_t bytes) const {
    if (step_factor <= 1) return bytes + step_bytes;
    return bytes > SIZE_MAX / step_factor ? SIZE_MAX : std::max(bytes * step_factor, bytes + 1);
  }
  bool against(PeerKind peer) const { return std::ranges::count(versus, peer) > 0; }
  /// As the library takes them. The strings belong to this object.
  uzip_options_t call_options() const;
};

/// Throws Failure (kExitUsage) that names the option, its value and what is allowed.
Options parse_options(const Operation& operation, int argc, char** argv);

std::string usage(const Operation& operation);

/// "64M" for 67108864, "1000" for 1000.
std::string format_bytes(size_t bytes);

}  // namespace perf
