// A whole job in one process for the tests of src/comm: ranks over a LoopbackFabric, moved step by
// step in an order that the seed decides. Waiting is counted in steps, so that nothing depends on
// time.
#pragma once

#include "comm/job.hpp"
#include "comm/meddling_transport.hpp"
#include "support/loopback_transport.hpp"

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

namespace uzip {

/// A request and the rank that it is at.
struct Started {
  int rank = -1;
  Request* request = nullptr;
};

class LoopbackJob {
 public:
  /// More than any call of these tests needs.
  static constexpr int kStepLimit = 400000;

  /// What stands between each engine and its transport.
  using Wrap = std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>)>;

  explicit LoopbackJob(int size, const LoopbackOptions& wire = {}, const Config& config = Config(),
                       const Wrap& wrap = nullptr);
  ~LoopbackJob();
  LoopbackJob(const LoopbackJob&) = delete;
  LoopbackJob& operator=(const LoopbackJob&) = delete;

  int size() const { return static_cast<int>(worlds_.size()); }
  LoopbackFabric& fabric() { return fabric_; }
  Engine& engine(int rank) { return *worlds_[static_cast<size_t>(rank)].engine; }
  CommunicatorHandle& world(int rank) { return worlds_[static_cast<size_t>(rank)]; }
  Communicator& comm(int rank) { return *world(rank).comm; }

  /// One turn of a rank drawn at random.
  void step();
  /// False: not within `limit` steps.
  bool run_until(const std::function<bool()>& reached, int limit = kStepLimit);
  /// A few turns of every rank: what is under way arrives.
  void settle();

  /// Starts a call at `rank`, on its world or on `comm`.
  Result<Request*> start(int rank, const uzip_coll_args_t& call, Communicator* comm = nullptr);
  Result<Request*> start_send(int rank, const void* src, size_t count, DataType type, int dest,
                              int tag, const uzip_options_t* options = nullptr,
                              Communicator* comm = nullptr);
  Result<Request*> start_recv(int rank, void* dst, size_t count, DataType type, int source, int tag,
                              const uzip_options_t* options = nullptr,
                              Communicator* comm = nullptr);

  /// Runs until all are done, releases them and returns their status. After `limit` steps they
  /// inquire, as after UZIP_TIMEOUT; one that does not end then is failed with UZIP_ERR_TIMEOUT,
  /// "stuck ...".
  std::vector<Status> finish(const std::vector<Started>& requests, int limit = kStepLimit);
  /// Starts a call on every rank, in random order and with steps in between, and finishes them.
  std::vector<Status> run(const std::function<uzip_coll_args_t(int rank)>& call,
                          int limit = kStepLimit);

  /// A communicator of all ranks without talking, in the state in which a split has exchanged the
  /// numbers; then each rank joins: it can be used and takes messages.
  /// `processes[r]` is rank r's; by default its own number. The result is by process.
  std::vector<CommunicatorHandle> make_communicator(std::vector<int> processes = {});
  void join(std::vector<CommunicatorHandle>& comm, int rank);
  void join(std::vector<CommunicatorHandle>& comm);
  /// Frees it without talking.
  void leave(std::vector<CommunicatorHandle>& comm, int rank);
  void leave(std::vector<CommunicatorHandle>& comm);

  /// Runs `body` for each rank in a thread of its own: for calls that wait.
  void on_all_ranks(const std::function<void(int rank)>& body);

  /// "" if a sum over all ranks is right on all of them, else what is wrong: for after failures.
  std::string works();

  std::mt19937_64& random() { return random_; }

 private:
  LoopbackFabric fabric_;
  std::mt19937_64 random_;
  std::vector<CommunicatorHandle> worlds_;
};

/// "" if all have `code` and their messages contain `text`; else the first that hasn't.
std::string expect_all(const std::vector<Status>& statuses, StatusCode code, const char* text = "");

/// A call with all fields set that need a value.
uzip_coll_args_t make_call(uzip_coll_t coll, const void* src, void* dst, size_t count,
                           DataType type = UZIP_FP32, ReduceOp op = UZIP_SUM);

/// What log() should not print in tests of failures, which are many.
class QuietLog {
 public:
  QuietLog();
  ~QuietLog();
};

}  // namespace uzip
