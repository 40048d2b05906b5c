// What a job finds out about its network at its first large call, where no tuning table tells: how fast each rank can
// send while all do, and how fast this machine codes. It decides the codec and how hard that tries; not the algorithm or
// the chunk, which fix the order of a reduction and with it the bits. Used by c_api.cpp and the selector.
#pragma once

#include "comm/coll_args.hpp"
#include "comm/tuning_table.hpp"

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace uzip {

struct CommunicatorHandle;

/// Equal on all ranks of the communicator that measured it, and of those that were split from it.
struct Calibration {
  double bandwidth = 0;   ///< bytes per second and rank to other hosts, while all ranks send and receive
  int codec_threads = 0;  ///< beside the calling one, on the rank that has the fewest
  std::vector<TunedCodec> codecs;  ///< of each type and level the slowest rank's speed
  double seconds = 0;     ///< what measuring took on rank 0
};

/// "0.117 GB/s a rank to other hosts, 1 codec thread(s), measured in 40 ms; bf16 lev:smallest; ..."
std::string describe(const Calibration& calibration);

/// From this many bytes, see tuned_bytes(), a call is large: it takes longer than calibrating, or nearly.
inline constexpr size_t kCalibratedBytes = size_t{1} << 20;
/// Every rank needs every other rank's data: it can't finish such a call before all have begun it.
bool needs_all_ranks(CallKind kind);

/// To whom a rank sends and from whom it receives while links are measured, so that wherever possible both are on other
/// hosts, and each rank has one of either. `hosts` by rank, empty: each on its own.
std::pair<int, int> calibration_partners(const std::vector<int>& hosts, int rank, int size);

/// To be called by each rank before a call that it is going to wait for; holds the engine's lock, but while it waits. If
/// it is the first large call, all ranks find out whether all of them wait; if so they measure, which takes some tens of
/// milliseconds, and the communicator has a calibration. Sets `args.announced`.
Status calibrate_before(CommunicatorHandle& handle, CollArgs& args, std::unique_lock<std::mutex>& lock);

}  // namespace uzip
