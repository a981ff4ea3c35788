#pragma once
#include "passes/pass.h"

namespace rutter::passes {

/// Removes what computes nothing and brings the rest to few forms that later passes match: no Identity, Dropout, no-op
/// casts, reshapes or slices; one Reshape in place of Squeeze, Unsqueeze, Flatten and chains of them; one Transpose in
/// place of chains; reductions keep their axes; reshapes sink below pointwise operators (graph:sink_reshape); constant
/// operands on the right, subtraction of one as addition, division as multiplication (graph:div_to_mul), Pow by small
/// exponents (graph:pow_to_mul); no Expand before operators that broadcast by themselves.
struct Simplify {
  std::string name() const { return "simplify"; }
  void apply(ir::Graph& g, PassContext& ctx) const;
};

/// graph:reassociate: constants added, or multiplied, one after the other become one. After the patterns, which it
/// would hide.
struct Reassociate {
  std::string name() const { return "reassociate"; }
  void apply(ir::Graph& g, PassContext& ctx) const;
};

/// graph:cse: of nodes with the same operator, attributes and inputs the first stays, with the origins of all.
struct CommonNodes {
  std::string name() const { return "cse"; }
  void apply(ir::Graph& g, PassContext& ctx) const;
};

}  // namespace rutter::passes
