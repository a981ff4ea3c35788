// Trilu and EyeLike: what lies on one side of a diagonal, and the diagonal.
#include "ops/support.h"

namespace rutter::ops {
namespace {
void inferTrilu(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  if (c.in(0).rank() < 2) throw UserError("input 0 has {} axes and needs at least 2", c.in(0).rank());
  if (c.has(1)) accept(c, 1, Accept::kIndex);
  c.out(0, c.in(0).dtype, c.in(0).dims);
}
void evalTrilu(EvalContext& c) {
  const Tensor& x = c.in(0);
  int64_t k = c.has(1) && c.in(1).size() ? c.in(1).getInt(0) : 0, rows = x.shape()[size_t(x.rank() - 2)],
          columns = x.shape().back();
  bool upper = c.node.getInt("upper", 1);
  Tensor& y = c.out(0, x.dtype(), x.shape());
  byWidth(x, [&](auto zero) {
    using T = decltype(zero);
    for (int64_t i = 0; i < x.size(); i++) {
      int64_t row = i / columns % rows, column = i % columns;
      bool keep = upper ? column - row >= k : column - row <= k;
      y.as<T>()[i] = keep ? at<T>(x, i) : T(0);
    }
  });
}

DType eyeType(const ir::Node& n, DType fallback) {
  if (!n.has("dtype")) return fallback;
  auto t = ir::dtypeFromOnnx(int(n.getInt("dtype", 0)));
  if (!t || !accepts(Accept::kNumberOrBool, *t))
    throw UserError("attribute dtype is {}, which is not supported", n.getInt("dtype", 0));
  return *t;
}
void inferEye(InferContext& c) {
  accept(c, 0, Accept::kNumberOrBool);
  needRank(c, 0, 2, "input");
  c.out(0, eyeType(c.node, c.in(0).dtype), c.in(0).dims);
}
void evalEye(EvalContext& c) {
  const Extents& s = c.in(0).shape();
  int64_t k = c.node.getInt("k", 0);
  Tensor& y = c.out(0, eyeType(c.node, c.in(0).dtype()), s);
  for (int64_t i = std::max<int64_t>(0, -k); i < s[0] && i + k < s[1]; i++) y.setDouble(i * s[1] + i + k, 1);
}
}  // namespace
const OpDef op_Trilu = {"Trilu", "", 14, inferTrilu, evalTrilu};
const OpDef op_EyeLike = {"EyeLike", "", 22, inferEye, evalEye};
}  // namespace rutter::ops
