// The transport between real processes: UCX active messages, and for large messages within one host
// direct reads of the sender's memory. Used by src/comm; one thread at a time (the caller holds a
// lock).
//
// Ways of a body, by size and place: short ones travel inside the announcement (a queue in shared
// memory, or UCX eager), long ones are fetched by UCX's rendezvous when the receiver asks for them, and between processes of
// one host long ones are copied to the sender's stage, in memory that all see, or offered as an address that the receiver
// reads from with process_vm_readv(2).
#pragma once

#include "base/config.hpp"
#include "base/transport.hpp"
#include "ucx/arrival_order.hpp"
#include "ucx/local_queue.hpp"
#include "ucx/operation.hpp"
#include "ucx/peer_watch.hpp"
#include "ucx/ucx_context.hpp"
#include "ucx/wireup.hpp"

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace uzip {

/// Gives every process the bytes of all processes, in the order of their ranks. May block;
/// collective.
using OutOfBandAllgather = std::function<Status(std::span<const std::byte> mine,
                                                std::vector<std::vector<std::byte>>* all)>;

class UcxTransport final : public Transport {
 public:
  /// Collective over all `size` processes: calls `allgather` twice. A process that can't take part
  /// says so by contributing nothing to the first; then all return an error, and there is no
  /// second. `config` is read during the call only.
  static Result<std::unique_ptr<UcxTransport>> create(const Config& config, int rank, int size,
                                                      const OutOfBandAllgather& allgather);
  /// Closes the connections within a bounded time. Completions of pending operations are not
  /// called; their buffers are no longer used afterwards.
  ~UcxTransport() override;

  UcxTransport(const UcxTransport&) = delete;
  UcxTransport& operator=(const UcxTransport&) = delete;

  void set_sink(TransportSink* sink) override { sink_ = sink; }

  int rank() const override { return rank_; }
  int size() const override { return static_cast<int>(peers_.size()); }
  const TransportInfo& info() const override { return info_; }

  Result<Progress> send(int peer, std::span<const std::byte> head, std::span<const std::byte> body,
                        Completion* completion, const SendHints& hints) override;
  Result<Progress> receive(Incoming& message, std::span<std::byte> dst,
                           Completion* completion) override;
  void discard(Incoming& message) override;
  bool take_expected(int peer, std::span<const std::byte> head, std::span<std::byte> body) override;
  bool progress() override;
  void wait(std::chrono::milliseconds limit) override;
  bool flushed() override;

 private:
  /// Another process, or this one.
  struct Peer {
    UcxTransport* transport = nullptr;
    int index = -1;
    WireupRecord record;
    ucp_ep_h endpoint = nullptr;  ///< null until something is sent
    bool same_host = false;
    bool offers = false;     ///< it can probably read our memory
    bool readable = true;    ///< no read of its memory has been forbidden
    bool verified = false;   ///< a read of its memory has worked
    PeerReader reader;
    bool failed = false;
    Status failure;
    uint32_t next_send = 0;  ///< number of the next message to it
    ArrivalOrder order;      ///< of the messages from it
    LocalQueue queue;        ///< to it
    bool sees_stage = false;  ///< it has opened this process's inbox
    uint32_t staged = 0;      ///< bodies for it in the stage
    int inbox_queue = -1;    ///< number of its queue in the inbox; -1: it has none
  };

  UcxTransport(int rank, int size);
  Status learn_peers(const std::vector<std::vector<std::byte>>& records);
  void watch_peers();
  void connect_samples();
  bool reads_all_here() const;
  void poll_until(std::chrono::milliseconds limit);
  void describe();

  // Sending: ucx_transport.cpp.
  Result<ucp_ep_h> endpoint_of(Peer& peer);
  Result<Progress> send_message(Peer& peer, WireKind kind, std::span<const std::byte> prefix,
                                std::span<const std::byte> head, std::span<const std::byte> body,
                                Completion* completion);
  Result<Progress> post(Operation* operation, WireKind kind, std::span<const std::byte> body);
  Result<Progress> send_offer(Peer& peer, std::span<const std::byte> head,
                              std::span<const std::byte> body, Completion* completion);
  std::optional<Result<Progress>> send_staged(Peer& peer, std::span<const std::byte> head, std::span<const std::byte> body,
                                              const SendHints& hints);
  Result<Progress> send_to_self(std::span<const std::byte> head, std::span<const std::byte> body,
                                Completion* completion);
  void finish(Operation* operation, const Status& status);
  Status failure_of(const Operation& operation, ucs_status_t status);

  // Local queues: ucx_local.cpp.
  void make_inbox();
  void open_queues();
  bool push(Peer& peer, WireKind kind, std::span<const std::byte> prefix,
            std::span<const std::byte> head, std::span<const std::byte> body);
  bool take_from_queues();
  void take_queued(Peer& peer, LocalInbox::Taken taken, QueuedMessage& message);
  void learn_who_sees_stage();

  // Arrivals: ucx_arrivals.cpp.
  Status install_handlers();
  ucs_status_t dispatch(WireKind kind, std::span<const std::byte> header, void* data, size_t bytes,
                        uint64_t attributes);
  ucs_status_t on_arrival(WireKind kind, std::span<const std::byte> header, void* data,
                          size_t bytes, uint64_t attributes);
  ucs_status_t take_in(Peer& peer, Arrival* arrival, const std::byte* head);
  ucs_status_t announce_passing(Arrival* arrival, const std::byte* head);
  void announce_lasting(Arrival* arrival);
  bool make_lasting(Arrival* arrival);
  void end(Arrival* arrival);
  Result<Progress> fetch(Arrival* arrival, std::span<std::byte> dst, Completion* completion);
  Result<Progress> start_fetch(Operation* operation, void* descriptor, std::span<std::byte> dst);
  void release_to_ucx(Arrival* arrival);

  // Offers: ucx_offers.cpp.
  Result<Progress> take_offer(Arrival* arrival, std::span<std::byte> dst, Completion* completion);
  Result<Progress> ask_for_reply(Arrival* arrival, std::span<std::byte> dst, Completion* completion,
                                 Verdict verdict);
  void send_answer(int peer, const Answer& answer);
  void answer_taken(const Arrival& arrival);
  void on_answer(std::span<const std::byte> header);
  ucs_status_t on_reply(std::span<const std::byte> header, void* data, size_t bytes,
                        uint64_t attributes);
  void take_from_self(Arrival* arrival, std::span<std::byte> dst);

  // Failures: ucx_failures.cpp.
  void mark_failed(Peer& peer, Status why);
  void report_failures();
  void look_for_ended();
  void look_when_idle();
  void connect_back();
  void release_arrivals();
  void close_endpoints();
  void destroy_worker();
  ucs_status_ptr_t close_by_force(Peer& peer);

  template <WireKind kKind>
  static ucs_status_t on_active_message(void* self, const void* header, size_t header_bytes,
                                        void* data, size_t bytes, const ucp_am_recv_param_t* param);
  static void on_sent(void* request, ucs_status_t status, void* operation);
  static void on_fetched(void* request, ucs_status_t status, size_t bytes, void* operation);
  static void on_flushed(void* request, ucs_status_t status, void* transport);
  static void on_endpoint_error(void* peer, ucp_ep_h endpoint, ucs_status_t status);

  const int rank_;
  MemoryToken token_;  ///< at this address other processes look for it
  TransportSink* sink_ = nullptr;
  TransportInfo info_;
  UcxResources ucx_;
  std::vector<Peer> peers_;
  OperationPool operations_;
  ArrivalPool arrivals_;
  size_t pending_sends_ = 0;  ///< operations that flushed() waits for
  size_t pending_flushes_ = 0;
  bool sent_since_flush_ = false;
  bool progressing_ = false;  ///< inside progress(), where completions may be called
  bool closing_ = false;      ///< inside the destructor, where nothing may be called
  std::vector<std::pair<Completion*, Status>> deferred_;  ///< finished outside progress()
  std::vector<std::pair<Completion*, Status>> completing_;  ///< those of deferred_ that are being called
  std::vector<Arrival*> to_self_;     ///< sent by this process to itself, not yet announced
  std::vector<Arrival*> announcing_;  ///< those of to_self_ that are being announced
  std::vector<int> newly_failed_;
  std::vector<int> to_connect_;  ///< have sent something and are not connected yet
  PeerWatch watch_;
  LocalInbox inbox_;
  LocalStage stage_;
  std::vector<Peer*> queued_peers_;  ///< by number of their queue in the inbox
  uint32_t turns_without_ucx_ = 0;   ///< because there was something in a queue
  uint32_t idle_calls_ = 0;  ///< of progress() since the last look at the clock
  std::chrono::steady_clock::time_point last_look_{};
};

}  // namespace uzip
