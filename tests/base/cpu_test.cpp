// Choosing the CPU target.
#include "base/cpu.hpp"

#include <gtest/gtest.h>

#include <string>

namespace uzip {
namespace {

class CpuTest : public testing::Test {
 protected:
  void TearDown() override { EXPECT_TRUE(set_cpu_target("auto").ok()); }
};

TEST_F(CpuTest, PortableCodeIsAlwaysThereAndTheLastTargetIsTheDefault) {
  ASSERT_FALSE(available_cpu_targets().empty());
  EXPECT_EQ(available_cpu_targets().front(), CpuTarget::kScalar);
  EXPECT_EQ(cpu_target(), available_cpu_targets().back());
}

TEST_F(CpuTest, EveryAvailableTargetCanBeChosen) {
  for (CpuTarget target : available_cpu_targets()) {
    ASSERT_TRUE(set_cpu_target(cpu_target_name(target)).ok());
    EXPECT_EQ(cpu_target(), target);
  }
  ASSERT_TRUE(set_cpu_target("auto").ok());
  EXPECT_EQ(cpu_target(), available_cpu_targets().back());
}

TEST_F(CpuTest, WrongNamesAreErrorsThatListTheRightOnes) {
  for (const std::string& name :
       {std::string(), std::string("avx"), std::string("AVX2"), std::string(1000000, 'x')}) {
    const Status status = set_cpu_target(name);
    EXPECT_EQ(status.code(), UZIP_ERR_CONFIG) << name.substr(0, 40);
    EXPECT_NE(status.message().find("auto, scalar"), std::string::npos) << status.message();
    EXPECT_LT(status.message().size(), 200u);
  }
  EXPECT_EQ(cpu_target(), available_cpu_targets().back());
}

TEST_F(CpuTest, MissingTargetsAreUnsupported) {
  for (size_t i = 0; i < kCpuTargetCount; ++i) {
    const auto target = static_cast<CpuTarget>(i);
    bool available = false;
    for (CpuTarget here : available_cpu_targets()) available = available || here == target;
    const Status status = set_cpu_target(cpu_target_name(target));
    EXPECT_EQ(status.code(), available ? UZIP_OK : UZIP_ERR_UNSUPPORTED) << cpu_target_name(target);
  }
}

}  // namespace
}  // namespace uzip
