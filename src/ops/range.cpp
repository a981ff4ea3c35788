#include "ops/support.h"

namespace rutter::ops {
namespace {
int64_t countOf(const Tensor& a, const Tensor& b, const Tensor& d) {
  double n;
  if (ir::isFloat(a.dtype())) {
    n = std::ceil((b.getDouble(0) - a.getDouble(0)) / d.getDouble(0));
  } else {
    int64_t step = d.getInt(0), gap = b.getInt(0) - a.getInt(0);
    if (step == 0) throw UserError("input 2 (delta) is 0");
    n = double((step > 0) == (gap > 0) ? (gap + step - (step > 0 ? 1 : -1)) / step : 0);
  }
  if (!(n < 1e12)) throw UserError("a range of {} elements is too long", n);
  return std::max<int64_t>(0, int64_t(n));
}
void infer(InferContext& c) {
  accept(c, 0, Accept::kNumber);
  sameType(c, 0, 1);
  sameType(c, 0, 2);
  DType t = c.in(0).dtype;
  const Tensor *a = c.constant(0), *b = c.constant(1), *d = c.constant(2);
  if (a && b && d && a->size() == 1 && b->size() == 1 && d->size() == 1) {
    int64_t n = countOf(*a, *b, *d);
    c.out(0, t, {Dim(n)});
    if (ir::isInteger(t) && n <= 64) {
      Dims v;
      for (int64_t i = 0; i < n; i++) v.push_back(Dim(a->getInt(0) + i * d->getInt(0)));
      c.setSymbolic(0, std::move(v));
    }
    return;
  }
  Dims start = c.needSymbolic(0, "start"), limit = c.needSymbolic(1, "limit");
  auto delta = c.needInts(2, "delta");
  if (start.size() != 1 || limit.size() != 1 || delta.size() != 1)
    throw UserError("start, limit and delta must be scalars");
  if (delta[0] == 0) throw UserError("input 2 (delta) is 0");
  Dim n = delta[0] > 0 ? ceilDiv(limit[0] - start[0], Dim(delta[0])) : ceilDiv(start[0] - limit[0], Dim(-delta[0]));
  n = larger(c, n, Dim(0));
  c.out(0, t, {n});
  if (!n.isConstant() || n.value() > 64) return;
  Dims v;
  for (int64_t i = 0; i < n.value(); i++) v.push_back(start[0] + Dim(i * delta[0]));
  c.setSymbolic(0, std::move(v));
}
void eval(EvalContext& c) {
  const Tensor &a = c.in(0), &b = c.in(1), &d = c.in(2);
  for (const Tensor* t : {&a, &b, &d})
    if (t->size() != 1) throw UserError("start, limit and delta must be scalars");
  Tensor& y = c.out(0, a.dtype(), {countOf(a, b, d)});
  for (int64_t i = 0; i < y.size(); i++) {
    if (ir::isFloat(a.dtype()))
      y.setDouble(i, a.getDouble(0) + double(i) * d.getDouble(0));
    else
      y.setInt(i, a.getInt(0) + i * d.getInt(0));
  }
}
}  // namespace
const OpDef op_Range = {"Range", "", 27, infer, eval};
}  // namespace rutter::ops
