#pragma once
// Shapes: the profile's ranges put into the graph's inputs, and shape rules run over every node.
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "ir/graph.h"

namespace rutter::passes {

/// Range of an input's shape: three vectors of the input's rank, 0 <= min <= opt <= max on every axis.
struct ShapeRange {
  std::vector<int64_t> min, opt, max;
  static ShapeRange fixed(std::vector<int64_t> shape) { return {shape, shape, shape}; }
  bool operator==(const ShapeRange&) const = default;
};
/// Ranges by input name. Inputs whose shape is static in the model may be left out.
using Profile = std::map<std::string, ShapeRange>;

/// Puts the profile into the graph: axes with min == max become constants everywhere, others keep (or get) a symbol
/// with its bounds in Graph::symbols. Ranges of axes that share a symbol are intersected. An output that is a constant
/// gets an Identity node that makes it. Then runs inferTypes. UserError: an input that the model does not have, a rank
/// or static extent that differs, min <= opt <= max broken, an empty intersection, or an axis that is dynamic and has
/// no range; each names the input and the axis. An output that is an input.
void specialise(ir::Graph& g, const Profile& profile);

/// Runs the shape rule of every node, in order, from the inputs' types; constraints are collected anew. Nested regions
/// are inferred before the node that owns them.
void inferTypes(ir::Graph& g);

/// Constraints that say the same are kept once; those that the profile's bounds already guarantee are dropped.
void tidyConstraints(ir::Graph& g);

}  // namespace rutter::passes
