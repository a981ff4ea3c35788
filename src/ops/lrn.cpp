#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kFloat);
  if (c.in(0).rank() < 3) throw UserError("input 0 has {} axes and needs at least 3", c.in(0).rank());
  if (c.node.getInt("size", 0) < 1) throw UserError("attribute size must be given and at least 1");
  c.out(0, c.in(0).dtype, c.in(0).dims);
}
void eval(EvalContext& c) {
  const Tensor& x = c.in(0);
  double alpha = c.node.getFloat("alpha", 1e-4f), beta = c.node.getFloat("beta", 0.75f),
         bias = c.node.getFloat("bias", 1);
  int64_t size = c.node.getInt("size", 1), channels = x.shape()[1], inner = ir::rowMajorStrides(x.shape())[1];
  auto v = load<double>(x);
  std::vector<double> r(v.size());
  for (int64_t i = 0; i < x.size(); i++) {
    int64_t k = i / inner % channels, lo = std::max<int64_t>(0, k - (size - 1) / 2),
            hi = std::min(channels - 1, k + size / 2);
    double sum = 0;
    for (int64_t j = lo; j <= hi; j++) sum += v[size_t(i + (j - k) * inner)] * v[size_t(i + (j - k) * inner)];
    r[size_t(i)] = v[size_t(i)] / std::pow(bias + alpha / double(size) * sum, beta);
  }
  store(c.out(0, x.dtype(), x.shape()), r);
}
}  // namespace
const OpDef op_LRN = {"LRN", "", 13, infer, eval};
}  // namespace rutter::ops
