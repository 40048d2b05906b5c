// The models that are always there, in the format that users write. Where the numbers come from
// stands in docs/PERFORMANCE.md, "Predictions".
#include "algos/machine_model.hpp"

#include <algorithm>
#include <iterator>

namespace uzip {
namespace {

// One core with AVX-512, pieces in its cache; data as the samples of tests/data/tensors.
#define UZIP_CPU_CODECS                                                            \
  "codec lev bf16\n  ratio 0.68\n  plain 0.5\n  encode 14e9\n  decode 25e9\n"      \
  "codec lev fp16\n  ratio 0.87\n  plain 0.5\n  encode 13e9\n  decode 24e9\n"      \
  "codec lev fp32\n  ratio 0.84\n  plain 0.75\n  encode 13e9\n  decode 20e9\n"     \
  "codec lev fp64\n  ratio 0.83\n  plain 0.75\n  encode 13e9\n  decode 20e9\n"     \
  "codec lev fp8_e4m3fn\n  ratio 0.85\n  plain 0.5\n  encode 7e9\n  decode 12e9\n" \
  "codec lev fp8_e5m2\n  ratio 0.72\n  plain 0.25\n  encode 7e9\n  decode 12e9\n"

// A GPU of 2024; one-level coding, which is a little larger.
#define UZIP_GPU_CODECS                                                           \
  "codec lev bf16\n  ratio 0.70\n  plain 0.5\n  encode 1.5e12\n  decode 1.4e12\n" \
  "codec lev fp16\n  ratio 0.89\n  plain 0.5\n  encode 1.5e12\n  decode 1.4e12\n" \
  "codec lev fp32\n  ratio 0.85\n  plain 0.75\n  encode 1.8e12\n  decode 1.7e12\n"

#define UZIP_CPU_RANKS(ranks) \
  "ranks_per_host " ranks "\ncopy 25e9\nreduce 35e9\nstep 0.3e-6\ncall 1e-6\n"

#define UZIP_SHARED_MEMORY                                                           \
  "link local\n  latency 0.3e-6\n  bandwidth 9e9\n  message 0.3e-6\n  byte 0.1e-9\n" \
  "  fetch 8192\n  carrier receiver\n"

// A core reads the other socket's memory at 7e9, all cores of a socket together at `bandwidth`.
#define UZIP_SOCKETS                                                                   \
  "link socket\n  latency 0.5e-6\n  bandwidth 40e9\n  message 0.3e-6\n  byte 0.143e-9\n" \
  "  fetch 8192\n  carrier receiver\n  port socket\n"

// An adapter that moves bytes by itself; `bandwidth` is what remains of the line's rate.
#define UZIP_RDMA(latency, bandwidth)                          \
  "link remote\n  latency " latency "\n  bandwidth " bandwidth \
  "\n  message 0.4e-6\n"                                       \
  "  byte 0\n  fetch 32768\n"

#define UZIP_MODEL(name, rest) "uzip-cost-model 1\nname " name "\n" rest

constexpr NamedModel kModels[] = {
    {"shm", "processes of one host over shared memory, a core for each",
     UZIP_MODEL("shm", UZIP_CPU_RANKS("1000000") UZIP_SHARED_MEMORY UZIP_RDMA("2e-6", "3e9")
                           UZIP_CPU_CODECS)},
    {"tcp1", "hosts with one rank each, over TCP at 1 Gb/s",
     UZIP_MODEL("tcp1", UZIP_CPU_RANKS("1") UZIP_SHARED_MEMORY
                "link remote\n  latency 20e-6\n  bandwidth 0.119e9\n  message 4e-6\n  byte 0.3e-9\n"
                "  fetch 0\n  port host\n" UZIP_CPU_CODECS)},
    {"rdma25", "hosts with one rank each, 25 Gb/s",
     UZIP_MODEL("rdma25",
                UZIP_CPU_RANKS("1") UZIP_SHARED_MEMORY UZIP_RDMA("2e-6", "2.9e9") UZIP_CPU_CODECS)},
    {"rdma100", "hosts with one rank each, 100 Gb/s",
     UZIP_MODEL("rdma100", UZIP_CPU_RANKS("1") UZIP_SHARED_MEMORY UZIP_RDMA("2e-6", "11.8e9")
                               UZIP_CPU_CODECS)},
    {"rdma400", "hosts with one rank each, 400 Gb/s",
     UZIP_MODEL("rdma400",
                UZIP_CPU_RANKS("1") UZIP_SHARED_MEMORY UZIP_RDMA("2e-6", "47e9") UZIP_CPU_CODECS)},
    {"numa100", "hosts of two sockets with 8 ranks each, 100 Gb/s for each host",
     UZIP_MODEL("numa100", UZIP_CPU_RANKS("16") "ranks_per_socket 8\n" UZIP_SHARED_MEMORY UZIP_SOCKETS
                               UZIP_RDMA("2e-6", "11.8e9") "  port host\n" UZIP_CPU_CODECS)},
    {"nvlink", "hosts of 8 GPUs that NVLink joins, each GPU with 400 Gb/s to other hosts",
     UZIP_MODEL("nvlink",
                "ranks_per_host 8\ncopy 2e12\nreduce 3.5e12\nstep 4e-6\ncall 8e-6\n"
                "chunk 16777216\nwindow 4\n"
                "link local\n  latency 4e-6\n  bandwidth 380e9\n  message 2e-6\n"
                "link remote\n  latency 6e-6\n  bandwidth 47e9\n  message 2e-6\n" UZIP_GPU_CODECS)},
};

}  // namespace

std::span<const NamedModel> machine_models() { return kModels; }

const NamedModel& network_model() {
  return *std::find_if(std::begin(kModels), std::end(kModels), [](const NamedModel& model) {
    return std::string_view(model.name) == "rdma100";
  });
}

}  // namespace uzip
