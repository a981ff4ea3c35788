#pragma once
// ABBA blocks of two runnables over an abstract clock (DESIGN section 9). Used inside children and, with a simulated
// clock, in tests.
#include <functional>
#include <vector>

#include "tuner/statistics.h"

namespace rutter::tuner {

/// Seconds since some moment; monotonic.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual double now() = 0;
};
/// CLOCK_MONOTONIC.
class SteadyClock : public Clock {
 public:
  double now() override;
};

struct BlockRule {
  int minRuns = 2;             ///< measured runs of a block, after the dropped first one: three in all
  double blockSeconds = 0.01;  ///< a block goes on until its measured runs took this long
  int maxRuns = 1000;
};
/// One block: the first run refills the caches that the other engine evicted and is dropped. Appends the measured
/// runs' seconds to `runs` if it is given. Returns their median in seconds.
double measureBlock(const std::function<void()>& run, Clock& clock, const BlockRule& rule, std::vector<double>* runs);

struct PairSamples {
  std::vector<double> logRatios;      ///< one a round
  std::vector<double> first, second;  ///< seconds of the measured runs of a (default) and b (candidate)
};
/// Rounds of ABBA (BAAB in every second one, so that drift within a round cancels over two) until rankDone says so.
/// `swap` starts with BAAB. `afterRound` may report progress.
PairSamples measurePair(const std::function<void()>& a, const std::function<void()>& b, Clock& clock,
                        const BlockRule& block, const RankRule& rank, bool swap,
                        const std::function<void(const PairSamples&)>& afterRound = {});

}  // namespace rutter::tuner
