// The passes of a build, in order.
#include "passes/affine.h"
#include "passes/fold.h"
#include "passes/layout.h"
#include "passes/pass.h"
#include "passes/patterns.h"
#include "passes/simplify.h"

namespace rutter::passes {

std::vector<AnyPass> pipeline() {
  return {
      FoldConstants{},        // what is known now is computed now; size chains become rutter.ShapeValue
      Simplify{},             // identities, no-op reshapes and transposes, cheaper forms
      CommonNodes{},          // the same computation once
      MatchNormalisations{},  // layer norm, softmax
      MatchActivations{},     // GELU, SiLU, hard-swish
      Reassociate{},          // constants in a row
      DecomposeGemm{},        // MatMul, Mul, Add
      FoldAffine{},           // batch norm, scales and shifts into weights
      DecomposeBatchNorm{},   // what is left of it: Mul, Add
      MergeSiblings{},        // products and convolutions of one input
      FoldConstants{},
      Simplify{},
      CommonNodes{},
      AssignLayouts{},  // memory order of every value
  };
}

void runPipeline(ir::Graph& g, PassContext& ctx) {
  runPasses(g, ctx, pipeline());
}

}  // namespace rutter::passes
