// What a GPU plugin gives to the core for collectives over memory that the GPUs of one host open to
// one another: a second table of functions, with the rules of plugin.hpp.
#pragma once

#include "codec/frame.hpp"

#include <cstddef>
#include <cstdint>

namespace uzip::gpu {

struct PeerOptions {
  int rank;
  int ranks;
  uint64_t most_bytes;   ///< memory of the device for this group
  uint64_t deadline_ns;  ///< after which a kernel gives up waiting for a rank
  unsigned blocks;  ///< thread blocks of a codec kernel; 0: as many as the device runs at a time
  unsigned depth;   ///< slots of a ring; 0: chosen by the group
  uint64_t least_piece;  ///< bytes of elements; 0: chosen by the group
  uint64_t most_piece;
  /// From so many bytes of a rank's share on plain calls go by copy engines, not a store kernel; 0:
  /// chosen by the group.
  uint64_t most_stored;
  /// Below so many bytes of a rank's share coded calls go by one kernel, not by pieces; 0: chosen by
  /// the group.
  uint64_t most_coded_here;
};

/// What the ranks of a group tell one another; no pointers for anyone but the plugin.
struct PeerHandle {
  uint8_t bytes[192];
};

/// kSend and kRecv are messages between two ranks, the others collectives.
enum class PeerColl : uint8_t { kAllreduce, kReduceScatter, kAllgather, kReduce, kSend, kRecv };

struct PeerCall {
  PeerColl coll;
  uint8_t type;
  uint8_t op;
  bool compress;  ///< floats only; small calls are not compressed whatever this says
  int levels;
  int peer;        ///< of kSend and kRecv; of kReduce the root, which gets what all ranks' elements are reduced to
  uint64_t count;  ///< elements; of kReduceScatter and kAllgather those of a rank's block
  uint64_t average_over;
  const void* src;  ///< memory of the device; of kRecv not used, as is `dst` of kSend, and of kReduce but at the root
  void* dst;
  CallStamp stamp;
};

/// A call that has been enqueued.
struct PeerTicket {
  uint64_t number;
  uint64_t payload_bytes;  ///< of elements that leave this rank
  uint64_t wire_bytes;     ///< that they take on the link
};

/// What functions of PeerApi answer besides 0.
enum PeerFailure : int {
  kPeerFailed = 1,
  kPeerUnsupported,  ///< of start(): nothing has been enqueued
  kPeerTimedOut,     ///< another rank did not answer
  kPeerCorrupt,      ///< what came is no frame that the call expects
};

/// The ranks of one host, each with one GPU, as one of them sees them.
class PeerGroup;

/// All ranks make the same collectives in the same order, and two ranks the same messages from one to
/// the other, in the same order, among themselves and among the collectives. What a rank sends goes
/// on beside what it receives: each takes less than half of the device. One thread at a time for
/// each group.
struct PeerApi {
  int (*create)(const PeerOptions* options, PeerGroup** group, PeerHandle* own);
  /// With the handles of all ranks, in their order. Fails when one of them can't be reached: then
  /// no rank may start a call.
  int (*connect)(PeerGroup* group, const PeerHandle* handles);
  /// The same with one other rank: then messages between the two may be started.
  int (*connect_pair)(PeerGroup* group, int rank, const PeerHandle* handle);
  /// No call may be at work, on any rank.
  void (*destroy)(PeerGroup* group);
  /// Enqueues a call on the stream. Does not wait for anybody.
  int (*start)(PeerGroup* group, const PeerCall* call, void* stream, PeerTicket* ticket);
  /// A stream of the group's own for all that it sends, or receives: kSend or kRecv.
  void* (*stream_of)(PeerGroup* group, PeerColl coll);
  /// Fails when the call has failed; last_error() says why. Asks memory of the host only.
  int (*query)(PeerGroup* group, uint64_t number, bool* done);
  /// Ends all waiting of calls at work, which fail; the group can't be used any more. To be called
  /// until they are done.
  int (*give_up)(PeerGroup* group);
  /// Of a call that was coded, is done and has not failed: bytes of elements that left this rank, or of
  /// some of them, and what these took when coded. Zeros of other calls.
  void (*shrunk)(PeerGroup* group, uint64_t number, uint64_t* elements, uint64_t* coded);
};

}  // namespace uzip::gpu
