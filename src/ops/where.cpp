#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kBool);
  accept(c, 1, Accept::kMovable);
  sameType(c, 1, 2);
  c.out(0, c.in(1).dtype, c.broadcast(c.in(0).dims, c.broadcast(c.in(1).dims, c.in(2).dims)));
  auto cond = c.symbolic(0), a = c.symbolic(1), b = c.symbolic(2);
  if (!cond || !a || !b || c.node.output(0)->type.rank() > 1) return;
  size_t n = std::max({cond->size(), a->size(), b->size()});
  if (cond->empty() || a->empty() || b->empty()) n = 0;
  Dims r;
  for (size_t i = 0; i < n; i++) {
    auto pick = [&](const Dims& v) { return v[v.size() == 1 ? 0 : i]; };
    Dim t = pick(*cond), x = pick(*a), y = pick(*b);
    if (!t.isConstant() && !(x == y)) return;
    r.push_back(x == y || !t.is(0) ? x : y);
  }
  c.setSymbolic(0, std::move(r));
}
void eval(EvalContext& c) {
  const Tensor &t = c.in(0), &a = c.in(1), &b = c.in(2);
  Extents shape = broadcastShape(t.shape(), broadcastShape(a.shape(), b.shape()));
  Tensor& y = c.out(0, a.dtype(), shape);
  byWidth(a, [&](auto zero) {
    using T = decltype(zero);
    T* p = y.as<T>();
    forEach<3>(
        shape,
        {broadcastStrides(t.shape(), shape), broadcastStrides(a.shape(), shape), broadcastStrides(b.shape(), shape)},
        [&](int64_t i, const auto& k) { p[i] = at<uint8_t>(t, k[0]) ? at<T>(a, k[1]) : at<T>(b, k[2]); });
  });
}
}  // namespace
const OpDef op_Where = {"Where", "", 16, infer, eval};
}  // namespace rutter::ops
