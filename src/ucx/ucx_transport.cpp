#include "ucx/ucx_transport.hpp"

#include "base/copy.hpp"
#include "base/log.hpp"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include <poll.h>
#include <unistd.h>

namespace uzip {
namespace {

// From here on one copy by the receiver is cheaper than UCX's two through shared memory, the answer
// included.
constexpr size_t kPeerReadThreshold = size_t{8} << 10;
// A message to this process itself is copied, up to this size, so that its send need not wait.
constexpr size_t kSelfCopyLimit = size_t{8} << 10;
// Turns of progress in a row that UCX may have to wait while messages come from local queues.
constexpr uint32_t kMostTurnsWithoutUcx = 16;
constexpr auto kLongestSleep = std::chrono::milliseconds(100);

constexpr uint32_t kIdleCallsPerLook = 64;
constexpr auto kLookInterval = std::chrono::milliseconds(20);

/// The number of a host is that of its first process. Who does not use shared memory is alone.
std::vector<int> number_hosts(const std::vector<WireupRecord>& records) {
  std::vector<int> hosts;
  for (size_t i = 0; i < records.size(); ++i) {
    size_t first = records[i].shared_memory ? 0 : i;
    while (!(records[first].host == records[i].host && (records[first].shared_memory || first == i))) ++first;
    hosts.push_back(static_cast<int>(first));
  }
  return hosts;
}

bool all_on_one_host(const std::vector<WireupRecord>& records) {
  return std::all_of(records.begin(), records.end(), [&](const WireupRecord& record) {
    return record.host == records.front().host;
  });
}

// Names of the transports that an endpoint uses; UCX 1.13 only prints them.
std::vector<std::string> transports_of(ucp_ep_h endpoint) {
  const std::string text = printed([&](FILE* stream) { ucp_ep_print_info(endpoint, stream); });
  std::vector<std::string> names;
  std::string_view rest = text;
  for (size_t lane = rest.find("lane["); lane != rest.npos; lane = rest.find("lane[")) {
    rest.remove_prefix(lane + 5);
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const size_t slash = line.find('/');
    const size_t colon = line.rfind(':', slash);
    if (slash == line.npos || colon == line.npos) continue;
    names.emplace_back(line.substr(colon + 1, slash - colon - 1));
  }
  return names;
}

}  // namespace

// ---- Life ----

Result<std::unique_ptr<UcxTransport>> UcxTransport::create(const Config& config, int rank, int size,
                                                           const OutOfBandAllgather& allgather) {
  if (size < 1 || rank < 0 || rank >= size) {
    return error(UZIP_ERR_INVALID, "rank %d of %d processes: must be 0 ... size - 1", rank, size);
  }
  std::unique_ptr<UcxTransport> transport(new UcxTransport(rank, size));
  Status opened;
  if (auto resources = open_ucx(config, size); resources.ok()) {
    transport->ucx_ = std::move(*resources);
    opened = transport->install_handlers();
  } else {
    opened = resources.status();
  }

  // Where the user wants a network, nothing is to go around it.
  const bool with_queues = config.local_queues && transport->ucx_.shared_memory;
  std::vector<std::byte> mine;  // stays empty if this process can't take part
  if (opened.ok()) {
    WireupRecord record;
    record.host = host_identity();
    record.memory = {getpid(), reinterpret_cast<uint64_t>(transport->token_.data()),
                     transport->token_};
    record.shared_memory = transport->ucx_.shared_memory;
    record.peer_read = config.peer_read && record.shared_memory;
    record.address = transport->ucx_.address;
    if (with_queues) transport->make_inbox();
    record.inbox = transport->inbox_.address();
    mine = pack_wireup(record);
  }
  std::vector<std::vector<std::byte>> all;
  Status exchanged = allgather(mine, &all);
  UZIP_RETURN_IF_ERROR(opened);
  UZIP_RETURN_IF_ERROR(exchanged);
  UZIP_RETURN_IF_ERROR(transport->learn_peers(all));
  if (with_queues) transport->open_queues();
  transport->watch_peers();
  transport->connect_samples();
  transport->describe();
  // Nobody goes on, and perhaps leaves, before all others watch it.
  const std::byte reads{transport->reads_all_here()};
  UZIP_RETURN_IF_ERROR(allgather({&reads, 1}, &all));
  transport->info_.peer_reads = std::all_of(all.begin(), all.end(), [](const auto& one) { return one == std::vector{std::byte{1}}; });
  transport->inbox_.close_file();
  transport->learn_who_sees_stage();
  return transport;
}

UcxTransport::UcxTransport(int rank, int size)
    : rank_(rank), token_(make_memory_token()), peers_(static_cast<size_t>(size)) {
  for (int i = 0; i < size; ++i) {
    peers_[static_cast<size_t>(i)].transport = this;
    peers_[static_cast<size_t>(i)].index = i;
  }
}

Status UcxTransport::learn_peers(const std::vector<std::vector<std::byte>>& bytes) {
  if (bytes.size() != peers_.size()) {
    return error(UZIP_ERR_INTERNAL, "the exchange of addresses gave %zu entries for %zu processes",
                 bytes.size(), peers_.size());
  }
  std::vector<WireupRecord> records;
  for (size_t i = 0; i < bytes.size(); ++i) {
    const int process = static_cast<int>(i);
    if (bytes[i].empty()) {
      return error(UZIP_ERR_PEER,
                   "process %d could not start its communication; see its own message", process);
    }
    UZIP_ASSIGN_OR_RETURN(auto record, unpack_wireup(bytes[i], process));
    records.push_back(std::move(record));
  }
  info_.all_same_host = all_on_one_host(records) &&
                        std::all_of(records.begin(), records.end(),
                                    [](const auto& record) { return record.shared_memory; });
  info_.hosts = number_hosts(records);
  info_.processes_here = 0;
  const HostIdentity here = records[static_cast<size_t>(rank_)].host;
  const bool reads = records[static_cast<size_t>(rank_)].peer_read;
  for (size_t i = 0; i < records.size(); ++i) {
    Peer& peer = peers_[i];
    peer.record = std::move(records[i]);
    peer.same_host = peer.record.host == here;
    info_.processes_here += peer.same_host;
    peer.readable = peer.same_host;
    peer.offers = reads && peer.record.peer_read && peer.same_host;
  }
  return {};
}

// Connections are made when first needed: n * n of them would take long, and UCX complains of those
// that are not complete when a process leaves. One to a process of this host and one elsewhere are
// made now, to see how.
void UcxTransport::connect_samples() {
  bool here = false;
  bool elsewhere = false;
  for (int step = 1; step < size(); ++step) {
    Peer& peer = peers_[static_cast<size_t>((rank_ + step) % size())];
    bool& done = peer.same_host ? here : elsewhere;
    if (!done) (void)endpoint_of(peer);  // a failure is the peer's
    done = true;
  }
}

// "ucx 1.13.1: posix, tcp", from what UCX prints of each connection: "lane[0]:  2:posix/memory.0
// md[1] ...".
void UcxTransport::describe() {
  std::vector<std::string> transports;
  for (const Peer& peer : peers_) {
    if (peer.endpoint == nullptr) continue;
    for (std::string& name : transports_of(peer.endpoint)) {
      if (std::find(transports.begin(), transports.end(), name) == transports.end()) {
        transports.push_back(std::move(name));
      }
    }
  }
  info_.description = "ucx " + ucx_version();
  const char* separator = ": ";
  for (const std::string& name : transports) {
    info_.description += separator + name;
    separator = ", ";
  }
  const bool reads = std::any_of(peers_.begin(), peers_.end(), [&](const Peer& peer) {
    return peer.index != rank_ && peer.offers;
  });
  if (reads) {
    info_.description += std::string(separator) + "peer reads";
    separator = ", ";
  }
  const bool queues = std::any_of(peers_.begin(), peers_.end(),
                                  [](const Peer& peer) { return peer.queue.is_open(); });
  if (queues) info_.description += std::string(separator) + "local queues";
}

UcxTransport::~UcxTransport() {
  closing_ = true;
  if (!ucx_.worker) return;
  release_arrivals();
  close_endpoints();
  destroy_worker();
}

// ---- Sending ----

Result<ucp_ep_h> UcxTransport::endpoint_of(Peer& peer) {
  if (peer.failed) return peer.failure;
  if (peer.endpoint != nullptr) return peer.endpoint;
  ucp_ep_params_t params = {};
  params.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS | UCP_EP_PARAM_FIELD_ERR_HANDLING_MODE |
                      UCP_EP_PARAM_FIELD_ERR_HANDLER;
  params.address = reinterpret_cast<const ucp_address_t*>(peer.record.address.data());
  params.err_mode = UCP_ERR_HANDLING_MODE_PEER;
  params.err_handler = {&UcxTransport::on_endpoint_error, &peer};
  const ucs_status_t status = ucp_ep_create(ucx_.worker.get(), &params, &peer.endpoint);
  if (status != UCS_OK) {
    peer.endpoint = nullptr;
    mark_failed(peer,
                error(UZIP_ERR_PEER,
                      "process %d has ended or can't be reached: connecting to it failed: %s (UCX)",
                      peer.index, ucs_status_string(status)));
    return peer.failure;
  }
  return peer.endpoint;
}

Result<Progress> UcxTransport::send(int index, std::span<const std::byte> head,
                                    std::span<const std::byte> body, Completion* completion,
                                    const SendHints& hints) {
  if (index < 0 || index >= size() || head.size() > kMaxHeadBytes) {
    return error(UZIP_ERR_INTERNAL, "message with a head of %zu bytes to process %d of %d",
                 head.size(), index, size());
  }
  Peer& peer = peers_[static_cast<size_t>(index)];
  if (hints.receivers != 0) stage_.forget();  // whoever it goes to: the memory may have been written to since
  if (peer.failed) return peer.failure;
  if (index == rank_) return send_to_self(head, body, completion);
  const bool moves = hints.use == BodyUse::kMoved && body.size() > most_staged_moves(hints.receivers != 1);
  const bool is_read = peer.offers && (moves || peer.staged >= kMostStagedAhead);
  if (peer.sees_stage && !is_read && body.size() > kQueueBodyBytes)
    if (const auto sent = send_staged(peer, head, body, hints)) return *sent;
  if (peer.offers && body.size() >= (peer.queue.is_open() ? kQueueBodyBytes + 1 : kPeerReadThreshold)) {
    return send_offer(peer, head, body, completion);
  }

  const MessagePrefix prefix = {static_cast<uint32_t>(rank_), peer.next_send};
  Result<Progress> result =
      send_message(peer, WireKind::kMessage, bytes_of(prefix), head, body, completion);
  if (result.ok()) ++peer.next_send;
  return result;
}

// By the peer's queue if there is room, else by UCX. The header is prefix and head together.
Result<Progress> UcxTransport::send_message(Peer& peer, WireKind kind,
                                            std::span<const std::byte> prefix,
                                            std::span<const std::byte> head,
                                            std::span<const std::byte> body,
                                            Completion* completion) {
  if (push(peer, kind, prefix, head, body)) return Progress::kDone;
  Operation* operation = operations_.take(Operation::Kind::kSend, peer.index, completion);
  copy_bytes(operation->header, prefix.data(), prefix.size());
  copy_bytes(operation->header + prefix.size(), head.data(), head.size());
  operation->header_bytes = static_cast<uint32_t>(prefix.size() + head.size());
  return post(operation, kind, body);
}

Result<Progress> UcxTransport::post(Operation* operation, WireKind kind,
                                    std::span<const std::byte> body) {
  Peer& peer = peers_[static_cast<size_t>(operation->peer)];
  const Result<ucp_ep_h> endpoint = endpoint_of(peer);
  if (!endpoint.ok()) {
    operations_.give(operation);
    return endpoint.status();
  }
  operation->transport = this;
  ucp_request_param_t param;
  param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
  param.cb.send = &UcxTransport::on_sent;
  param.user_data = operation;
  const ucs_status_ptr_t request =
      ucp_am_send_nbx(*endpoint, static_cast<unsigned>(kind), operation->header,
                      operation->header_bytes, body.data(), body.size(), &param);
  sent_since_flush_ = true;
  if (UCS_PTR_IS_PTR(request)) {
    operation->with_ucx = true;
    operation->awaited = true;
    ++pending_sends_;
    return Progress::kPending;
  }
  const ucs_status_t status = UCS_PTR_RAW_STATUS(request);
  const Status failure = status == UCS_OK ? Status() : failure_of(*operation, status);
  operations_.give(operation);
  if (!failure.ok()) return failure;
  return Progress::kDone;
}

Result<Progress> UcxTransport::send_to_self(std::span<const std::byte> head,
                                            std::span<const std::byte> body,
                                            Completion* completion) {
  Arrival* arrival = arrivals_.take();
  arrival->peer = rank_;
  arrival->head_bytes = static_cast<uint32_t>(head.size());
  copy_bytes(arrival->head, head.data(), head.size());
  arrival->body_bytes = body.size();
  to_self_.push_back(arrival);
  if (body.size() <= kSelfCopyLimit) {
    arrival->body = Arrival::Body::kOwned;
    if (!arrival->make_room(body.size())) {
      to_self_.pop_back();
      arrivals_.give(arrival);
      return error(UZIP_ERR_NO_MEMORY, "no memory for a message of %zu bytes to this process itself", body.size());
    }
    copy_bytes(arrival->owned_body.get(), body.data(), body.size());
    return Progress::kDone;
  }
  Operation* operation = operations_.take(Operation::Kind::kSelf, rank_, completion);
  operation->source = body.data();
  operation->bytes = body.size();
  arrival->body = Arrival::Body::kSelf;
  arrival->offer = operation->id;
  operation->awaited = true;
  ++pending_sends_;
  return Progress::kPending;
}

void UcxTransport::finish(Operation* operation, const Status& status) {
  Completion* completion = operation->completion;
  if (operation->awaited) --pending_sends_;
  operations_.give(operation);
  if (completion == nullptr || closing_) return;
  if (progressing_) {
    completion->done(completion, status);
  } else {
    deferred_.emplace_back(completion, status);
  }
}

Status UcxTransport::failure_of(const Operation& operation, ucs_status_t status) {
  Peer& peer = peers_[static_cast<size_t>(operation.peer)];
  if (peer.failed) return peer.failure;
  const bool receiving = operation.kind == Operation::Kind::kReceive;
  return ucx_error(status, receiving ? "receiving" : "sending")
      .with_context("process " + std::to_string(peer.index));
}

void UcxTransport::on_sent(void* request, ucs_status_t status, void* user_data) {
  auto* operation = static_cast<Operation*>(user_data);
  UcxTransport* transport = operation->transport;
  ucp_request_free(request);
  transport->finish(operation,
                    status == UCS_OK ? Status() : transport->failure_of(*operation, status));
}

// ---- Progress ----

bool UcxTransport::progress() {
  progressing_ = true;
  bool moved = false;
  if (!deferred_.empty()) {
    moved = true;
    completing_.swap(deferred_);
    for (const auto& [completion, status] : completing_) completion->done(completion, status);
    completing_.clear();
  }
  if (!to_self_.empty()) {
    moved = true;
    announcing_.swap(to_self_);
    for (Arrival* arrival : announcing_) announce_lasting(arrival);
    announcing_.clear();
  }
  const bool queued = take_from_queues();
  moved |= queued;
  if (!queued || ++turns_without_ucx_ >= kMostTurnsWithoutUcx) {
    turns_without_ucx_ = 0;
    moved |= ucp_worker_progress(ucx_.worker.get()) != 0;
  }
  if (!moved) look_when_idle();
  if (!to_connect_.empty()) connect_back();
  if (!newly_failed_.empty()) {
    moved = true;
    report_failures();
  }
  progressing_ = false;
  return moved;
}

// The end of a watched process is looked for when nothing else goes on, and not too often.
void UcxTransport::look_when_idle() {
  if (++idle_calls_ < kIdleCallsPerLook) return;
  const bool told = idle_calls_ > kIdleCallsPerLook;
  idle_calls_ = 0;
  const auto now = std::chrono::steady_clock::now();
  if (!told && now - last_look_ < kLookInterval) return;
  last_look_ = now;
  look_for_ended();
}

void UcxTransport::connect_back() {
  for (int index : std::exchange(to_connect_, {})) {
    Peer& peer = peers_[static_cast<size_t>(index)];
    (void)endpoint_of(peer);  // a failure is the peer's
  }
}

void UcxTransport::wait(std::chrono::milliseconds limit) {
  if (!deferred_.empty() || !to_self_.empty() || !newly_failed_.empty()) return;
  if (inbox_.fall_asleep()) poll_until(limit);
  inbox_.wake_up();
}

void UcxTransport::poll_until(std::chrono::milliseconds limit) {
  // Anything but success, UCS_ERR_BUSY above all, means that there is something to progress.
  if (ucp_worker_arm(ucx_.worker.get()) != UCS_OK) return;
  pollfd descriptors[2] = {{ucx_.event_fd, POLLIN, 0}, {watch_.descriptor(), POLLIN, 0}};
  const auto bounded = std::clamp(limit, std::chrono::milliseconds(0), kLongestSleep);
  poll(descriptors, 2, static_cast<int>(bounded.count()));  // a descriptor of -1 is left out
  if (descriptors[1].revents != 0) idle_calls_ = kIdleCallsPerLook;
}

bool UcxTransport::flushed() {
  if (pending_sends_ > 0 || pending_flushes_ > 0) return false;
  if (!sent_since_flush_) return true;
  const bool queued = std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) {
    return !peer.failed && !peer.queue.drained();
  });
  if (queued) return false;
  sent_since_flush_ = false;
  for (Peer& peer : peers_) {
    if (peer.endpoint == nullptr || peer.failed) continue;
    ucp_request_param_t param;
    param.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK | UCP_OP_ATTR_FIELD_USER_DATA;
    param.cb.send = &UcxTransport::on_flushed;
    param.user_data = this;
    const ucs_status_ptr_t request = ucp_ep_flush_nbx(peer.endpoint, &param);
    // An error here is the peer's end, which its endpoint reports as well.
    if (request != nullptr && !UCS_PTR_IS_ERR(request)) ++pending_flushes_;
  }
  return pending_flushes_ == 0;
}

void UcxTransport::on_flushed(void* request, ucs_status_t, void* user_data) {
  ucp_request_free(request);
  --static_cast<UcxTransport*>(user_data)->pending_flushes_;
}

}  // namespace uzip
