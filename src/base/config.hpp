// The one home of all settings: every UZIP_* variable is a row of the table in config.cpp (name, type,
// default, help), parsed once, from the environment, by load_config(). Nothing else calls getenv.
#pragma once

#include "base/status.hpp"

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace uzip {

/// The settings, with the values in force. One field for each row of the table.
struct Config {
  // Launching without MPI.
  int rank = -1;            ///< UZIP_RANK, -1: not set
  int size = -1;            ///< UZIP_SIZE, -1: not set
  std::string rendezvous;   ///< UZIP_RENDEZVOUS, a directory

  // Choices; must be equal on all ranks.
  std::string algorithm = "auto";  ///< UZIP_ALGORITHM: name for every collective, or a list "allreduce:ring,..."
  std::string codec = "auto";      ///< UZIP_CODEC: auto, raw, lev, ...
  size_t chunk_bytes = 0;          ///< UZIP_CHUNK: bytes (K, M, G accepted), 0 = auto
  int split_send = -1;             ///< UZIP_SPLIT_SEND: auto, 0, 1
  bool checksum = false;           ///< UZIP_CHECKSUM: CRC32C in every frame
  bool reproducible = false;       ///< UZIP_REPRODUCIBLE: the bits of an element don't depend on the call's size
  int ranks_per_host = 0;          ///< UZIP_RANKS_PER_HOST: pretended hosts, for tests; 0 = as they are
  std::string topology = "auto";   ///< UZIP_TOPOLOGY: auto, none, or pretended NUMA nodes, for tests
  size_t codec_threshold = 0;      ///< UZIP_CODEC_THRESHOLD: pieces below stay raw; 0 = auto

  bool calibrate = true;           ///< UZIP_CALIBRATE: measure the network at the first large call

  // Waiting.
  double timeout = 60;     ///< UZIP_TIMEOUT, seconds after which a waiting call warns
  double timeout_limit = 0;///< UZIP_TIMEOUT_LIMIT, seconds after which it fails with UZIP_ERR_TIMEOUT; 0 = never
  double spin = 0.001;     ///< UZIP_SPIN, idle seconds before a wait sleeps (arm + poll)

  // Machine.
  std::string tuning_file = "auto"; ///< UZIP_TUNING_FILE: a table that uzip_tune wrote, auto (the user's cache) or none
  int codec_threads = -1;       ///< UZIP_CODEC_THREADS: threads for coding and for progress; -1: by free cores
  std::string cpu = "auto";     ///< UZIP_CPU: auto, scalar, avx2, avx512
  std::string ucx_tls;          ///< UZIP_UCX_TLS: UCX transports for our context only ("" = UCX's own choice)
  bool local_queues = true;     ///< UZIP_LOCAL_QUEUES: short messages to local processes through shared memory of our own
  bool peer_read = true;        ///< UZIP_PEER_READ: read large messages from a local peer's memory; must be equal

  // GPUs.
  std::string gpu = "auto";     ///< UZIP_GPU_PLUGIN: auto, off, or the file of a plugin
  size_t gpu_memory = 0;        ///< UZIP_GPU_MEMORY: bytes of wire places and scratch for each GPU; 0 = auto
  bool gpu_peers = false;       ///< UZIP_GPU_PEERS: ranks of one host open memory of their GPUs to one another
  size_t gpu_peer_memory = 0;   ///< UZIP_GPU_PEER_MEMORY: bytes of it for each communicator; 0 = auto
  int gpu_blocks = 0;           ///< UZIP_GPU_BLOCKS: thread blocks of a codec kernel; 0 = as many as run at a time

  // Talking.
  int log_level = 1;      ///< UZIP_LOG_LEVEL: error, warn, info, debug
  bool trace = false;     ///< UZIP_COLL_TRACE: one line for each new shape of call, with what was chosen
};

/// One row of the table, for uzip_info and the manual page check.
struct SettingInfo {
  const char* name;
  const char* type;           ///< "bytes", "seconds", "bool", "one of ...", ...
  const char* default_value;
  const char* help;
  bool must_match;            ///< compared between ranks when a communicator is created
};
std::span<const SettingInfo> settings();

/// Reads `environment` (NAME=value strings; null means the process's own, with secure_getenv's rule).
/// A value that can't be read is an error naming variable, value and the allowed form; unknown UZIP_ names
/// become one warning each, with the nearest name, in `warnings`.
Result<Config> parse_config(const char* const* environment, std::vector<std::string>* warnings);

/// The process's settings, parsed at the first call (warnings logged once).
Result<const Config*> load_config();

/// Where this user's programs keep what they can make again: $XDG_CACHE_HOME or $HOME/.cache; "" if there is no such
/// place, or the program has more rights than its user.
std::string cache_folder();

/// "name=value" of each setting that must match, for comparing ranks, in the table's order.
std::vector<std::string> matching_settings(const Config& config);

/// Value in force of one setting, as text.
std::string setting_value(const Config& config, const SettingInfo& setting);

}  // namespace uzip
