// rutter.ShapeValue: an integer tensor whose contents are expressions of the run-time extents (Value::symbolic). Passes
// put it in place of the Shape/Gather/Concat chain that computed it.
#include "ops/op.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  const ir::Value* v = c.node.output(0);
  RUTTER_CHECK(v && v->symbolic && v->type.known, "ShapeValue {} without contents", c.node.name);
}
void eval(EvalContext& c) {
  throw InternalError("ShapeValue " + c.node.name + " has no oracle: give its graph fixed shapes first");
}
}  // namespace
extern const OpDef op_ShapeValue;  // a const would be local to this file otherwise
const OpDef op_ShapeValue = {"ShapeValue", "rutter", 1, infer, eval};
}  // namespace rutter::ops
