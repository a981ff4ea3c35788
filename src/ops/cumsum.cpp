#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kNumber);
  accept(c, 1, Accept::kIndex);
  if (c.in(0).rank() == 0) throw UserError("input 0 must have at least 1 axis");
  if (const Tensor* a = c.constant(1)) c.axis(a->getInt(0), c.in(0).rank());
  c.out(0, c.in(0).dtype, c.in(0).dims);
}
// CumSum and CumProd differ in what they start from and how they go on.
template <typename F>
void eval(EvalContext& c, int start, F step) {
  const Tensor& x = c.in(0);
  if (c.in(1).size() != 1) throw UserError("input 1 (axis) must be a scalar");
  size_t axis = size_t(c.axis(c.in(1).getInt(0), x.rank()));
  bool exclusive = c.node.getInt("exclusive", 0), reverse = c.node.getInt("reverse", 0);
  int64_t n = x.shape()[axis], inner = ir::rowMajorStrides(x.shape())[axis];
  compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto v = load<T>(x);
    for (int64_t line = 0; n && line < x.size() / n; line++) {
      T* p = v.data() + line / inner * n * inner + line % inner;
      T sum = T(start);
      for (int64_t i = 0; i < n; i++) {
        T& e = p[(reverse ? n - 1 - i : i) * inner];
        T before = sum;
        sum = step(sum, e);
        e = exclusive ? before : sum;
      }
    }
    store(c.out(0, x.dtype(), x.shape()), v);
  });
}
}  // namespace
const OpDef op_CumSum = {"CumSum", "", 14, infer,
                         [](EvalContext& c) { eval(c, 0, [](auto a, auto b) { return a + b; }); }};
const OpDef op_CumProd = {"CumProd", "", 26, infer,
                          [](EvalContext& c) { eval(c, 1, [](auto a, auto b) { return a * b; }); }};
}  // namespace rutter::ops
