#include "ops/support.h"

namespace rutter::ops {
namespace {
constexpr const char* kNames[] = {"X", "scale", "B", "input_mean", "input_var"};
void infer(InferContext& c) {
  if (c.node.getInt("training_mode", 0)) throw UserError("training_mode=1 is not supported: only inference is");
  for (size_t i = 1; i < c.node.outputs.size(); i++)
    if (c.node.output(i)) throw UserError("output {} exists in training only, which is not supported", i);
  const Dims x = c.in(0).dims;
  if (x.empty()) throw UserError("input 0 must have at least 1 axis");
  Dim channels = x.size() > 1 ? x[1] : Dim(1);
  for (size_t i = 0; i < 5; i++) {
    accept(c, i, Accept::kFloat);
    if (!i) continue;
    needRank(c, i, 1, kNames[i]);
    c.requireEqual(c.in(i).dims[0], channels, fmt::format("{} must have one element a channel", kNames[i]));
  }
  c.out(0, c.in(0).dtype, x);
}
void eval(EvalContext& c) {
  const Tensor& x = c.in(0);
  double epsilon = c.node.getFloat("epsilon", 1e-5f);
  auto v = load<double>(x), scale = load<double>(c.in(1)), bias = load<double>(c.in(2)), mean = load<double>(c.in(3)),
       variance = load<double>(c.in(4));
  int64_t channels = x.rank() > 1 ? x.shape()[1] : 1, inner = 1;
  for (const auto* p : {&scale, &bias, &mean, &variance})
    if (int64_t(p->size()) != channels) throw UserError("{} elements are given for {} channels", p->size(), channels);
  for (int64_t i = 2; i < x.rank(); i++) inner *= x.shape()[i];
  for (size_t i = 0; i < v.size(); i++) {
    size_t k = i / size_t(inner) % size_t(channels);
    v[i] = (v[i] - mean[k]) / std::sqrt(variance[k] + epsilon) * scale[k] + bias[k];
  }
  store(c.out(0, x.dtype(), x.shape()), v);
}
}  // namespace
const OpDef op_BatchNormalization = {"BatchNormalization", "", 15, infer, eval};
}  // namespace rutter::ops
