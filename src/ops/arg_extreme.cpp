// ArgMax and ArgMin.
#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kNumber);
  Dims d = c.in(0).dims;
  int64_t axis = c.axis(c.node.getInt("axis", 0), d.size());
  if (c.node.getInt("keepdims", 1))
    d[size_t(axis)] = Dim(1);
  else
    d.erase(d.begin() + axis);
  c.out(0, DType::kI64, std::move(d));
}
template <bool kMax>
void eval(EvalContext& c) {
  const Tensor& x = c.in(0);
  int64_t axis = c.axis(c.node.getInt("axis", 0), x.rank());
  bool last = c.node.getInt("select_last_index", 0);
  Extents shape = x.shape();
  int64_t n = shape[size_t(axis)], inner = ir::rowMajorStrides(shape)[size_t(axis)];
  if (n == 0) throw UserError("axis {} is empty", axis);
  if (c.node.getInt("keepdims", 1))
    shape[size_t(axis)] = 1;
  else
    shape.erase(shape.begin() + axis);
  Tensor& y = c.out(0, DType::kI64, shape);
  compute(x.dtype(), [&](auto zero) {
    auto v = load<decltype(zero)>(x);
    for (int64_t o = 0; o < y.size(); o++) {
      const auto* p = v.data() + o / inner * n * inner + o % inner;
      int64_t best = 0;
      for (int64_t i = 1; i < n; i++) {
        auto a = p[i * inner], b = p[best * inner];
        if ((kMax ? a > b : a < b) || (last && a == b) || (a != a && b == b)) best = i;
      }
      y.as<int64_t>()[o] = best;
    }
  });
}
}  // namespace
const OpDef op_ArgMax = {"ArgMax", "", 13, infer, eval<true>};
const OpDef op_ArgMin = {"ArgMin", "", 13, infer, eval<false>};
}  // namespace rutter::ops
