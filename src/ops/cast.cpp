#include "ops/support.h"

namespace rutter::ops {
namespace {
DType target(const ir::Node& n) {
  int64_t to = n.getInt("to", 0);
  auto t = ir::dtypeFromOnnx(int(to));
  if (!t || !accepts(Accept::kNumberOrBool, *t))
    throw UserError("cast to {} is not supported; supported: floats of 16 to 64 bits, integers of 8 to 64 bits, bool",
                    t ? std::string(ir::dtypeName(*t)) : fmt::format("ONNX type {}", to));
  return *t;
}
void inferTo(InferContext& c, DType to) {
  accept(c, 0, Accept::kNumberOrBool);
  c.out(0, to, c.in(0).dims);
  if (to != DType::kBool) symbolicCopy(c);
}
void evalTo(EvalContext& c, DType to) {
  const Tensor& x = c.in(0);
  Tensor& y = c.out(0, to, x.shape());
  if (ir::isFloat(x.dtype()) || x.dtype() == to) return store(y, load<double>(x));
  // Integers wrap to narrower integers; uint64 has its own way to floats.
  if (x.dtype() == DType::kU64 && ir::isFloat(to)) return store(y, load<double>(x));
  if (ir::isFloat(to)) {
    for (int64_t i = 0; i < x.size(); i++) y.setDouble(i, double(x.getInt(i)));
    return;
  }
  store(y, load<int64_t>(x));
}
}  // namespace
const OpDef op_Cast = {"Cast", "", 28, [](InferContext& c) { inferTo(c, target(c.node)); },
                       [](EvalContext& c) { evalTo(c, target(c.node)); }};
const OpDef op_CastLike = {"CastLike", "", 25,
                           [](InferContext& c) {
                             accept(c, 1, Accept::kNumberOrBool);
                             inferTo(c, c.in(1).dtype);
                           },
                           [](EvalContext& c) { evalTo(c, c.in(1).dtype()); }};
}  // namespace rutter::ops
