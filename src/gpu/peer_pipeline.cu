// Large calls: encode kernel -> copy engine -> decode kernel, piece by piece, each on a stream of
// its own. Ranks meet in words of memory that streams write and wait for; the host only enqueues.
//
// What a rank enqueues follows one order on all ranks: piece by piece, what leaves before what is
// waited for. So streams that share a queue of the hardware delay one another, but can't wait in a
// circle. Pieces of an all-reduce leave a little earlier than their turn, so that the one stream that
// copies has something to do while results are made. That stream copies and does nothing else: beside
// it, one waits for free slots and codes, and one announces what has been copied.
#include "gpu/peer_group.hpp"

#include "base/datatype.hpp"
#include "gpu/peer_frames.hpp"
#include "gpu/peer_words.hpp"

#include <algorithm>
#include <cstddef>

extern "C" const uzip::gpu::PluginApi* uzip_gpu_plugin();

namespace uzip::gpu {
namespace {

/// Ends the other ranks' calls if a frame was damaged: what is made of it must not pass for a result.
__global__ void pass_fault_on(const UZIP_KERNEL_ARGUMENT CallEnd end, const uint64_t* fault) {
  if (*fault == 0) return;
  for (unsigned rank = 0; rank < end.ranks; ++rank) store_for_all(end.given_up[rank], kDamaged);
}

/// Frames that were made for a rank.
struct MadeFrames {
  const FrameHeader* headers[kMostDepth];
  unsigned count;
};
/// What they take.
__global__ void add_frame_bytes(const UZIP_KERNEL_ARGUMENT MadeFrames frames, uint64_t* bytes) {
  uint64_t sum = 0;
  for (unsigned i = 0; i < frames.count; ++i)
    sum += frames.headers[i]->plain_bytes + frames.headers[i]->coded_bytes;
  *bytes = sum;
}

class PeerPipeline {
 public:
  PeerPipeline(PeerGroup& group, const PeerCall& call, Stream user, uint64_t ticket)
      : group_(group),
        call_(call),
        user_(user),
        ticket_(ticket),
        api_(*uzip_gpu_plugin()),
        frames_(group, call, api_) {
    element_ = datatype_size(static_cast<DataType>(call.type));
    choose_pieces();
  }

  int run() {
    fail_if(UZIP_GPU_RUNTIME(EventRecord)(group_.begin(), user_), "an event");
    switch (call_.coll) {
      case PeerColl::kAllreduce:
      case PeerColl::kReduceScatter:
      case PeerColl::kAllgather:
      case PeerColl::kReduce:
        run_collective();
        break;
      case PeerColl::kSend:
        run_send();
        break;
      case PeerColl::kRecv:
        run_recv();
        break;
    }
    measure_frames();
    finish();
    return failed_;
  }

 private:
  // ---- The calls ---------------------------------------------------------------------------------

  void run_collective() {
    const bool scatters = call_.coll != PeerColl::kAllgather;
    const bool gathers = gpu::gathers(call_.coll);
    uint64_t most = 0;
    for (int rank = 0; rank < group_.ranks(); ++rank) most = std::max(most, chunk(rank).count);
    // What waits for a free slot waits for a piece before it: so half of the slots are enough for this.
    const unsigned half = group_.layout().depth() / 2;
    const unsigned ahead = scatters && gathers && half > 0 ? std::min(half - 1, kMostAhead) : 0;
    for (unsigned i = 0; i < ahead; ++i) scatter_next(most);
    // All chunks are cut in the same way, but may end at different pieces.
    for (uint64_t done = 0; done < most && failed_ == 0;) {
      if (scatters) scatter_next(most);
      const ElementRange own = piece(group_.rank(), done);
      if (own.count > 0) {
        if (scatters) reduce(own);
        // Before the last of what is made of the others' frames.
        const ElementRange whole = chunk(group_.rank());
        const bool last = own.first + own.count == whole.first + whole.count;
        if (scatters && gathers && last) tell_faults();
        if (gathers) share(own);
      }
      if (gathers) each_peer([&](int rank) { collect(rank, piece(rank, done)); });
      done += sizes_.at(done, most).count;
    }
    if (call_.coll == PeerColl::kAllgather) copy_own_block();
  }

  void run_send() {
    for (uint64_t done = 0; done < call_.count && failed_ == 0;) {
      const ElementRange next = sizes_.at(done, call_.count);
      send_piece(call_.peer, src(next.first), next.count);
      done += next.count;
    }
  }

  void run_recv() {
    for (uint64_t done = 0; done < call_.count && failed_ == 0;) {
      const ElementRange next = sizes_.at(done, call_.count);
      take_piece(call_.peer, dst(next.first), next.count);
      done += next.count;
    }
  }

  // ---- Pieces ------------------------------------------------------------------------------------

  void choose_pieces() {
    const PeerLayout& layout = group_.layout();
    uint64_t most = layout.slot_bytes() / element_;
    if (call_.compress) fail_if(frames_.most_elements(&most));
    const PeerOptions& options = group_.options();
    if (options.most_piece > 0) most = std::min(most, options.most_piece / element_);
    const uint64_t tile = tile_values(element_);
    most = std::max<uint64_t>(most / tile, 1) * tile;
    const uint64_t usual = call_.compress ? kLeastCodedPiece : kLeastPiece;
    const uint64_t wanted = options.least_piece > 0 ? options.least_piece : usual;
    const uint64_t least = (wanted / element_ + tile - 1) / tile * tile;
    sizes_ = {std::min(least, most), most, tile};
  }

  /// The elements that a rank reduces, or that it brings.
  ElementRange chunk(int rank) const {
    if (call_.coll == PeerColl::kAllreduce)
      return chunk_of(call_.count, group_.ranks(), rank, tile_values(element_));
    if (call_.coll == PeerColl::kReduce) return {0, rank == call_.peer ? call_.count : 0};
    return {static_cast<uint64_t>(rank) * call_.count, call_.count};
  }

  /// The elements of a rank's chunk that are on their way together with the first `done` ones done.
  ElementRange piece(int rank, uint64_t done) const {
    uint64_t most = 0;
    for (int r = 0; r < group_.ranks(); ++r) most = std::max(most, chunk(r).count);
    const ElementRange whole = chunk(rank);
    const uint64_t end = std::min(whole.count, done + sizes_.at(done, most).count);
    return {whole.first + done, end > done ? end - done : 0};
  }

  const uint8_t* src(uint64_t element) const {
    return static_cast<const uint8_t*>(call_.src) + element * element_;
  }
  uint8_t* dst(uint64_t element) const {
    return static_cast<uint8_t*>(call_.dst) + element * element_;
  }
  /// Where the elements of the own chunk are wanted: of a scattered vector only they.
  uint8_t* own_result(uint64_t element) const {
    return dst(call_.coll == PeerColl::kReduceScatter ? element - chunk(group_.rank()).first
                                                      : element);
  }

  template <class Action>
  void each_peer(Action action) {
    // Nobody is everybody's first.
    for (int i = 1; i < group_.ranks(); ++i) action((group_.rank() + i) % group_.ranks());
  }

  // ---- Steps of a piece --------------------------------------------------------------------------

  /// The next piece of each rank's chunk to that rank, and the numbers of those that come from there.
  void scatter_next(uint64_t most) {
    if (scattered_ >= most) return;
    each_peer([&](int rank) {
      const ElementRange elements = piece(rank, scattered_);
      if (elements.count > 0) send_piece(rank, src(elements.first), elements.count);
    });
    if (piece(group_.rank(), scattered_).count > 0) {
      each_peer([&](int rank) { expected(rank, expected_end_) = group_.lane(rank).taken++; });
      ++expected_end_;
    }
    scattered_ += sizes_.at(scattered_, most).count;
  }
  uint64_t& expected(int rank, unsigned number) {
    return expected_[rank][number % (kMostAhead + 1)];
  }

  void send_piece(int rank, const uint8_t* elements, uint64_t count) {
    const uint64_t sequence = group_.lane(rank).sent++;
    WorkStream& code = group_.streams().code;
    use(code);
    wait_for_credit(code, rank, sequence);
    if (!call_.compress) return send(code, rank, sequence, elements, count * element_);
    const SlotFrame frame = {
        group_.region() + group_.layout().outbox_at(group_.rank(), rank, sequence),
        frames_.room(count)};
    fail_if(frames_.encode(code, group_.pair_codec(), elements, count, frame));
    remember(code, frame, count);
    send(code, rank, sequence, frame.memory, frame.room.copied_bytes());
  }

  void take_piece(int rank, uint8_t* result, uint64_t count) {
    WorkStream& take = group_.streams().take;
    use(take);
    const Arrival arrival = arrive(take, rank, count, group_.lane(rank).taken++);
    if (call_.compress)
      fail_if(frames_.decode(take, arrival, result, nullptr));
    else
      copy(take, result, arrival.inbox, count * element_);
    give_back(take, rank, arrival.sequence);
  }

  /// This rank's share: everybody's elements, in rank order.
  void reduce(const ElementRange& own) {
    WorkStream& take = group_.streams().take;
    use(take);
    const unsigned number = expected_begin_++;
    if (call_.compress && group_.ranks() == 2) {
      const int rank = 1 - group_.rank();
      const Arrival arrival = arrive(take, rank, own.count, expected(rank, number));
      fail_if(frames_.decode(take, arrival, own_result(own.first), src(own.first)));
      return give_back(take, rank, arrival.sequence);
    }
    const void* sources[kMostPeerRanks];
    uint64_t sequences[kMostPeerRanks];
    sources[group_.rank()] = src(own.first);
    each_peer([&](int rank) {
      const Arrival arrival = arrive(take, rank, own.count, expected(rank, number));
      sources[rank] = arrival.inbox;
      sequences[rank] = arrival.sequence;
      if (!call_.compress) return;
      uint8_t* const elements = group_.region() + group_.layout().scratch_at(group_.rank(), rank);
      fail_if(frames_.decode(take, arrival, elements, nullptr));
      give_back(take, rank, arrival.sequence);
      sources[rank] = elements;
    });
    fail_if(api_.reduce(group_.share_codec(), call_.op, call_.type, own_result(own.first), sources,
                        static_cast<size_t>(group_.ranks()), own.count, call_.average_over,
                        take.stream));
    if (!call_.compress) each_peer([&](int rank) { give_back(take, rank, sequences[rank]); });
  }

  void tell_faults() {
    if (!call_.compress) return;
    pass_fault_on<<<1, 1, 0, group_.streams().take.stream>>>(group_.call_end(ticket_),
                                                             &group_.faults().decode);
    fail_if(take_error(), "start of a kernel");
  }

  /// This rank's elements to everybody.
  void share(const ElementRange& own) {
    const bool reduced = call_.coll == PeerColl::kAllreduce;
    const uint8_t* const elements =
        reduced ? own_result(own.first) : src(own.first - chunk(group_.rank()).first);
    WorkStream& take = group_.streams().take;
    SlotFrame frame{};
    if (call_.compress) frame = encode_shared(elements, own.count);
    each_peer([&](int rank) {
      const uint64_t sequence = group_.lane(rank).sent++;
      if (call_.compress && group_.ranks() == 2)
        return send(take, rank, sequence, frame.memory, frame.room.copied_bytes());
      WorkStream& code = group_.streams().code;
      use(code);
      wait_for_credit(code, rank, sequence);
      if (call_.compress || reduced) {
        WorkStream& out = group_.streams().copy;
        use(out);
        follow(out, take);
      }
      if (call_.compress)
        send(code, rank, sequence, frame.memory, frame.room.copied_bytes());
      else
        send(code, rank, sequence, elements, own.count * element_);
    });
    if (call_.compress) ++group_.shared;
  }

  /// Of two ranks in the outbox for the other; of more in the one that they share, when none of
  /// them needs what was there before.
  SlotFrame encode_shared(const uint8_t* elements, uint64_t count) {
    WorkStream& take = group_.streams().take;
    use(take);
    const PeerLayout& layout = group_.layout();
    uint64_t place = layout.shared_outbox_at(group_.shared);
    if (group_.ranks() == 2) {
      const int rank = 1 - group_.rank();
      place = layout.outbox_at(group_.rank(), rank, group_.lane(rank).sent);
      wait_for_credit(take, rank, group_.lane(rank).sent);
    } else {
      each_peer([&](int rank) {
        PeerLane& lane = group_.lane(rank);
        uint64_t& last = lane.shared[group_.shared % layout.depth()];
        if (last > 0) wait(take, credit(rank, last - 1), last);
        last = lane.sent + 1;
      });
    }
    const SlotFrame frame = {group_.region() + place, frames_.room(count)};
    fail_if(frames_.encode(take, group_.share_codec(), elements, count, frame));
    if (call_.coll == PeerColl::kAllgather) remember(take, frame, count);
    return frame;
  }

  /// The last frames that a stream has made, as many as are still there when it comes to the end.
  void remember(WorkStream& work, const SlotFrame& frame, uint64_t count) {
    const unsigned most = std::max(1u, group_.layout().depth() / 2);
    made_by_ = &work;
    made_.headers[made_count_ % most] = frame.header();
    made_bytes_[made_count_ % most] = count * element_;
    made_.count = std::min(++made_count_, most);
  }
  /// What they have become, beside the last pieces' way to the others.
  void measure_frames() {
    if (made_by_ == nullptr || failed_ != 0 || is_message(call_.coll)) return;
    add_frame_bytes<<<1, 1, 0, made_by_->stream>>>(made_, &group_.ticket_words(ticket_).coded);
    fail_if(take_error(), "start of a kernel");
    for (unsigned i = 0; i < made_.count; ++i)
      group_.coded_elements(ticket_) += made_bytes_[i];
  }

  /// A rank's elements, from its share() to where they are wanted.
  void collect(int rank, const ElementRange& elements) {
    if (elements.count == 0) return;
    WorkStream& work = group_.streams().collect;
    use(work);
    Arrival arrival = arrive(work, rank, elements.count, group_.lane(rank).taken++);
    if (group_.ranks() > 2)
      arrival.outbox =
          group_.lane(rank).region + group_.layout().shared_outbox_at(group_.lane(rank).collected);
    if (call_.compress) {
      ++group_.lane(rank).collected;
      fail_if(frames_.decode(work, arrival, dst(elements.first), nullptr));
    } else {
      copy(work, dst(elements.first), arrival.inbox, elements.count * element_);
    }
    give_back(work, rank, arrival.sequence);
  }

  void copy_own_block() {
    uint8_t* const own = dst(chunk(group_.rank()).first);
    if (own == call_.src) return;
    WorkStream& take = group_.streams().take;
    use(take);
    copy(take, own, static_cast<const uint8_t*>(call_.src), call_.count * element_);
  }

  /// Waits for a piece of a rank.
  Arrival arrive(WorkStream& work, int rank, uint64_t count, uint64_t sequence) {
    const PeerLayout& layout = group_.layout();
    wait(work, &group_.flags().ready[rank][sequence % layout.depth()], sequence + 1);
    return {group_.region() + layout.inbox_at(group_.rank(), rank, sequence),
            group_.lane(rank).region + layout.outbox_at(rank, group_.rank(), sequence), count,
            sequence};
  }
  void give_back(WorkStream& work, int rank, uint64_t sequence) {
    const unsigned slot = sequence % group_.layout().depth();
    tell(work, &group_.flags(rank).credit[group_.rank()][slot], sequence + 1);
  }

  // ---- Streams -----------------------------------------------------------------------------------

  /// The first time in a call: what the user's stream does before comes before.
  void use(WorkStream& work) {
    if (work.last_call == ticket_) return;
    work.last_call = ticket_;
    used_[used_count_++] = &work;
    fail_if(UZIP_GPU_RUNTIME(StreamWaitEvent)(work.stream, group_.begin(), 0), "an event");
  }
  /// What is on `first` now comes before what will be on `work`.
  void follow(WorkStream& work, WorkStream& first) { follow(work.stream, first); }
  void follow(Stream stream, WorkStream& first) {
    fail_if(UZIP_GPU_RUNTIME(EventRecord)(first.event, first.stream), "an event");
    fail_if(UZIP_GPU_RUNTIME(StreamWaitEvent)(stream, first.event, 0), "an event");
  }
  void copy(WorkStream& work, void* dst, const void* src, uint64_t bytes) {
    fail_if(api_.copy(dst, src, bytes, work.stream));
  }
  /// To a rank's inbox, which is free, after what is on `before` now. The words are written and waited for
  /// by other streams: else the engine would stand still between two copies, for 2 to 5 us.
  void send(WorkStream& before, int rank, uint64_t sequence, const void* bytes, uint64_t count) {
    const PeerLayout& layout = group_.layout();
    const int own = group_.rank();
    WorkStream& out = group_.streams().copy;
    WorkStream& announce = group_.streams().announce;
    use(out);
    use(announce);
    follow(out, before);
    copy(out, group_.lane(rank).region + layout.inbox_at(rank, own, sequence), bytes, count);
    follow(announce, out);
    tell(announce, &group_.flags(rank).ready[own][sequence % layout.depth()], sequence + 1);
    group_.wire_bytes += count;
  }
  uint64_t* credit(int rank, uint64_t sequence) {
    return &group_.flags().credit[rank][sequence % group_.layout().depth()];
  }
  void wait_for_credit(WorkStream& work, int rank, uint64_t sequence) {
    const unsigned depth = group_.layout().depth();
    if (sequence >= depth) wait(work, credit(rank, sequence), sequence - depth + 1);
  }
  void wait(WorkStream& work, uint64_t* word, uint64_t value) {
    if (!group_.words().wait(work.stream, word, value))
      failed_ = fail("GPU: waiting for another rank can't be enqueued");
  }
  void tell(WorkStream& work, uint64_t* word, uint64_t value) {
    if (!group_.words().write(work.stream, word, value))
      failed_ = fail("GPU: a word for another rank can't be enqueued");
  }

  /// The user's stream goes on when all is done.
  void finish() {
    for (unsigned i = 0; i < used_count_; ++i) follow(user_, *used_[i]);
    TicketWords& words = group_.ticket_words(ticket_);
    // Two words at a time, as they stand in both.
    static_assert(offsetof(PeerFlags, given_up) + sizeof(uint64_t) == PeerLayout::faults_at());
    static_assert(offsetof(PeerFaults, decode) == 0);
    static_assert(offsetof(TicketWords, given_up) + sizeof(uint64_t) == offsetof(TicketWords, fault));
    fail_if(api_.copy(&words.given_up, &group_.flags().given_up, 2 * sizeof(uint64_t), user_));
    if (!group_.words().write(user_, &words.done, ticket_))
      failed_ = fail("GPU: the end of a call can't be enqueued");
  }

  void fail_if(int failed) {
    if (failed != 0) failed_ = failed;
  }
  void fail_if(Error error, const char* what) { fail_if(check(error, what)); }

  // As measured on two H200: smaller ones begin and end sooner, but there are more of them.
  static constexpr uint64_t kLeastPiece = 16 << 20;
  static constexpr uint64_t kLeastCodedPiece = 20 << 20;
  static constexpr unsigned kMostUsed = 5;
  /// Pieces that leave before it is their turn.
  static constexpr unsigned kMostAhead = 2;

  PeerGroup& group_;
  const PeerCall& call_;
  Stream user_;
  uint64_t ticket_;
  const PluginApi& api_;
  PeerFrames frames_;
  uint64_t element_ = 1;
  PieceSizes sizes_{};
  WorkStream* used_[kMostUsed];
  unsigned used_count_ = 0;
  uint64_t scattered_ = 0;  ///< elements of each chunk that scatter_next() has come to
  /// Numbers of pieces of this rank's chunk that the others have sent and reduce() has not taken yet.
  uint64_t expected_[kMostPeerRanks][kMostAhead + 1];
  unsigned expected_begin_ = 0;
  unsigned expected_end_ = 0;
  MadeFrames made_{};
  uint64_t made_bytes_[kMostDepth] = {};
  unsigned made_count_ = 0;
  WorkStream* made_by_ = nullptr;
  int failed_ = 0;
};

}  // namespace

int load_pipeline_kernels() {
  UZIP_CHECK(load_kernel(pass_fault_on), "a kernel between ranks");
  UZIP_CHECK(load_kernel(add_frame_bytes), "a kernel between ranks");
  return 0;
}

int start_pipeline(PeerGroup& group, const PeerCall& call, Stream stream, uint64_t ticket) {
  PeerPipeline pipeline(group, call, stream, ticket);
  return pipeline.run();
}

}  // namespace uzip::gpu
