#include "comm/loopback_job.hpp"

#include "base/log.hpp"

#include <algorithm>
#include <numeric>
#include <thread>
#include <utility>

namespace uzip {

LoopbackJob::LoopbackJob(int size, const LoopbackOptions& wire, const Config& config,
                         const Wrap& wrap)
    : fabric_(size, wire), random_(wire.seed) {
  for (int rank = 0; rank < size; ++rank) {
    std::unique_ptr<Transport> transport = fabric_.connect(rank);
    if (wrap) transport = wrap(std::move(transport));
    Config own = config;
    own.codec_threads = std::max(own.codec_threads, 0);  // threads would not wait for a step
    auto engine = Engine::create(own, std::move(transport));
    worlds_.push_back(std::move(*create_world(std::move(*engine))));
  }
}

// Without talking, as after a failure: uzip_comm_free() is tested elsewhere.
LoopbackJob::~LoopbackJob() {
  for (CommunicatorHandle& world : worlds_) world.comm.reset();
}

void LoopbackJob::step() {
  const auto rank = static_cast<int>(random_() % worlds_.size());
  const std::lock_guard lock(engine(rank).mutex());
  engine(rank).progress();
}

bool LoopbackJob::run_until(const std::function<bool()>& reached, int limit) {
  for (; !reached(); --limit) {
    if (limit == 0) return false;
    step();
  }
  return true;
}

void LoopbackJob::settle() {
  constexpr int kTurns = 300;
  for (int turn = 0; turn < kTurns; ++turn) {
    for (int rank = 0; rank < size(); ++rank) engine(rank).progress();
  }
}

Result<Request*> LoopbackJob::start(int rank, const uzip_coll_args_t& call, Communicator* comm) {
  if (comm == nullptr) comm = world(rank).comm.get();
  UZIP_ASSIGN_OR_RETURN(CollArgs args, validate_collective(call, comm->context()));
  return comm->start(std::move(args));
}

Result<Request*> LoopbackJob::start_send(int rank, const void* src, size_t count, DataType type,
                                         int dest, int tag, const uzip_options_t* options,
                                         Communicator* comm) {
  if (comm == nullptr) comm = world(rank).comm.get();
  CollArgs args;
  UZIP_RETURN_IF_ERROR(validate_send(src, count, type, dest, tag, options, comm->context(), args));
  return comm->start(std::move(args));
}

Result<Request*> LoopbackJob::start_recv(int rank, void* dst, size_t count, DataType type,
                                         int source, int tag, const uzip_options_t* options,
                                         Communicator* comm) {
  if (comm == nullptr) comm = world(rank).comm.get();
  CollArgs args;
  UZIP_RETURN_IF_ERROR(validate_recv(dst, count, type, source, tag, options, comm->context(), args));
  return comm->start(std::move(args));
}

std::vector<Status> LoopbackJob::finish(const std::vector<Started>& requests, int limit) {
  size_t ended = 0;
  const auto all_ended = [&] {
    while (ended < requests.size() && requests[ended].request->done()) ++ended;
    return ended == requests.size();
  };
  if (!run_until(all_ended, limit)) {
    for (const Started& started : requests) started.request->inquire();
    run_until(all_ended, limit);
  }
  std::vector<Status> statuses;
  for (const Started& started : requests) {
    if (!started.request->done()) {
      started.request->fail(error(UZIP_ERR_TIMEOUT, "stuck after %d steps", limit), false);
    }
    statuses.push_back(started.request->status());
    engine(started.rank).release(started.request);
  }
  return statuses;
}

std::vector<Status> LoopbackJob::run(const std::function<uzip_coll_args_t(int)>& call, int limit) {
  std::vector<int> order(static_cast<size_t>(size()));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), random_);
  std::vector<Status> statuses(order.size());
  std::vector<Started> started;
  for (int rank : order) {
    for (uint64_t turns = random_() % 4; turns-- > 0;) step();
    Result<Request*> request = start(rank, call(rank));
    statuses[static_cast<size_t>(rank)] = request.status();
    if (request.ok()) started.push_back({rank, *request});
  }
  const std::vector<Status> ended = finish(started, limit);
  for (size_t i = 0; i < ended.size(); ++i) {
    statuses[static_cast<size_t>(started[i].rank)] = ended[i];
  }
  return statuses;
}

std::vector<CommunicatorHandle> LoopbackJob::make_communicator(std::vector<int> processes) {
  if (processes.empty()) {
    processes.resize(worlds_.size());
    std::iota(processes.begin(), processes.end(), 0);
  }
  std::vector<CommunicatorHandle> made(worlds_.size());
  std::vector<uint32_t> numbers;
  for (int process : processes) numbers.push_back(engine(process).reserve_number());
  for (size_t rank = 0; rank < processes.size(); ++rank) {
    const int process = processes[rank];
    CommunicatorHandle& handle = made[static_cast<size_t>(process)];
    handle.engine = world(process).engine;
    handle.number = numbers[rank];
    handle.comm =
        std::make_unique<Communicator>(engine(process), static_cast<int>(rank), processes, numbers);
  }
  return made;
}

void LoopbackJob::join(std::vector<CommunicatorHandle>& comm, int rank) {
  const CommunicatorHandle& handle = comm[static_cast<size_t>(rank)];
  engine(rank).set_communicator(handle.number, handle.comm.get());
}

void LoopbackJob::join(std::vector<CommunicatorHandle>& comm) {
  for (int rank = 0; rank < size(); ++rank) join(comm, rank);
}

void LoopbackJob::leave(std::vector<CommunicatorHandle>& comm, int rank) {
  CommunicatorHandle& handle = comm[static_cast<size_t>(rank)];
  if (!handle.comm) return;
  handle.comm.reset();
  engine(rank).free_number(handle.number);
}

void LoopbackJob::leave(std::vector<CommunicatorHandle>& comm) {
  for (int rank = 0; rank < size(); ++rank) leave(comm, rank);
}

void LoopbackJob::on_all_ranks(const std::function<void(int)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size(); ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

std::string LoopbackJob::works() {
  constexpr size_t kCount = 1000;
  std::vector<std::vector<int32_t>> in, out;
  for (int rank = 0; rank < size(); ++rank) {
    in.emplace_back(kCount, rank + 1);
    out.emplace_back(kCount);
  }
  const auto statuses = run([&](int rank) {
    const auto r = static_cast<size_t>(rank);
    return make_call(UZIP_ALLREDUCE, in[r].data(), out[r].data(), kCount, UZIP_INT32);
  });
  if (std::string wrong = expect_all(statuses, UZIP_OK); !wrong.empty()) return wrong;
  const std::vector<int32_t> expected(kCount, size() * (size() + 1) / 2);
  for (const auto& result : out) {
    if (result != expected) return "the next call is wrong";
  }
  return "";
}

std::string expect_all(const std::vector<Status>& statuses, StatusCode code, const char* text) {
  for (size_t rank = 0; rank < statuses.size(); ++rank) {
    const Status& status = statuses[rank];
    if (status.code() == code && status.message().find(text) != std::string::npos) continue;
    return "rank " + std::to_string(rank) + ": " + status_text(status.code()) + " instead of " +
           status_text(code) + " with '" + text + "': " + status.message();
  }
  return "";
}

uzip_coll_args_t make_call(uzip_coll_t coll, const void* src, void* dst, size_t count,
                           DataType type, ReduceOp op) {
  return {sizeof(uzip_coll_args_t), coll, src, dst, count, nullptr, type, op, nullptr, nullptr, 0, nullptr, nullptr, nullptr,
          nullptr};
}

namespace {
// Below the lowest level: not even errors.
constexpr auto kNothing = static_cast<LogLevel>(-1);
}  // namespace

QuietLog::QuietLog() { set_log_level(kNothing); }
QuietLog::~QuietLog() { set_log_level(LogLevel::kWarn); }

}  // namespace uzip
