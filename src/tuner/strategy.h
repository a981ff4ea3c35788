#pragma once
// Strategies: what to try next, through one ask/tell interface. They see recorded numbers only, never a device or a
// clock: the same answers give the same questions, which is how a search is replayed, continued and tested.
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "knobs/expression.h"
#include "tuner/record.h"

namespace rutter::tuner {

struct Ask {
  std::string route;
  int phase = 1;
  double promise = kNoPromise;  ///< log ratio that makes more rounds of ranking worth while (RankRule)
};
/// The outcome of an asked route. An engine equal to a known one brings that one's numbers.
struct Tell {
  Status status = Status::kOk;
  std::vector<double> logRatios;  ///< rounds of the ranking process against the default route; above 0 is faster
  /// By first origin, of the candidate and of the default beside it; empty if they were not wanted.
  std::map<std::string, double> layerMs, defaultLayerMs;
  std::string error;         ///< why it is not ok
  std::optional<double> ms;  ///< median of the measured runs
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual const char* name() const = 0;
  /// The next route, or none at the end. Every ask is answered by one tell before the next ask.
  virtual std::optional<Ask> ask() = 0;
  virtual void tell(const Tell& outcome) = 0;
  /// How many asks there will be in all, as far as it is known.
  virtual std::optional<uint64_t> planned() const { return std::nullopt; }
  /// Decisions since the last call, for the journal: each has "event" and "text" (one line for people).
  std::vector<Json> takeEvents() { return std::exchange(events_, {}); }

 protected:
  std::vector<Json> events_;
};

/// fast, full, mixed (spec section 3).
std::unique_ptr<Strategy> makeSpecStrategy(SearchKind kind, knobs::Expression expression);

/// What the friendly form knows: where the default engine's time goes, and which knobs each layer read.
struct HotSpace {
  const knobs::Registry* registry = nullptr;
  std::vector<LayerTime> layers;
  std::vector<std::string> knobsRead;  ///< also by decisions about the whole model
  std::string timedRoute;              ///< what is best for each layer's kernels alone, scoped to layers; may be ""
  bool lossy = false;                  ///< the user gave an accuracy threshold
  int threads = 0;                     ///< that the engine runs on; 0: not known
};
/// `--tune`: begins with what timing kernels alone found; then each engine tries another value in every hot layer at
/// once and is judged layer by layer; what helped is put together, looked at again and kept where it helps again;
/// values of knobs that shape the whole graph one by one.
std::unique_ptr<Strategy> makeTuneStrategy(HotSpace space);
/// The hottest knobs with their values, as an expression for people and for the cache's header.
std::string hotExpression(const HotSpace& space, size_t knobs);

}  // namespace rutter::tuner
