// UcxTransport when a process dies, and at the end.
#include "ucx/ucx_transport.hpp"

#include <ctime>
#include <utility>

namespace uzip {
namespace {

constexpr auto kCloseLimit = std::chrono::seconds(1);

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
    if (peer.endpoint != nullptr) {
      ucp_request_param_t param;
      param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
      param.flags = UCP_EP_CLOSE_FLAG_FORCE;
      const ucs_status_ptr_t request = ucp_ep_close_nbx(peer.endpoint, &param);
      peer.endpoint = nullptr;
      if (request != nullptr && !UCS_PTR_IS_ERR(request)) ucp_request_free(request);
    }
    operations_.for_each([&](Operation* operation) {
      if (operation->peer != index) return;
      // What UCX knows of it reports itself; a receive that it never ends keeps its buffer until
      // the worker's end.
      if (operation->kind == Operation::Kind::kOffer ||
          operation->kind == Operation::Kind::kAwaitReply) {
        finish(operation, peer.failure);
      }
    });
    sink_->on_peer_failed(index, peer.failure);
  }
}

void UcxTransport::close_endpoints() {
  std::vector<ucs_status_ptr_t> requests;
  for (Peer& peer : peers_) {
    if (peer.endpoint == nullptr) continue;
    ucp_request_param_t param;
    param.op_attr_mask = UCP_OP_ATTR_FIELD_FLAGS;
    param.flags = peer.failed ? UCP_EP_CLOSE_FLAG_FORCE : 0;
    const ucs_status_ptr_t request = ucp_ep_close_nbx(peer.endpoint, &param);
    peer.endpoint = nullptr;
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) requests.push_back(request);
  }
  const auto deadline = std::chrono::steady_clock::now() + kCloseLimit;
  while (!requests.empty() && std::chrono::steady_clock::now() < deadline) {
    if (ucp_worker_progress(ucx_.worker.get()) == 0) {
      const timespec pause = {0, 20000};
      nanosleep(&pause, nullptr);
    }
    std::erase_if(requests, [](ucs_status_ptr_t request) {
      if (ucp_request_check_status(request) == UCS_INPROGRESS) return false;
      ucp_request_free(request);
      return true;
    });
  }
}

}  // namespace uzip
