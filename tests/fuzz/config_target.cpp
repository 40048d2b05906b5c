// Settings from anywhere: the environment of a process may hold any bytes but zero.
#include "base/config.hpp"
#include "fuzz/fuzz_target.hpp"

#include <algorithm>
#include <vector>

namespace uzip {
namespace {

bool is_printable(const std::string& text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; });
}

Result<Config> parse(const std::vector<std::string>& entries, std::vector<std::string>* warnings) {
  std::vector<const char*> environment;
  for (const std::string& entry : entries) environment.push_back(entry.c_str());
  environment.push_back(nullptr);
  return parse_config(environment.data(), warnings);
}

/// What is shown as a value can be set, and is then shown again.
void check_values(const Config& config) {
  std::vector<std::string> entries;
  for (const SettingInfo& setting : settings()) {
    const std::string value = setting_value(config, setting);
    if (!value.empty()) entries.push_back(std::string(setting.name) + "=" + value);
  }
  const Result<Config> again = parse(entries, nullptr);
  require(again.ok(), "a value in force is not allowed");
  for (const SettingInfo& setting : settings())
    require(setting_value(*again, setting) == setting_value(config, setting), "a value changed");
}

}  // namespace

void fuzz_config(std::span<const std::byte> input, DataType) {
  std::vector<std::string> entries(1);
  for (std::byte byte : input) {
    if (const char c = static_cast<char>(byte); c == '\n' || c == '\0')
      entries.emplace_back();
    else
      entries.back() += c;
  }
  // Looking for the nearest names, and reading everything back, takes a hundred times as long.
  const bool thoroughly = input.size() % 16 == 0;
  std::vector<std::string> warnings;
  const Result<Config> config = parse(entries, thoroughly ? &warnings : nullptr);
  for (const std::string& warning : warnings)
    require(is_printable(warning) && warning.size() < 300, "a warning repeats bytes from outside");
  if (config.ok() && thoroughly) check_values(*config);
  if (config.ok()) return;
  require(config.status().code() == UZIP_ERR_CONFIG, "refused with another code than CONFIG");
  require(is_printable(config.status().message()), "a message repeats bytes from outside");
}

}  // namespace uzip
