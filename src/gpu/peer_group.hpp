// The ranks of one host as one of them sees them: its region of memory, the others' regions, the
// streams. Made by peer_group.cu; peer_pipeline.cu and peer_small.cu carry calls out.
#pragma once

#include "gpu/peer_layout.hpp"
#include "gpu/peer_plugin.hpp"
#include "gpu/peer_runtime.hpp"
#include "gpu/peer_words.hpp"
#include "gpu/plugin.hpp"
#include "gpu/plugin_error.hpp"

#include <vector>

namespace uzip::gpu {

/// Calls that may be at work at the same time.
inline constexpr uint64_t kMostTickets = 256;

/// What a call leaves in memory of the host when it is done.
struct TicketWords {
  uint64_t done;  ///< the ticket
  /// Of a pipeline: PeerFlags::given_up as it was when all had come. `fault` is behind it, as
  /// PeerFaults::decode is there.
  uint64_t given_up;
  uint64_t fault;  ///< a decode fault, or kTimedOut
  uint64_t coded;  ///< bytes that the elements of coded_elements() took
};

/// A stream of the group, and the event that others wait for.
struct WorkStream {
  Stream stream = nullptr;
  Event event = nullptr;
  uint64_t last_call = 0;  ///< ticket of the last call that uses it
};

/// What there is for one other rank. Counts are alike at both ends.
struct PeerLane {
  uint8_t* region = nullptr;  ///< the other's, as this process sees it
  bool opened = false;        ///< by an IPC handle
  uint64_t sent = 0;          ///< pieces
  uint64_t taken = 0;
  uint64_t collected = 0;  ///< frames from the other's shared outbox
  uint64_t shared[kMostDepth] =
      {};  ///< by slot of the shared outbox: number of the piece that was there, from 1
  uint64_t small_sent = 0;  ///< small messages
  uint64_t small_taken = 0;
  uint64_t tiles_sent = 0;  ///< by each thread block of a store kernel
  uint64_t tiles_taken = 0;
  uint64_t tiles_collected = 0;
  uint64_t coded_sent = 0;  ///< slots of coded tiles
  uint64_t coded_taken = 0;
  uint64_t coded_collected = 0;
};

/// Few, because streams beyond eight share queues of the hardware with others, and wait for them
/// (CUDA's default; CUDA_DEVICE_MAX_CONNECTIONS).
struct PeerStreams {
  WorkStream code;     ///< encodes what is for one rank
  WorkStream copy;     ///< to other ranks, and nothing else: one copy begins as another one ends
  WorkStream announce; ///< writes the words that say what was copied
  WorkStream take;     ///< decodes and reduces what is for this rank, encodes what is for all
  WorkStream collect;  ///< decodes what is for all

  template <class Action>
  void each(Action action) {
    for (WorkStream* work : {&code, &copy, &announce, &take, &collect}) action(*work);
  }
};

/// The end of the last call of a kind.
struct CallOrder {
  Event last = nullptr;
  bool used = false;  ///< since the last collective
};

class PeerGroup {
 public:
  ~PeerGroup();
  int create(const PeerOptions& options, PeerHandle* own);
  int connect(const PeerHandle* handles);
  int connect_pair(int rank, const PeerHandle& handle);
  int start(const PeerCall& call, Stream stream, PeerTicket* ticket);
  Stream stream_of(PeerColl coll) const { return (coll == PeerColl::kSend ? streams_.code : streams_.take).stream; }
  int query(uint64_t ticket, bool* done);
  void shrunk(uint64_t ticket, uint64_t* elements, uint64_t* coded) const;
  int give_up();

  int rank() const { return options_.rank; }
  int ranks() const { return options_.ranks; }
  const PeerOptions& options() const { return options_; }
  const PeerLayout& layout() const { return layout_; }
  unsigned store_blocks() const { return store_blocks_; }
  unsigned processors() const { return processors_; }  ///< of the device
  PeerLane& lane(int rank) { return lanes_[static_cast<size_t>(rank)]; }
  PeerStreams& streams() { return streams_; }
  Event begin() const { return begin_; }
  CodecContext* pair_codec() { return pair_codec_; }    ///< of the stream `code`
  CodecContext* share_codec() { return share_codec_; }  ///< of the stream `take`
  const WordOperations& words() const { return words_; }
  uint8_t* region() { return region_; }
  uint8_t* region(int rank) { return rank == options_.rank ? region_ : lane(rank).region; }
  PeerFlags& flags() { return *reinterpret_cast<PeerFlags*>(region_); }
  /// Of another rank.
  PeerFlags& flags(int rank) { return *reinterpret_cast<PeerFlags*>(lane(rank).region); }
  PeerFaults& faults() { return *reinterpret_cast<PeerFaults*>(region_ + PeerLayout::faults_at()); }
  /// Of a call by one kernel.
  CallEnd call_end(uint64_t ticket);
  TicketWords& ticket_words(uint64_t ticket) { return tickets_[ticket % kMostTickets]; }
  /// Bytes of elements of a call of which it is found out what they take when coded.
  uint64_t& coded_elements(uint64_t ticket) { return coded_elements_[ticket % kMostTickets]; }
  /// In memory of the device, for what the thread blocks of a call count; 0 before and after.
  uint32_t* coded_units(uint64_t ticket) {
    return counters_ + kMostTickets + ticket % kMostTickets;
  }

  uint64_t wire_bytes = 0;  ///< that left in all calls
  uint64_t shared = 0;      ///< frames in the shared outbox
  uint64_t tiles_shared = 0;
  uint64_t coded_shared = 0;  ///< slots of coded tiles

 private:
  uint64_t sent_elements(const PeerCall& call) const;
  int order(PeerColl coll, Stream stream);
  int remember(PeerColl coll, Stream stream);
  bool stores_coded(const PeerCall& call) const;
  int create_streams();
  int load_kernels();
  int open_peer(int rank, const PeerHandle& handle);

  PeerOptions options_{};
  PeerLayout layout_;
  unsigned store_blocks_ = kStoreBlocks;  ///< the same on all ranks
  WordOperations words_;
  int device_ = 0;
  unsigned processors_ = 1;
  uint8_t* region_ = nullptr;
  std::vector<PeerLane> lanes_;
  PeerStreams streams_;
  Event begin_ = nullptr;      ///< where a pipeline's caller was
  CallOrder collectives_, sends_, receives_;
  Stream rescue_ = nullptr;
  CodecContext* pair_codec_ = nullptr;
  CodecContext* share_codec_ = nullptr;
  uint32_t* counters_ = nullptr;  ///< of thread blocks, by ticket, and coded_units()
  uint64_t coded_elements_[kMostTickets] = {};
  TicketWords* tickets_ = nullptr;
  PeerFlags* released_ = nullptr;  ///< in pinned memory: words that end every wait
  uint64_t last_ticket_ = 0;
  bool broken_ = false;
  bool given_up_ = false;
};

/// Enqueue a call; the large ones end with their ticket's words written.
int start_pipeline(PeerGroup& group, const PeerCall& call, Stream stream, uint64_t ticket);
int start_small(PeerGroup& group, const PeerCall& call, Stream stream, uint64_t ticket);
int start_stores(PeerGroup& group, const PeerCall& call, Stream stream, uint64_t ticket);
int start_coded(PeerGroup& group, const PeerCall& call, Stream stream, uint64_t ticket);
/// Which of them. The same on all ranks.
bool is_small(const PeerGroup& group, const PeerCall& call);
bool is_stored(const PeerGroup& group, const PeerCall& call);
bool is_coded_here(const PeerGroup& group, const PeerCall& call);
inline bool is_message(PeerColl coll) { return coll == PeerColl::kSend || coll == PeerColl::kRecv; }

// The two halves of a collective: each rank sends others what they reduce, and then all what it has.
inline bool reduces(PeerColl coll) {
  return coll == PeerColl::kAllreduce || coll == PeerColl::kReduceScatter || coll == PeerColl::kReduce;
}
inline bool gathers(PeerColl coll) { return coll == PeerColl::kAllreduce || coll == PeerColl::kAllgather; }
/// Whether `from` sends `to` elements that are for it alone, in a call as `own` sees it, which is one of the two.
inline bool sends_pair(const PeerCall& call, int own, int from, int to) {
  switch (call.coll) {
    case PeerColl::kAllreduce:
    case PeerColl::kReduceScatter: return true;
    case PeerColl::kReduce: return to == call.peer;
    case PeerColl::kSend: return from == own && to == call.peer;
    case PeerColl::kRecv: return to == own && from == call.peer;
    default: return false;
  }
}
/// See PeerGroup::load_kernels().
int load_pipeline_kernels();
int load_small_kernels();
int load_store_kernels();
int load_coded_kernels();

/// The second table of the plugin.
const PeerApi* peer_api();

}  // namespace uzip::gpu
