// Scratch memory is used again, aligned, bounded, and refused rather than overcommitted by mistake.
#include "comm/buffer_pool.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <vector>

namespace uzip {
namespace {

TEST(BufferPool, HasRoomAndSlack) {
  BufferPool pool;
  for (size_t bytes : {size_t{0}, size_t{1}, size_t{4031}, size_t{4032}, size_t{4033}, size_t{4096},
                       size_t{100000}}) {
    Result<Buffer> buffer = pool.get(bytes);
    ASSERT_TRUE(buffer.ok());
    EXPECT_GE(buffer->bytes, bytes + BufferPool::kSlack);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(buffer->data) % 64, 0u);
    std::memset(buffer->data, 1, bytes + BufferPool::kSlack);
    pool.put(*buffer);
  }
  EXPECT_EQ(pool.in_use_bytes(), 0u);
}

TEST(BufferPool, UsesBlocksAgain) {
  BufferPool pool;
  const Buffer first = *pool.get(10000);
  const Buffer second = *pool.get(10000);
  EXPECT_NE(first.data, second.data);
  EXPECT_EQ(pool.in_use_bytes(), first.bytes + second.bytes);
  pool.put(first);
  EXPECT_EQ(pool.get(9000)->data, first.data);  // the same power of two
  EXPECT_NE(pool.get(70000)->data, second.data);
}

// What is idle stays below the bound, whatever was in use.
TEST(BufferPool, GivesBackWhatIsTooMuch) {
  BufferPool pool;
  std::vector<Buffer> buffers;
  constexpr size_t kBytes = 1 << 20;
  for (size_t i = 0; i < 2 * BufferPool::kMostIdleBytes / kBytes; ++i) {
    buffers.push_back(*pool.get(kBytes - BufferPool::kSlack));
  }
  EXPECT_EQ(pool.in_use_bytes(), 2 * BufferPool::kMostIdleBytes);
  for (const Buffer& buffer : buffers) pool.put(buffer);
  EXPECT_EQ(pool.in_use_bytes(), 0u);
  EXPECT_LE(pool.idle_bytes(), BufferPool::kMostIdleBytes);
  pool.put(Buffer());
}

TEST(BufferPool, RefusesTheImpossible) {
  BufferPool pool;
  for (size_t bytes : {SIZE_MAX, SIZE_MAX - BufferPool::kSlack, SIZE_MAX / 2, size_t{1} << 60}) {
    const Result<Buffer> buffer = pool.get(bytes);
    ASSERT_FALSE(buffer.ok());
    EXPECT_EQ(buffer.status().code(), UZIP_ERR_NO_MEMORY);
  }
  EXPECT_EQ(pool.in_use_bytes(), 0u);
}

}  // namespace
}  // namespace uzip
