// The passes of a build, in order.
#include <fmt/format.h>

#include <map>

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

namespace {
// Nodes are called after the first ONNX node that they stand for; several of one name are numbered in order.
void nameNodes(ir::Graph& g) {
  std::map<std::string, int> uses;
  for (auto& n : g.top().nodes) {
    if (n->origins.empty()) continue;
    int k = uses[n->origins[0]]++;
    n->name = k ? fmt::format("{}.{}", n->origins[0], k) : n->origins[0];
  }
}
}  // namespace

void runPipeline(ir::Graph& g, PassContext& ctx) {
  runPasses(g, ctx, pipeline());
  nameNodes(g);
}

}  // namespace rutter::passes
