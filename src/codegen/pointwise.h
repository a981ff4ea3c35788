#pragma once
// Which operators are what to codegen, and the scalar programs of pointwise ones.
#include <functional>
#include <string>

#include "codegen/problem.h"
#include "ir/graph.h"

namespace rutter::codegen {

/// Reshape, Flatten, Squeeze, Unsqueeze, Transpose, Expand, Slice, Split, Identity: the output is the input seen
/// otherwise.
bool isViewOp(const ir::Node& n);
/// One output element depends on one element of each (broadcast) input.
bool isPointwise(const ir::Node& n);
/// isPointwise, and only moves data (LayoutCast).
bool isCopy(const ir::Node& n);
/// Has a kernel problem (lower.h) for its dtypes; others run as reference nodes.
bool isCompilable(const ir::Node& n);

/// Appends the node's arithmetic to `p`. args: instruction of each input (-1: left out). `integer`: turns an expression
/// into a kParam instruction; `index`: kIndex of an axis of the node's output. Returns the result's instruction.
struct PwLowering {
  PwProgram& p;
  std::function<int(const ir::Dim&)> integer;
  std::function<int(size_t axis)> index;
};
int lowerPointwise(PwLowering& c, const ir::Node& n, const std::vector<int>& args);

}  // namespace rutter::codegen
