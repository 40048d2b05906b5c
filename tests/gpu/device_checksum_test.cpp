// Checksums of memory of a GPU are the CPU's, for every length and place: the kernel on the CPU, and on a real GPU.
#include "gpu/emulator.hpp"

#include "base/crc32c.hpp"
#include "codec/guarded_memory.hpp"
#include "gpu/checksum_kernel.hpp"
#include "gpu/gpu_memory.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <vector>

namespace uzip::gpu {
namespace {

std::vector<std::byte> random_bytes(size_t count) {
  std::mt19937_64 random(5);
  std::vector<std::byte> bytes(count);
  for (std::byte& byte : bytes) byte = static_cast<std::byte>(random());
  return bytes;
}

TEST(Crc, PowersOfX) {
  EXPECT_EQ(crc_power_of_x(0), kCrcOne);
  EXPECT_EQ(crc_power_of_x(kCrcOrder), kCrcOne);
  EXPECT_EQ(crc_multiply(crc_power_of_x(100), crc_power_of_x(kCrcOrder - 100)), kCrcOne);
  // A register that zero bytes pass through is multiplied.
  const std::vector<std::byte> zeros(37);
  EXPECT_EQ(~crc32c(zeros), crc_multiply(~0u, crc_power_of_x(8 * zeros.size())));
}

TEST(EmulatedChecksum, IsThatOfTheCpu) {
  constexpr unsigned kBlocks = 2;
  const auto tables = std::make_unique<ChecksumTables<kBlocks>>();
  fill_checksum_tables(*tables);
  const size_t most = 40 * kChecksumRow + 100;
  const std::vector<std::byte> bytes = random_bytes(most);
  GuardedMemory memory(most + 5);
  ChecksumState state{};
  std::vector<size_t> lengths;
  for (size_t length = 0; length < 70; ++length) lengths.push_back(length);
  for (const size_t rows : {1ul, 2ul, 3ul, 4ul, 5ul, 9ul, 10ul, 11ul, 12ul, 40ul})
    for (const size_t more : {0ul, 1ul, 15ul, 16ul, 17ul, 100ul})
      for (const size_t length : {rows * kChecksumRow - more, rows * kChecksumRow + more}) lengths.push_back(length);
  for (const size_t length : lengths) {
    for (const size_t before_guard : {0ul, 5ul}) {
      const std::span<std::byte> data = memory.last(length + before_guard).first(length);
      std::ranges::copy(std::span(bytes).first(length), data.begin());
      uint32_t crc = 0;
      ChecksumArgs<kBlocks> args{};
      args.tables = tables.get();
      args.state = &state;
      args.crc = &crc;
      const unsigned blocks = plan_checksum(data.data(), length, args);
      static ChecksumShared shared[kBlocks];
      Emulator::get().launch(blocks, kThreads, [&] { Checksum<kBlocks>(args, shared[block_index()]).run(); });
      EXPECT_EQ(crc, crc32c(data)) << length << " bytes at " << static_cast<const void*>(data.data());
      EXPECT_EQ(state.sum, 0u);
      EXPECT_EQ(state.exited, 0u);
    }
  }
}

TEST(DeviceChecksum, IsThatOfTheCpu) {
  std::string why;
  const PluginApi* const gpu = find_gpu(&why);
  if (gpu == nullptr) GTEST_SKIP() << why;
  const size_t most = (size_t{70} << 20) + 77;
  const std::vector<std::byte> bytes = random_bytes(most);
  GpuMemory memory(*gpu, most);
  GpuMemory result(*gpu, 4);
  require(*gpu, gpu->copy(memory.data(), bytes.data(), most, nullptr));
  CodecContext* codec = nullptr;
  require(*gpu, gpu->create_codec(1, &codec));
  std::vector<std::pair<size_t, size_t>> ranges;  // from, to
  for (size_t length = 0; length <= 5000; ++length) ranges.emplace_back(length % 19, length % 19 + length);
  for (const size_t length : {100000ul, 4194303ul, 4194304ul, 4194305ul, 8388700ul, 20971520ul, 70000000ul})
    for (size_t i = 0; i < 17; ++i) ranges.emplace_back(i, i + length);
  ranges.emplace_back(0, most);
  for (const auto& [from, to] : ranges) {
    uint32_t crc = 0;
    require(*gpu, gpu->checksum(codec, memory.data() + from, to - from, reinterpret_cast<uint32_t*>(result.data()), nullptr));
    require(*gpu, gpu->copy(&crc, result.data(), 4, nullptr));
    require(*gpu, gpu->wait_stream(nullptr));
    ASSERT_EQ(crc, crc32c(std::span(bytes).subspan(from, to - from))) << from << " to " << to;
  }
  gpu->destroy_codec(codec);
}

}  // namespace
}  // namespace uzip::gpu
