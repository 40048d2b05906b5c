#include "ucx/wireup.hpp"

#include <cstring>
#include <string>
#include <type_traits>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

namespace uzip {
namespace {

constexpr uint32_t kWireupMagic = 0x57585a55;  // "UZXW" in memory order
constexpr uint32_t kWireupVersion = 2;
constexpr size_t kMaxAddressBytes = size_t{1} << 20;

constexpr uint32_t kPeerRead = 1;
constexpr uint32_t kSharedMemory = 2;

// Little-endian, no padding; the worker's address follows.
struct WireupHeader {
  uint32_t magic = kWireupMagic;
  uint32_t version = kWireupVersion;
  std::array<std::byte, 16> boot{};
  uint64_t pid_namespace = 0;
  uint64_t ipc_namespace = 0;
  uint64_t user_namespace = 0;
  uint64_t token_address = 0;
  MemoryToken token{};
  int32_t pid = 0;
  uint32_t flags = 0;
  int32_t inbox_descriptor = -1;
  uint32_t inbox_queues = 0;
  uint64_t address_bytes = 0;
};
static_assert(sizeof(WireupHeader) == 96 && std::is_trivially_copyable_v<WireupHeader>);

uint64_t random_number() {
  const MemoryToken token = make_memory_token();
  uint64_t number;
  std::memcpy(&number, token.data(), sizeof number);
  return number;
}

uint64_t namespace_number(const char* path) {
  struct stat facts;
  return stat(path, &facts) == 0 ? static_cast<uint64_t>(facts.st_ino) : random_number();
}

// "297ab3ff-4b24-4843-be3b-679c2d905604": 32 digits among dashes.
std::array<std::byte, 16> boot_number() {
  std::array<std::byte, 16> boot = make_memory_token();
  char text[64];
  const int file = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  if (file < 0) return boot;
  const ssize_t length = read(file, text, sizeof text);
  close(file);

  std::string digits;
  for (ssize_t i = 0; i < length; ++i) {
    if (std::isxdigit(static_cast<unsigned char>(text[i]))) digits += text[i];
  }
  if (digits.size() != 2 * boot.size()) return boot;
  for (size_t i = 0; i < boot.size(); ++i) {
    boot[i] = static_cast<std::byte>(std::stoi(digits.substr(2 * i, 2), nullptr, 16));
  }
  return boot;
}

Status malformed(int process, const char* what) {
  return error(UZIP_ERR_MISMATCH,
               "process %d sent connection data that can't be read (%s); "
               "start all processes with the same version of libuzipcoll",
               process, what);
}

}  // namespace

HostIdentity host_identity() {
  return {boot_number(), namespace_number("/proc/self/ns/pid"),
          namespace_number("/proc/self/ns/ipc"), namespace_number("/proc/self/ns/user")};
}

std::vector<std::byte> pack_wireup(const WireupRecord& record) {
  WireupHeader header;
  header.boot = record.host.boot;
  header.pid_namespace = record.host.pid_namespace;
  header.ipc_namespace = record.host.ipc_namespace;
  header.user_namespace = record.host.user_namespace;
  header.token_address = record.memory.token_address;
  header.token = record.memory.token;
  header.pid = record.memory.pid;
  header.flags = (record.peer_read ? kPeerRead : 0) | (record.shared_memory ? kSharedMemory : 0);
  header.inbox_descriptor = record.inbox.descriptor;
  header.inbox_queues = record.inbox.queues;
  header.address_bytes = record.address.size();

  std::vector<std::byte> bytes(sizeof header + record.address.size());
  std::memcpy(bytes.data(), &header, sizeof header);
  std::memcpy(bytes.data() + sizeof header, record.address.data(), record.address.size());
  return bytes;
}

Result<WireupRecord> unpack_wireup(std::span<const std::byte> bytes, int process) {
  WireupHeader header;
  if (bytes.size() < sizeof header) return malformed(process, "too short");
  std::memcpy(&header, bytes.data(), sizeof header);
  if (header.magic != kWireupMagic) return malformed(process, "not ours");
  if (header.version != kWireupVersion) return malformed(process, "another version");
  if (header.address_bytes == 0 || header.address_bytes > kMaxAddressBytes ||
      header.address_bytes != bytes.size() - sizeof header) {
    return malformed(process, "wrong length");
  }

  WireupRecord record;
  record.host = {header.boot, header.pid_namespace, header.ipc_namespace, header.user_namespace};
  record.memory = {header.pid, header.token_address, header.token};
  record.inbox = {header.inbox_descriptor, header.inbox_queues};
  record.peer_read = (header.flags & kPeerRead) != 0;
  record.shared_memory = (header.flags & kSharedMemory) != 0;
  record.address.assign(bytes.begin() + sizeof header, bytes.end());
  return record;
}

}  // namespace uzip
