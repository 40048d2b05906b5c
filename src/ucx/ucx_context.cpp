#include "ucx/ucx_context.hpp"

#include "base/log.hpp"
#include "ucx/ucx_environment.hpp"

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace uzip {
namespace {

struct Setting {
  const char* transport;  // UCX warns of settings of transports that it does not use; null: of none
  const char* name;
  const char* value;
};

constexpr Setting kDefaults[] = {
    // Shared memory offers itself for endpoints with error handling only if asked to; without it
    // UCX
    // connects local processes by tcp and doesn't say so.
    {"posix", "POSIX_ERROR_HANDLING", "y"},
    {"sysv", "SYSV_ERROR_HANDLING", "y"},
    // A head and a small body in one element of the queue, written without an intermediate buffer.
    {"posix", "POSIX_FIFO_ELEM_SIZE", "256"},
    {"sysv", "SYSV_FIFO_ELEM_SIZE", "256"},
    // Large segments make up for the copies, and halve the time of a message of 64 KiB.
    {"tcp", "TCP_TX_SEG_SIZE", "128K"},
    {"tcp", "TCP_RX_SEG_SIZE", "256K"},
    // How soon shared memory notices a dead peer; 20 s by default.
    {nullptr, "KEEPALIVE_INTERVAL", "1s"},
};

// Where the names of settings of one transport, or of one kind of memory, begin.
constexpr std::string_view kTransportPrefixes[] = {
    "POSIX_", "SYSV_", "MM_", "SM_",  "XPMEM_", "CMA_", "KNEM_", "SELF_",
    "TCP_",   "IB_",   "RC_", "UD_",  "DC_",    "SRD_", "UGNI_", "CUDA_",
    "GDR_",   "ROCM_", "ZE_", "GGA_", "EFA_",   "MLX5_"};

// Names of the settings of UCP, without "UCX_".
Result<std::vector<std::string>> ucp_setting_names() {
  ucp_config_t* read = nullptr;
  const ucs_status_t status = ucp_config_read(nullptr, nullptr, &read);
  if (status != UCS_OK) return ucx_error(status, "reading UCX's settings");
  const UcxConfigHandle settings(read);
  const std::string text = printed([&](FILE* stream) {
    ucp_config_print(settings.get(), stream, nullptr, UCS_CONFIG_PRINT_CONFIG);
  });
  constexpr std::string_view kPrefix = "UCX_";
  std::vector<std::string> names;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    const std::string_view line = std::string_view(text).substr(begin, end - begin);
    if (line.starts_with(kPrefix)) {
      names.emplace_back(line.substr(kPrefix.size(), line.find('=') - kPrefix.size()));
    }
    begin = end + 1;
  }
  return names;
}

// A misspelt name of UCP's would pass without a word; UCX itself warns of those of its transports.
Status adopt_user_settings(UcxEnvironment& environment) {
  if (environment.names().empty()) return {};
  UZIP_ASSIGN_OR_RETURN(const std::vector<std::string> known, ucp_setting_names());
  for (const std::string& name : environment.names()) {
    const bool of_ucp = std::find(known.begin(), known.end(), name) != known.end();
    const bool of_transport =
        std::any_of(std::begin(kTransportPrefixes), std::end(kTransportPrefixes),
                    [&](std::string_view prefix) { return name.starts_with(prefix); });
    if (of_ucp || of_transport) {
      environment.adopt(name);
    } else {
      log(LogLevel::kWarn,
          "UZIP_UCX_%.64s has no effect: this library's part of UCX has no such setting; "
          "see ucx_info -c (those of UCX as a whole, such as UCX_LOG_LEVEL, go without UZIP_)",
          name.c_str());
    }
  }
  return {};
}

std::string allowed_transports(const UcxEnvironment& environment, const Config& config) {
  return config.ucx_tls.empty() ? environment.value("TLS").value_or("") : config.ucx_tls;
}

// Whether UCX will talk to other hosts by something better than tcp.
bool uses_rdma(std::string_view tls) {
  std::error_code none;
  return tls_allows(tls, "ib") &&
         std::filesystem::directory_iterator("/sys/class/infiniband", none) !=
             std::filesystem::directory_iterator();
}

void set_defaults(UcxEnvironment& environment, const Config& config) {
  const std::string tls = allowed_transports(environment, config);
  for (const Setting& setting : kDefaults) {
    if (setting.transport == nullptr || tls_allows(tls, setting.transport)) {
      environment.set_default(setting.name, setting.value);
    }
  }
  // When a process dies while tcp sends to it without copying, UCX completes that send twice and
  // aborts.
  if (!uses_rdma(tls)) environment.set_default("ZCOPY_THRESH", "inf");
}

Result<UcxContextHandle> create_context(const Config& config, int size) {
  ucp_config_t* read = nullptr;
  ucs_status_t status = ucp_config_read(nullptr, nullptr, &read);
  if (status != UCS_OK) return ucx_error(status, "reading UCX's settings");
  const UcxConfigHandle settings(read);
  if (!config.ucx_tls.empty()) {
    status = ucp_config_modify(settings.get(), "TLS", config.ucx_tls.c_str());
    if (status != UCS_OK) {
      return ucx_error(status, "giving UCX the value of UZIP_UCX_TLS").with_context(config.ucx_tls);
    }
  }

  ucp_params_t params = {};
  params.field_mask = UCP_PARAM_FIELD_FEATURES | UCP_PARAM_FIELD_ESTIMATED_NUM_EPS |
                      UCP_PARAM_FIELD_MT_WORKERS_SHARED | UCP_PARAM_FIELD_NAME;
  params.features = UCP_FEATURE_AM | UCP_FEATURE_WAKEUP;
  params.estimated_num_eps = static_cast<size_t>(size);
  params.mt_workers_shared = 0;
  params.name = "uzipcoll";
  ucp_context_h context = nullptr;
  status = ucp_init(&params, settings.get(), &context);
  if (status != UCS_OK) return ucx_error(status, "initializing UCX");
  return UcxContextHandle(context);
}

Result<UcxWorkerHandle> create_worker(ucp_context_h context) {
  ucp_worker_params_t params = {};
  params.field_mask = UCP_WORKER_PARAM_FIELD_THREAD_MODE;
  params.thread_mode = UCS_THREAD_MODE_SERIALIZED;
  ucp_worker_h worker = nullptr;
  const ucs_status_t status = ucp_worker_create(context, &params, &worker);
  if (status != UCS_OK) return ucx_error(status, "creating a UCX worker");
  return UcxWorkerHandle(worker);
}

Status read_address(ucp_worker_h worker, std::vector<std::byte>* bytes) {
  ucp_address_t* address = nullptr;
  size_t length = 0;
  const ucs_status_t status = ucp_worker_get_address(worker, &address, &length);
  if (status != UCS_OK) return ucx_error(status, "asking UCX for the worker's address");
  const auto* begin = reinterpret_cast<const std::byte*>(address);
  bytes->assign(begin, begin + length);
  ucp_worker_release_address(worker, address);
  return {};
}

}  // namespace

Result<UcxResources> open_ucx(const Config& config, int size) {
  UcxEnvironment environment;
  UZIP_RETURN_IF_ERROR(adopt_user_settings(environment));
  set_defaults(environment, config);

  UcxResources resources;
  const std::string tls = allowed_transports(environment, config);
  resources.shared_memory = tls_allows(tls, "posix") || tls_allows(tls, "sysv");
  UZIP_ASSIGN_OR_RETURN(resources.context, create_context(config, size));
  UZIP_ASSIGN_OR_RETURN(resources.worker, create_worker(resources.context.get()));
  const ucs_status_t status = ucp_worker_get_efd(resources.worker.get(), &resources.event_fd);
  if (status != UCS_OK) return ucx_error(status, "asking UCX for the worker's event descriptor");
  UZIP_RETURN_IF_ERROR(read_address(resources.worker.get(), &resources.address));
  return resources;
}

std::string ucx_version() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  ucp_get_version(&major, &minor, &release);
  char text[40];
  std::snprintf(text, sizeof text, "%u.%u.%u", major, minor, release);
  return text;
}

}  // namespace uzip
