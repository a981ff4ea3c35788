#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kNumber);
  for (size_t i : {1, 2})
    if (c.has(i)) {
      sameType(c, 0, i);
      if (c.in(i).rank() != 0 && !c.in(i).size().is(1))
        throw UserError("input {} ({}) must be a scalar", i, i == 1 ? "min" : "max");
    }
  c.out(0, c.in(0).dtype, c.in(0).dims);
}
void eval(EvalContext& c) {
  const Tensor& x = c.in(0);
  compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto bound = [&](size_t i) {
      return c.has(i) && c.in(i).size() ? std::optional(load<T>(c.in(i))[0]) : std::nullopt;
    };
    auto lo = bound(1), hi = bound(2);
    auto v = load<T>(x);
    for (T& e : v) {  // in this order: if min > max, max wins; NaN stays
      if (lo && e < *lo) e = *lo;
      if (hi && e > *hi) e = *hi;
    }
    store(c.out(0, x.dtype(), x.shape()), v);
  });
}
}  // namespace
const OpDef op_Clip = {"Clip", "", 13, infer, eval};
}  // namespace rutter::ops
