#include "base/cpu.h"

#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "base/error.h"

namespace rutter {
namespace {

TEST(Cpu, FeaturesAgreeWithTheCompilersOwnProbe) {
  __builtin_cpu_init();
  auto f = cpuInfo().features;
  EXPECT_EQ(f.has(CpuFeature::kAvx2), bool(__builtin_cpu_supports("avx2")));
  EXPECT_EQ(f.has(CpuFeature::kFma), bool(__builtin_cpu_supports("fma")));
  EXPECT_EQ(f.has(CpuFeature::kAvx512f), bool(__builtin_cpu_supports("avx512f")));
  EXPECT_EQ(f.has(CpuFeature::kAvx512bw), bool(__builtin_cpu_supports("avx512bw")));
  EXPECT_EQ(f.has(CpuFeature::kAvx512vl), bool(__builtin_cpu_supports("avx512vl")));
  EXPECT_EQ(f.has(CpuFeature::kVnni), bool(__builtin_cpu_supports("avx512vnni")));
  EXPECT_EQ(f.has(CpuFeature::kBf16), bool(__builtin_cpu_supports("avx512bf16")));
}
TEST(Cpu, CachesAreOfASaneSize) {
  const auto& c = cpuInfo();
  EXPECT_EQ(c.vendor.size(), 12u);
  EXPECT_GE(c.l1d, 16 << 10);
  EXPECT_LE(c.l1d, 256 << 10);
  EXPECT_GT(c.l2, c.l1d);
  EXPECT_GE(c.l3, c.l2);
  EXPECT_EQ(c.line, 64);
}
TEST(Cpu, LevelsAreNestedAndNamed) {
  for (Isa i : {Isa::kGeneric, Isa::kAvx2, Isa::kAvx512}) {
    EXPECT_EQ(parseIsa(isaName(i)), i);
    EXPECT_EQ(bestIsa(featuresOf(i)), i);
  }
  EXPECT_TRUE(featuresOf(Isa::kAvx512).covers(featuresOf(Isa::kAvx2)));
  EXPECT_FALSE(featuresOf(Isa::kAvx2).covers(featuresOf(Isa::kAvx512)));
  EXPECT_THROW(parseIsa("sse9"), UserError);
  // A CPU with half of AVX-512 is an AVX2 machine.
  auto knl = featuresOf(Isa::kAvx512);
  knl.remove(CpuFeature::kAvx512bw);
  EXPECT_EQ(bestIsa(knl), Isa::kAvx2);
}
TEST(Cpu, FeatureSetsPrintAndParse) {
  CpuFeatures f{CpuFeature::kAvx2, CpuFeature::kVnni};
  EXPECT_EQ(f.text(), "avx2,vnni");
  EXPECT_EQ(CpuFeatures::parse(f.text()), f);
  EXPECT_EQ(CpuFeatures::parse(""), CpuFeatures());
  EXPECT_EQ(CpuFeatures(uint64_t(1) << 60).text(), "bit60");
  EXPECT_THROW(CpuFeatures::parse("avx2,abacus"), UserError);
}
TEST(Cpu, AffinityBoundsTheCores) {
  auto all = allowedCpus();
  ASSERT_FALSE(all.empty());
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(all.back(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
    EXPECT_EQ(allowedCpus(), std::vector<int>{all.back()});
    EXPECT_EQ(usableThreads(), 1);
  }).join();
}

class CgroupQuota : public testing::Test {
 protected:
  void SetUp() override {
    root_ = std::filesystem::path(testing::TempDir()) / ("cgroup." + std::to_string(::getpid()));
    std::filesystem::create_directories(root_);
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::filesystem::path root_;
};
TEST_F(CgroupQuota, TheTightestAncestorWins) {
  write("a/b/cpu.max", "400000 100000\n");
  write("a/cpu.max", "150000 100000\n");
  write("cpu.max", "max 100000\n");
  EXPECT_EQ(detail::cgroupQuotaAt(root_, "0::/a/b\n"), 1.5);
  EXPECT_EQ(detail::cgroupQuotaAt(root_, "0::/\n"), std::nullopt);
}
TEST_F(CgroupQuota, VersionOne) {
  write("cpu/box/cpu.cfs_quota_us", "200000\n");
  write("cpu/box/cpu.cfs_period_us", "100000\n");
  EXPECT_EQ(detail::cgroupQuotaAt(root_, "3:cpu,cpuacct:/box\n2:memory:/x\n"), 2.0);
  write("cpu/box/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(detail::cgroupQuotaAt(root_, "3:cpu,cpuacct:/box\n"), std::nullopt);
}

}  // namespace
}  // namespace rutter
