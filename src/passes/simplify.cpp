#include "passes/simplify.h"

#include "passes/rules.h"

namespace rutter::passes {

void Simplify::apply(ir::Graph& g, PassContext& ctx) const {
  applyRules(g, ctx,
             {ruleNoOp, ruleViewToReshape, ruleMergeReshapes, ruleMergeTransposes, ruleKeepDims, ruleDropExpand,
              ruleAlgebra, ruleDivToMul, rulePow, ruleSinkReshape, ruleTransposeOfReshape, ruleSinkExpand, ruleSplat,
              ruleOneHot, ruleGatherND, ruleGlobalPool});
}

void Reassociate::apply(ir::Graph& g, PassContext& ctx) const {
  applyRules(g, ctx, {ruleReassociate});
}

}  // namespace rutter::passes
