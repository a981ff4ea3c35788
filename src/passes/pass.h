#pragma once
// Passes rewrite the graph. A pass is a struct with name() and apply(Graph&, PassContext&), one or two to a file;
// pipeline.cpp puts them in order. Rewrites ask their knob at the node that produces the rewritten chain.
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ir/graph.h"
#include "knobs/resolve.h"

namespace rutter::passes {

struct PassContext {
  const knobs::Route& route;
  /// Called with the graph before the first pass ("input") and after each pass, if set.
  std::function<void(std::string_view pass, const ir::Graph&)> dump;
  /// Memory order wanted at the graph's inputs and outputs, by name; those not listed are row-major.
  std::map<std::string, ir::Layout> ioLayouts;
  /// Checks the graph after each pass: broken invariants are InternalErrors that name the pass.
  bool verify = false;

  /// What passes read, for layer information: by name of the origin ONNX node, "" for reads about the whole model.
  std::map<std::string, std::set<knobs::KnobId>> reads;
  struct Refusal {
    std::vector<std::string> origins;  ///< of the node, empty for the whole model
    knobs::Refusal refusal;
  };
  std::vector<Refusal> refusals;

  explicit PassContext(const knobs::Route& r) : route(r) {}

  /// The knobs of one node. Results of its reads and refusals come back by note().
  knobs::LayerKnobs layer(const ir::Node& n) const { return knobs::LayerKnobs(route, n.origins); }
  void note(const knobs::LayerKnobs& k);
  /// Reads one knob at a node; `fallback` is what auto means.
  bool get(knobs::BoolKnob k, const ir::Node& n, bool fallback = true);
  std::string get(knobs::EnumKnob k, const ir::Node& n);
  /// Notes why the node cannot take its wish for a knob: only if the route gives it one that is "on".
  void refuse(knobs::BoolKnob k, const ir::Node& n, const std::string& reason);
  /// Reads one knob for the whole model.
  bool get(knobs::BoolKnob k, bool fallback = true);
  int64_t get(knobs::IntKnob k, int64_t fallback);
  std::string get(knobs::EnumKnob k);
};

/// Any pass, by value.
struct AnyPass {
  std::string name;
  std::function<void(ir::Graph&, PassContext&)> apply;
  template <typename P>
  AnyPass(P p)  // NOLINT: passes convert
      : name(p.name()), apply([p](ir::Graph& g, PassContext& c) { p.apply(g, c); }) {}
};

/// The passes of a build, in order.
std::vector<AnyPass> pipeline();
/// Runs them all. The graph must be specialised (infer.h) before. Fills ctx.reads and ctx.refusals.
void runPipeline(ir::Graph& g, PassContext& ctx);
/// Runs some passes in the given order, with dumps and checks as runPipeline does.
void runPasses(ir::Graph& g, PassContext& ctx, const std::vector<AnyPass>& passes);

}  // namespace rutter::passes
