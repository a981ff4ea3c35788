#include "tuner/statistics.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace rutter::tuner {

double median(std::vector<double> values) {
  RUTTER_CHECK(!values.empty(), "median of nothing");
  const size_t n = values.size(), mid = n / 2;
  std::nth_element(values.begin(), values.begin() + mid, values.end());
  const double upper = values[mid];
  if (n % 2) return upper;
  return (*std::max_element(values.begin(), values.begin() + mid) + upper) / 2;
}

double binomialTail(int n, int k) {
  double term = std::pow(0.5, n), sum = 0;
  for (int i = 0; i < k; i++) {
    sum += term;
    term *= double(n - i) / (i + 1);
  }
  return sum;
}

Interval medianInterval(std::vector<double> values, double tail) {
  RUTTER_CHECK(!values.empty(), "interval of nothing");
  std::sort(values.begin(), values.end());
  const int n = int(values.size());
  int k = 1;
  while (k + 1 <= (n + 1) / 2 && binomialTail(n, k + 1) <= tail) k++;
  return {values[k - 1], values[n - k], binomialTail(n, k)};
}

double abbaLogRatio(double a1, double b1, double b2, double a2) {
  auto ln = [](double t) { return std::log(std::max(t, 1e-9)); };  // a clock may not resolve a tiny run
  return 0.5 * (ln(a1) - ln(b1) + ln(a2) - ln(b2));
}

bool rankDone(std::span<const double> logRatios, const RankRule& rule) {
  const int n = int(logRatios.size());
  if (n >= rule.maxRounds) return true;
  auto all = [&](double below) {
    return std::all_of(logRatios.begin(), logRatios.end(), [&](double r) { return r < below; });
  };
  if (n == 1 && all(-rule.terrible)) return true;
  if (n > 0 && median({logRatios.begin(), logRatios.end()}) < rule.promise) return true;
  if (n < rule.minRounds) return false;
  return all(-rule.hopeless) || (n >= 3 && all(0));
}

bool rankFaster(std::span<const double> logRatios) {
  if (logRatios.size() < 5) return false;
  return medianInterval({logRatios.begin(), logRatios.end()}, 1.0 / 32).lo > 0;
}

double finalistShare(size_t n) {
  return std::ldexp(1, -int(n) - 1);
}

int firstClaim(double share) {
  for (size_t i = 0; i < kLooks.size(); i++)
    if (std::ldexp(1, -kLooks[i]) <= ConfirmRule().tail * kLookShares[i] * share) return kLooks[i];
  return kLooks.back();
}

void ConfirmRule::lookedEarly(int processes) {
  const size_t i = size_t(std::lower_bound(looks.begin(), looks.end(), processes) - looks.begin());
  if (i < looks.size() && std::ldexp(1, -processes) <= tail * kLookShares[i] * share) looks[i] = processes;
}

Confirmation confirm(std::span<const double> logRatios, const ConfirmRule& rule) {
  const int n = int(logRatios.size()), last = rule.looks.back();
  Confirmation c;
  if (!n) return c;
  size_t look = 0;
  while (look + 1 < rule.looks.size() && rule.looks[look] < n) look++;
  const double tail = rule.tail * kLookShares[look] * rule.share;
  c.interval = medianInterval({logRatios.begin(), logRatios.end()}, tail);
  c.center = median({logRatios.begin(), logRatios.end()});
  const double bar = std::log1p(rule.minGain);
  c.clear = c.interval.lo > bar && c.interval.tail <= tail;
  if (rule.looks[look] != n && n < last) return c;
  // A small n may not reach the tail at all: then only a later look can say "faster".
  if (c.clear)
    c.verdict = Verdict::kFaster;
  else if (n >= last || c.interval.hi < bar)
    c.verdict = Verdict::kNotFaster;
  return c;
}

}  // namespace rutter::tuner
