// UcxTransport when a process dies, and at the end.
#include "ucx/ucx_transport.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <thread>
#include <utility>

namespace uzip {
namespace {

constexpr auto kFlushLimit = std::chrono::milliseconds(1000);
constexpr auto kCloseLimit = std::chrono::milliseconds(200);
// Each watched process takes a file descriptor.
constexpr int kMostWatched = 128;
// Rounds of progress that a dead process's last messages get.
constexpr int kDrainRounds = 1000;

}  // namespace

void UcxTransport::on_endpoint_error(void* user_data, ucp_ep_h, ucs_status_t status) {
  Peer& peer = *static_cast<Peer*>(user_data);
  peer.transport->mark_failed(
      peer, error(UZIP_ERR_PEER, "process %d has ended or can't be reached any more: %s (UCX)",
                  peer.index, ucs_status_string(status)));
}

void UcxTransport::mark_failed(Peer& peer, Status why) {
  if (peer.failed) return;
  peer.failed = true;
  peer.failure = std::move(why);
  newly_failed_.push_back(peer.index);
}

void UcxTransport::report_failures() {
  for (int index : std::exchange(newly_failed_, {})) {
    Peer& peer = peers_[static_cast<size_t>(index)];
    if (const ucs_status_ptr_t request = close_by_force(peer)) ucp_request_free(request);
    operations_.for_each([&](Operation* operation) {
      if (operation->peer != index) return;
      if (operation->with_ucx && operation->awaited) {
        operation->awaited = false;
        --pending_sends_;
      }
      // What UCX knows of it reports itself; a receive that it never ends keeps its buffer until
      // the worker's end. A place in the stage is not used again: who failed may still read there.
      if (operation->kind == Operation::Kind::kOffer || operation->kind == Operation::Kind::kStaged ||
          operation->kind == Operation::Kind::kAwaitReply) {
        finish(operation, peer.failure);
      }
    });
    sink_->on_peer_failed(index, peer.failure);
  }
}

void UcxTransport::watch_peers() {
  int watched = 0;
  for (int step = 1; step < size() && watched < kMostWatched; ++step) {
    Peer& peer = peers_[static_cast<size_t>((rank_ + step) % size())];
    if (!peer.same_host) continue;
    ++watched;
    switch (watch_.add(peer.index, peer.record.memory)) {
      case ReadOutcome::kDone:
        peer.verified = true;
        break;
      case ReadOutcome::kForbidden:
        peer.readable = false;
        break;
      case ReadOutcome::kGone:  // ended already, or in another place than its record says
      case ReadOutcome::kUnreadable:
        break;
    }
  }
}

// As far as watching them has shown.
bool UcxTransport::reads_all_here() const {
  return std::all_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return peer.index == rank_ || !peer.same_host || (peer.offers && peer.readable);
  });
}

void UcxTransport::look_for_ended() {
  const std::vector<int> ended = watch_.ended();
  if (ended.empty()) return;
  // What they sent before their end is still in shared memory, and counts.
  for (int round = 0; round < kDrainRounds; ++round) {
    const bool queued = take_from_queues();
    if (ucp_worker_progress(ucx_.worker.get()) == 0 && !queued) break;
  }
  for (int index : ended) {
    mark_failed(peers_[static_cast<size_t>(index)],
                error(UZIP_ERR_PEER, "process %d has ended", index));
  }
}

// What the sink kept and never asked for.
void UcxTransport::release_arrivals() {
  arrivals_.for_each([&](Arrival* arrival) {
    if (arrival->body == Arrival::Body::kUcx || arrival->body == Arrival::Body::kRendezvous) {
      ucp_am_data_release(ucx_.worker.get(), arrival->data);
    }
  });
}

// Lets what was sent leave, within a bounded time, then cuts the connections. An orderly close of
// UCX may wait for a process that has left, can't be given up once begun, and its worker then can't
// be destroyed.
void UcxTransport::close_endpoints() {
  const auto progress_until = [&](auto condition, std::chrono::milliseconds limit) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!condition() && std::chrono::steady_clock::now() < deadline) {
      // The others may be leaving as well, and wait until this process has taken what they sent.
      const bool queued = take_from_queues();
      if (ucp_worker_progress(ucx_.worker.get()) == 0 && !queued) {
        look_for_ended();
        std::this_thread::sleep_for(std::chrono::microseconds(20));
      }
    }
  };
  progress_until([&] { return pending_sends_ == 0 && flushed(); }, kFlushLimit);

  std::vector<ucs_status_ptr_t> closing;
  for (Peer& peer : peers_) {
    if (const ucs_status_ptr_t request = close_by_force(peer)) closing.push_back(request);
  }
  progress_until(
      [&] {
        return std::none_of(closing.begin(), closing.end(), [](ucs_status_ptr_t request) {
          return ucp_request_check_status(request) == UCS_INPROGRESS;
        });
      },
      kCloseLimit);
  for (ucs_status_ptr_t request : closing) ucp_request_free(request);
}

// UCX aborts the process when a worker is destroyed that has something to do, and some of what it
// does with a dead peer never ends. Then the worker is left to the process's end; nobody progresses
// it, so it touches no buffer.
void UcxTransport::destroy_worker() {
  size_t unfinished = pending_flushes_;
  operations_.for_each(
      [&](const Operation* operation) { unfinished += operation->with_ucx ? 1 : 0; });
  if (unfinished == 0) {
    ucx_.worker.reset();
    return;
  }
  log(LogLevel::kInfo,
      "UCX still has %zu operations with processes that failed; its memory is freed "
      "when this process ends",
      unfinished);
  (void)ucx_.worker.release();
  (void)ucx_.context.release();
}

// The request to be freed, or null.
ucs_status_ptr_t UcxTransport::close_by_force(Peer& peer) {
  if (peer.endpoint == nullptr) return nullptr;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
  param.flags = UCP_EP_CLOSE_FLAG_FORCE;
  const ucs_status_ptr_t request = ucp_ep_close_nbx(peer.endpoint, &param);
  peer.endpoint = nullptr;
  return UCS_PTR_IS_ERR(request) ? nullptr : request;
}

}  // namespace uzip
