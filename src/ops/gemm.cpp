#include "ops/double_gemm.h"
#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kNumber);
  sameType(c, 0, 1);
  needRank(c, 0, 2, "A");
  needRank(c, 1, 2, "B");
  bool ta = c.node.getInt("transA", 0), tb = c.node.getInt("transB", 0);
  const Dims &a = c.in(0).dims, &b = c.in(1).dims;
  c.requireEqual(a[ta ? 0 : 1], b[tb ? 1 : 0], "the inner extents of A and B must agree");
  Dims out{a[ta ? 1 : 0], b[tb ? 0 : 1]};
  if (c.has(2)) {
    sameType(c, 0, 2);
    Dims bias = c.in(2).dims;
    if (bias.size() > 2) throw UserError("input 2 (C) has {} axes and may have at most 2", bias.size());
    for (size_t i = 0; i < bias.size(); i++) {
      size_t o = i + 2 - bias.size();
      if (!bias[i].is(1))
        c.requireEqual(bias[i], out[o],
                       fmt::format("C of shape {} does not broadcast to {}", ir::toString(bias), ir::toString(out)));
    }
  }
  c.out(0, c.in(0).dtype, std::move(out));
}
template <typename T>
std::vector<T> matrix(const Tensor& t, bool transposed) {
  auto v = load<T>(t);
  if (!transposed) return v;
  int64_t rows = t.shape()[0], columns = t.shape()[1];
  std::vector<T> r(v.size());
  for (int64_t i = 0; i < rows; i++)
    for (int64_t j = 0; j < columns; j++) r[size_t(j * rows + i)] = v[size_t(i * columns + j)];
  return r;
}
void eval(EvalContext& c) {
  bool ta = c.node.getInt("transA", 0), tb = c.node.getInt("transB", 0);
  const Extents &a = c.in(0).shape(), &b = c.in(1).shape();
  int64_t m = a[ta ? 1 : 0], k = a[ta ? 0 : 1], n = b[tb ? 0 : 1];
  if (b[tb ? 1 : 0] != k) throw UserError("inner extents {} and {} differ", k, b[tb ? 1 : 0]);
  double alpha = c.node.getFloat("alpha", 1), beta = c.node.getFloat("beta", 1);
  Tensor& y = c.out(0, c.in(0).dtype(), {m, n});
  if (!ir::isFloat(y.dtype()) && (alpha != std::floor(alpha) || beta != std::floor(beta)))
    throw UserError("alpha and beta must be whole numbers for integers");
  compute(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    using U = std::conditional_t<std::is_same_v<T, double>, double, uint64_t>;  // integers wrap
    constexpr bool isDouble = std::is_same_v<T, double>;
    auto va = matrix<T>(c.in(0), ta), vb = matrix<T>(c.in(1), tb && !isDouble);
    std::vector<T> r(size_t(m * n));
    if constexpr (isDouble) {
      multiply(m, n, k, va.data(), vb.data(), tb, r.data());
    } else {
      for (int64_t i = 0; i < m; i++)
        for (int64_t p = 0; p < k; p++)
          for (int64_t j = 0; j < n; j++)
            r[size_t(i * n + j)] = T(U(r[size_t(i * n + j)]) + U(va[size_t(i * k + p)]) * U(vb[size_t(p * n + j)]));
    }
    for (T& x : r) x = T(U(x) * U(T(alpha)));
    if (c.has(2)) {
      auto bias = load<T>(c.in(2));
      forEach<1>({m, n}, {broadcastStrides(c.in(2).shape(), {m, n})}, [&](int64_t i, const auto& at) {
        r[size_t(i)] = T(U(r[size_t(i)]) + U(T(beta)) * U(bias[size_t(at[0])]));
      });
    }
    store(y, r);
  });
}
}  // namespace
const OpDef op_Gemm = {"Gemm", "", 13, infer, eval};
}  // namespace rutter::ops
