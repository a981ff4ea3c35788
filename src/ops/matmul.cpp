#include <fmt/ranges.h>

#include "ops/double_gemm.h"
#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kNumber);
  sameType(c, 0, 1);
  Dims a = c.in(0).dims, b = c.in(1).dims;
  if (a.empty() || b.empty()) throw UserError("scalars cannot be multiplied as matrices");
  bool vectorA = a.size() == 1, vectorB = b.size() == 1;
  if (vectorA) a.insert(a.begin(), Dim(1));
  if (vectorB) b.push_back(Dim(1));
  c.requireEqual(a.back(), b[b.size() - 2], "the last axis of input 0 and the last but one of input 1 must agree");
  Dims out = c.broadcast(Dims(a.begin(), a.end() - 2), Dims(b.begin(), b.end() - 2));
  if (!vectorA) out.push_back(a[a.size() - 2]);
  if (!vectorB) out.push_back(b.back());
  c.out(0, c.in(0).dtype, std::move(out));
}

template <typename T>
void evalInteger(const T* a, const T* b, T* y, int64_t m, int64_t k, int64_t n) {
  for (int64_t i = 0; i < m; i++)
    for (int64_t p = 0; p < k; p++)
      for (int64_t j = 0; j < n; j++)
        y[i * n + j] = T(uint64_t(y[i * n + j]) + uint64_t(a[i * k + p]) * uint64_t(b[p * n + j]));
}
void eval(EvalContext& c) {
  Extents a = c.in(0).shape(), b = c.in(1).shape();
  if (a.empty() || b.empty()) throw UserError("scalars cannot be multiplied as matrices");
  bool vectorA = a.size() == 1, vectorB = b.size() == 1;
  if (vectorA) a.insert(a.begin(), 1);
  if (vectorB) b.push_back(1);
  int64_t m = a[a.size() - 2], k = a.back(), n = b.back();
  if (b[b.size() - 2] != k)
    throw UserError("shapes [{}] and [{}] do not multiply", fmt::join(a, ","), fmt::join(b, ","));
  Extents batchA(a.begin(), a.end() - 2), batchB(b.begin(), b.end() - 2), shape = broadcastShape(batchA, batchB);
  Extents full = shape;
  if (!vectorA) full.push_back(m);
  if (!vectorB) full.push_back(n);
  Tensor& y = c.out(0, c.in(0).dtype(), full);
  compute(y.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto va = load<T>(c.in(0)), vb = load<T>(c.in(1));
    std::vector<T> r(size_t(y.size()));
    if (r.empty()) return;
    // One weight matrix for a whole batch: the batch becomes rows.
    if constexpr (std::is_same_v<T, double>)
      if (ir::elementCount(batchB) == 1) {
        multiply(ir::elementCount(batchA) * m, n, k, va.data(), vb.data(), false, r.data());
        return store(y, r);
      }
    forEach<2>(shape, {broadcastStrides(batchA, shape), broadcastStrides(batchB, shape)},
               [&](int64_t i, const auto& at) {
                 const T *pa = va.data() + at[0] * m * k, *pb = vb.data() + at[1] * k * n;
                 if constexpr (std::is_same_v<T, double>)
                   multiply(m, n, k, pa, pb, false, r.data() + i * m * n);
                 else
                   evalInteger(pa, pb, r.data() + i * m * n, m, k, n);
               });
    store(y, r);
  });
}
}  // namespace
const OpDef op_MatMul = {"MatMul", "", 13, infer, eval};
}  // namespace rutter::ops
