// The fake GPU's table for calls between ranks: a call is carried out, by the CPU, when the streams of all ranks have
// come to it.
#include "support/fake_gpu_peers.hpp"

#include "base/reduce.hpp"
#include "support/fake_gpu.hpp"

#include <cstring>
#include <memory>
#include <mutex>
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
  int rank = 0;
  std::vector<PeerGroup*> all;
  std::vector<std::shared_ptr<Call>> calls;
  bool given_up = false;
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
int groups = 0;

int refuse() { return plugin()->set_device(-1); }  // leaves a sentence in last_error()

int create(const gpu::PeerOptions* options, PeerGroup** group, gpu::PeerHandle* own) {
  *group = new PeerGroup;
  (*group)->rank = options->rank;
  (*group)->all.resize(static_cast<size_t>(options->ranks));
  std::memcpy(own->bytes, group, sizeof *group);
  const Lock lock(mutex);
  ++groups;
  return 0;
}

int connect(PeerGroup* group, const gpu::PeerHandle* handles) {
  const Lock lock(mutex);
  for (size_t r = 0; r < group->all.size(); ++r) std::memcpy(&group->all[r], handles[r].bytes, sizeof group->all[r]);
  return group->rank == refusing_rank ? refuse() : 0;
}

void destroy(PeerGroup* group) {
  const Lock lock(mutex);
  groups -= group != nullptr;
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
    std::memcpy(behind(calls[rank]->call.dst), results[rank].data(), results[rank].size());
    calls[rank]->done = true;
  }
}

void reach(PeerGroup* group, size_t index) {
  const Lock lock(mutex);
  group->calls[index]->reached = true;
  std::vector<std::shared_ptr<PeerGroup::Call>> calls;
  for (PeerGroup* const other : group->all) {
    if (other->calls.size() <= index || !other->calls[index]->reached || other->given_up) return;
    calls.push_back(other->calls[index]);
  }
  carry_out(calls);
}

int start(PeerGroup* group, const PeerCall* call, void* stream, gpu::PeerTicket* ticket) {
  size_t index = 0;
  {
    const Lock lock(mutex);
    if (group->given_up || group->rank == failing_rank) return refuse();
    index = group->calls.size();
    group->calls.push_back(std::make_shared<PeerGroup::Call>(PeerGroup::Call{*call, stream}));
  }
  launch(stream, [group, index] { reach(group, index); });
  *ticket = {index + 1, 100, 71};
  return 0;
}

int query(PeerGroup* group, uint64_t number, bool* done) {
  bool idle = false;
  PeerGroup::Call& call = *group->calls[number - 1];
  (void)plugin()->query_stream(call.stream, &idle);  // moves streams forward
  const Lock lock(mutex);
  if (group->given_up && call.reached && !call.done) call.failed = call.done = true;
  *done = call.done;
  return call.failed ? refuse() : 0;
}

int give_up(PeerGroup* group) {
  const Lock lock(mutex);
  group->given_up = true;
  return 0;
}

}  // namespace

const gpu::PeerApi* peers() {
  static constexpr gpu::PeerApi kApi = {create, connect, destroy, start, query, give_up};
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

int peer_groups() {
  const Lock lock(mutex);
  return groups;
}

}  // namespace uzip::fake_gpu
