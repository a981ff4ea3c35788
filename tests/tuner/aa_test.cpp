// A/A on recorded samples: log ratios of fresh processes that measured the default's engine against itself on a real
// machine (bench/aa.py --samples), run by run in the order in which they were taken.
#include <gtest/gtest.h>

#include <cmath>

#include "base/file.h"
#include "tuner/search.h"

namespace rutter::tuner {
namespace {

constexpr size_t kRuns = 40;

std::vector<std::vector<double>> recordedRuns() {
  // A missing file is an error here: throws.
  const std::string text = readWholeFile(RUTTER_SOURCE_DIR "/tests/tuner/recorded/aa_samples.json");
  return Json::parse(text).at("runs").get<std::vector<std::vector<double>>>();
}

// With the margin that a search has. Without one a sixth of a percent, by which these samples lean to one side, would
// be claimed more often: the margin is there for that.
const double kMinGain = SearchConfig().minGain;

// Does one of the finalists win, if `gain` is added to each number? One after the other takes as many as confirm()
// asks for; where the numbers end, nothing is claimed.
bool claims(const std::vector<double>& run, size_t finalists, double gain = 0) {
  size_t next = 0;
  for (size_t f = 0; f < finalists; f++) {
    const ConfirmRule rule{kMinGain, finalistShare(f)};
    std::vector<double> ratios;
    Verdict now = Verdict::kMore;
    for (; now == Verdict::kMore && next < run.size(); now = confirm(ratios, rule).verdict)
      ratios.push_back(run[next++] + gain);
    if (now == Verdict::kFaster) return true;
  }
  return false;
}

int count(const std::vector<std::vector<double>>& runs, size_t finalists, double gain = 0) {
  int n = 0;
  for (const auto& r : runs) n += claims(r, finalists, gain);
  return n;
}

TEST(RecordedAA, TheDefaultAgainstItselfWinsAtMostOnceInForty) {
  const auto runs = recordedRuns();
  ASSERT_EQ(runs.size(), kRuns);
  for (size_t finalists : {1, 2, 4}) EXPECT_LE(count(runs, finalists), 1) << finalists << " finalists";
}

// What is really there is found in the same noise.
TEST(RecordedAA, AGainOfFivePercentIsClaimed) {
  const auto runs = recordedRuns();
  int measured = 0;
  for (const auto& r : runs) measured += r.size() >= size_t(kLooks[0]);
  EXPECT_GE(measured, int(kRuns) * 3 / 4);
  for (size_t finalists : {1, 2})
    EXPECT_GE(count(runs, finalists, std::log(1.05)), measured * 9 / 10) << finalists << " finalists";
}

// The same numbers cut into runs that are long enough for every look, whatever their own searches found early.
TEST(RecordedAA, SoItIsWhenEveryLookIsTaken) {
  std::vector<double> all;
  for (const auto& r : recordedRuns()) all.insert(all.end(), r.begin(), r.end());
  const size_t length = size_t(kLooks[std::size(kLooks) - 1]);
  std::vector<std::vector<double>> runs;
  for (size_t at = 0; at + length <= all.size() && runs.size() < kRuns; at += length)
    runs.emplace_back(all.begin() + long(at), all.begin() + long(at + length));
  ASSERT_EQ(runs.size(), kRuns);
  EXPECT_LE(count(runs, 1), 1);
  EXPECT_GE(count(runs, 1, std::log(1.05)), int(kRuns) * 9 / 10);
  EXPECT_LT(std::abs(median(all)), kMinGain / 4) << "the margin covers what the pair itself leans to one side";
}

}  // namespace
}  // namespace rutter::tuner
