#pragma once
// Decide: graph + route + machine -> for each layer a problem and a fully resolved configuration. Runs afresh for every
// candidate, in milliseconds; emits nothing.
#include <memory>
#include <set>
#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/alternatives.h"
#include "codegen/group.h"
#include "codegen/lower.h"
#include "codegen/storage.h"
#include "codegen/tactic.h"

namespace rutter::codegen {

struct Layer {
  Group group;
  LoweredGroup lowered;            ///< empty for reference nodes
  const Tactic* tactic = nullptr;  ///< null: reference node
  Config config;
  Lowering lowering;
  bool mayOverwrite = false;  ///< outputs may take the memory of inputs that die here
  std::vector<std::pair<const ir::Value*, const ir::Value*>>
      overwrites;                      ///< output that does, and whose memory (roots)
  std::vector<std::string> knobsRead;  ///< names with dashes
  std::vector<std::string> refusals;   ///< "-gemm:tile_m=28: reason", "tactic conv_direct: reason"
  std::set<knobs::KnobId> reads;
  std::vector<knobs::Assignment> timed;  ///< what levels 4 and 5 chose by time, scoped to the layer's first origin
  std::vector<knobs::Refusal> refused;   ///< wishes that the tactic could not take (in refusals as text)
  Hash128 kernelKey;                     ///< of (problem, configuration, instruction set, emitters)
};

/// The first and the last layer that touch a root's memory.
struct Lifetime {
  int first = 0, last = 0;
};

struct Decision {
  std::unique_ptr<ir::Graph> graph;  ///< after passes; layers point into it
  std::unique_ptr<Storage> storage;
  std::vector<Layer> layers;                                 ///< in execution order
  std::unordered_map<const ir::Value*, Lifetime> lifetimes;  ///< of every root that a layer touches
  Hash128 hash;                                              ///< equal hashes are equal engines
};

/// `graph` comes out of the pass pipeline. Nodes without a kernel become reference nodes, with the reason in refusals.
/// With a timer, tactics and their tiles are chosen by time; without one nothing is timed.
Decision decide(std::unique_ptr<ir::Graph> graph, const knobs::Route& route, const Target& target,
                const MachineProfile& machine, TacticTimer* timer = nullptr);

}  // namespace rutter::codegen
