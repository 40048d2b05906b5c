// Environment variables for UCX while our context and worker are created. Used by ucx_context.cpp.
//
// UCX 1.13 reads what concerns its transports from UCX_* only, at ucp_init() and
// ucp_worker_create(): ucp_config_modify() and the prefix of ucp_config_read() don't reach so deep,
// and say nothing.
#pragma once

#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace uzip {

/// The process's environment with changes that are undone at the end of the object's life. setenv()
/// is not safe against threads that read the environment at the same time, so keep that life short.
class UcxEnvironment {
 public:
  UcxEnvironment();
  ~UcxEnvironment();
  UcxEnvironment(const UcxEnvironment&) = delete;
  UcxEnvironment& operator=(const UcxEnvironment&) = delete;

  /// Sets UCX_`name` unless the user has set it (or UZIP_UCX_`name`).
  void set_default(std::string_view name, std::string_view value);

  /// The value that UCX will see, if any.
  std::optional<std::string> value(std::string_view name) const;

  /// Names (without UZIP_UCX_) of the user's UZIP_UCX_ variables.
  const std::vector<std::string>& names() const { return names_; }

  /// Gives the user's UZIP_UCX_`name` its effect, by setting UCX_`name`.
  void adopt(const std::string& name);

 private:
  void set(const std::string& variable, const std::string& value);

  std::unique_lock<std::mutex> alone_;
  std::vector<std::string> names_;
  std::vector<std::pair<std::string, std::optional<std::string>>> before_;
};

/// Whether UCX_TLS's value `tls` ("" is everything, else "tcp,self", "shm", "^posix,sysv") lets UCX
/// use `transport`.
bool tls_allows(std::string_view tls, std::string_view transport);

}  // namespace uzip
