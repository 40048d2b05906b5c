// usage: measure_small [bytes]
//
// Sets a small all-reduce of two processes against what UCX's tag matching needs for messages of the same size, in turns in
// one run: a round there and back, and an exchange in which both send at once. Not part of make check. Settings come from
// the environment: UZIP_LOCAL_QUEUES, UZIP_UCX_TLS, UZIP_UCX_... .
#include "ucx/process_group.hpp"

#include <uzipcoll/uzipcoll.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include <sched.h>
#include <ucp/api/ucp.h>

namespace uzip {
namespace {

constexpr int kRounds = 2000;
constexpr int kBatches = 150;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

void pin_to_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET(core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

[[noreturn]] void give_up(const char* what) {
  std::fprintf(stderr, "measure_small: %s failed\n", what);
  std::exit(1);
}

/// One worker, one endpoint, blocking sends and receives.
class Tags {
 public:
  Tags(int rank, const OutOfBandAllgather& allgather) {
    ucp_config_t* config = nullptr;
    if (ucp_config_read("UZIP", nullptr, &config) != UCS_OK) give_up("ucp_config_read");
    ucp_params_t params = {};
    params.field_mask = UCP_PARAM_FIELD_FEATURES;
    params.features = UCP_FEATURE_TAG;
    if (ucp_init(&params, config, &context_) != UCS_OK) give_up("ucp_init");
    ucp_config_release(config);
    ucp_worker_params_t worker = {};
    worker.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
    worker.thread_mode = UCS_THREAD_MODE_SINGLE;
    if (ucp_worker_create(context_, &worker, &worker_) != UCS_OK) give_up("ucp_worker_create");
    ucp_address_t* address = nullptr;
    size_t length = 0;
    if (ucp_worker_get_address(worker_, &address, &length) != UCS_OK) give_up("ucp_worker_get_address");
    std::vector<std::vector<std::byte>> all;
    if (!allgather({reinterpret_cast<std::byte*>(address), length}, &all).ok()) give_up("the exchange of addresses");
    ucp_worker_release_address(worker_, address);
    ucp_ep_params_t endpoint = {};
    endpoint.field_mask = UCP_EP_PARAM_FIELD_REMOTE_ADDRESS;
    endpoint.address = reinterpret_cast<const ucp_address_t*>(all[static_cast<size_t>(1 - rank)].data());
    if (ucp_ep_create(worker_, &endpoint, &endpoint_) != UCS_OK) give_up("ucp_ep_create");
  }

  ucs_status_ptr_t start_send(const void* src, size_t bytes) {
    const ucp_request_param_t param = {};
    return ucp_tag_send_nbx(endpoint_, src, bytes, 1, &param);
  }
  ucs_status_ptr_t start_receive(void* dst, size_t bytes) {
    const ucp_request_param_t param = {};
    return ucp_tag_recv_nbx(worker_, dst, bytes, 1, ~ucp_tag_t{0}, &param);
  }
  void wait(ucs_status_ptr_t request) {
    if (request == nullptr) return;
    if (UCS_PTR_IS_ERR(request)) give_up("a message");
    while (ucp_request_check_status(request) == UCS_INPROGRESS) ucp_worker_progress(worker_);
    ucp_request_free(request);
  }

 private:
  ucp_context_h context_ = nullptr;
  ucp_worker_h worker_ = nullptr;
  ucp_ep_h endpoint_ = nullptr;
};

/// uzip_oob_t's all-gather by the group's.
struct OutOfBand {
  const OutOfBandAllgather& allgather;

  static int gather(const void* src, void* dst, size_t bytes, void* context) {
    std::vector<std::vector<std::byte>> all;
    const auto mine = std::span(static_cast<const std::byte*>(src), bytes);
    if (!static_cast<OutOfBand*>(context)->allgather(mine, &all).ok()) return 1;
    for (size_t i = 0; i < all.size(); ++i)
      if (bytes > 0) std::memcpy(static_cast<std::byte*>(dst) + i * bytes, all[i].data(), bytes);
    return 0;
  }
};

struct Series {
  const char* name;
  std::vector<double> times;

  double best() const { return *std::min_element(times.begin(), times.end()); }
  double median() {
    std::sort(times.begin(), times.end());
    return times[times.size() / 2];
  }
};

int measure(int rank, size_t bytes, const OutOfBandAllgather& allgather) {
  pin_to_core(rank);
  Tags tags(rank, allgather);
  OutOfBand context{allgather};
  const uzip_oob_t oob = {sizeof oob, rank, 2, &OutOfBand::gather, &context};
  uzip_comm_t comm;
  if (uzip_comm_create(&oob, &comm) != UZIP_OK) give_up(uzip_last_error());

  std::vector<char> src(bytes, 1), dst(bytes);
  const auto there_and_back = [&] {
    if (rank == 0) tags.wait(tags.start_send(src.data(), bytes));
    tags.wait(tags.start_receive(dst.data(), bytes));
    if (rank == 1) tags.wait(tags.start_send(src.data(), bytes));
  };
  const auto exchange = [&] {
    const ucs_status_ptr_t receive = tags.start_receive(dst.data(), bytes);
    tags.wait(tags.start_send(src.data(), bytes));
    tags.wait(receive);
  };
  const auto allreduce = [&] {
    if (uzip_allreduce(src.data(), dst.data(), bytes, UZIP_INT8, UZIP_SUM, comm) != UZIP_OK) give_up(uzip_last_error());
  };
  Series series[] = {{"tag message there and back", {}}, {"tag messages both ways at once", {}}, {"uzip_allreduce", {}}};
  const auto time = [&](Series& into, const auto& round) {
    for (int i = 0; i < 20; ++i) round();  // both are here
    const double start = now();
    for (int i = 0; i < kRounds; ++i) round();
    into.times.push_back((now() - start) / kRounds);
  };
  for (int batch = 0; batch < kBatches; ++batch) {
    time(series[0], there_and_back);
    time(series[1], exchange);
    time(series[2], allreduce);
  }
  if (rank == 0) {
    for (Series& one : series) {
      std::printf("%-32s %zu B  best %7.3f us  median %7.3f us\n", one.name, bytes, one.best() * 1e6, one.median() * 1e6);
    }
    for (int i : {0, 1}) {
      std::printf("uzip_allreduce / %-32s best %.2f  median %.2f\n", series[i].name, series[2].best() / series[i].best(),
                  series[2].median() / series[i].median());
    }
  }
  uzip_comm_free(&comm);
  return 0;
}

}  // namespace
}  // namespace uzip

int main(int argc, char** argv) {
  const size_t bytes = argc > 1 ? std::strtoull(argv[1], nullptr, 0) : 8;
  uzip::ProcessGroup group(2);
  group.start([&](int rank, const auto& allgather) { return uzip::measure(rank, bytes, allgather); },
              std::chrono::seconds(120));
  const std::string report = group.wait_for_all();
  if (!report.empty()) std::fprintf(stderr, "%s\n", report.c_str());
  return report.empty() ? 0 : 1;
}
