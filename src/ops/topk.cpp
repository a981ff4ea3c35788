#include <numeric>

#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kNumber);
  Dims out = c.in(0).dims;
  size_t axis = size_t(c.axis(c.node.getInt("axis", -1), out.size()));
  Dims k = c.needSymbolic(1, "K");
  if (k.size() != 1) throw UserError("input 1 (K) has {} elements and must have one", k.size());
  if ((out[axis] - k[0]).range(c.graph.symbols).second < 0 || below(c, k[0], 0))
    throw UserError("K is {}, axis {} has the extent {}", k[0].text(), axis, out[axis].text());
  out[axis] = k[0];
  c.out(0, c.in(0).dtype, out);
  c.out(1, DType::kI64, out);
}
void eval(EvalContext& c) {
  const Tensor& x = c.in(0);
  size_t axis = size_t(c.axis(c.node.getInt("axis", -1), x.rank()));
  bool largest = c.node.getInt("largest", 1);
  int64_t n = x.shape()[axis], inner = ir::rowMajorStrides(x.shape())[axis], k = c.in(1).getInt(0);
  if (k < 0 || k > n) throw UserError("K is {}, axis {} has the extent {}", k, axis, n);
  Extents shape = x.shape();
  shape[axis] = k;
  compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto v = load<T>(x);
    std::vector<T> best(size_t(ir::elementCount(shape)), T(0));
    Extents where(best.size(), 0), order(size_t(n), 0);
    for (int64_t line = 0; n && line < x.size() / n; line++) {
      const T* p = v.data() + line / inner * n * inner + line % inner;
      std::iota(order.begin(), order.end(), 0);
      // NaN counts as the largest; equal elements keep their order.
      std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
        T a = p[i * inner], b = p[j * inner];
        if (!largest) std::swap(a, b);
        return a > b || (a != a && b == b);
      });
      for (int64_t i = 0; i < k; i++) {
        size_t to = size_t(line / inner * k * inner + i * inner + line % inner);
        best[to] = p[order[size_t(i)] * inner];
        where[to] = order[size_t(i)];
      }
    }
    store(c.out(0, x.dtype(), shape), best);
    if (c.outputs.size() > 1) store(c.out(1, DType::kI64, shape), where);
  });
}
}  // namespace
const OpDef op_TopK = {"TopK", "", 24, infer, eval};
}  // namespace rutter::ops
