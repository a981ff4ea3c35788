#pragma once
// Where values live: which share memory with another value (views, parts written in place), and with what strides.
// Decided before tactics, because strides are part of a kernel problem; offsets in the arena come last (memory.h).
#include <map>
#include <optional>
#include <set>
#include <unordered_map>

#include "ir/graph.h"
#include "knobs/resolve.h"

namespace rutter::codegen {

/// A value's place inside the memory of `root` (itself, if it has memory of its own). Offset and strides in elements,
/// one stride a logical axis.
struct Placement {
  const ir::Value* root = nullptr;
  ir::Dim offset = 0;
  ir::Dims strides;
};

/// Strides of the same elements under another shape, or nothing if they would have to move (as NumPy's no-copy
/// reshape).
std::optional<ir::Dims> reshapeStrides(const ir::Dims& from, const ir::Dims& strides, const ir::Dims& to);
bool isDenseRowMajor(const ir::Dims& dims, const ir::Dims& strides);

/// Half-open extent of Slice on one axis, as expressions: start, count, step.
struct SliceAxis {
  ir::Dim start, count;
  int64_t step = 1;
};
/// The axes that a Slice node (newest opset: starts, ends, axes, steps as inputs) cuts, all axes listed.
std::vector<SliceAxis> sliceAxes(const ir::Graph& g, const ir::Node& n);

class Storage {
 public:
  /// `reference`: nodes that will run as reference nodes: their operands need dense memory of their own.
  Storage(ir::Graph& g, const knobs::Route& route, const std::set<const ir::Node*>& reference);
  const Placement& of(const ir::Value* v) const;
  /// A node that needs no code, because its output is its input seen otherwise.
  bool isFree(const ir::Node* n) const { return free_.count(n) > 0; }
  /// The inputs of a Concat that its producers wrote in place (by input index).
  bool isInPlace(const ir::Node* concat, size_t input) const;
  /// By node name: what decided about a node, or about the views and concatenations that read it.
  const std::map<std::string, std::set<knobs::KnobId>>& reads() const { return reads_; }

 private:
  void placeBackwards();
  void placeForwards();
  bool movable(const ir::Value* v) const;
  std::optional<Placement> viewOf(const ir::Node& n, size_t output) const;
  knobs::LayerKnobs knobsOf(const ir::Node& n) const { return knobs::LayerKnobs(*route_, n.origins); }
  void note(const ir::Node& n, const knobs::LayerKnobs& k);

  ir::Graph* graph_;
  const knobs::Route* route_;
  const std::set<const ir::Node*>* reference_;
  std::unordered_map<const ir::Value*, Placement> placement_;
  std::set<const ir::Node*> free_;
  std::set<std::pair<const ir::Node*, size_t>> inPlace_;
  std::map<std::string, std::set<knobs::KnobId>> reads_;
};

}  // namespace rutter::codegen
