// The passes of a build, in order.
#include "passes/fold.h"
#include "passes/pass.h"
#include "passes/simplify.h"

namespace rutter::passes {

std::vector<AnyPass> pipeline() {
  return {
      FoldConstants{},  // what is known now is computed now; size chains become rutter.ShapeValue
      Simplify{},       // identities, no-op reshapes and transposes, cheaper forms
      CommonNodes{},    // the same computation once
  };
}

void runPipeline(ir::Graph& g, PassContext& ctx) {
  runPasses(g, ctx, pipeline());
}

}  // namespace rutter::passes
