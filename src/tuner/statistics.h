#pragma once
// Statistics of paired timings. Everything here is a pure function of recorded numbers, so that a journal replays.
//
// Intervals are exact order-statistic intervals for the median (H. A. David and H. N. Nagaraja, Order Statistics, 3rd
// ed., section 7.1): with n independent values the interval [x(k), x(n+1-k)] covers the median with probability
// 1 - 2 P(Bin(n, 1/2) < k), whatever the distribution. No normality, no resampling, and the same answer on replay.
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace rutter::tuner {

/// Median; the mean of the middle two for an even count. InternalError if empty.
double median(std::vector<double> values);

struct Interval {
  double lo = 0, hi = 0;
  double tail = 1;  ///< probability that the median lies beyond one given end (1 = no statement possible)
};
/// The narrowest order-statistic interval whose one-sided tail is at most `tail`; if n is too small for it, the whole
/// range with the tail that it really has. InternalError if empty.
Interval medianInterval(std::vector<double> values, double tail);
/// P(Bin(n, 1/2) < k).
double binomialTail(int n, int k);

/// One ABBA round: medians of its four blocks in seconds, a = default, b = candidate. Above 0 the candidate is faster.
double abbaLogRatio(double a1, double b1, double b2, double a2);

inline constexpr double kNoPromise = -1e9;
/// Ranking inside one process: after each round, go on, or is it clear that the candidate is not faster?
struct RankRule {
  int minRounds = 2;       ///< rounds before a hopeless candidate is dropped
  int maxRounds = 5;       ///< five rounds make a one-sided tail of 1/32
  double hopeless = 0.02;  ///< all rounds so far slower than the default by more than this (log ratio)
  double terrible = 0.25;  ///< slower by more than this in the first round already
  /// What is asked for (log ratio): a median of the rounds so far below it ends, from the first round on.
  double promise = kNoPromise;
};
/// Ends after maxRounds; before that only for what is terrible, hopeless, not once faster in three rounds, or
/// promises less than is asked for.
bool rankDone(std::span<const double> logRatios, const RankRule& rule);
/// Positive in the sense of `mixed`: all of at least five rounds' interval lies above 0.
bool rankFaster(std::span<const double> logRatios);

/// Confirmation over fresh processes: looked at after so many of them. The one-sided tail is shared among the looks and
/// all that a search confirms (union bound), so that looking often and picking the best of several finalists is paid
/// for.
inline constexpr std::array kLooks = {7, 11, 16, 24, 36};
/// Of the tail: the first look has the most, or seven processes could never claim anything.
inline constexpr std::array kLookShares = {1 / 3., 1 / 6., 1 / 6., 1 / 6., 1 / 6.};
struct ConfirmRule {
  double minGain = 0.01;
  double share = 1;                  ///< of the tail, for this finalist: finalistShare
  double tail = 0.05;                ///< one-sided, over everything
  std::array<int, 5> looks{kLooks};  ///< processes at each look
  /// A look that could have claimed something was made after `processes` of them, as the time was up: it has taken the
  /// place of the next one, whose share of the error it has spent.
  void lookedEarly(int processes);
};
/// Of the n-th that a search confirms, from 0: a half, a quarter, … However many there are, and whatever the clock
/// says, all together claim no more than the tail, and what was decided stays decided.
double finalistShare(size_t n);
enum class Verdict { kMore, kFaster, kNotFaster };
struct Confirmation {
  Verdict verdict = Verdict::kMore;
  Interval interval;  ///< of the log ratio
  double center = 0;  ///< median log ratio
  /// If this had to be the look, or the next look made now: whether "faster" would be within its share of the error.
  bool clear = false;
};
/// `logRatios`: one number a process, in order. kFaster: the lower end clears log(1 + minGain). kNotFaster: the upper
/// end is below it, or the last look is over. kMore: measure until the next look.
Confirmation confirm(std::span<const double> logRatios, const ConfirmRule& rule);
/// The first look at which all that say "faster" are enough of them.
int firstClaim(double share);

}  // namespace rutter::tuner
