// What the simulator knows of a machine: links, cores, codecs. Read from a text that a tool
// measured or a person wrote; uzip_model(5) describes it. Used by simulate() and uzip_sched.
#pragma once

#include "base/datatype.hpp"
#include "base/status.hpp"

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uzip {

/// Whose core moves the bytes of a large message.
enum class Carrier : uint8_t {
  kWire,      ///< nobody's: the adapter's
  kReceiver,  ///< the receiver's, which reads them from the sender's memory
};

/// Who shares the two directions of one port of a link.
enum class PortOwner : uint8_t { kRank, kSocket, kHost };

/// Which link joins two ranks: that within a socket, that between the sockets of a host, or that between hosts.
enum class Distance : uint8_t { kLocal, kSocket, kRemote };
inline constexpr int kDistanceCount = 3;

/// One class of links. Seconds and bytes.
struct LinkModel {
  double latency = 0;    ///< from the sender's port to the receiver's
  double bandwidth = 0;  ///< of one direction of a port, bytes per second
  PortOwner port = PortOwner::kRank;
  double message = 0;   ///< core time of one message, at either end
  double byte_cpu = 0;  ///< core time of one byte, at either end
  double fetch =
      0;  ///< bytes from which on the receiver asks for the body when it is ready; 0: never
  Carrier carrier = Carrier::kWire;  ///< of bodies that are asked for
  double fresh = 0;   ///< bodies that the receiver reads: seconds that a byte takes longer that the sender has just written
  double memory = 0;  ///< the same of one that is in memory, not in the last cache
};

/// How a codec treats typical data of one type. Speeds in original bytes per second of one core.
struct CodecModel {
  std::string codec;
  DataType type = UZIP_FP32;
  double ratio = 1;  ///< bytes on the wire per original byte
  double plain =
      0;  ///< of these, the share of the original bytes that is final after the first stage
  double encode = 0;
  double decode = 0;
};

struct MachineModel {
  std::string name;
  double ranks_per_host = 1;
  double ranks_per_socket = 0;  ///< 0: hosts have one socket
  double cores_per_host =
      0;              ///< shared by the host's ranks, each of which uses one at a time, and their codec threads; 0: enough
  double codec_threads = 0;  ///< of each rank, beside the thread that calls; they need cores, too
  double copy = 0;    ///< bytes per second of one core
  double reduce = 0;  ///< bytes of operands per second of one core
  double step = 0;    ///< seconds that any step takes besides
  double call = 0;    ///< seconds that a call takes besides, on every rank
  double chunk = 0;   ///< bytes of one rank's share in one round; 0: as the library chooses
  double window = 0;  ///< rounds in flight; 0: as the library chooses
  double change = 0;  ///< seconds until a core has changed from one rank to another
  double core_cache = 0;  ///< bytes of a core's own cache; 0: large enough
  double cache = 0;       ///< bytes of a host's last cache; 0: large enough
  double far = 0;     ///< seconds that a byte takes longer that is in the last cache, not in the core's own
  double memory = 0;  ///< the same of one in memory, not in the last cache, while no other core uses it
  double crowd = 1;   ///< how many times longer than that while all cores do
  LinkModel local;    ///< between ranks of one socket
  LinkModel socket;   ///< between the sockets of one host, if ranks_per_socket says that there are several
  LinkModel remote;   ///< between hosts
  std::vector<CodecModel> codecs;

  /// Ranks 0 to ranks_per_host - 1 are on the first host, and so on; likewise sockets within each host.
  int host_of(int rank) const { return rank / static_cast<int>(ranks_per_host); }
  int socket_of(int rank) const {
    if (ranks_per_socket < 1) return 0;
    return rank % static_cast<int>(ranks_per_host) / static_cast<int>(ranks_per_socket);
  }
  Distance distance(int a, int b) const {
    if (host_of(a) != host_of(b)) return Distance::kRemote;
    return socket_of(a) != socket_of(b) ? Distance::kSocket : Distance::kLocal;
  }
  const LinkModel& link(Distance distance) const {
    return distance == Distance::kRemote ? remote : distance == Distance::kSocket ? socket : local;
  }

  const CodecModel* find_codec(std::string_view codec, DataType type) const;
};

/// Reads a model; errors begin with "ORIGIN:LINE: ".
Result<MachineModel> parse_machine_model(std::string_view text, const std::string& origin);

/// The text that parse_machine_model() reads back to the same model.
std::string print_machine_model(const MachineModel& model);

/// Models that are always there.
struct NamedModel {
  const char* name;
  const char* summary;
  const char* text;
};
std::span<const NamedModel> machine_models();
/// The one of hosts with a rank each at 100 Gb/s.
const NamedModel& network_model();

}  // namespace uzip
