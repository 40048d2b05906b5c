// UcxTransport's receiving side: from UCX's active message handlers to the sink, and to the
// receiver's buffer.
#include "ucx/ucx_transport.hpp"

#include "base/copy.hpp"
#include "base/log.hpp"

#include <cstring>
#include <new>

namespace uzip {
namespace {

// Whether UCX keeps something for the arrival after the handler has returned.
bool held_after_handler(const Arrival& arrival) {
  return arrival.body == Arrival::Body::kUcx || arrival.body == Arrival::Body::kRendezvous;
}

}  // namespace

// What UCX calls for each active message of a kind. No exception may go through UCX.
template <WireKind kKind>
ucs_status_t UcxTransport::on_active_message(void* self, const void* header, size_t header_bytes,
                                             void* data, size_t bytes,
                                             const ucp_am_recv_param_t* param) {
  auto* transport = static_cast<UcxTransport*>(self);
  if (transport->closing_) return UCS_OK;
  return transport->dispatch(kKind, {static_cast<const std::byte*>(header), header_bytes}, data,
                             bytes, param->recv_attr);
}

// `data` is what UCX gives its handlers, or with `attributes` 0 a body that lasts until this
// returns.
ucs_status_t UcxTransport::dispatch(WireKind kind, std::span<const std::byte> header, void* data,
                                    size_t bytes, uint64_t attributes) try {
  switch (kind) {
    case WireKind::kMessage:
    case WireKind::kOffer:
    case WireKind::kStaged:
      return on_arrival(kind, header, data, bytes, attributes);
    case WireKind::kAnswer:
      on_answer(header);
      return UCS_OK;
    case WireKind::kReply:
      return on_reply(header, data, bytes, attributes);
    case WireKind::kNudge:
      return UCS_OK;
  }
  return UCS_OK;
} catch (const std::bad_alloc&) {
  log(LogLevel::kError, "a message was lost: no memory");
  return UCS_OK;
}

Status UcxTransport::install_handlers() {
  constexpr ucp_am_recv_callback_t kHandlers[kWireKinds] = {
      &UcxTransport::on_active_message<WireKind::kMessage>,
      &UcxTransport::on_active_message<WireKind::kOffer>,
      &UcxTransport::on_active_message<WireKind::kAnswer>,
      &UcxTransport::on_active_message<WireKind::kReply>,
      &UcxTransport::on_active_message<WireKind::kNudge>,
      &UcxTransport::on_active_message<WireKind::kStaged>,
  };
  for (unsigned id = 0; id < kWireKinds; ++id) {
    ucp_am_handler_param_t param = {};
    param.field_mask = UCP_AM_HANDLER_PARAM_FIELD_ID | UCP_AM_HANDLER_PARAM_FIELD_FLAGS |
                       UCP_AM_HANDLER_PARAM_FIELD_CB | UCP_AM_HANDLER_PARAM_FIELD_ARG;
    param.id = id;
    // Without UCP_AM_FLAG_PERSISTENT_DATA: it makes UCX copy every short body, also those taken at
    // once.
    param.flags = UCP_AM_FLAG_WHOLE_MSG;
    param.cb = kHandlers[id];
    param.arg = this;
    const ucs_status_t status = ucp_worker_set_am_recv_handler(ucx_.worker.get(), &param);
    if (status != UCS_OK) return ucx_error(status, "installing UCX message handlers");
  }
  return {};
}

ucs_status_t UcxTransport::on_arrival(WireKind kind, std::span<const std::byte> header, void* data,
                                      size_t bytes, uint64_t attributes) {
  const size_t prefix_bytes =
      kind == WireKind::kMessage ? sizeof(MessagePrefix) : sizeof(OfferPrefix);
  OfferPrefix prefix;
  if (header.size() >= prefix_bytes) std::memcpy(&prefix, header.data(), prefix_bytes);
  if (header.size() < prefix_bytes || header.size() - prefix_bytes > kMaxHeadBytes ||
      prefix.message.source >= peers_.size()) {
    log(LogLevel::kError, "a message with a header of %zu bytes that can't be read was dropped",
        header.size());
    return UCS_OK;
  }

  Peer& peer = peers_[prefix.message.source];
  if (peer.failed) return UCS_OK;
  // Who only receives from a process would not learn of its end without an endpoint of its own.
  if (peer.endpoint == nullptr && peer.order.at_start()) to_connect_.push_back(peer.index);
  const std::byte* const staged =
      kind == WireKind::kStaged ? peer.queue.staged(prefix.address, prefix.bytes) : nullptr;
  if (kind == WireKind::kStaged && staged == nullptr) {
    mark_failed(peer, error(UZIP_ERR_CORRUPT, "process %d sent %llu bytes at %llu of its stage, which has %zu", peer.index,
                            static_cast<unsigned long long>(prefix.bytes),
                            static_cast<unsigned long long>(prefix.address), kStageBytes));
    return UCS_OK;
  }
  Arrival* arrival = arrivals_.take();
  arrival->peer = static_cast<int>(prefix.message.source);
  arrival->sequence = prefix.message.sequence;
  arrival->head_bytes = static_cast<uint32_t>(header.size() - prefix_bytes);
  if (kind == WireKind::kOffer) {
    arrival->body = Arrival::Body::kOffered;
    arrival->body_bytes = prefix.bytes;
    arrival->address = prefix.address;
    arrival->offer = prefix.offer;
  } else if (kind == WireKind::kStaged) {
    arrival->body = Arrival::Body::kStaged;
    arrival->body_bytes = prefix.bytes;
    arrival->data = const_cast<std::byte*>(staged);
    arrival->offer = prefix.offer;
  } else {
    arrival->body_bytes = bytes;
    arrival->data = data;
    if (attributes & UCP_AM_RECV_ATTR_FLAG_RNDV) {
      arrival->body = Arrival::Body::kRendezvous;
    } else if (attributes & UCP_AM_RECV_ATTR_FLAG_DATA) {
      arrival->body = Arrival::Body::kUcx;
    } else if (bytes <= sizeof arrival->inline_body) {
      arrival->body = Arrival::Body::kInline;
      if (bytes > 0) std::memcpy(arrival->inline_body, data, bytes);
    } else {
      arrival->body = Arrival::Body::kPassing;
    }
  }
  return take_in(peer, arrival, header.data() + prefix_bytes);
}

ucs_status_t UcxTransport::take_in(Peer& peer, Arrival* arrival, const std::byte* head) {
  switch (peer.order.place_of(arrival->sequence)) {
    case ArrivalOrder::Place::kNext: {
      const ucs_status_t status = announce_passing(arrival, head);
      if (peer.order.anything_early()) {
        while (Arrival* next = peer.order.take_next()) announce_lasting(next);
      }
      return status;
    }
    case ArrivalOrder::Place::kEarly:
      if (!make_lasting(arrival)) break;
      std::memcpy(arrival->head, head, arrival->head_bytes);
      peer.order.keep(arrival);
      return held_after_handler(*arrival) ? UCS_INPROGRESS : UCS_OK;
    case ArrivalOrder::Place::kPast:
      mark_failed(peer, error(UZIP_ERR_TRANSPORT, "process %d sent message %u twice", peer.index,
                              arrival->sequence));
      break;
  }
  arrivals_.give(arrival);
  return UCS_OK;
}

// Announces a message whose body UCX gets back when the handler returns, unless it is told to keep
// it.
ucs_status_t UcxTransport::announce_passing(Arrival* arrival, const std::byte* head) {
  const bool stable = arrival->body == Arrival::Body::kInline;
  Incoming message;
  message.peer = arrival->peer;
  message.head_bytes = arrival->head_bytes;
  message.body_bytes = arrival->body_bytes;
  message.head = head;
  message.handle = arrival;
  if (stable) message.body = arrival->inline_body;
  if (arrival->body == Arrival::Body::kUcx || arrival->body == Arrival::Body::kStaged) {
    message.body = static_cast<const std::byte*>(arrival->data);
  }

  arrival->in_handler = true;
  const bool kept = sink_->on_message(message);
  if (!kept && !arrival->ended) discard(message);
  arrival->in_handler = false;
  if (arrival->ended) {
    const bool held = arrival->held_by_ucx;
    arrivals_.give(arrival);
    return held ? UCS_INPROGRESS : UCS_OK;
  }
  // Without memory for it the peer has failed, and the sink gets an error when it asks for the
  // body.
  (void)make_lasting(arrival);
  return held_after_handler(*arrival) ? UCS_INPROGRESS : UCS_OK;
}

// Announces a message that has its body, or the place to fetch it from, for as long as it takes.
void UcxTransport::announce_lasting(Arrival* arrival) {
  Incoming message;
  message.peer = arrival->peer;
  message.head_bytes = arrival->head_bytes;
  message.body_bytes = arrival->body_bytes;
  message.head = arrival->head;
  message.handle = arrival;
  switch (arrival->body) {
    case Arrival::Body::kInline:
      message.body = arrival->inline_body;
      break;
    case Arrival::Body::kOwned:
      message.body = arrival->owned_body.get();
      break;
    case Arrival::Body::kUcx:
    case Arrival::Body::kStaged:
      message.body = static_cast<const std::byte*>(arrival->data);
      break;
    default:
      break;
  }
  if (!sink_->on_message(message)) discard(message);
}

// Copies the body out of UCX's memory if it must go back there. False, and the peer has failed,
// without memory.
bool UcxTransport::make_lasting(Arrival* arrival) {
  if (arrival->body != Arrival::Body::kPassing) return true;
  if (!arrival->make_room(arrival->body_bytes)) {
    mark_failed(peers_[static_cast<size_t>(arrival->peer)],
                error(UZIP_ERR_NO_MEMORY, "no memory for a message of %zu bytes from process %d",
                      arrival->body_bytes, arrival->peer));
    arrival->body = Arrival::Body::kLost;
    return false;
  }
  copy_bytes(arrival->owned_body.get(), arrival->data, arrival->body_bytes);
  arrival->body = Arrival::Body::kOwned;
  return true;
}

// The message has been received or discarded.
void UcxTransport::end(Arrival* arrival) {
  if (arrival->in_handler) {
    arrival->ended = true;
    return;
  }
  if (arrival->body == Arrival::Body::kUcx) ucp_am_data_release(ucx_.worker.get(), arrival->data);
  arrivals_.give(arrival);
}

Result<Progress> UcxTransport::receive(Incoming& message, std::span<std::byte> dst,
                                       Completion* completion) {
  auto* arrival = static_cast<Arrival*>(message.handle);
  if (dst.size() < arrival->body_bytes) {
    const Status failure = error(UZIP_ERR_INTERNAL, "%zu bytes of room for a message of %zu",
                                 dst.size(), arrival->body_bytes);
    discard(message);
    return failure;
  }
  dst = dst.first(arrival->body_bytes);
  Result<Progress> result = Progress::kDone;
  const std::byte* body = nullptr;
  switch (arrival->body) {
    case Arrival::Body::kInline:
      body = arrival->inline_body;
      break;
    case Arrival::Body::kOwned:
      body = arrival->owned_body.get();
      break;
    case Arrival::Body::kPassing:
    case Arrival::Body::kUcx:
    case Arrival::Body::kStaged:
      body = static_cast<const std::byte*>(arrival->data);
      break;
    case Arrival::Body::kRendezvous:
      result = fetch(arrival, dst, completion);
      break;
    case Arrival::Body::kOffered:
      result = take_offer(arrival, dst, completion);
      break;
    case Arrival::Body::kSelf:
      take_from_self(arrival, dst);
      break;
    case Arrival::Body::kLost:
      result = peers_[static_cast<size_t>(arrival->peer)].failure;
      break;
  }
  if (body != nullptr) copy_bytes(dst.data(), body, dst.size());
  if (arrival->body == Arrival::Body::kStaged) answer_taken(*arrival);
  end(arrival);
  return result;
}

void UcxTransport::discard(Incoming& message) {
  auto* arrival = static_cast<Arrival*>(message.handle);
  if (arrival->body == Arrival::Body::kOffered || arrival->body == Arrival::Body::kStaged) {
    answer_taken(*arrival);
  } else if (arrival->body == Arrival::Body::kSelf) {
    take_from_self(arrival, {});
  } else if (arrival->body == Arrival::Body::kRendezvous) {
    release_to_ucx(arrival);
  }
  end(arrival);
}

// Gives back what UCX keeps for the arrival; to the sender of a rendezvous that says that it is
// done. Inside the handler UCX does that by itself.
void UcxTransport::release_to_ucx(Arrival* arrival) {
  if (!arrival->in_handler) ucp_am_data_release(ucx_.worker.get(), arrival->data);
}

// Lets UCX move the body of a rendezvous.
Result<Progress> UcxTransport::fetch(Arrival* arrival, std::span<std::byte> dst,
                                     Completion* completion) {
  Peer& peer = peers_[static_cast<size_t>(arrival->peer)];
  // UCX would do with the endpoint that it made for the sender, but that one can't be closed, and a
  // worker is not destroyed (UCX aborts) while an endpoint has something to do.
  const Result<ucp_ep_h> endpoint = endpoint_of(peer);
  if (!endpoint.ok()) {
    release_to_ucx(arrival);
    return endpoint.status();
  }
  arrival->held_by_ucx = true;
  return start_fetch(operations_.take(Operation::Kind::kReceive, arrival->peer, completion),
                     arrival->data, dst);
}

Result<Progress> UcxTransport::start_fetch(Operation* operation, void* descriptor,
                                           std::span<std::byte> dst) {
  operation->transport = this;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.recv_am = &UcxTransport::on_fetched;
  param.user_data = operation;
  const ucs_status_ptr_t request =
      ucp_am_recv_data_nbx(ucx_.worker.get(), descriptor, dst.data(), dst.size(), &param);
  if (UCS_PTR_IS_PTR(request)) {
    operation->with_ucx = true;
    return Progress::kPending;
  }
  const ucs_status_t status = UCS_PTR_RAW_STATUS(request);
  const Status failure = status == UCS_OK ? Status() : failure_of(*operation, status);
  operations_.give(operation);
  if (!failure.ok()) return failure;
  return Progress::kDone;
}

void UcxTransport::on_fetched(void* request, ucs_status_t status, size_t, void* user_data) {
  auto* operation = static_cast<Operation*>(user_data);
  UcxTransport* transport = operation->transport;
  ucp_request_free(request);
  transport->finish(operation,
                    status == UCS_OK ? Status() : transport->failure_of(*operation, status));
}

}  // namespace uzip
