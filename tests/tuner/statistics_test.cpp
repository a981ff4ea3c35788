#include "tuner/statistics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "tuner/measure.h"

namespace rutter::tuner {
namespace {

TEST(Statistics, Median) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(median({7}), 7);
}

TEST(Statistics, IntervalIsTheExactOrderStatistic) {
  EXPECT_DOUBLE_EQ(binomialTail(5, 1), 1.0 / 32);
  EXPECT_DOUBLE_EQ(binomialTail(10, 2), 11.0 / 1024);
  const Interval five = medianInterval({5, 1, 4, 2, 3}, 1.0 / 32);
  EXPECT_EQ(five.lo, 1);
  EXPECT_EQ(five.hi, 5);
  EXPECT_DOUBLE_EQ(five.tail, 1.0 / 32);
  const Interval ten = medianInterval({1, 2, 3, 4, 5, 6, 7, 8, 9, 10}, 11.0 / 1024);
  EXPECT_EQ(ten.lo, 2);
  EXPECT_EQ(ten.hi, 9);
  EXPECT_EQ(medianInterval({2, 1}, 0.01).tail, 0.25);  // too few values: says what it has
}

TEST(Statistics, IntervalCoversTheMedianAsOftenAsItSays) {
  std::mt19937_64 random(7);
  std::lognormal_distribution<double> skewed(0, 1);  // median 1
  int below = 0, above = 0;
  constexpr int kTrials = 20000;
  for (int t = 0; t < kTrials; t++) {
    std::vector<double> v(11);
    for (double& x : v) x = skewed(random);
    const Interval i = medianInterval(v, 0.01);
    EXPECT_DOUBLE_EQ(i.tail, binomialTail(11, 2));
    below += i.lo > 1;
    above += i.hi < 1;
  }
  const double want = binomialTail(11, 2);  // 0.0059
  EXPECT_NEAR(double(below) / kTrials, want, 0.002);
  EXPECT_NEAR(double(above) / kTrials, want, 0.002);
}

TEST(Statistics, RankingStopsEarlyOnlyForTheHopeless) {
  const RankRule rule;
  EXPECT_FALSE(rankDone(std::vector{-0.25}, rule));
  EXPECT_TRUE(rankDone(std::vector{-0.26}, rule));
  EXPECT_TRUE(rankDone(std::vector{-0.01, -0.01, -0.01}, rule));
  EXPECT_FALSE(rankDone(std::vector{-0.01, -0.01}, rule));
  EXPECT_FALSE(rankDone(std::vector{-0.01, 0.01, -0.01}, rule));
  EXPECT_TRUE(rankDone(std::vector{-0.5, -0.03}, rule));
  EXPECT_FALSE(rankDone(std::vector{-0.5, -0.02}, rule));  // exactly at the bound is not beyond it
  EXPECT_FALSE(rankDone(std::vector{-0.5, 0.1}, rule));
  EXPECT_FALSE(rankDone(std::vector{0.1, 0.1, 0.1, 0.1}, rule));
  EXPECT_TRUE(rankDone(std::vector{0.1, 0.1, 0.1, 0.1, 0.1}, rule));
  RankRule wanted;
  wanted.promise = 0.01;
  EXPECT_FALSE(rankDone(std::vector<double>{}, wanted));
  EXPECT_TRUE(rankDone(std::vector{0.005}, wanted));
  EXPECT_TRUE(rankDone(std::vector{0.03, -0.02}, wanted));  // their median is below what is asked for
  EXPECT_FALSE(rankDone(std::vector{0.03, -0.005}, wanted));
  EXPECT_TRUE(rankDone(std::vector{0.03, -0.005, 0.005}, wanted));
  EXPECT_FALSE(rankFaster(std::vector{0.1, 0.1, 0.1, 0.1}));
  EXPECT_TRUE(rankFaster(std::vector{0.1, 0.1, 0.1, 0.1, 0.001}));
  EXPECT_FALSE(rankFaster(std::vector{0.1, 0.1, 0.1, 0.1, 0.0}));
}

TEST(Statistics, ConfirmationDecidesAtTheLooks) {
  ConfirmRule rule;
  std::vector<double> fast(7, 0.05);
  EXPECT_EQ(confirm(std::span(fast).first(6), rule).verdict, Verdict::kMore);
  EXPECT_EQ(confirm(fast, rule).verdict, Verdict::kFaster);
  rule.share = 0.25;  // 0.05 / 3 / 4 is below 1/128: seven processes cannot claim that much
  EXPECT_EQ(confirm(fast, rule).verdict, Verdict::kMore);
  EXPECT_EQ(confirm(std::vector<double>(11, 0.05), rule).verdict, Verdict::kFaster);
  rule.share = 1;
  EXPECT_EQ(confirm(std::vector<double>(7, 0.0), rule).verdict, Verdict::kNotFaster);
  std::vector<double> mixed{0.05, 0.05, 0.05, 0.05, 0.05, 0.05, -0.01};
  EXPECT_EQ(confirm(mixed, rule).verdict, Verdict::kMore);
  for (int i = 0; i < 4; i++) mixed.push_back(0.05);
  EXPECT_EQ(confirm(mixed, rule).verdict, Verdict::kFaster);
  std::vector<double> torn;
  for (int i = 0; i < 16; i++) torn.push_back(i % 2 ? 0.1 : -0.1);
  EXPECT_EQ(confirm(torn, rule).verdict, Verdict::kMore);
  for (int i = 0; i < 20; i++) torn.push_back(i % 2 ? 0.1 : -0.1);
  EXPECT_EQ(confirm(torn, rule).verdict, Verdict::kNotFaster);  // the last look ends it
}

// A gain that single processes hardly show is confirmed by many of them.
TEST(Statistics, ManyProcessesConfirmWhatFewCannot) {
  static_assert(std::size(kLooks) == std::size(kLookShares));
  double sum = 0;
  for (double share : kLookShares) sum += share;
  EXPECT_LE(sum, 1 + 1e-12);
  std::vector<double> x;
  for (int i = 0; i < 36; i++) x.push_back(0.04 + (i % 5 - 2) * 0.02);  // 0 to 0.08
  const std::span<const double> all(x);
  EXPECT_EQ(confirm(all.first(7), {}).verdict, Verdict::kMore);
  EXPECT_EQ(confirm(all.first(16), {}).verdict, Verdict::kMore);
  EXPECT_EQ(confirm(all, {}).verdict, Verdict::kFaster);
}

// What may be claimed between looks, when the time is up: no more than the next look could claim.
TEST(Statistics, AnEarlyLookKeepsItsShareOfTheError) {
  const std::vector<double> fast(10, 0.05);
  const std::span<const double> all(fast);
  EXPECT_FALSE(confirm({}, {}).clear);
  EXPECT_FALSE(confirm(all.first(5), {}).clear);  // 1/32 is more than a third of 0.05
  EXPECT_TRUE(confirm(all.first(6), {}).clear);
  const ConfirmRule two{.share = 0.5};
  EXPECT_FALSE(confirm(all.first(6), two).clear);
  EXPECT_TRUE(confirm(all.first(8), two).clear);
  EXPECT_EQ(confirm(all.first(8), two).verdict, Verdict::kMore);
  EXPECT_FALSE(confirm(all.first(8), {.share = 0.25}).clear);
  EXPECT_FALSE(confirm(all.first(6), {.minGain = 0.06}).clear);
  std::vector<double> one = fast;
  one[3] = 0;  // not all of them agree
  EXPECT_FALSE(confirm(std::span<const double>(one).first(6), {}).clear);
}

// However many finalists a search has, all of their shares together are one error.
TEST(Statistics, FinalistsShareOneError) {
  double sum = 0;
  for (size_t n = 0; n < 40; n++) sum += finalistShare(n);
  EXPECT_LE(sum, 1);
  EXPECT_EQ(firstClaim(1), kLooks[0]);
  EXPECT_EQ(firstClaim(finalistShare(0)), kLooks[0]);
  EXPECT_EQ(firstClaim(finalistShare(1)), kLooks[1]);
  for (size_t n = 0; n < 6; n++) {  // the first look at which the same numbers are enough
    const ConfirmRule rule{.share = finalistShare(n)};
    for (int look : kLooks)
      EXPECT_EQ(confirm(std::vector<double>(size_t(look), 0.05), rule).verdict == Verdict::kFaster,
                look >= firstClaim(rule.share))
          << n << " " << look;
  }
}

TEST(Statistics, GainMustClearTheMarginNotOnlyZero) {
  ConfirmRule rule{.minGain = 0.05};
  EXPECT_EQ(confirm(std::vector<double>(7, std::log(1.04)), rule).verdict, Verdict::kNotFaster);
  EXPECT_EQ(confirm(std::vector<double>(7, std::log1p(0.05)), rule).verdict, Verdict::kMore);
  EXPECT_EQ(confirm(std::vector<double>(7, std::log(1.06)), rule).verdict, Verdict::kFaster);
}

// A machine whose speed drifts: a run takes its engine's time times the drift at that moment.
struct DriftingClock : Clock {
  double t = 0;
  double now() override { return t; }
  void run(double seconds) { t += seconds * (1 + 0.3 * std::sin(t / 3)); }
};

TEST(Measure, BlocksDropTheirFirstRunAndFillTheirTime) {
  DriftingClock clock;
  int runs = 0;
  std::vector<double> times;
  measureBlock([&] { clock.t += runs++ ? 0.001 : 5; }, clock, {3, 0.01, 1000}, &times);
  EXPECT_GE(times.size(), 10u);
  EXPECT_LE(times.size(), 11u);
  for (double t : times) EXPECT_NEAR(t, 0.001, 1e-9);
  times.clear();
  measureBlock([&] { clock.t += 1; }, clock, {3, 0.01, 1000}, &times);
  EXPECT_EQ(times.size(), 3u);
}

TEST(Measure, DriftCancelsInAbba) {
  DriftingClock clock;
  const auto s = measurePair([&] { clock.run(0.010); }, [&] { clock.run(0.008); }, clock, {}, {}, false);
  ASSERT_EQ(s.logRatios.size(), 5u);
  EXPECT_NEAR(median(s.logRatios), std::log(1.25), 0.003);
  EXPECT_EQ(s.first.size(), 20u);
}

TEST(Measure, HopelessCandidatesCostTwoRounds) {
  DriftingClock clock;
  const auto s = measurePair([&] { clock.run(0.010); }, [&] { clock.run(0.012); }, clock, {}, {}, true);
  EXPECT_EQ(s.logRatios.size(), 2u);
}

}  // namespace
}  // namespace rutter::tuner
