#include "ucx/ucx_environment.hpp"

#include <algorithm>
#include <cstdlib>

#include <unistd.h>

namespace uzip {
namespace {

constexpr std::string_view kOurPrefix = "UZIP_UCX_";
constexpr std::string_view kUcxPrefix = "UCX_";

std::optional<std::string> value_of(std::string_view variable) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    if (text.size() > variable.size() && text.starts_with(variable) &&
        text[variable.size()] == '=') {
      return std::string(text.substr(variable.size() + 1));
    }
  }
  return std::nullopt;
}

// The environment belongs to the whole process, so does this.
std::mutex& one_at_a_time() {
  static std::mutex mutex;
  return mutex;
}

}  // namespace

UcxEnvironment::UcxEnvironment() : alone_(one_at_a_time()) {
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text = *entry;
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos || !text.starts_with(kOurPrefix)) continue;
    names_.emplace_back(text.substr(kOurPrefix.size(), equals - kOurPrefix.size()));
  }
}

void UcxEnvironment::adopt(const std::string& name) {
  if (const auto value = value_of(std::string(kOurPrefix) + name)) {
    set(std::string(kUcxPrefix) + name, *value);
  }
}

UcxEnvironment::~UcxEnvironment() {
  for (auto entry = before_.rbegin(); entry != before_.rend(); ++entry) {
    const auto& [variable, value] = *entry;
    if (value) {
      setenv(variable.c_str(), value->c_str(), 1);
    } else {
      unsetenv(variable.c_str());
    }
  }
}

void UcxEnvironment::set_default(std::string_view name, std::string_view value) {
  const std::string variable = std::string(kUcxPrefix) + std::string(name);
  if (!value_of(variable)) set(variable, std::string(value));
}

std::optional<std::string> UcxEnvironment::value(std::string_view name) const {
  return value_of(std::string(kUcxPrefix) + std::string(name));
}

void UcxEnvironment::set(const std::string& variable, const std::string& value) {
  before_.emplace_back(variable, value_of(variable));
  setenv(variable.c_str(), value.c_str(), 1);
}

bool tls_allows(std::string_view tls, std::string_view transport) {
  const bool negated = tls.starts_with('^');
  if (negated) tls.remove_prefix(1);
  if (tls.empty()) return true;
  const bool shared_memory = transport == "posix" || transport == "sysv" || transport == "xpmem";
  bool named = false;
  while (!tls.empty()) {
    const size_t comma = std::min(tls.find(','), tls.size());
    std::string_view name = tls.substr(0, comma);
    tls.remove_prefix(std::min(comma + 1, tls.size()));
    if (name.starts_with('\\')) name.remove_prefix(1);  // "exactly this name"
    named |= name == transport || name == "all" ||
             (shared_memory && (name == "shm" || name == "sm" || name == "mm"));
  }
  return named != negated;
}

}  // namespace uzip
