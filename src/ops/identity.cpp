// Operators that pass their input on: Identity, Dropout as it acts in inference, and LayoutCast, which changes only
// how the compiler lays a value out (the oracle knows row-major tensors alone).
#include "ops/support.h"

namespace rutter::ops {
namespace {
void inferCopy(InferContext& c) {
  c.out(0, c.in(0).dtype, c.in(0).dims);
  symbolicCopy(c);
}
void evalCopy(EvalContext& c) {
  c.outputs[0] = c.in(0);
}

void inferDropout(InferContext& c) {
  accept(c, 0, Accept::kFloat);
  if (c.has(2)) {
    const Tensor* t = c.constant(2);
    if (!t || t->size() != 1 || t->getInt(0))
      throw UserError("input 2 (training_mode) must be a constant false: training is not supported");
  }
  inferCopy(c);
  c.out(1, DType::kBool, c.in(0).dims);
}
void evalDropout(EvalContext& c) {
  evalCopy(c);
  if (c.outputs.size() > 1) store(c.out(1, DType::kBool, c.in(0).shape()), Extents(c.in(0).size(), 1));
}
}  // namespace
const OpDef op_Identity = {"Identity", "", 25, inferCopy, evalCopy};
const OpDef op_Dropout = {"Dropout", "", 22, inferDropout, evalDropout};
const OpDef op_LayoutCast = {"LayoutCast", "rutter", 1, inferCopy, evalCopy};
}  // namespace rutter::ops
