// The command line of uzip_sched(1).
#pragma once

#include "algos/algorithm.hpp"
#include "algos/collective_cases.hpp"
#include "base/datatype.hpp"
#include "base/status.hpp"

#include <string>
#include <vector>

namespace uzip {

enum class SchedCommand { kHelp, kPrint, kDot, kVerify, kSimulate, kJson, kModel };

struct SchedOptions {
  SchedCommand command = SchedCommand::kHelp;
  std::vector<const Algorithm*> algorithms;  ///< one, those of one collective, or all
  std::vector<int> ranks;                    ///< numbers of ranks, at least one
  std::vector<size_t> counts;                ///< -n, elements as in the public calls; may be empty
  std::vector<size_t> blocks;  ///< --counts, elements of each rank's block; may be empty
  const DataTypeInfo* type = nullptr;
  std::string codec = "raw";
  std::string model;       ///< name or file; empty: the default one
  bool one_round = false;  ///< simulate the call as one round
  bool split = false;
  bool in_place = false;
  int root = 0;      ///< of a rooted collective
  int per_host = 0;  ///< ranks of one host; 0: all ranks are alike
  int per_socket = -1;  ///< ranks of one socket; 0: hosts have one; -1: not said
  int rank = -1;     ///< -1: all
  int orders = 3;
  uint32_t seed = 1;

  Form form() const {
    return codec == "raw" ? Form::kPlain : split ? Form::kSplitFused : Form::kFused;
  }
  /// Whether one case is asked for, and not all those that are known to be awkward.
  bool one_case() const { return !counts.empty() || !blocks.empty(); }
  /// Shape::sockets for hosts of `host` ranks; empty without --per-socket.
  std::vector<int> sockets_of(int ranks, int host) const;
  /// The case on so many ranks; `count` if no block sizes were given.
  Shape shape(Coll coll, int ranks, size_t count) const;
};

extern const char* const kSchedSynopsis;
extern const char* const kSchedHelp;

/// An error is the user's; its message says what is allowed.
Result<SchedOptions> parse_sched_options(int argc, char** argv);

}  // namespace uzip
