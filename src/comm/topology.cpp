#include "comm/topology.hpp"

#include "comm/cores.hpp"
#include "comm/sysfs.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <map>
#include <string_view>
#include <type_traits>
#include <utility>

namespace uzip {
namespace {

constexpr int kMostInARow = 1 << 20;
constexpr size_t kMostGroups = 1024;

/// What a process tells the others. Little-endian, as all hosts are.
struct LocationRecord {
  int32_t socket;
  int32_t numa;
  int32_t gpu_numa;
  uint32_t near_network;
  char gpu[32];
};
static_assert(sizeof(LocationRecord) == 48 && std::is_trivially_copyable_v<LocationRecord>);

LocationRecord pack(const RankLocation& location) {
  LocationRecord record{location.socket, location.numa, location.gpu_numa, location.near_network, {}};
  std::copy_n(location.gpu.data(), std::min(location.gpu.size(), sizeof record.gpu - 1), record.gpu);
  return record;
}

bool is_sound(const LocationRecord& record) {
  return record.socket >= -1 && record.numa >= -1 && record.gpu_numa >= -1 && record.near_network <= 1 &&
         std::all_of(record.gpu, std::find(record.gpu, record.gpu + sizeof record.gpu, '\0'),
                     [](char c) { return c > ' ' && c <= '~'; }) &&
         record.gpu[sizeof record.gpu - 1] == '\0';
}

/// A group of the pretended topology: so many ranks in a row, and whether the network is near.
struct Row {
  int ranks;
  bool near_network;
};

bool parse_row(std::string_view text, Row& row) {
  row.near_network = text.ends_with('n');
  if (row.near_network) text.remove_suffix(1);
  const auto [end, fault] = std::from_chars(text.data(), text.data() + text.size(), row.ranks);
  return fault == std::errc() && end == text.data() + text.size() && row.ranks >= 1 && row.ranks <= kMostInARow;
}

}  // namespace

const char* const kLeaderRule =
    "the lowest rank of the NUMA node with the network device, else of the node with most ranks";

RankLocation own_location(GpuDevices& gpus) {
  const Locality here = own_locality();
  RankLocation location;
  location.socket = here.socket;
  location.numa = here.numa;
  const gpu::PluginApi* const api = gpus.plugin();
  int device = -1;
  gpu::DeviceInfo info = {};
  if (api != nullptr && api->current_device(&device) == 0 && api->describe_device(device, &info) == 0) {
    location.gpu = info.bus;
    location.gpu_numa = numa_of_pci(location.gpu);
  }
  const std::vector<NetworkDevice> devices = network_devices();
  location.near_network = location.node() >= 0 && std::any_of(devices.begin(), devices.end(), [&](const NetworkDevice& network) {
                         return network.numa == location.node();
                       });
  return location;
}

Result<std::vector<RankLocation>> pretended_locations(const Config& config, int ranks) {
  std::vector<RankLocation> locations;
  if (config.topology == "auto") return locations;
  locations.resize(static_cast<size_t>(ranks));
  if (config.topology == "none") return locations;
  std::vector<Row> rows;
  for (size_t begin = 0; begin <= config.topology.size();) {
    const size_t end = std::min(config.topology.find(',', begin), config.topology.size());
    Row row{};
    if (!parse_row(std::string_view(config.topology).substr(begin, end - begin), row) || rows.size() == kMostGroups)
      return error(UZIP_ERR_CONFIG,
                   "UZIP_TOPOLOGY='%.64s' is not allowed; allowed is auto, none, or how many ranks in a row share a NUMA "
                   "node, such as 8, or for several nodes 6,2n (n: the network device is there)",
                   config.topology.c_str());
    rows.push_back(row);
    begin = end + 1;
  }
  for (int rank = 0, node = 0; rank < ranks; ++node) {
    const Row& row = rows[static_cast<size_t>(node) % rows.size()];
    for (int end = rank + std::min(row.ranks, ranks - rank); rank < end; ++rank) {
      locations[static_cast<size_t>(rank)].socket = locations[static_cast<size_t>(rank)].numa = node;
      locations[static_cast<size_t>(rank)].near_network = row.near_network;
    }
  }
  return locations;
}

Result<std::vector<RankLocation>> exchange_locations(Bootstrap& bootstrap, const RankLocation& mine) {
  const LocationRecord record = pack(mine);
  std::vector<std::vector<std::byte>> all;
  UZIP_RETURN_IF_ERROR(bootstrap.all_gather(std::as_bytes(std::span(&record, 1)), &all));
  std::vector<RankLocation> locations;
  for (size_t rank = 0; rank < all.size(); ++rank) {
    LocationRecord other;
    if (all[rank].size() == sizeof other) std::memcpy(&other, all[rank].data(), sizeof other);
    if (all[rank].size() != sizeof other || !is_sound(other))
      return error(UZIP_ERR_MISMATCH, "rank %zu sent %zu bytes that do not say where it is on its host; start all processes "
                                      "with the same version of libuzipcoll", rank, all[rank].size());
    locations.push_back({other.socket, other.numa, other.gpu, other.gpu_numa, other.near_network != 0});
  }
  return locations;
}

std::vector<int> group_by_node(std::span<const RankLocation> locations, std::span<const int> hosts) {
  struct Group {
    bool near_network = false;
    std::vector<int> ranks;
  };
  std::map<int, std::map<int, Group>> by_host;
  for (size_t rank = 0; rank < locations.size(); ++rank) {
    Group& group = by_host[hosts[rank]][locations[rank].node()];
    group.near_network |= locations[rank].near_network;
    group.ranks.push_back(static_cast<int>(rank));
  }
  std::vector<int> numbers(locations.size());
  bool several = false, of_several = false;
  for (auto& [host, groups] : by_host) {
    if (groups.contains(-1)) continue;
    std::vector<const Group*> in_order;
    for (const auto& [node, group] : groups) in_order.push_back(&group);
    std::sort(in_order.begin(), in_order.end(), [](const Group* a, const Group* b) {
      if (a->near_network != b->near_network) return a->near_network;
      if (a->ranks.size() != b->ranks.size()) return a->ranks.size() > b->ranks.size();
      return a->ranks[0] < b->ranks[0];
    });
    several |= in_order.size() > 1;
    for (size_t number = 0; number < in_order.size(); ++number) {
      of_several |= in_order.size() > 1 && in_order[number]->ranks.size() > 1;
      for (int rank : in_order[number]->ranks) numbers[static_cast<size_t>(rank)] = static_cast<int>(number);
    }
  }
  if (!several || !of_several) numbers.clear();
  return numbers;
}

}  // namespace uzip
