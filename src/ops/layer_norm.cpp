// LayerNormalization and RMSNormalization: over the axes from `axis` to the last.
#include "ops/support.h"

namespace rutter::ops {
namespace {
DType stashType(const ir::Node& n) {
  auto t = ir::dtypeFromOnnx(int(n.getInt("stash_type", 1)));
  if (!t || !accepts(Accept::kFloat, *t))
    throw UserError("attribute stash_type is {}; supported: the floating-point types", n.getInt("stash_type", 1));
  return *t;
}
size_t inferCommon(InferContext& c) {
  accept(c, 0, Accept::kFloat);
  stashType(c.node);
  const Dims x = c.in(0).dims;
  size_t axis = size_t(c.axis(c.node.getInt("axis", -1), x.size()));
  for (size_t i : {1, 2}) {
    if (!c.has(i) && i == 2) continue;
    accept(c, i, Accept::kFloat);
    Dims b = c.broadcast(x, c.in(i).dims);
    if (b.size() != x.size())
      throw UserError("input {} of shape {} does not broadcast to {}", i, ir::toString(c.in(i).dims), ir::toString(x));
  }
  c.out(0, c.in(1).dtype, x);
  return axis;
}
void infer(InferContext& c) {
  size_t axis = inferCommon(c);
  Dims reduced = c.in(0).dims;
  std::fill(reduced.begin() + int64_t(axis), reduced.end(), Dim(1));
  c.out(1, stashType(c.node), reduced);
  c.out(2, stashType(c.node), reduced);
}
// Rows of the normalised axes: mean (0 for RMS) and 1 / deviation of each.
void eval(EvalContext& c, bool centre) {
  const Tensor& x = c.in(0);
  size_t axis = size_t(c.axis(c.node.getInt("axis", -1), x.rank()));
  double epsilon = c.node.getFloat("epsilon", 1e-5f);
  Extents reduced = x.shape();
  int64_t n = 1;
  for (size_t i = axis; i < reduced.size(); i++) {
    n *= reduced[i];
    reduced[i] = 1;
  }
  auto v = load<double>(x);
  int64_t rows = ir::elementCount(reduced);
  std::vector<double> means(size_t(rows), 0), scales(size_t(rows), 0);
  for (int64_t r = 0; r < rows; r++) {
    auto row = std::span(v).subspan(size_t(r * n), size_t(n));
    double mean = 0, square = 0;
    if (centre)
      for (double e : row) mean += e / double(n);
    for (double e : row) square += (e - mean) * (e - mean);
    means[r] = mean;
    scales[r] = 1 / std::sqrt(square / double(n) + epsilon);
    for (double& e : row) e = (e - mean) * scales[r];
  }
  auto broadcast = [&](size_t i, auto f) {
    auto p = load<double>(c.in(i));
    forEach<1>(x.shape(), {broadcastStrides(c.in(i).shape(), x.shape())},
               [&](int64_t k, const auto& at) { v[size_t(k)] = f(v[size_t(k)], p[size_t(at[0])]); });
  };
  broadcast(1, [](double a, double b) { return a * b; });
  if (centre && c.has(2)) broadcast(2, [](double a, double b) { return a + b; });
  store(c.out(0, c.in(1).dtype(), x.shape()), v);
  if (c.outputs.size() > 1) store(c.out(1, stashType(c.node), reduced), means);
  if (c.outputs.size() > 2) store(c.out(2, stashType(c.node), reduced), scales);
}
}  // namespace
const OpDef op_LayerNormalization = {"LayerNormalization", "", 17, infer, [](EvalContext& c) { eval(c, true); }};
const OpDef op_RMSNormalization = {"RMSNormalization", "", 23, [](InferContext& c) { inferCommon(c); },
                                   [](EvalContext& c) { eval(c, false); }};
}  // namespace rutter::ops
