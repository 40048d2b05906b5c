#include "versus_ucc.hpp"

#include "together.hpp"
#include "usable_cores.hpp"

#if __has_include(<ucc/api/ucc.h>)
#include <dlfcn.h>
#include <sched.h>
#include <ucc/api/ucc.h>
#include <unistd.h>
#define PERF_WITH_UCC 1
#endif

#include <cstring>

namespace perf {

#ifdef PERF_WITH_UCC

namespace {

/// UCC copies the whole structure, and newer releases have a longer one than the header we were built
/// with.
union CollArgs {
  ucc_coll_args_t args;
  std::byte room[4096];
};

/// UCC's all-gather between the ranks is the library's own.
ucc_status_t gather_start(void* src, void* dst, size_t bytes, void* comm, void** request) {
  auto started = std::make_unique<uzip_request_t>();
  if (uzip_iallgather(src, dst, bytes, UZIP_UINT8, *static_cast<uzip_comm_t*>(comm),
                      started.get()) != UZIP_OK)
    return UCC_ERR_NO_MESSAGE;
  *request = started.release();
  return UCC_OK;
}

ucc_status_t gather_test(void* request) {
  int done = 0;
  if (uzip_test(static_cast<uzip_request_t*>(request), &done) != UZIP_OK) return UCC_ERR_NO_MESSAGE;
  return done != 0 ? UCC_OK : UCC_INPROGRESS;
}

ucc_status_t gather_free(void* request) {
  delete static_cast<uzip_request_t*>(request);
  return UCC_OK;
}

/// UCC's type and, where it has none, an integer of the same width.
struct Stand {
  ucc_datatype_t type;
  const char* stands_in;
};

Stand ucc_type(uzip_dtype_t type) {
  // clang-format off
  switch (type) {
    case UZIP_INT8: return {UCC_DT_INT8, nullptr};
    case UZIP_UINT8: return {UCC_DT_UINT8, nullptr};
    case UZIP_INT32: return {UCC_DT_INT32, nullptr};
    case UZIP_UINT32: return {UCC_DT_UINT32, nullptr};
    case UZIP_INT64: return {UCC_DT_INT64, nullptr};
    case UZIP_UINT64: return {UCC_DT_UINT64, nullptr};
    case UZIP_FP16: return {UCC_DT_FLOAT16, nullptr};
    case UZIP_BF16: return {UCC_DT_BFLOAT16, nullptr};
    case UZIP_FP32: return {UCC_DT_FLOAT32, nullptr};
    case UZIP_FP64: return {UCC_DT_FLOAT64, nullptr};
    case UZIP_FP8_E4M3FN:
    case UZIP_FP8_E5M2: break;
  }
  // clang-format on
  return {UCC_DT_INT8, "UCC_DT_INT8"};
}

ucc_reduction_op_t ucc_op(uzip_op_t op) {
  // clang-format off
  switch (op) {
    case UZIP_PROD: return UCC_OP_PROD;
    case UZIP_MIN: return UCC_OP_MIN;
    case UZIP_MAX: return UCC_OP_MAX;
    case UZIP_SUM:
    case UZIP_AVG:
    case UZIP_OP_USER: break;  // which none of these programs measures
  }
  // clang-format on
  return UCC_OP_SUM;
}

const char* function_name(OperationKind kind) {
  // clang-format off
  switch (kind) {
    case OperationKind::kAllreduce: return "ucc allreduce";
    case OperationKind::kReduceScatter: return "ucc reduce_scatter";
    case OperationKind::kAllgather: return "ucc allgather";
    case OperationKind::kAlltoall: return "ucc alltoall";
    case OperationKind::kBcast: return "ucc bcast";
    case OperationKind::kReduce: return "ucc reduce";
    case OperationKind::kHalo:
    case OperationKind::kSendrecv: break;
  }
  // clang-format on
  return nullptr;
}

ucc_coll_type_t coll_type(OperationKind kind) {
  // clang-format off
  switch (kind) {
    case OperationKind::kReduceScatter: return UCC_COLL_TYPE_REDUCE_SCATTER;
    case OperationKind::kAllgather: return UCC_COLL_TYPE_ALLGATHER;
    case OperationKind::kAlltoall: return UCC_COLL_TYPE_ALLTOALL;
    case OperationKind::kBcast: return UCC_COLL_TYPE_BCAST;
    case OperationKind::kReduce: return UCC_COLL_TYPE_REDUCE;
    case OperationKind::kAllreduce:
    case OperationKind::kHalo:
    case OperationKind::kSendrecv: break;
  }
  // clang-format on
  return UCC_COLL_TYPE_ALLREDUCE;
}

}  // namespace

#define PERF_UCC_FUNCTIONS(X)                                                                    \
  X(ucc_get_version_string)                                                                      \
  X(ucc_status_string)                                                                           \
  X(ucc_lib_config_read)                                                                         \
  X(ucc_lib_config_release)                                                                      \
  X(ucc_init_version)                                                                            \
  X(ucc_finalize)                                                                                \
  X(ucc_context_config_read)                                                                     \
  X(ucc_context_config_release)                                                                  \
  X(ucc_context_create)                                                                          \
  X(ucc_context_progress)                                                                        \
  X(ucc_context_destroy)                                                                         \
  X(ucc_team_create_post)                                                                        \
  X(ucc_team_create_test)                                                                        \
  X(ucc_team_destroy)                                                                            \
  X(ucc_collective_init)                                                                         \
  X(ucc_collective_post)                                                                         \
  X(ucc_collective_finalize)

struct UccApi {
#define PERF_UCC_MEMBER(name) decltype(&::name) name = nullptr;
  PERF_UCC_FUNCTIONS(PERF_UCC_MEMBER)
#undef PERF_UCC_MEMBER
  uzip_comm_t comm = nullptr;
  ucc_lib_h lib = nullptr;
  ucc_context_h context = nullptr;
  ucc_team_h team = nullptr;
  int spins = 0;  ///< looks at the network before a rank that waits gives its core to others

  void require_ok(ucc_status_t status, const char* what) const {
    if (status == UCC_OK) return;
    throw Failure(kExitWrong, std::string("--versus ucc: ") + what + ": " +
                                  ucc_status_string(status));
  }

  void load() {
    void* library = dlopen("libucc.so.1", RTLD_NOW | RTLD_GLOBAL);
    if (library == nullptr) {
      throw Failure(kExitUsage, std::string("--versus ucc: ") + dlerror() +
                                    "; install UCC, or set LD_LIBRARY_PATH to where it is");
    }
#define PERF_UCC_LOAD(name)                                                              \
  name = reinterpret_cast<decltype(name)>(dlsym(library, #name));                        \
  if (name == nullptr)                                                                   \
    throw Failure(kExitUsage, "--versus ucc: libucc.so.1 has no function " #name);
    PERF_UCC_FUNCTIONS(PERF_UCC_LOAD)
#undef PERF_UCC_LOAD
  }

  void create_context(const World& world) {
    ucc_lib_config_h lib_config = nullptr;
    require_ok(ucc_lib_config_read(nullptr, nullptr, &lib_config), "ucc_lib_config_read");
    ucc_lib_params_t lib_params = {};
    lib_params.mask = UCC_LIB_PARAM_FIELD_THREAD_MODE;
    lib_params.thread_mode = UCC_THREAD_SINGLE;
    const ucc_status_t made =
        ucc_init_version(UCC_API_MAJOR, UCC_API_MINOR, &lib_params, lib_config, &lib);
    ucc_lib_config_release(lib_config);
    require_ok(made, "ucc_init");
    ucc_context_config_h config = nullptr;
    require_ok(ucc_context_config_read(lib, nullptr, &config), "ucc_context_config_read");
    ucc_context_params_t params = {};
    params.mask = UCC_CONTEXT_PARAM_FIELD_OOB;
    params.oob = oob(world);
    const ucc_status_t created = ucc_context_create(lib, &params, config, &context);
    ucc_context_config_release(config);
    require_ok(created, "ucc_context_create");
  }

  void create_team(const World& world) {
    ucc_team_params_t params = {};
    params.mask = UCC_TEAM_PARAM_FIELD_OOB | UCC_TEAM_PARAM_FIELD_EP | UCC_TEAM_PARAM_FIELD_EP_RANGE;
    params.oob = oob(world);
    params.ep = static_cast<uint64_t>(world.rank());
    params.ep_range = UCC_COLLECTIVE_EP_RANGE_CONTIG;
    require_ok(ucc_team_create_post(&context, 1, &params, &team), "ucc_team_create_post");
    ucc_status_t status = UCC_INPROGRESS;
    while ((status = ucc_team_create_test(team)) == UCC_INPROGRESS) {
      ucc_context_progress(context);
      sched_yield();
    }
    require_ok(status, "ucc_team_create_test");
  }

  ucc_oob_coll_t oob(const World& world) {
    ucc_oob_coll_t functions = {};
    functions.allgather = gather_start;
    functions.req_test = gather_test;
    functions.req_free = gather_free;
    functions.coll_info = &comm;
    functions.n_oob_eps = static_cast<uint32_t>(world.ranks());
    functions.oob_ep = static_cast<uint32_t>(world.rank());
    return functions;
  }

  void run(ucc_coll_args_t* args) const {
    ucc_coll_req_h request = nullptr;
    require_ok(ucc_collective_init(args, &request, team), "ucc_collective_init");
    ucc_status_t status = ucc_collective_post(request);
    int looks = 0;
    while (status == UCC_OK && (status = ucc_collective_test(request)) == UCC_INPROGRESS) {
      ucc_context_progress(context);
      if (++looks > spins) sched_yield();
      status = UCC_OK;
    }
    ucc_collective_finalize(request);
    require_ok(status, "ucc_collective_test");
  }
};

namespace {

class UccPeer : public Peer {
 public:
  UccPeer(const UccApi& api, const Case& bench, const std::string& description)
      : Peer(PeerKind::kUcc, description), api_(api), bench_(bench) {
    std::memset(&coll_, 0, sizeof coll_);
    std::memset(&barrier_, 0, sizeof barrier_);
    coll_.args.coll_type = coll_type(bench.operation.kind);
    coll_.args.op = ucc_op(bench.op);
    barrier_.args.coll_type = UCC_COLL_TYPE_BARRIER;
  }

  void run(const Layout& layout) override {
    // The root of rooted operations is rank 0. A broadcast has one buffer: the source there, the
    // destination elsewhere.
    const bool receives = bench_.operation.kind == OperationKind::kBcast && bench_.world.rank() != 0;
    describe(coll_.args.src.info,
             receives ? bench_.result(layout, false) : bench_.source(layout, false),
             receives ? layout.receive : layout.send);
    describe(coll_.args.dst.info, bench_.result(layout, false), layout.receive);
    api_.run(&coll_.args);
  }
  void barrier() override { api_.run(&barrier_.args); }

 private:
  void describe(ucc_coll_buffer_info_t& info, void* buffer, size_t count) const {
    info.buffer = buffer;
    info.count = count;
    info.datatype = ucc_type(bench_.type.type).type;
    info.mem_type = UCC_MEMORY_TYPE_HOST;
  }

  const UccApi& api_;
  const Case& bench_;
  CollArgs coll_;
  CollArgs barrier_;
};

}  // namespace

UccJob::UccJob(const World& world) : api_(std::make_unique<UccApi>()) {
  api_->comm = world.comm();
  do_together(world, [&] { api_->load(); });
  char name[256] = "";
  gethostname(name, sizeof name - 1);
  const std::vector<std::string> hosts = world.gather(std::string(name));
  const bool shared_cores = std::ranges::count(hosts, hosts.front()) >
                            cores_of_first_host(hosts, world.gather(own_core_set()));
  api_->spins = shared_cores ? 0 : 1000;
  do_together(world, [&] {
    api_->create_context(world);
    api_->create_team(world);
  });
}

UccJob::~UccJob() {
  if (api_->team != nullptr) {
    ucc_status_t status = UCC_INPROGRESS;
    while ((status = api_->ucc_team_destroy(api_->team)) == UCC_INPROGRESS) {
      api_->ucc_context_progress(api_->context);
      sched_yield();
    }
  }
  if (api_->context != nullptr) api_->ucc_context_destroy(api_->context);
  if (api_->lib != nullptr) api_->ucc_finalize(api_->lib);
}

std::unique_ptr<UccJob> make_ucc_job(const World& world) { return std::make_unique<UccJob>(world); }

std::unique_ptr<Peer> make_ucc_peer(const UccJob& job, const Case& bench) {
  const char* function = function_name(bench.operation.kind);
  if (function == nullptr) return nullptr;
  std::string description = std::string(function) + " " + job.api().ucc_get_version_string();
  const char* stands_in = ucc_type(bench.type.type).stands_in;
  if (stands_in != nullptr) description += std::string(" of ") + stands_in + " for " + bench.type.name;
  if (bench.operation.reduces && bench.op == UZIP_AVG) description += ", sum for avg";
  return std::make_unique<UccPeer>(job.api(), bench, description);
}

#else

struct UccApi {};

UccJob::UccJob(const World&) {}
UccJob::~UccJob() = default;

std::unique_ptr<UccJob> make_ucc_job(const World&) {
  throw SharedFailure(kExitUsage,
                      "--versus ucc: this program was built without UCC's header, ucc/api/ucc.h; "
                      "configure with CPPFLAGS=-I and the folder that has it");
}

std::unique_ptr<Peer> make_ucc_peer(const UccJob&, const Case&) { return nullptr; }

#endif

}  // namespace perf
