#include "tuner/measure.h"

#include "base/clock.h"

namespace rutter::tuner {

double SteadyClock::now() {
  return monotonicSeconds();
}

double measureBlock(const std::function<void()>& run, Clock& clock, const BlockRule& rule, std::vector<double>* runs) {
  run();
  std::vector<double> times;
  double total = 0;
  while (int(times.size()) < rule.maxRuns && (int(times.size()) < rule.minRuns || total < rule.blockSeconds)) {
    const double begin = clock.now();
    run();
    times.push_back(clock.now() - begin);
    total += times.back();
  }
  if (runs) runs->insert(runs->end(), times.begin(), times.end());
  return median(std::move(times));
}

PairSamples measurePair(const std::function<void()>& a, const std::function<void()>& b, Clock& clock,
                        const BlockRule& block, const RankRule& rank, bool swap,
                        const std::function<void(const PairSamples&)>& afterRound) {
  PairSamples s;
  for (bool baab = swap; !rankDone(s.logRatios, rank); baab = !baab) {
    double a1, a2, b1, b2;
    if (!baab) {
      a1 = measureBlock(a, clock, block, &s.first);
      b1 = measureBlock(b, clock, block, &s.second);
      b2 = measureBlock(b, clock, block, &s.second);
      a2 = measureBlock(a, clock, block, &s.first);
    } else {
      b1 = measureBlock(b, clock, block, &s.second);
      a1 = measureBlock(a, clock, block, &s.first);
      a2 = measureBlock(a, clock, block, &s.first);
      b2 = measureBlock(b, clock, block, &s.second);
    }
    s.logRatios.push_back(abbaLogRatio(a1, b1, b2, a2));
    if (afterRound) afterRound(s);
  }
  return s;
}

}  // namespace rutter::tuner
