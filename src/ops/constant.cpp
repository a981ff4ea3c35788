// Constant and ConstantOfShape.
#include "ops/support.h"

namespace rutter::ops {
namespace {
Tensor constantOf(const ir::Node& n) {
  if (auto it = n.attrs.find("value"); it != n.attrs.end()) {
    if (const Tensor* t = std::get_if<Tensor>(&it->second)) return *t;
    throw UserError("attribute 'value' has the wrong type: a tensor is expected");
  }
  if (n.has("value_float")) return Tensor::scalar(DType::kF32, n.getFloat("value_float", 0));
  if (n.has("value_floats")) {
    auto v = n.getFloats("value_floats");
    return Tensor::ofFloats({int64_t(v.size())}, v);
  }
  if (n.has("value_int")) return Tensor::ofInts({n.getInt("value_int", 0)}).reshaped({});
  if (n.has("value_ints")) return Tensor::ofInts(n.getInts("value_ints"));
  if (n.has("value_string")) return Tensor::ofStrings({}, {n.getString("value_string", "")});
  throw UserError("a constant needs one of value, value_float, value_floats, value_int, value_ints, value_string");
}
void infer(InferContext& c) {
  Tensor t = constantOf(c.node);
  c.out(0, t.dtype(), ir::toDims(t.shape()));
  if (t.rank() <= 1 && t.size() <= 64 && accepts(Accept::kInteger, t.dtype())) c.setSymbolic(0, ir::toDims(t.toInts()));
}

Tensor filler(const ir::Node& n) {
  auto it = n.attrs.find("value");
  if (it == n.attrs.end()) return Tensor::scalar(DType::kF32, 0);
  const Tensor* t = std::get_if<Tensor>(&it->second);
  if (!t || t->size() != 1) throw UserError("attribute 'value' must be a tensor of one element");
  return t->reshaped({});
}
void inferFill(InferContext& c) {
  Tensor v = filler(c.node);
  if (!accepts(Accept::kMovable, v.dtype()))
    throw UserError("value of dtype {} is not supported", ir::dtypeName(v.dtype()));
  Dims shape = c.needSymbolic(0, "shape");
  for (const Dim& d : shape)
    if (d.isConstant() && d.value() < 0) throw UserError("input 0 (shape) has the negative extent {}", d.value());
  c.out(0, v.dtype(), shape);
  if (!accepts(Accept::kInteger, v.dtype())) return;
  if (shape.empty()) c.setSymbolic(0, {Dim(v.getInt(0))});
  if (shape.size() == 1 && shape[0].isConstant() && shape[0].value() <= 64)
    c.setSymbolic(0, Dims(shape[0].value(), Dim(v.getInt(0))));
}
void evalFill(EvalContext& c) {
  Tensor v = filler(c.node);
  Tensor& y = c.out(0, v.dtype(), c.in(0).toInts());
  stridedCopy(y, v, Extents(y.rank(), 0));
}
}  // namespace
const OpDef op_Constant = {"Constant", "", 25, infer, [](EvalContext& c) { c.outputs[0] = constantOf(c.node); }};
const OpDef op_ConstantOfShape = {"ConstantOfShape", "", 25, inferFill, evalFill};
}  // namespace rutter::ops
