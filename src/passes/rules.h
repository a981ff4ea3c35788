#pragma once
// Rewrites as rules on one node, applied until nothing changes.
#include <initializer_list>

#include "passes/pass.h"
#include "passes/rewrite.h"

namespace rutter::passes {

/// Rewires uses of the node's outputs and returns true, or leaves the graph alone and returns false. Never erases
/// nodes: what is left without uses dies after the sweep.
using Rule = bool (*)(ir::Graph& g, ir::Node* n, PassContext& ctx);

/// Sweeps over the graph until no rule fires. Returns how often rules fired.
int applyRules(ir::Graph& g, PassContext& ctx, std::initializer_list<Rule> rules);

// Rules that several passes use.
bool ruleNoOp(ir::Graph& g, ir::Node* n, PassContext& ctx);           ///< identities of every kind
bool ruleViewToReshape(ir::Graph& g, ir::Node* n, PassContext& ctx);  ///< Squeeze, Unsqueeze, Flatten, … -> Reshape
bool ruleMergeReshapes(ir::Graph& g, ir::Node* n, PassContext& ctx);
bool ruleMergeTransposes(ir::Graph& g, ir::Node* n, PassContext& ctx);
bool ruleKeepDims(ir::Graph& g, ir::Node* n, PassContext& ctx);    ///< reductions keep their axes, a Reshape drops them
bool ruleDropExpand(ir::Graph& g, ir::Node* n, PassContext& ctx);  ///< Expand before an operator that broadcasts
bool ruleSinkReshape(ir::Graph& g, ir::Node* n, PassContext& ctx);  ///< pointwise(Reshape(x)) -> Reshape(pointwise(x))
bool ruleTransposeOfReshape(ir::Graph& g, ir::Node* n,
                            PassContext& ctx);                     ///< axes of extent 1 join after the Transpose
bool ruleSinkExpand(ir::Graph& g, ir::Node* n, PassContext& ctx);  ///< unary(Expand(x)) -> Expand(unary(x))
bool ruleSplat(ir::Graph& g, ir::Node* n, PassContext& ctx);       ///< parts of constants whose elements are alike
bool ruleGlobalPool(ir::Graph& g, ir::Node* n, PassContext& ctx);  ///< a window as large as the image
bool ruleGatherND(ir::Graph& g, ir::Node* n, PassContext& ctx);    ///< with constant indices -> Gather or Reshape
bool ruleOneHot(ir::Graph& g, ir::Node* n, PassContext& ctx);      ///< one-hot rows times a matrix -> Gather
bool ruleAlgebra(ir::Graph& g, ir::Node* n, PassContext& ctx);     ///< neutral elements, constants to the right
bool ruleDivToMul(ir::Graph& g, ir::Node* n, PassContext& ctx);
bool rulePow(ir::Graph& g, ir::Node* n, PassContext& ctx);
bool ruleReassociate(ir::Graph& g, ir::Node* n, PassContext& ctx);

}  // namespace rutter::passes
