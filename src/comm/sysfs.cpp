#include "comm/sysfs.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>

namespace uzip {
namespace {

namespace fs = std::filesystem;

std::string first_word(const fs::path& path) {
  std::ifstream file(path);
  std::string word;
  file >> word;
  return word;
}

int read_number(const fs::path& path) {
  const std::string word = first_word(path);
  int number = -1;
  const auto [end, fault] = std::from_chars(word.data(), word.data() + word.size(), number);
  return fault == std::errc() && end == word.data() + word.size() && number >= 0 ? number : -1;
}

// The names in a folder that begin so, in order.
std::vector<std::string> names_in(const fs::path& folder, std::string_view begin) {
  std::vector<std::string> names;
  std::error_code fault;
  for (fs::directory_iterator entry(folder, fault), end; !fault && entry != end; entry.increment(fault)) {
    const std::string name = entry->path().filename().string();
    if (name.starts_with(begin)) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  return names;
}

// The folder of a processor has a link to its node: node3.
int numa_of_cpu(int cpu, const fs::path& sys) {
  constexpr std::string_view kNode = "node";
  for (const std::string& name : names_in(sys / "devices/system/cpu" / ("cpu" + std::to_string(cpu)), kNode)) {
    int node = -1;
    const auto [end, fault] = std::from_chars(name.data() + kNode.size(), name.data() + name.size(), node);
    if (fault == std::errc() && end == name.data() + name.size()) return node;
  }
  return -1;
}

template <class NumberOf>
int common_number(std::span<const int> cpus, NumberOf number_of) {
  int common = -1;
  for (int cpu : cpus) {
    const int number = number_of(cpu);
    if (number < 0 || (common >= 0 && number != common)) return -1;
    common = number;
  }
  return common;
}

}  // namespace

int numa_of_cpus(std::span<const int> cpus, const std::string& sys) {
  return common_number(cpus, [&](int cpu) { return numa_of_cpu(cpu, sys); });
}

int socket_of_cpus(std::span<const int> cpus, const std::string& sys) {
  return common_number(cpus, [&](int cpu) {
    return read_number(fs::path(sys) / "devices/system/cpu" / ("cpu" + std::to_string(cpu)) / "topology/physical_package_id");
  });
}

int numa_of_pci(const std::string& bus, const std::string& sys) {
  const bool is_place = !bus.empty() && std::all_of(bus.begin(), bus.end(), [](unsigned char c) {
    return std::isxdigit(c) != 0 || c == ':' || c == '.';
  });
  if (!is_place) return -1;
  std::string name = bus;
  std::transform(name.begin(), name.end(), name.begin(), [](unsigned char c) { return std::tolower(c); });
  return read_number(fs::path(sys) / "bus/pci/devices" / name / "numa_node");
}

std::vector<NetworkDevice> network_devices(const std::string& sys) {
  std::vector<NetworkDevice> devices;
  const auto add = [&](const fs::path& folder, const std::string& name) {
    const int numa = read_number(folder / name / "device/numa_node");
    if (numa >= 0) devices.push_back({name, numa});
  };
  const fs::path infiniband = fs::path(sys) / "class/infiniband", ethernet = fs::path(sys) / "class/net";
  for (const std::string& name : names_in(infiniband, "")) add(infiniband, name);
  if (!devices.empty()) return devices;
  for (const std::string& name : names_in(ethernet, ""))
    if (first_word(ethernet / name / "operstate") == "up") add(ethernet, name);
  return devices;
}

int numa_nodes(const std::string& sys) {
  int nodes = 0;
  for (const std::string& name : names_in(fs::path(sys) / "devices/system/node", "node"))
    nodes += name.size() > 4 && std::isdigit(static_cast<unsigned char>(name[4])) != 0;
  return std::max(nodes, 1);
}

}  // namespace uzip
