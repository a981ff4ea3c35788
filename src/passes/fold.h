#pragma once
#include "passes/pass.h"

namespace rutter::passes {

/// Nodes of constants become constants, by the oracle, while the result is small (graph:fold_limit bytes, or no larger
/// than the constants that it replaces). Integer values whose contents are known as expressions become constants or
/// rutter.ShapeValue, so that chains of Shape, Gather, Concat … die.
struct FoldConstants {
  std::string name() const { return "fold"; }
  void apply(ir::Graph& g, PassContext& ctx) const;
};

}  // namespace rutter::passes
