// Handles are checked, never followed.
#include "comm/handle_table.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <set>
#include <thread>
#include <vector>

namespace uzip {
namespace {

using Table = HandleTable<std::shared_ptr<int>>;

TEST(HandleTable, FindsWhatWasAdded) {
  Table table;
  std::vector<uintptr_t> handles;
  for (int i = 0; i < 5000; ++i) handles.push_back(table.add(std::make_shared<int>(i)));
  EXPECT_EQ(std::set<uintptr_t>(handles.begin(), handles.end()).size(), handles.size());
  for (int i = 0; i < 5000; ++i) {
    const uintptr_t handle = handles[static_cast<size_t>(i)];
    EXPECT_NE(handle, 0u);
    EXPECT_NE(handle, UINTPTR_MAX);
    ASSERT_NE(table.get(handle), nullptr);
    EXPECT_EQ(**table.get(handle), i);
  }
}

TEST(HandleTable, ForgetsWhatWasRemoved) {
  Table table;
  const auto value = std::make_shared<int>(7);
  const uintptr_t handle = table.add(std::shared_ptr<int>(value));
  EXPECT_EQ(value.use_count(), 2);
  const auto removed = table.remove(handle);
  ASSERT_TRUE(removed.has_value());
  EXPECT_EQ(*removed, value);
  EXPECT_EQ(value.use_count(), 2);  // here and in `removed`, not in the table
  EXPECT_EQ(table.get(handle), nullptr);
  EXPECT_FALSE(table.remove(handle).has_value());
  // The place has a new owner; the old handle is still none.
  const uintptr_t next = table.add(std::make_shared<int>(8));
  EXPECT_NE(next, handle);
  EXPECT_EQ(table.get(handle), nullptr);
  EXPECT_EQ(**table.get(next), 8);
}

TEST(HandleTable, KnowsNoOthers) {
  Table table;
  const uintptr_t handle = table.add(std::make_shared<int>(1));
  for (uintptr_t other :
       {uintptr_t{0}, uintptr_t{1}, UINTPTR_MAX, UINTPTR_MAX / 2, handle + 1, handle - 1,
        handle ^ (uintptr_t{1} << 63), handle << 1, reinterpret_cast<uintptr_t>(&table)}) {
    EXPECT_EQ(table.get(other), nullptr) << other;
    EXPECT_FALSE(table.remove(other).has_value());
  }
  for (int bit = 0; bit < 64; ++bit)
    EXPECT_EQ(table.get(handle ^ uintptr_t{1} << bit), nullptr) << bit;
  EXPECT_NE(table.get(handle), nullptr);
}

// Different handles from different threads, while the table grows.
TEST(HandleTable, ThreadsDontDisturbEachOther) {
  Table table;
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&table, t] {
      std::vector<uintptr_t> mine;
      for (int i = 0; i < 3000; ++i) {
        mine.push_back(table.add(std::make_shared<int>(t * 10000 + i)));
        const size_t which = mine.size() / 2;
        ASSERT_NE(table.get(mine[which]), nullptr);
        ASSERT_EQ(**table.get(mine[which]) / 10000, t);
        if (i % 3 != 0) continue;
        ASSERT_TRUE(table.remove(mine[which]).has_value());
        mine.erase(mine.begin() + static_cast<ptrdiff_t>(which));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
}

}  // namespace
}  // namespace uzip
