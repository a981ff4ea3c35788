#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "cli/console.h"
#include "cli/exports.h"
#include "cli/report.h"

namespace rutter::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

// A run of a CPU: nothing is copied, and the call lasts as long as the computation.
RunTimes cpuRun(double start, double ms) {
  return {start, start + ms, start, start, start, start + ms, start + ms, start + ms};
}

TEST(CliReport, Percentiles) {
  std::vector<double> t{1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  EXPECT_EQ(percentile(t, 0), 1);
  EXPECT_EQ(percentile(t, 100), 10);
  EXPECT_EQ(percentile(t, 90), 9);   // 10 - 1 - floor(0.1 * 10)
  EXPECT_EQ(percentile(t, 99), 10);  // floor(0.1) = 0
  EXPECT_EQ(percentile(t, 50), 5);
  EXPECT_EQ(percentile(std::vector<double>{7}, 0), 7);
  EXPECT_EQ(median(t), 5.5);
  EXPECT_EQ(median(std::vector<double>{1, 2, 9}), 2);
}

TEST(CliReport, WarmUpIsByStartOfComputation) {
  std::vector<RunTimes> runs;
  for (int i = 0; i < 10; i++) runs.push_back(cpuRun(i * 10, 10));
  auto t = cutWarmUp(runs, 30);
  EXPECT_EQ(t.warmUpRuns, 3u);
  EXPECT_EQ(t.measured.size(), 7u);
  EXPECT_DOUBLE_EQ(t.warmUpMs, 30);
  EXPECT_DOUBLE_EQ(t.wallSeconds, 0.07);
  EXPECT_EQ(cutWarmUp(runs, 0).warmUpRuns, 0u);
  try {
    cutWarmUp(runs, 91);
    FAIL();
  } catch (const UserError& e) {
    EXPECT_THAT(e.what(), HasSubstr("lower --warmUp"));
  }
}

TEST(CliReport, SummaryLinesAndOrder) {
  std::vector<RunTimes> runs;
  for (int i = 0; i < 100; i++) runs.push_back(cpuRun(i * 4, 4));
  auto r = performanceReport(cutWarmUp(runs, 0), 10, std::vector<double>{90, 99}, 1);
  auto at = std::find(r.lines.begin(), r.lines.end(), "=== Performance summary ===");
  ASSERT_EQ(r.lines.end() - at, 9);
  const std::string stats =
      "min = 4 ms, max = 4 ms, mean = 4 ms, median = 4 ms, percentile(90%) = 4 ms, percentile(99%) = 4 ms";
  const std::string zeros =
      "min = 0 ms, max = 0 ms, mean = 0 ms, median = 0 ms, percentile(90%) = 0 ms, percentile(99%) = 0 ms";
  EXPECT_EQ(at[1], "Throughput: 250 qps");
  EXPECT_EQ(at[2], "Latency: " + stats);
  EXPECT_EQ(at[3], "Enqueue Time: " + stats);
  EXPECT_EQ(at[4], "H2D Latency: " + zeros);
  EXPECT_EQ(at[5], "Compute Time: " + stats);
  EXPECT_EQ(at[6], "D2H Latency: " + zeros);
  EXPECT_EQ(at[7], "Total Host Walltime: 0.4 s");
  EXPECT_EQ(at[8], "Total Compute Time: 0.4 s");
  EXPECT_EQ(r.lines[0], "Warmup completed 0 queries over 0 ms");
  EXPECT_EQ(r.lines[1], "Timing trace has 100 queries over 0.4 s");
  EXPECT_THAT(r.lines,
              Contains("Average on 10 runs - Compute latency: 4 ms - Host latency: 4 ms (enqueue 4 ms)").Times(10));
  EXPECT_THAT(r.warnings, IsEmpty());
}

TEST(CliReport, TheMiddleOfALongTraceIsLeftOut) {
  std::vector<RunTimes> runs;
  for (int i = 0; i < 1003; i++) runs.push_back(cpuRun(i, 1));
  auto count = [&](int avg) {
    auto r = performanceReport(cutWarmUp(runs, 0), avg, {}, 1);
    return std::count_if(r.lines.begin(), r.lines.end(), [](auto& l) { return l.starts_with("Average on"); });
  };
  EXPECT_EQ(count(1), 400);
  EXPECT_EQ(count(10), 101);
  auto r = performanceReport(cutWarmUp(runs, 0), 1, {}, 1);
  EXPECT_THAT(r.lines, Contains("... 603 lines are left out ..."));
}

TEST(CliReport, Warnings) {
  std::vector<RunTimes> uneven;
  for (int i = 0; i < 100; i++) uneven.push_back(cpuRun(i * 10, i % 2 ? 4 : 5));
  EXPECT_THAT(performanceReport(cutWarmUp(uneven, 0), 10, {}, 1).warnings,
              ElementsAre(HasSubstr("compute times vary by 11.1 %")));
  EXPECT_THAT(performanceReport(cutWarmUp(uneven, 0), 10, {}, 2).warnings, Contains(HasSubstr("several streams")));
  std::vector<RunTimes> few(3, cpuRun(0, 1));
  EXPECT_THAT(performanceReport(cutWarmUp(few, 0), 10, {}, 1).warnings, ElementsAre(HasSubstr("only 3 runs")));
  // A device with copies: startEnq, endEnq, H2D, compute, D2H.
  std::vector<RunTimes> device;
  for (int i = 0; i < 100; i++)
    device.push_back({i * 10., i * 10 + 0.9, i * 10., i * 10 + 2., i * 10 + 2., i * 10 + 3., i * 10 + 3., i * 10 + 4.});
  EXPECT_THAT(performanceReport(cutWarmUp(device, 0), 10, {}, 1).warnings,
              ElementsAre(HasSubstr("enqueueing"), HasSubstr("copies")));
}

TEST(CliReport, ProfileTable) {
  std::vector<LayerTimes> layers{{"conv", {1, 3}}, {"nothing", {0, 0}}, {"relu", {1, 1}}};
  auto t = profileTable(layers);
  ASSERT_EQ(t.size(), 5u);
  EXPECT_EQ(t[0], "=== Profile (2 iterations ) ===");
  EXPECT_EQ(t[1], "    Time(ms)     Avg.(ms)   Median(ms)   Time(%)   Layer");
  EXPECT_EQ(t[2], "        4.00       2.0000       2.0000      66.7   conv");
  EXPECT_EQ(t[4], "        6.00       3.0000       3.0000     100.0   Total");
}

TEST(CliExports, Times) {
  auto doc = nlohmann::ordered_json::parse(timesJson(std::vector<RunTimes>{cpuRun(1, 2)}));
  ASSERT_EQ(doc.size(), 1u);
  std::vector<std::string> keys;
  for (auto& [k, v] : doc[0].items()) keys.push_back(k);
  EXPECT_THAT(keys, ElementsAre("startEnqMs", "endEnqMs", "startH2dMs", "endH2dMs", "startComputeMs", "endComputeMs",
                                "startD2hMs", "endD2hMs", "h2dMs", "computeMs", "d2hMs", "latencyMs"));
  EXPECT_EQ(doc[0]["computeMs"], 2.0);
  EXPECT_EQ(doc[0]["startD2hMs"], 3.0);
}

TEST(CliExports, ProfileEscapesNames) {
  auto doc =
      nlohmann::ordered_json::parse(profileJson(std::vector<LayerTimes>{{"a\"\\\n\xff", {1, 2, 6}}, {"b", {1, 1, 1}}}));
  ASSERT_EQ(doc.size(), 3u);
  EXPECT_EQ(doc[0]["count"], 3);
  EXPECT_EQ(doc[1]["timeMs"], 9.0);
  EXPECT_EQ(doc[1]["averageMs"], 3.0);
  EXPECT_EQ(doc[1]["medianMs"], 2.0);
  EXPECT_EQ(doc[1]["percentage"], 75.0);
  EXPECT_THAT(doc[1]["name"].get<std::string>(), HasSubstr("a\"\\\n"));
}

TEST(CliExports, OutputsHaveShortNumbersAndNulls) {
  std::vector<float> v{0.1f, NAN, INFINITY, -2};
  auto text = outputJson(std::vector<OutputValues>{{"y", {1, 4}, 4, [&](size_t i) { return jsonNumber(v[i]); }}});
  EXPECT_THAT(text, HasSubstr("[ 0.1, null, null, -2"));
  auto doc = nlohmann::json::parse(text);
  EXPECT_EQ(doc[0]["dimensions"], "1x4");
  EXPECT_TRUE(doc[0]["values"][1].is_null());
}

class CliWritable : public testing::Test {
 protected:
  std::string dir_ =
      testing::TempDir() + "rutter_write_" + testing::UnitTest::GetInstance()->current_test_info()->name();
  void SetUp() override { std::filesystem::create_directories(dir_); }
  void TearDown() override { std::filesystem::remove_all(dir_); }
};

TEST_F(CliWritable, UnwritablePlacesAreSeenBefore) {
  EXPECT_NO_THROW(checkWritable("exportTimes", dir_ + "/new.json"));
  EXPECT_NO_THROW(checkWritable("exportTimes", "/dev/null"));
  EXPECT_THROW(checkWritable("exportTimes", dir_), UserError);
  EXPECT_THROW(checkWritable("exportTimes", dir_ + "/no/such/folder.json"), UserError);
  EXPECT_THROW(checkWritable("exportTimes", "/proc/self/x.json"), UserError);
}

TEST(CliConsole, BannerAndPrefix) {
  EXPECT_THAT(bannerTail({"rutter", "--onnx=a b"}),
              testing::MatchesRegex("rutter \\[Rutter v[0-9.]+\\] # rutter '--onnx=a b'"));
  setenv("TZ", "UTC", 1);
  tzset();
  EXPECT_EQ(logPrefix(Severity::kInfo, 86400), "[01/02/1970-00:00:00] [I] ");
  EXPECT_EQ(logPrefix(Severity::kInternalError, 0), "[01/01/1970-00:00:00] [F] ");
}

TEST(CliConsole, StreamsBySeverityAndJson) {
  Console c({"rutter"});
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  c.info("hello\nworld");
  c.log(Severity::kVerbose, "quiet");
  c.warning("careful");
  EXPECT_EQ(c.passed(), 0);
  auto out = testing::internal::GetCapturedStdout(), err = testing::internal::GetCapturedStderr();
  EXPECT_THAT(out, HasSubstr("[I] world\n"));
  EXPECT_THAT(out, HasSubstr("&&&& PASSED rutter [Rutter v"));
  EXPECT_THAT(out, Not(HasSubstr("quiet")));
  EXPECT_THAT(err, HasSubstr("[W] careful\n"));
  c.setJson(true);
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  c.info("hello");
  c.result("{}");
  EXPECT_EQ(c.failed(), 1);
  EXPECT_EQ(testing::internal::GetCapturedStdout(), "{}\n");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), HasSubstr("&&&& FAILED"));
}

}  // namespace
}  // namespace rutter::cli
