#pragma once
// ModelView -> ir::Graph.
#include <memory>

#include "ir/graph.h"
#include "onnx/model.h"
#include "onnx/tensors.h"

namespace rutter::frontend {

/// UserError on the first thing wrong; UnsupportedOperators with all nodes that have no rule.
std::unique_ptr<ir::Graph> buildGraph(const ModelView& model, TensorStore& tensors);

/// Every node, functions and subgraphs included, whose operator is not known.
void checkOperators(const ModelView& model);

/// A function of the model, or null.
const FunctionView* findFunction(const ModelView& model, const NodeView& node);

/// Indices of `nodes` in an order in which every value is defined before use; the file's own order where it is one.
/// `values` that no node of the list gives are taken as defined. UserError names the nodes of a cycle.
std::vector<size_t> topologicalOrder(const std::vector<NodeView>& nodes);

}  // namespace rutter::frontend
