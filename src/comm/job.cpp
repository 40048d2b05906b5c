#include "comm/job.hpp"

#include "base/cpu.hpp"
#include "base/log.hpp"
#include "comm/tuning_file.hpp"
#include "ucx/ucx_transport.hpp"

#include <algorithm>
#include <cstring>
#include <numeric>

namespace uzip {
namespace {

/// What each rank tells the others in a split. Sizes and byte order are those of the wire.
struct SplitRecord {
  int32_t color;
  int32_t key;
  uint32_t number;  ///< of the new communicator, at this rank
  int32_t rank;     ///< in the parent
};

}  // namespace

Status run_internal(CommunicatorHandle& handle, const uzip_coll_args_t& call, double limit) {
  UZIP_ASSIGN_OR_RETURN(CollArgs args, validate_collective(call, handle.comm->context()));
  std::unique_lock lock(handle.engine->mutex());
  UZIP_ASSIGN_OR_RETURN(Request* const request, handle.comm->start(std::move(args)));
  handle.engine->wait(*request, lock, limit);
  const Status status = request->status();
  handle.engine->release(request);
  return status;
}

uzip_coll_args_t internal_call(uzip_coll_t coll, const void* src, void* dst, size_t bytes) {
  uzip_coll_args_t call = {};
  call.struct_size = sizeof call;
  call.coll = coll;
  call.src = src;
  call.dst = dst;
  call.count = bytes;
  call.dtype = UZIP_UINT8;
  return call;
}

Result<CommunicatorHandle> create_world(Bootstrap& bootstrap, const Config& config) {
  UZIP_RETURN_IF_ERROR(check_agreement(bootstrap, config));
  UZIP_RETURN_IF_ERROR(set_cpu_target(config.cpu));
  set_log_rank(bootstrap.rank());
  const auto exchange = [&](std::span<const std::byte> mine, std::vector<std::vector<std::byte>>* all) {
    return bootstrap.all_gather(mine, all);
  };
  UZIP_ASSIGN_OR_RETURN(auto transport,
                        UcxTransport::create(config, bootstrap.rank(), bootstrap.size(), exchange));
  UZIP_ASSIGN_OR_RETURN(std::shared_ptr<Engine> engine, Engine::create(config, std::move(transport)));
  if (config.topology == "auto") {
    UZIP_ASSIGN_OR_RETURN(std::vector<RankLocation> locations, exchange_locations(bootstrap, own_location(engine->gpus())));
    engine->set_locations(std::move(locations));
  }
  UZIP_ASSIGN_OR_RETURN(std::shared_ptr<const TuningTable> tuning, agree_on_tuning(bootstrap, load_tuning(config)));
  engine->set_tuning(std::move(tuning));
  UZIP_ASSIGN_OR_RETURN(const bool gpus, is_true_somewhere(bootstrap, engine->gpus().in_use()));
  engine->set_job_uses_gpus(gpus);
  return create_world(std::move(engine));
}

Result<CommunicatorHandle> create_world(std::shared_ptr<Engine> engine) {
  const Transport& transport = engine->transport();
  std::vector<int> processes(static_cast<size_t>(transport.size()));
  std::iota(processes.begin(), processes.end(), 0);
  CommunicatorHandle handle;
  handle.number = engine->reserve_number();
  // Every process makes this one first, so its number is the same everywhere.
  std::vector<uint32_t> numbers(processes.size(), handle.number);
  handle.comm =
      std::make_unique<Communicator>(*engine, transport.rank(), std::move(processes), std::move(numbers));
  engine->set_communicator(handle.number, handle.comm.get());
  handle.engine = std::move(engine);
  return handle;
}

Result<CommunicatorHandle> split(CommunicatorHandle& parent, int color, int key) {
  Communicator& comm = *parent.comm;
  Engine& engine = *parent.engine;
  CommunicatorHandle child;
  child.engine = parent.engine;
  {
    std::lock_guard lock(engine.mutex());
    child.number = engine.reserve_number();
  }
  const SplitRecord mine{std::max(color, -1), key, child.number, comm.rank()};
  std::vector<SplitRecord> all(static_cast<size_t>(comm.size()));
  const Status status = run_internal(parent, internal_call(UZIP_ALLGATHER, &mine, all.data(), sizeof mine),
                            engine.config().timeout_limit);
  std::unique_lock lock(engine.mutex());
  if (!status.ok() || color < 0) {
    engine.free_number(child.number);
    if (!status.ok()) return status;
    return CommunicatorHandle();
  }
  std::erase_if(all, [&](const SplitRecord& record) { return record.color != color; });
  for (const SplitRecord& record : all) {
    if (record.number != Engine::kNoNumber) continue;
    engine.free_number(child.number);
    return error(UZIP_ERR_NO_MEMORY, "rank %d has too many communicators; free some", record.rank);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const SplitRecord& a, const SplitRecord& b) { return a.key < b.key; });
  std::vector<int> processes;
  std::vector<uint32_t> numbers;
  int rank = 0;
  for (const SplitRecord& record : all) {
    if (record.rank == comm.rank()) rank = static_cast<int>(processes.size());
    processes.push_back(comm.process(record.rank));
    numbers.push_back(record.number);
  }
  child.comm = std::make_unique<Communicator>(engine, rank, std::move(processes), std::move(numbers));
  child.comm->set_calibration(comm.calibration());
  engine.set_communicator(child.number, child.comm.get());
  return child;
}

void leave(CommunicatorHandle& handle) {
  Status status = handle.comm->health();
  if (status.ok()) {
    // After the barrier nobody needs anything from this rank any more, except what is still under way.
    const Config& config = handle.engine->config();
    const double limit = config.timeout_limit > 0 ? config.timeout_limit : config.timeout;
    status = run_internal(handle, internal_call(UZIP_BARRIER, nullptr, nullptr, 0), limit);
    if (!status.ok()) log(LogLevel::kWarn, "freeing a communicator: %s", status.message().c_str());
  }
  std::unique_lock lock(handle.engine->mutex());
  handle.engine->flush(lock, status.ok() ? std::chrono::seconds(60) : std::chrono::seconds(1));
  handle.comm.reset();
  handle.engine->free_number(handle.number);
}

}  // namespace uzip
