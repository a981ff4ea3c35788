// Expand and Tile: elements repeated along axes.
#include "ops/support.h"

namespace rutter::ops {
namespace {
void inferExpand(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  Dims shape = c.needSymbolic(1, "shape");
  for (const Dim& d : shape)
    if (d.isConstant() && d.value() < 0) throw UserError("input 1 (shape) has the negative extent {}", d.value());
  c.out(0, c.in(0).dtype, c.broadcast(c.in(0).dims, shape));
  auto v = c.symbolic(0);
  const Dims& out = c.node.output(0)->type.dims;
  if (v && v->size() == 1 && out.size() == 1 && out[0].isConstant() && out[0].value() <= 64)
    c.setSymbolic(0, Dims(out[0].value(), (*v)[0]));
}
void evalExpand(EvalContext& c) {
  const Tensor& x = c.in(0);
  Extents shape = broadcastShape(x.shape(), c.in(1).toInts());
  stridedCopy(c.out(0, x.dtype(), shape), x, broadcastStrides(x.shape(), shape));
}

void inferTile(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  Dims repeats = c.needSymbolic(1, "repeats"), out = c.in(0).dims;
  if (repeats.size() != out.size())
    throw UserError("input 1 (repeats) has {} elements; input 0 has {} axes", repeats.size(), out.size());
  for (size_t i = 0; i < out.size(); i++) {
    if (repeats[i].isConstant() && repeats[i].value() < 0)
      throw UserError("input 1 (repeats) holds {}", repeats[i].value());
    out[i] = out[i] * repeats[i];
  }
  c.out(0, c.in(0).dtype, std::move(out));
}
void evalTile(EvalContext& c) {
  const Tensor& x = c.in(0);
  Extents repeats = c.in(1).toInts(), shape = x.shape();
  if (repeats.size() != shape.size())
    throw UserError("input 1 (repeats) has {} elements; input 0 has {} axes", repeats.size(), shape.size());
  // Each axis becomes (repeat, extent), the repeat with stride 0.
  Extents split, strides, dense = ir::rowMajorStrides(shape);
  for (size_t i = 0; i < shape.size(); i++) {
    split.insert(split.end(), {repeats[i], shape[i]});
    strides.insert(strides.end(), {0, dense[i]});
    shape[i] *= repeats[i];
  }
  Tensor y(x.dtype(), split);
  stridedCopy(y, x, strides);
  c.outputs[0] = y.reshaped(shape);
}
}  // namespace
const OpDef op_Expand = {"Expand", "", 13, inferExpand, evalExpand};
const OpDef op_Tile = {"Tile", "", 13, inferTile, evalTile};
}  // namespace rutter::ops
