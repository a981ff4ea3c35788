#pragma once
// The ways in which a layer's problem can be solved: what decide ranks by estimates, and levels 4 and 5 by time.
#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "codegen/lower.h"
#include "codegen/tactic.h"

namespace rutter::codegen {

/// A tactic that accepts a problem, configured.
struct Choice {
  const Tactic* tactic = nullptr;
  Config config;
  double cost = 0;    ///< estimated seconds
  Lowering lowering;  ///< empty until decide completes the choice
  std::set<knobs::KnobId> reads;
  std::vector<knobs::Refusal> refusals;
  /// Values that this choice gives to knobs which the route leaves to the heuristics.
  std::vector<std::pair<knobs::KnobId, std::string>> variation;
};

/// What the route says to one layer.
struct LayerRoute {
  const knobs::Route& route;
  const std::vector<std::string>& origins;
  size_t anchor = 0;
};

/// Measures choices on this machine.
class TacticTimer {
 public:
  virtual ~TacticTimer() = default;
  virtual int level() const = 0;        ///< 4 or 5
  virtual int mostTactics() const = 0;  ///< choices timed for a problem, at least 1
  /// The choices that follow are for the layer of these origins.
  virtual void nextLayer(const std::vector<std::string>&) {}
  /// Seconds of one run of the layer's kernels alone, as `c` (complete) says; infinite if they fail or are not timed.
  virtual double seconds(const LoweredGroup& l, const Choice& c) = 0;
};

/// One choice for each tactic that accepts the problem (the route's wish alone, if it is granted), as knobs and
/// heuristics configure it, in the order of the target's tactics. `notes` gets the tactics' refusals.
std::vector<Choice> choices(const Problem& p, const LayerRoute& r, const Target& target, const MachineProfile& machine,
                            std::vector<std::string>& notes);

/// The fastest of the choices and of their variations, by time. Knobs that the route sets stay as they are. Level 4
/// times variations of a tactic's tile (or the like), the most promising by their estimates; level 5 more of them, and
/// then each other choice of the fastest one. `complete` lowers and schedules a choice before it is timed. `best`
/// indexes `all`: it stays unless another is clearly faster. The variation of what is returned, as a route for this
/// layer, leads to the same choice without a timer.
Choice fastest(const LoweredGroup& l, const LayerRoute& r, std::vector<Choice> all, size_t best,
               const MachineProfile& machine, TacticTimer& timer, const std::function<void(Choice&)>& complete);

/// What a kernel's code is cached by: hash of all that Target::emit may read: problem, configuration, instruction set
/// and emitters. How it is launched (lowering, cores, cache sizes) is no part of it.
Hash128 kernelKey(const Problem& p, const Config& c, const MachineProfile& m, const Target& target);
/// What a kernel's time is kept by: its code, how it is launched and the whole machine profile.
Hash128 timingKey(const Hash128& kernel, const Lowering& l, const MachineProfile& m);

}  // namespace rutter::codegen
