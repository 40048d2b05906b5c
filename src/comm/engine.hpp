// Drives everything that the communicators of one job have in flight over one transport: brings messages to
// communicators, runs long steps between arrivals, and is the only place that waits.
#pragma once

#include "base/config.hpp"
#include "base/executor.hpp"
#include "base/transport.hpp"
#include "comm/buffer_pool.hpp"
#include "comm/coll_args.hpp"
#include "comm/gpu_devices.hpp"
#include "comm/message_head.hpp"
#include "comm/progress_thread.hpp"
#include "comm/request.hpp"
#include "comm/selector.hpp"
#include "comm/topology.hpp"

#include <atomic>
#include <chrono>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <vector>

namespace uzip {

class Communicator;

class Engine final : public TransportSink {
 public:
  static Result<std::shared_ptr<Engine>> create(const Config& config, std::unique_ptr<Transport> transport);
  ~Engine();

  /// Held by whoever calls anything here or on a communicator. wait() releases it while it yields.
  std::mutex& mutex() { return mutex_; }

  // Waiting. Each returns when `request` is done, or when a deadline has passed (which fails the request).
  void wait(Request& request, std::unique_lock<std::mutex>& lock);
  void wait(Request& request, std::unique_lock<std::mutex>& lock, double limit);  ///< seconds, 0: none
  /// Moves everything forward without waiting; true if anything moved.
  bool progress();
  /// From now on what is in flight moves forward also while no call waits, if there is a thread for that.
  void progress_in_background();
  /// Waits until all that was sent has been received, for `limit` at most.
  void flush(std::unique_lock<std::mutex>& lock, std::chrono::seconds limit);

  // Requests. acquire() never fails; release() takes a done request back, at once or when it is drained.
  Request* acquire();
  void release(Request* request);

  // Communicators. A number is reserved before the other ranks can know it; kNoNumber: there are too many.
  static constexpr uint32_t kNoNumber = UINT32_MAX;
  uint32_t reserve_number();
  void set_communicator(uint32_t number, Communicator* comm);
  void free_number(uint32_t number);

  // For communicators, requests and rounds.
  const Config& config() const { return config_; }
  const CallOptions* default_options() const { return defaults_; }
  LinkFacts link_facts(std::span<const int> processes) const;  ///< of a communicator of these
  int host_of(int process) const;  ///< a number for each host
  /// Where each process is on its host; to be set before the first communicator is made. UZIP_TOPOLOGY stands above it.
  void set_locations(std::vector<RankLocation> locations);
  const std::vector<RankLocation>& locations() const { return locations_; }
  /// Shape::sockets for a communicator of these.
  std::vector<int> sockets_of(std::span<const int> processes) const;
  /// The table that all ranks have agreed on, or nullptr; to be set before the first communicator is made.
  void set_tuning(std::shared_ptr<const TuningTable> tuning) { tuning_ = std::move(tuning); }
  const std::shared_ptr<const TuningTable>& tuning() const { return tuning_; }
  /// Whether some process of the job uses a GPU; as the table.
  void set_job_uses_gpus(bool uses) { job_uses_gpus_ = uses; }
  int codec_threads() const { return codec_threads_; }
  Transport& transport() { return *transport_; }
  Executor& executor() { return *executor_; }
  BufferPool& buffers() { return buffers_; }
  GpuDevices& gpus() { return gpus_; }
  /// `round` has a long step to run.
  void add_work(Round& round) { work_.push_back(&round); }
  /// Sends a control message of which nobody waits for the end.
  void send_control(int process, const MessageHead& head, const std::string& text);
  /// Takes a control message; its communicator hears of it (Communicator::on_control) when the text is here.
  void take_control(Incoming& incoming, const MessageHead& head);

  /// Makes a message last beyond on_message() if the transport's copy would not.
  void preserve(Incoming& incoming);
  Result<Progress> take(Incoming& incoming, std::span<std::byte> dst, Completion* completion);
  void discard(Incoming& incoming);

  // TransportSink.
  bool on_message(Incoming& incoming) override;
  void on_peer_failed(int process, const Status& why) override { on_process_failed(process, why, true); }
  void on_process_failed(int process, const Status& why, bool tell_others);

 private:
  struct Place {
    Communicator* comm = nullptr;
    uint32_t generation = 0;
    bool used = false;
    std::vector<HeldMessage> early;  ///< came before this rank had finished making the communicator
  };
  /// The text of a control message on its way, out or in.
  struct Letter : Completion {
    Engine* engine = nullptr;
    bool incoming = false;
    MessageHead head;
    std::string text;
  };
  using PreservedBody = std::vector<std::byte>;
  class Patience;

  explicit Engine(const Config& config) : config_(config), gpus_(config_) {}
  Status read_default_options();
  Place* find(uint32_t number);
  bool run_one_step();
  bool any_in_flight() const;
  void sleep();
  void check_deadline(Request& request, Patience& patience);
  Letter* new_letter(const MessageHead& head, std::string text, bool incoming);
  void end_letter(Letter* letter, bool has_text);

  const Config config_;
  std::shared_ptr<const TuningTable> tuning_;
  std::vector<RankLocation> locations_;  ///< by process, or empty
  int turns_without_yield_ = 0;
  int polls_per_turn_ = 1;
  int codec_threads_ = 0;
  bool job_uses_gpus_ = false;
  std::atomic<int> waiting_{0};  ///< calls that move everything forward themselves
  CallOptions defaults_[kCollCount];
  std::mutex mutex_;
  std::vector<Place> places_;
  uint32_t lowest_free_ = 0;       ///< no place below it is free
  std::map<int, Status> failed_;   ///< processes, and why; communicators that are being made hear of them later
  std::vector<Round*> work_;       ///< rounds with long steps, first in first out from work_head_
  size_t work_head_ = 0;
  std::vector<std::unique_ptr<PreservedBody>> idle_bodies_;
  BufferPool buffers_;
  GpuDevices gpus_;
  std::unique_ptr<Executor> executor_;
  std::vector<std::unique_ptr<Request>> requests_;  ///< all that were ever made
  std::vector<Request*> free_requests_;
  std::vector<Request*> draining_;  ///< released, but the transport still refers to them
  std::vector<std::unique_ptr<Letter>> letters_;
  std::unique_ptr<Transport> transport_;  ///< last but one: ends before what it may refer to
  std::unique_ptr<ProgressThread> progress_thread_;
};

}  // namespace uzip
