#include "ucx/ucx_handles.hpp"

#include <cstdlib>

namespace uzip {
namespace {

const char* advice_for(ucs_status_t status) {
  switch (status) {
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_EXCEEDS_LIMIT:
      return "check free memory, space in /dev/shm and ulimit -l, -n";
    case UCS_ERR_NO_DEVICE:
    case UCS_ERR_UNSUPPORTED:
      return "see what is there with ucx_info -d, and check UZIP_UCX_TLS, UCX_TLS and "
             "UCX_NET_DEVICES";
    case UCS_ERR_UNREACHABLE:
      return "the processes have no transport in common; check UZIP_UCX_TLS and UCX_NET_DEVICES on "
             "all hosts, and firewalls";
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
      return "the other process ended or the network to it is down; look at its own messages";
    case UCS_ERR_INVALID_PARAM:
      return "check the values of the UCX_ and UZIP_UCX_ variables";
    default:
      return "set UCX_LOG_LEVEL=diag to see what UCX has to say";
  }
}

}  // namespace

StatusCode status_code_of(ucs_status_t status) {
  if (means_peer_is_gone(status)) return UZIP_ERR_PEER;
  switch (status) {
    case UCS_ERR_NO_MEMORY:
    case UCS_ERR_EXCEEDS_LIMIT:
      return UZIP_ERR_NO_MEMORY;
    case UCS_ERR_UNSUPPORTED:
    case UCS_ERR_NO_DEVICE:
      return UZIP_ERR_UNSUPPORTED;
    default:
      return UZIP_ERR_TRANSPORT;
  }
}

Status ucx_error(ucs_status_t status, const char* what) {
  return error(status_code_of(status), "%s failed: %s (UCX); %s", what, ucs_status_string(status),
               advice_for(status));
}

bool means_peer_is_gone(ucs_status_t status) {
  switch (status) {
    case UCS_ERR_CONNECTION_RESET:
    case UCS_ERR_ENDPOINT_TIMEOUT:
    case UCS_ERR_NOT_CONNECTED:
    case UCS_ERR_REJECTED:
    case UCS_ERR_UNREACHABLE:
      return true;
    default:
      return UCS_IS_ENDPOINT_ERROR(status) || UCS_IS_LINK_ERROR(status);
  }
}

std::string printed(const std::function<void(FILE*)>& print) {
  char* text = nullptr;
  size_t length = 0;
  FILE* stream = open_memstream(&text, &length);
  if (stream == nullptr) return {};
  print(stream);
  std::fclose(stream);
  std::string result(text, length);
  std::free(text);
  return result;
}

}  // namespace uzip
