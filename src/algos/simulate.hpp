// Tells how long a call takes on a machine that need not exist: the schedules of all ranks, step by
// step, on a model of cores, ports and links. Used by uzip_sched and the tests.
//
// Each rank carries out one step at a time, on one of its host's cores; steps that send or receive
// go before those that compute, otherwise the first that was ready is the first. A message takes
// core time at both ends, then its bytes go through the sender's port and, `latency` later, through
// the receiver's, one message at a time in each; switches are never full. Bodies of at least
// `fetch` bytes leave only when their receive is ready and the sender has heard of it.
#pragma once

#include "algos/algorithm.hpp"
#include "algos/collective_cases.hpp"
#include "algos/machine_model.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace uzip {

/// One call: rounds of a few kinds, so many in flight on each rank.
struct CallModel {
  struct Kind {
    Shape shape;
    Form form = Form::kPlain;
  };
  const Algorithm* algorithm = nullptr;
  std::vector<Kind> kinds;
  std::vector<uint32_t> rounds;  ///< the kind of each round
  uint32_t window = 1;
  DataType type = UZIP_FP32;
  const CodecModel* codec = nullptr;  ///< needed by forms with frames
  bool every_rank = false;            ///< simulate all ranks, even if they are alike
  double most_steps = 1e6;            ///< where each rank talks to each: of more a sample is simulated
};

/// A call that is one round.
CallModel one_round(const Algorithm& algorithm, const Shape& shape, Form form, DataType type,
                    const CodecModel* codec = nullptr);

/// What one rank did.
struct RankLoad {
  double core = 0;  ///< seconds that its core was busy
  double sent = 0;  ///< bytes, heads included
  double received = 0;
  uint64_t messages = 0;  ///< sent
};

/// Something that took time, for traces.
struct TraceEvent {
  enum class Lane : uint8_t { kCore, kOut, kIn };
  int rank;
  Lane lane;
  uint32_t round;
  uint32_t kind;
  uint32_t step;
  double begin;
  double end;
};

struct Prediction {
  double seconds = 0;  ///< until the last rank has finished
  int ranks = 0;
  std::vector<int> simulated;   ///< ranks: all, those of one host that all others are like (symmetry.hpp),
                                ///< or a sample (rank_sample.hpp)
  std::vector<RankLoad> loads;  ///< of the simulated ranks, in the same order
  uint64_t events = 0;
};

/// Errors: a schedule is wrong (a message without its other end, a deadlock), a codec is missing,
/// or the schedules would be too large. `trace`, if given, gets everything that took time.
Result<Prediction> simulate(const CallModel& call, const MachineModel& machine,
                            std::vector<TraceEvent>* trace = nullptr);

/// A trace in Chrome's JSON format (chrome://tracing, ui.perfetto.dev): a process for each rank,
/// and in it its core and the two directions of its port. Times are microseconds.
Result<std::string> print_trace(const CallModel& call, const MachineModel& machine);

}  // namespace uzip
