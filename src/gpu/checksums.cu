#include "gpu/checksums.hpp"

#include "gpu/checksum_kernel.hpp"
#include "gpu/plugin_error.hpp"

#include <new>

namespace uzip::gpu {
namespace {

/// Thread blocks at most: eight on each of about as many processors as large devices have.
constexpr unsigned kBlocks = 1024;

__global__ void __launch_bounds__(kThreads)
    checksum_kernel(const UZIP_KERNEL_ARGUMENT ChecksumArgs<kBlocks> args) {
  __shared__ ChecksumShared shared;
  Checksum<kBlocks>(args, shared).run();
}

}  // namespace

struct ChecksumMemory {
  ChecksumTables<kBlocks> tables;
  ChecksumState state;
};

int create_checksums(ChecksumMemory** memory) {
  static const ChecksumMemory* const initial = [] {
    auto* const made = new (std::nothrow) ChecksumMemory();
    if (made != nullptr) fill_checksum_tables(made->tables);
    return made;
  }();
  if (initial == nullptr) return fail("GPU: no memory");
  UZIP_CHECK(UZIP_GPU_RUNTIME(Malloc)(reinterpret_cast<void**>(memory), sizeof *initial),
             "memory of the checksums");
  return check(UZIP_GPU_RUNTIME(Memcpy)(*memory, initial, sizeof *initial,
                                        UZIP_GPU_RUNTIME(MemcpyHostToDevice)),
               "memory of the checksums");
}

void destroy_checksums(ChecksumMemory* memory) { static_cast<void>(UZIP_GPU_RUNTIME(Free)(memory)); }

int start_checksum(ChecksumMemory* memory, const void* data, uint64_t bytes, uint32_t* crc, Stream stream) {
  ChecksumArgs<kBlocks> args{};
  args.tables = &memory->tables;
  args.state = &memory->state;
  args.crc = crc;
  const unsigned blocks = plan_checksum(data, bytes, args);
  checksum_kernel<<<blocks, kThreads, 0, stream>>>(args);
  return check(take_error(), "start of a checksum");
}

}  // namespace uzip::gpu
