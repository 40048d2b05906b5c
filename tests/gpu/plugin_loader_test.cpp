#include "gpu/plugin_loader.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace uzip::gpu {
namespace {

TEST(PluginLoader, MissingFilesAreErrorsThatNameThem) {
  const auto plugin = open_plugin("./no_such_plugin.so");
  ASSERT_FALSE(plugin.ok());
  EXPECT_EQ(plugin.status().code(), UZIP_ERR_UNSUPPORTED);
  EXPECT_NE(plugin.status().message().find("no_such_plugin.so"), std::string::npos);
}

TEST(PluginLoader, OtherLibrariesAreNoPlugins) {
  const auto plugin = open_plugin("libm.so.6");
  ASSERT_FALSE(plugin.ok());
  EXPECT_NE(plugin.status().message().find("no GPU plugin"), std::string::npos);
}

/// Without a driver it loads all the same, and says that there is no device.
TEST(PluginLoader, ThePluginOfThisBuildLoads) {
  const char* const path = "./libuzipcoll_cuda.so";
  if (!std::filesystem::exists(path)) GTEST_SKIP() << "built without CUDA";
  const auto plugin = open_plugin(path);
  ASSERT_TRUE(plugin.ok()) << plugin.status().message();
  EXPECT_STREQ((*plugin)->name, "cuda");
  int devices = -1;
  if ((*plugin)->device_count(&devices) != 0)
    EXPECT_NE(std::string((*plugin)->last_error()), "");
  else
    EXPECT_GE(devices, 0);
}

}  // namespace
}  // namespace uzip::gpu
