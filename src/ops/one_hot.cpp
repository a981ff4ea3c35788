#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kNumber);
  accept(c, 1, Accept::kNumber);
  accept(c, 2, Accept::kMovable);
  Dims depth = c.needSymbolic(1, "depth"), out = c.in(0).dims;
  if (depth.size() != 1) throw UserError("input 1 (depth) must have one element");
  if (c.in(2).rank() != 1 || !c.in(2).dims[0].is(2))
    throw UserError("input 2 (values) must hold the off and the on value");
  int64_t axis = c.axis(c.node.getInt("axis", -1), out.size() + 1);
  out.insert(out.begin() + axis, depth[0]);
  c.out(0, c.in(2).dtype, std::move(out));
}
void eval(EvalContext& c) {
  const Tensor &index = c.in(0), &values = c.in(2);
  int64_t depth = c.in(1).getInt(0), inner = 1;
  Extents shape = index.shape();
  int64_t axis = c.axis(c.node.getInt("axis", -1), int64_t(shape.size()) + 1);
  for (size_t i = size_t(axis); i < shape.size(); i++) inner *= shape[i];
  shape.insert(shape.begin() + axis, depth);
  Tensor& y = c.out(0, values.dtype(), shape);
  byWidth(values, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < y.size(); i++) {
      int64_t k = index.getInt(i / (depth * inner) * inner + i % inner);  // out of [-depth, depth): everywhere off
      y.as<T>()[i] = at<T>(values, (k < 0 ? k + depth : k) == i / inner % depth);
    }
  });
}
}  // namespace
const OpDef op_OneHot = {"OneHot", "", 28, infer, eval};
}  // namespace rutter::ops
