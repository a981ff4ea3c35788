#include "passes/simplify.h"

#include "passes/rules.h"

namespace rutter::passes {

void Simplify::apply(ir::Graph& g, PassContext& ctx) const {
  applyRules(g, ctx,
             {ruleNoOp, ruleViewToReshape, ruleMergeReshapes, ruleMergeTransposes, ruleKeepDims, ruleDropExpand,
              ruleAlgebra, ruleDivToMul, rulePow, ruleReassociate, ruleSinkReshape});
}

}  // namespace rutter::passes
