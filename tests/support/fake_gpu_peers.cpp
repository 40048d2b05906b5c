// The fake GPU's table for calls between ranks: a call is carried out, by the CPU, when the streams of all ranks have
// come to it; a message when those of its two ranks have. Counts what real kernels could wait for in a circle.
#include "support/fake_gpu_peers.hpp"

#include "base/reduce.hpp"
#include "support/fake_gpu.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

namespace uzip::gpu {

class PeerGroup {
 public:
  struct Call {
    PeerCall call;
    void* stream;
    bool reached = false, done = false, failed = false;
  };
  using Calls = std::vector<std::shared_ptr<Call>>;
  int rank = 0;
  std::vector<PeerGroup*> all;  ///< null: not open to this rank
  Calls calls, collectives;
  std::map<int, Calls> sent, received;  ///< by the other rank
  bool given_up = false;
  char streams[2] = {};  ///< their addresses stand for them
};

}  // namespace uzip::gpu

namespace uzip::fake_gpu {
namespace {

using gpu::PeerCall;
using gpu::PeerColl;
using gpu::PeerGroup;

std::recursive_mutex mutex;
using Lock = std::lock_guard<std::recursive_mutex>;
int refusing_rank = -1;
int failing_rank = -1;
std::map<int, unsigned> percents;
int coded_calls = 0;
std::set<PeerGroup*> living;
int risks = 0;

int refuse() { return plugin()->set_device(-1); }  // leaves a sentence in last_error()

int create(const gpu::PeerOptions* options, PeerGroup** group, gpu::PeerHandle* own) {
  *group = new PeerGroup;
  (*group)->rank = options->rank;
  (*group)->all.resize(static_cast<size_t>(options->ranks));
  std::memcpy(own->bytes, group, sizeof *group);
  const Lock lock(mutex);
  living.insert(*group);
  return 0;
}

int connect(PeerGroup* group, const gpu::PeerHandle* handles) {
  const Lock lock(mutex);
  for (size_t r = 0; r < group->all.size(); ++r) std::memcpy(&group->all[r], handles[r].bytes, sizeof group->all[r]);
  return group->rank == refusing_rank ? refuse() : 0;
}

int connect_pair(PeerGroup* group, int rank, const gpu::PeerHandle* handle) {
  const Lock lock(mutex);
  std::memcpy(&group->all[static_cast<size_t>(rank)], handle->bytes, sizeof(PeerGroup*));
  return group->rank == refusing_rank ? refuse() : 0;
}

void destroy(PeerGroup* group) {
  const Lock lock(mutex);
  living.erase(group);
  delete group;
}

/// What every rank gets from the calls of all.
void carry_out(const std::vector<std::shared_ptr<PeerGroup::Call>>& calls) {
  const PeerCall& first = calls[0]->call;
  const auto type = static_cast<DataType>(first.type);
  const size_t bytes = first.count * datatype_size(type);
  const auto ranks = calls.size();
  std::vector<std::vector<std::byte>> results(ranks);
  for (size_t rank = 0; rank < ranks; ++rank) {
    std::vector<std::byte>& result = results[rank];
    if (first.coll == PeerColl::kAllgather) {
      for (const auto& call : calls) {
        const std::byte* const src = behind(call->call.src);
        result.insert(result.end(), src, src + bytes);
      }
      continue;
    }
    const size_t offset = first.coll == PeerColl::kReduceScatter ? rank * bytes : 0;
    std::vector<const void*> sources;
    for (const auto& call : calls) sources.push_back(behind(call->call.src) + offset);
    result.resize(bytes);
    reduce(static_cast<ReduceOp>(first.op), type, result.data(), sources, first.count, first.average_over);
  }
  for (size_t rank = 0; rank < ranks; ++rank) {
    if (first.coll != PeerColl::kReduce || static_cast<int>(rank) == first.peer)
      std::memcpy(behind(calls[rank]->call.dst), results[rank].data(), results[rank].size());
    calls[rank]->done = true;
  }
}

using Calls = PeerGroup::Calls;

void reach_collective(PeerGroup* group, size_t index) {
  Calls calls;
  for (PeerGroup* const other : group->all) {
    if (!other || other->collectives.size() <= index || !other->collectives[index]->reached || other->given_up) return;
    calls.push_back(other->collectives[index]);
  }
  carry_out(calls);
}

/// Both ends must agree on what it is: they have come to the same one of their messages.
void reach_message(PeerGroup* from, PeerGroup* to, size_t index) {
  Calls& sent = from->sent[to->rank];
  Calls& received = to->received[from->rank];
  if (sent.size() <= index || received.size() <= index || from->given_up || to->given_up) return;
  PeerGroup::Call& out = *sent[index];
  PeerGroup::Call& in = *received[index];
  if (!out.reached || !in.reached) return;
  const PeerCall& a = out.call;
  const PeerCall& b = in.call;
  const bool same = a.count == b.count && a.type == b.type && a.compress == b.compress && (!a.compress || a.levels == b.levels);
  if (same) std::memcpy(behind(b.dst), behind(a.src), a.count * datatype_size(static_cast<DataType>(a.type)));
  in.failed = !same;
  out.done = in.done = true;
}

void reach(PeerGroup* group, const std::shared_ptr<PeerGroup::Call>& call, size_t index) {
  const Lock lock(mutex);
  call->reached = true;
  const PeerColl coll = call->call.coll;
  if (coll < PeerColl::kSend) return reach_collective(group, index);
  PeerGroup* const other = group->all[static_cast<size_t>(call->call.peer)];
  coll == PeerColl::kSend ? reach_message(group, other, index) : reach_message(other, group, index);
}

/// Of a program's, not a part of a collective.
bool is_message(const PeerCall& call) {
  constexpr uint8_t kSend = 7;  // CallKind
  return call.coll >= PeerColl::kSend && call.stamp.coll == kSend;
}

/// What a rank receives must not wait beside a collective, nor beside what it receives from another rank.
bool is_risky(const PeerGroup& group, const PeerCall& call) {
  const bool message = is_message(call);
  if (message && call.coll == PeerColl::kSend) return false;
  return std::ranges::any_of(group.calls, [&](const auto& other) {
    if (other->done) return false;
    if (!is_message(other->call)) return message;
    return other->call.coll == PeerColl::kRecv && (!message || other->call.peer != call.peer);
  });
}

int start(PeerGroup* group, const PeerCall* call, void* stream, gpu::PeerTicket* ticket) {
  const auto started = std::make_shared<PeerGroup::Call>(PeerGroup::Call{*call, stream});
  size_t index = 0;
  {
    const Lock lock(mutex);
    if (group->given_up || group->rank == failing_rank) return refuse();
    coded_calls += call->compress;
    risks += is_risky(*group, *call);
    Calls& kind = call->coll == PeerColl::kSend   ? group->sent[call->peer]
                  : call->coll == PeerColl::kRecv ? group->received[call->peer]
                                                  : group->collectives;
    index = kind.size();
    kind.push_back(started);
    group->calls.push_back(started);
    *ticket = {group->calls.size(), 100, 71};
  }
  launch(stream, [group, started, index] { reach(group, started, index); });
  return 0;
}

void* stream_of(PeerGroup* group, PeerColl coll) { return &group->streams[coll == PeerColl::kRecv]; }

int query(PeerGroup* group, uint64_t number, bool* done) {
  bool idle = false;
  PeerGroup::Call& call = *group->calls[number - 1];
  (void)plugin()->query_stream(call.stream, &idle);  // moves streams forward
  const Lock lock(mutex);
  // Whoever gives a message up tells the other's GPU.
  PeerGroup* const other = call.call.coll < PeerColl::kSend ? group : group->all[static_cast<size_t>(call.call.peer)];
  const bool given_up = group->given_up || living.count(other) == 0 || other->given_up;
  if (given_up && call.reached && !call.done) call.failed = call.done = true;
  *done = call.done;
  return call.failed ? refuse() : 0;
}

void shrunk(PeerGroup* group, uint64_t number, uint64_t* elements, uint64_t* coded) {
  const Lock lock(mutex);
  const auto percent = percents.find(group->rank);
  *elements = group->calls[number - 1]->call.compress ? 100 : 0;
  *coded = percent == percents.end() ? 71 : percent->second;
}

int give_up(PeerGroup* group) {
  const Lock lock(mutex);
  group->given_up = true;
  return 0;
}

}  // namespace

const gpu::PeerApi* peers() {
  static constexpr gpu::PeerApi kApi = {create, connect, connect_pair, destroy, start, stream_of, query, give_up, shrunk};
  return &kApi;
}

void refuse_peers(int rank) {
  const Lock lock(mutex);
  refusing_rank = rank;
}

void fail_peers_start(int rank) {
  const Lock lock(mutex);
  failing_rank = rank;
}

void shrink_peers_to(int rank, unsigned percent) {
  const Lock lock(mutex);
  percents[rank] = percent;
}

int coded_peer_calls() {
  const Lock lock(mutex);
  return coded_calls;
}

int peer_groups() {
  const Lock lock(mutex);
  return static_cast<int>(living.size());
}

int peer_risks() {
  const Lock lock(mutex);
  return risks;
}

}  // namespace uzip::fake_gpu
