// A schedule: everything that one rank does in one round of a collective, as steps over named
// slots. Made by an algorithm with a ScheduleBuilder, transformed by passes, run by the engine
// (src/comm). It holds no pointers, so that it can be cached, printed, verified and simulated.
#pragma once

#include "base/datatype.hpp"
#include "base/reduce.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace uzip {

/// Where data lives. kInput and kOutput are the caller's buffers (this round's part of them),
/// kScratch is one array of elements private to the round, kWire a numbered place for one frame
/// each.
enum class Slot : uint8_t { kInput, kOutput, kScratch, kWire };

/// A range of elements. For kWire, `offset` is the number of the place and `length` the elements in
/// its frame.
struct Slice {
  Slot slot = Slot::kInput;
  size_t offset = 0;
  size_t length = 0;

  bool operator==(const Slice&) const = default;
};

enum class Verb : uint8_t {
  kSend,    ///< src -> peer
  kRecv,    ///< peer -> dst
  kCopy,    ///< src -> dst, any bits
  kReduce,  ///< sources[0] op sources[1] op ... -> dst, in this order
  kEncode,  ///< src -> wire place dst
  kDecode,  ///< wire place src -> dst
  kDecodeReduce,  ///< as kReduce, but one of the sources is a wire place, whose frame is decoded
};

/// Which part of a frame a step on a wire place is about. kPlain and kCoded are the two stages of
/// split-send: the plain part is encoded, sent and received by steps of its own.
enum class Part : uint8_t { kWhole, kPlain, kCoded };

struct Step {
  Verb verb = Verb::kCopy;
  Part part = Part::kWhole;
  bool average = false;  ///< kReduce, kDecodeReduce: the last reduction of the value, divides by
                         ///< the ranks for AVG
  int peer = -1;         ///< kSend, kRecv: rank in the communicator
  uint32_t message = 0;  ///< kSend, kRecv: number among the messages of this round between the two
                         ///< ranks in this direction; the k-th send meets the k-th receive
  Slice src{};           ///< kSend, kCopy, kEncode, kDecode
  Slice dst{};           ///< all but kSend
  Slice origin{};  ///< kSend of a wire place encoded here: the elements it was encoded from, which
                   ///< must stay unchanged until sent (a raw frame is sent from there); else empty
  std::vector<size_t> pieces{};  ///< kSend, kRecv of elements: lengths of the pieces that the slice is made of. With a
                                 ///< codec each is a frame and a message of its own. Empty: one piece
  std::vector<Slice> sources{};        ///< kReduce, kDecodeReduce
  std::vector<uint32_t> depends_on{};  ///< steps that must have finished, ascending
};

/// The source of a kDecodeReduce that is a wire place.
const Slice& frame_of(const Step& step);

/// One rank's program for one round. Immutable once built.
struct Schedule {
  std::vector<Step> steps;
  size_t scratch_elements = 0;
  std::vector<size_t> wire_elements;              ///< elements in the frame of each wire place
  std::vector<std::vector<uint32_t>> dependents;  ///< for each step, the steps that wait for it
};

/// Fills in `dependents` from the steps' depends_on.
void link_dependents(Schedule& schedule);

/// What kind of collective an algorithm is for.
enum class Coll : uint8_t {
  kAllreduce,
  kReduceScatter,
  kAllgather,
  kBarrier,
  kBcast,
  kReduce,
  kGather,
  kScatter,
  kAlltoall,
  kAlltoallv,
  kScan,
  kExscan,
};
inline constexpr int kCollCount = 12;
const char* coll_name(Coll coll);
/// Whether the call has a root.
bool is_rooted(Coll coll);
/// Whether a buffer of the call is one vector, that the shape's counts divide (Layout::kVector).
bool is_of_vectors(Coll coll);

/// What a rank's kInput or kOutput holds, in elements.
enum class Layout : uint8_t {
  kNothing,   ///< the rank has no such buffer
  kVector,    ///< total()
  kOwnBlock,  ///< counts[rank]
  kBlocks,    ///< the blocks of all ranks one after another
};

/// The layouts of each collective are in the table at Shape. `slot` is kInput or kOutput.
Layout layout_of(Coll coll, Slot slot, bool is_root);

/// The facts that a schedule is built from: one round of one collective, the same on all ranks (but
/// see of_rank()).
///
///                   kInput          kOutput
///   kAllreduce      kVector         kVector
///   kReduceScatter  kBlocks         kOwnBlock
///   kAllgather      kOwnBlock       kBlocks
///   kBarrier        kNothing        kNothing
///   kBcast          kVector (root)  kVector
///   kReduce         kVector         kVector (root)
///   kGather         kOwnBlock       kBlocks (root)
///   kScatter        kBlocks (root)  kOwnBlock
///   kAlltoall       kBlocks         kBlocks
///   kAlltoallv      kBlocks         kBlocks
///   kScan           kVector         kVector
///   kExscan         kVector         kVector (not on rank 0)
///
/// "(root)": on the root only, kNothing on the others. The blocks of kAlltoall are all of one size.
/// Those of kAlltoallv have a size for each pair of ranks, of which a rank knows its own: of_rank().
/// A slice of kBlocks must lie within one block:
/// in the caller's memory the blocks of one round need not be adjacent. In place: vectors, or blocks
/// and blocks, are the same memory; an own block lies in its place among the blocks.
struct Shape {
  Coll coll = Coll::kAllreduce;
  int size = 1;  ///< ranks
  std::vector<size_t> counts;  ///< elements of each rank's block; of a vector, how it is divided
                               ///< among the ranks (even_shares() unless there is a reason); of
                               ///< kAlltoallv, counts[i * size + j] go from rank i to rank j
  bool in_place = false;
  int root = 0;  ///< of a rooted collective
  std::vector<size_t> recv_counts{};  ///< of_rank() of kAlltoallv: elements that come from each
                                      ///< rank; counts are those that go to each

  std::vector<int> hosts{};  ///< by rank: which host it is on; between ranks of one host nothing is
                             ///< encoded. Empty: all are alike.
  std::vector<int> sockets{};  ///< by rank: which socket or NUMA node of its host it is on, 0: the one that leads. Only
                               ///< hierarchical algorithms look at it. Empty: hosts have one.

  bool share_host(int a, int b) const {
    return !hosts.empty() && hosts[static_cast<size_t>(a)] == hosts[static_cast<size_t>(b)];
  }
  /// What `rank` knows of the shape, and its schedule is built from.
  Shape of_rank(int rank) const;
  /// Elements of the blocks in kInput or kOutput.
  const std::vector<size_t>& counts_of(Slot slot) const {
    return slot == Slot::kOutput && !recv_counts.empty() ? recv_counts : counts;
  }
  size_t total() const;
  size_t offset(int rank) const;  ///< sum of the counts before `rank`
  Layout layout(Slot slot, int rank) const { return layout_of(coll, slot, rank == root); }
  bool operator==(const Shape&) const = default;
};

/// `total` elements divided among `size` ranks: shares differ by one at most, the larger ones
/// first.
std::vector<size_t> even_shares(size_t total, int size);

/// Collects steps in program order and derives their dependencies from data hazards (read after
/// write, write after read, write after write) on overlapping slices, and numbers the messages
/// between two ranks.
class ScheduleBuilder;  // schedule_builder.hpp

}  // namespace uzip
