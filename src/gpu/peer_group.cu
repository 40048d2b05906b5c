// A group's life: memory, handles, streams, tickets, and the end of waits that nobody answers.
#include "gpu/peer_group.hpp"

#include "base/datatype.hpp"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <new>

extern "C" const uzip::gpu::PluginApi* uzip_gpu_plugin();

namespace uzip::gpu {
namespace {

constexpr uint32_t kHandleMagic = 0x31505a55;
constexpr uint64_t kMostSlotBytes = uint64_t{64} << 20;
constexpr uint64_t kReleased = uint64_t{1} << 62;

struct HandleContents {
  uint32_t magic;
  int32_t rank;
  int32_t ranks;
  int32_t device;  ///< as its process numbers them
  uint64_t process;
  uint64_t base;  ///< valid in that process
  uint64_t slot_bytes;
  uint32_t depth;
  uint32_t blocks;
  IpcHandle memory;
};
static_assert(sizeof(HandleContents) <= sizeof(PeerHandle));

/// A number that only this process has.
uint64_t process_token() {
  static const uint64_t token = [] {
    uint64_t number = 0;
    if (getrandom(&number, sizeof number, 0) != sizeof number)
      number = reinterpret_cast<uintptr_t>(&number);
    return number;
  }();
  return token;
}

/// Makes a device the current one while it lives.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) {
    if (UZIP_GPU_RUNTIME(GetDevice)(&before_) != kSuccess || before_ == device) return;
    changed_ = UZIP_GPU_RUNTIME(SetDevice)(device) == kSuccess;
  }
  ~DeviceGuard() {
    if (changed_) static_cast<void>(UZIP_GPU_RUNTIME(SetDevice)(before_));
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  int before_ = 0;
  bool changed_ = false;
};

bool is_float_type(uint8_t type) { return type >= UZIP_FP16 && type <= UZIP_FP8_E5M2; }

/// For a failure that has its sentence.
int answer(PeerFailure failure, int) { return failure; }

int create_event(Event* event) {
  return check(UZIP_GPU_RUNTIME(EventCreateWithFlags)(event, UZIP_GPU_RUNTIME(EventDisableTiming)),
               "an event");
}

int create_stream(WorkStream* work) {
  UZIP_CHECK(
      UZIP_GPU_RUNTIME(StreamCreateWithFlags)(&work->stream, UZIP_GPU_RUNTIME(StreamNonBlocking)),
      "a stream");
  return create_event(&work->event);
}

void destroy_stream(WorkStream* work) {
  if (work->stream != nullptr) static_cast<void>(UZIP_GPU_RUNTIME(StreamDestroy)(work->stream));
  if (work->event != nullptr) static_cast<void>(UZIP_GPU_RUNTIME(EventDestroy)(work->event));
}

}  // namespace

PeerGroup::~PeerGroup() {
  const DeviceGuard guard(device_);
  const PluginApi& api = *uzip_gpu_plugin();
  for (const PeerLane& lane : lanes_)
    if (lane.opened) static_cast<void>(UZIP_GPU_RUNTIME(IpcCloseMemHandle)(lane.region));
  streams_.each([](WorkStream& work) { destroy_stream(&work); });
  if (rescue_ != nullptr) static_cast<void>(UZIP_GPU_RUNTIME(StreamDestroy)(rescue_));
  for (const Event event : {begin_, collectives_.last, sends_.last, receives_.last})
    if (event != nullptr) static_cast<void>(UZIP_GPU_RUNTIME(EventDestroy)(event));
  api.destroy_codec(pair_codec_);
  api.destroy_codec(share_codec_);
  for (void* memory : {static_cast<void*>(region_), static_cast<void*>(counters_)})
    static_cast<void>(api.release(memory));
  for (void* memory : {static_cast<void*>(tickets_), static_cast<void*>(released_)})
    static_cast<void>(api.release_pinned(memory));
}

int PeerGroup::create(const PeerOptions& options, PeerHandle* own) {
  if (options.ranks < 2 || options.ranks > kMostPeerRanks)
    return fail("GPU: a group of %d ranks; 2 to %d are allowed", options.ranks, kMostPeerRanks);
  if (options.depth > kMostDepth)
    return fail("GPU: %u slots a ring; 1 to %u are allowed", options.depth, kMostDepth);
  options_ = options;
  const unsigned depth =
      options.depth > 0 ? options.depth : suitable_depth(options.ranks, options.most_bytes);
  layout_ = PeerLayout(options.ranks, depth, options.most_bytes, kMostSlotBytes);
  constexpr uint64_t kLeastSlotBytes = 256 << 10;
  if (layout_.slot_bytes() < kLeastSlotBytes)
    return fail("GPU: %llu bytes are too few for a group of %d ranks",
                static_cast<unsigned long long>(options.most_bytes), options.ranks);
  if (options.blocks > 0) store_blocks_ = std::min(store_blocks_, options.blocks);
  if (!words_.load()) return fail("GPU: the driver has no waiting for words of memory");
  const PluginApi& api = *uzip_gpu_plugin();
  if (api.current_device(&device_) != 0) return 1;
  DeviceInfo info{};
  if (api.describe_device(device_, &info) != 0) return 1;
  processors_ = static_cast<unsigned>(info.processors);
  void* memory = nullptr;
  if (api.allocate(&memory, layout_.bytes()) != 0) return 1;
  region_ = static_cast<uint8_t*>(memory);
  UZIP_CHECK(UZIP_GPU_RUNTIME(Memset)(region_, 0, layout_.bytes()), "clearing memory");
  if (api.allocate(&memory, 2 * kMostTickets * sizeof(uint32_t)) != 0) return 1;
  counters_ = static_cast<uint32_t*>(memory);
  UZIP_CHECK(UZIP_GPU_RUNTIME(Memset)(counters_, 0, 2 * kMostTickets * sizeof(uint32_t)),
             "clearing memory");
  if (api.allocate_pinned(&memory, kMostTickets * sizeof(TicketWords)) != 0) return 1;
  tickets_ = static_cast<TicketWords*>(memory);
  std::memset(tickets_, 0, kMostTickets * sizeof(TicketWords));
  if (api.allocate_pinned(&memory, sizeof(PeerFlags)) != 0) return 1;
  released_ = static_cast<PeerFlags*>(memory);
  for (size_t i = 0; i < sizeof(PeerFlags) / sizeof(uint64_t); ++i)
    reinterpret_cast<uint64_t*>(released_)[i] = kReleased;
  if (create_streams() != 0 || load_kernels() != 0) return 1;

  HandleContents contents{};
  contents.magic = kHandleMagic;
  contents.rank = options.rank;
  contents.ranks = options.ranks;
  contents.device = device_;
  contents.process = process_token();
  contents.base = reinterpret_cast<uintptr_t>(region_);
  contents.slot_bytes = layout_.slot_bytes();
  contents.depth = layout_.depth();
  contents.blocks = store_blocks_;
  UZIP_CHECK(UZIP_GPU_RUNTIME(IpcGetMemHandle)(&contents.memory, region_),
             "opening memory to other processes");
  UZIP_CHECK(UZIP_GPU_RUNTIME(DeviceSynchronize)(), "clearing memory");
  *own = PeerHandle{};
  std::memcpy(own->bytes, &contents, sizeof contents);
  return 0;
}

int PeerGroup::create_streams() {
  // First of all, so that it shares its queue to the device with as few others as possible.
  int least = 0;
  int greatest = 0;
  UZIP_CHECK(UZIP_GPU_RUNTIME(DeviceGetStreamPriorityRange)(&least, &greatest), "a stream");
  UZIP_CHECK(UZIP_GPU_RUNTIME(StreamCreateWithPriority)(
                 &rescue_, UZIP_GPU_RUNTIME(StreamNonBlocking), greatest),
             "a stream");
  int failed = create_event(&begin_) | create_event(&collectives_.last) |
               create_event(&sends_.last) | create_event(&receives_.last);
  streams_.each([&](WorkStream& work) { failed |= create_stream(&work); });
  if (failed != 0) return failed;
  lanes_.resize(static_cast<size_t>(options_.ranks));
  const PluginApi& api = *uzip_gpu_plugin();
  const uint64_t most_count = layout_.outbox_bytes();  // of elements of one byte
  return api.create_codec(most_count, &pair_codec_) != 0 ||
         api.create_codec(most_count, &share_codec_) != 0;
}

/// The runtime loads a kernel when it is first launched, and may wait for all streams to do so:
/// with a stream that waits for another rank that would be for ever. So each kernel runs once, on
/// next to nothing.
int PeerGroup::load_kernels() {
  const PluginApi& api = *uzip_gpu_plugin();
  uint8_t* const frame = region_ + layout_.inbox_at(options_.rank, options_.rank == 0 ? 1 : 0, 0);
  const void* const sources[] = {frame, frame};
  for (uint8_t type = 0; type <= UZIP_FP8_E5M2; ++type) {
    if (api.reduce(share_codec_, UZIP_SUM, type, frame, sources, 2, 1, 0, nullptr) != 0) return 1;
    if (!is_float_type(type)) continue;
    EncodeRequest encoding{};
    encoding.type = type;
    encoding.count = 1;
    encoding.src = frame;
    encoding.header = reinterpret_cast<FrameHeader*>(frame + kFrameRoom);
    encoding.plain = frame + 2 * kFrameRoom;
    encoding.coded = frame + 4 * kFrameRoom;
    encoding.levels = 1;
    if (api.encode(share_codec_, &encoding, nullptr) != 0) return 1;
    DecodeRequest decoding{};
    decoding.type = type;
    decoding.count = 1;
    decoding.header = encoding.header;
    decoding.header_on_device = true;
    decoding.plain = encoding.plain;
    decoding.coded = encoding.coded;
    decoding.plain_room = decoding.coded_room = kFrameRoom;
    decoding.dst = frame;
    decoding.fault = &faults().spare;
    if (api.decode(share_codec_, &decoding, nullptr) != 0) return 1;
  }
  return load_pipeline_kernels() != 0 || load_small_kernels() != 0 || load_store_kernels() != 0 ||
         load_coded_kernels() != 0;
}

int PeerGroup::connect(const PeerHandle* handles) {
  const DeviceGuard guard(device_);
  for (int rank = 0; rank < options_.ranks; ++rank)
    if (rank != options_.rank && open_peer(rank, handles[rank]) != 0) return 1;
  return 0;
}

int PeerGroup::connect_pair(int rank, const PeerHandle& handle) {
  const DeviceGuard guard(device_);
  return open_peer(rank, handle);
}

int PeerGroup::open_peer(int rank, const PeerHandle& handle) {
  if (lane(rank).region != nullptr) return 0;
  HandleContents contents;
  std::memcpy(&contents, handle.bytes, sizeof contents);
  if (contents.magic != kHandleMagic || contents.rank != rank || contents.ranks != options_.ranks ||
      contents.slot_bytes != layout_.slot_bytes() || contents.depth != layout_.depth() ||
      contents.blocks != store_blocks_)
    return fail(
        "GPU: rank %d has opened other memory than this rank expects: do all ranks have "
        "the same settings?",
        rank);
  PeerLane& peer = lane(rank);
  if (contents.process != process_token()) {
    void* memory = nullptr;
    UZIP_CHECK(UZIP_GPU_RUNTIME(IpcOpenMemHandle)(&memory, contents.memory,
                                                  UZIP_GPU_RUNTIME(IpcMemLazyEnablePeerAccess)),
               "memory of another process");
    peer.region = static_cast<uint8_t*>(memory);
    peer.opened = true;
    return 0;
  }
  if (contents.device != device_) {
    const Error error = UZIP_GPU_RUNTIME(DeviceEnablePeerAccess)(contents.device, 0);
    if (error != UZIP_GPU_RUNTIME(ErrorPeerAccessAlreadyEnabled)) UZIP_CHECK(error, "peer access");
    static_cast<void>(take_error());
  }
  peer.region = reinterpret_cast<uint8_t*>(contents.base);
  return 0;
}

/// Elements that leave a rank in a call.
uint64_t PeerGroup::sent_elements(const PeerCall& call) const {
  const auto others = static_cast<uint64_t>(options_.ranks) - 1;
  switch (call.coll) {
    case PeerColl::kAllreduce: {
      const uint64_t own = chunk_of(call.count, options_.ranks, options_.rank, 1).count;
      return call.count - own + own * others;
    }
    case PeerColl::kReduceScatter:
    case PeerColl::kAllgather:
      return call.count * others;
    case PeerColl::kSend:
      return call.count;
    case PeerColl::kReduce:
      return call.peer == options_.rank ? 0 : call.count;
    default:
      return 0;
  }
}

/// Whether coded tiles are stored by one kernel rather than sent in pieces. As measured on two H200: the kernel is
/// ahead until a rank's share is so large that pieces hide what they cost; with the part of the device that a message may
/// take it never is.
bool PeerGroup::stores_coded(const PeerCall& call) const {
  if (!is_coded_here(*this, call)) return false;
  if (options_.most_coded_here > 0) return true;
  constexpr uint64_t kMiB = 1 << 20;
  const uint64_t bytes = call.count * datatype_size(static_cast<DataType>(call.type));
  switch (call.coll) {
    case PeerColl::kAllreduce:
      return bytes / static_cast<uint64_t>(options_.ranks) < 128 * kMiB;
    case PeerColl::kReduceScatter:
    case PeerColl::kAllgather:
      return bytes < 192 * kMiB;
    case PeerColl::kReduce:
      return bytes < 64 * kMiB;
    default:
      return false;
  }
}

int PeerGroup::start(const PeerCall& call, Stream stream, PeerTicket* ticket) {
  if (broken_) return fail("GPU: the group of ranks has failed before");
  // The others begin a call that is refused here, too, and this rank would take it for its next one.
  const auto refused = [&](int failed) {
    broken_ = true;
    return failed;
  };
  bool capturing = false;
  if (uzip_gpu_plugin()->is_capturing(stream, &capturing) != 0) return refused(kPeerFailed);
  if (capturing)
    return answer(
        kPeerUnsupported,
        fail("GPU: a call between ranks can't be captured in a graph; start it on a stream "
             "that does not capture"));
  const uint64_t next = last_ticket_ + 1;
  TicketWords& words = ticket_words(next);
  if (next > kMostTickets && words.done != next - kMostTickets)
    return refused(fail("GPU: %llu calls are at work; wait for some of them",
                        static_cast<unsigned long long>(kMostTickets)));
  if (words.fault != 0 || words.given_up != 0)
    return refused(fail("GPU: a call has failed that nobody has asked about yet"));
  last_ticket_ = next;
  words.coded = coded_elements(next) = 0;
  const uint64_t sent_before = wire_bytes;
  const DeviceGuard guard(device_);
  const auto start_here = is_small(*this, call)        ? start_small
                          : is_stored(*this, call)     ? start_stores
                          : stores_coded(call)         ? start_coded
                                                       : start_pipeline;
  int failed = order(call.coll, stream);
  if (failed == 0) failed = start_here(*this, call, stream, next);
  if (failed == 0) failed = remember(call.coll, stream);
  // Part of the call may be at work, and the others wait for the rest.
  if (failed != 0) broken_ = true;
  *ticket = {next, sent_elements(call) * datatype_size(static_cast<DataType>(call.type)),
             wire_bytes - sent_before};
  return failed;
}

/// Calls come one after another, whatever streams they are on: so slots are given back in their order,
/// and free when a rank goes on to the next call. But what is sent does not wait for what is received:
/// two ranks that send to one another would wait for each other.
int PeerGroup::order(PeerColl coll, Stream stream) {
  const auto follow = [&](const CallOrder& before) {
    return check(UZIP_GPU_RUNTIME(StreamWaitEvent)(stream, before.last, 0), "order of calls");
  };
  int failed = follow(collectives_);
  if (coll != PeerColl::kRecv && sends_.used) failed |= follow(sends_);
  if (coll != PeerColl::kSend && receives_.used) failed |= follow(receives_);
  return failed;
}

int PeerGroup::remember(PeerColl coll, Stream stream) {
  CallOrder& calls = coll == PeerColl::kSend   ? sends_
                     : coll == PeerColl::kRecv ? receives_
                                               : collectives_;
  sends_.used = coll == PeerColl::kSend || (sends_.used && is_message(coll));
  receives_.used = coll == PeerColl::kRecv || (receives_.used && is_message(coll));
  return check(UZIP_GPU_RUNTIME(EventRecord)(calls.last, stream), "order of calls");
}

CallEnd PeerGroup::call_end(uint64_t ticket) {
  CallEnd end{};
  // Ranks without messages for one another may not have opened their memory.
  for (int r = 0; r < ranks(); ++r)
    end.given_up[r] = lane(r).region == nullptr ? &flags().given_up : &flags(r).given_up;
  TicketWords& words = ticket_words(ticket);
  end.ticket = ticket;
  end.done = &words.done;
  end.fault = &words.fault;
  end.reason = &words.given_up;
  end.counter = counters_ + ticket % kMostTickets;
  end.rank = static_cast<uint32_t>(rank());
  end.ranks = static_cast<uint32_t>(ranks());
  return end;
}

int PeerGroup::query(uint64_t ticket, bool* done) {
  const volatile TicketWords& words = ticket_words(ticket);
  *done = words.done >= ticket;
  if (!*done) return 0;
  const bool own = words.done == ticket;
  const uint64_t fault = own ? words.fault : 0;
  const bool given_up = own && words.given_up != 0;
  if (fault != 0 || given_up) broken_ = true;
  if (fault == kTimedOut)
    return answer(kPeerTimedOut, fail("GPU: another rank did not answer in time, or has given up"));
  if (given_up_) return fail("GPU: the call was given up");
  if (fault != 0)
    return answer(kPeerCorrupt,
                  fail("GPU: what came from another rank is no frame that this call expects (fault "
                       "%u in block %u)",
                       static_cast<unsigned>(fault >> 32), static_cast<unsigned>(fault)));
  if (given_up && words.given_up == kDamaged)
    return answer(kPeerCorrupt, fail("GPU: another rank of the call got a frame that is damaged"));
  if (given_up) return answer(kPeerTimedOut, fail("GPU: another rank of the call has given it up"));
  return broken_ ? fail("GPU: another call of the group has failed") : 0;
}

void PeerGroup::shrunk(uint64_t ticket, uint64_t* elements, uint64_t* coded) const {
  const TicketWords& words = tickets_[ticket % kMostTickets];
  const bool known = words.done == ticket && words.fault == 0 && words.given_up == 0;
  *elements = known ? coded_elements_[ticket % kMostTickets] : 0;
  *coded = known ? words.coded : 0;
}

/// What streams wait for is written here, and they go on, with whatever is in the slots, and announce it.
/// So the others learn first that it is nothing. Written by the stream, not copied: a copy could be behind
/// one that waits.
int PeerGroup::give_up() {
  broken_ = given_up_ = true;
  const DeviceGuard guard(device_);
  for (int rank = 0; rank < options_.ranks; ++rank)
    if (rank != options_.rank && lane(rank).region != nullptr &&
        !words_.write(rescue_, &flags(rank).given_up, kGaveUp))
      return fail("GPU: rank %d can't be told that a call is given up", rank);
  UZIP_CHECK(UZIP_GPU_RUNTIME(MemcpyAsync)(region_, released_, sizeof(PeerFlags),
                                           UZIP_GPU_RUNTIME(MemcpyHostToDevice), rescue_),
             "giving a call up");
  return 0;
}

namespace {

int create(const PeerOptions* options, PeerGroup** group, PeerHandle* own) {
  *group = new (std::nothrow) PeerGroup;
  if (*group == nullptr) return fail("GPU: no memory");
  const int failed = (*group)->create(*options, own);
  if (failed == 0) return 0;
  delete *group;
  *group = nullptr;
  return failed;
}
int connect(PeerGroup* group, const PeerHandle* handles) { return group->connect(handles); }
int connect_pair(PeerGroup* group, int rank, const PeerHandle* handle) {
  return group->connect_pair(rank, *handle);
}
void destroy(PeerGroup* group) { delete group; }
void* stream_of(PeerGroup* group, PeerColl coll) { return group->stream_of(coll); }
int start(PeerGroup* group, const PeerCall* call, void* stream, PeerTicket* ticket) {
  return group->start(*call, static_cast<Stream>(stream), ticket);
}
int query(PeerGroup* group, uint64_t ticket, bool* done) { return group->query(ticket, done); }
void shrunk(PeerGroup* group, uint64_t number, uint64_t* elements, uint64_t* coded) {
  group->shrunk(number, elements, coded);
}
int give_up(PeerGroup* group) { return group->give_up(); }

}  // namespace

const PeerApi* peer_api() {
  static constexpr PeerApi kApi = {create, connect, connect_pair, destroy,
                                   start,  stream_of, query,      give_up,      shrunk};
  return &kApi;
}

}  // namespace uzip::gpu
