// InstanceNormalization and GroupNormalization: over the spatial axes and the channels of a group.
#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c, int64_t groups) {
  const Dims x = c.in(0).dims;
  if (x.size() < 3) throw UserError("input 0 has {} axes and needs at least 3", x.size());
  for (size_t i = 0; i < 3; i++) {
    accept(c, i, Accept::kFloat);
    sameType(c, 0, i);
    if (!i) continue;
    needRank(c, i, 1, i == 1 ? "scale" : "bias");
    c.requireEqual(c.in(i).dims[0], x[1], fmt::format("input {} must have one element a channel", i));
  }
  if (groups < 1) throw UserError("attribute num_groups must be given and at least 1");
  c.requireDivisible(x[1], Dim(groups), "channels must be divisible by num_groups");
  c.out(0, c.in(0).dtype, x);
}
void eval(EvalContext& c, int64_t groups) {
  const Tensor& x = c.in(0);
  double epsilon = c.node.getFloat("epsilon", 1e-5f);
  auto v = load<double>(x), scale = load<double>(c.in(1)), bias = load<double>(c.in(2));
  int64_t channels = x.shape()[1], rows = x.shape()[0] * groups, n = rows ? x.size() / rows : 0;
  if (channels % groups || int64_t(scale.size()) != channels || int64_t(bias.size()) != channels)
    throw UserError("{} channels, {} groups, {} scales and {} biases do not fit", channels, groups, scale.size(),
                    bias.size());
  for (int64_t r = 0; r < rows; r++) {
    auto row = std::span(v).subspan(size_t(r * n), size_t(n));
    double mean = 0, square = 0;
    for (double e : row) mean += e / double(n);
    for (double e : row) square += (e - mean) * (e - mean);
    double s = 1 / std::sqrt(square / double(n) + epsilon);
    int64_t perChannel = n / (channels / groups), first = r % groups * (channels / groups);
    for (int64_t i = 0; i < n; i++) {
      size_t k = size_t(first + i / perChannel);
      row[size_t(i)] = (row[size_t(i)] - mean) * s * scale[k] + bias[k];
    }
  }
  store(c.out(0, x.dtype(), x.shape()), v);
}
int64_t groupsOf(const ir::Node& n) {
  return n.getInt("num_groups", 0);
}
}  // namespace
const OpDef op_GroupNormalization = {"GroupNormalization", "", 21, [](InferContext& c) { infer(c, groupsOf(c.node)); },
                                     [](EvalContext& c) { eval(c, groupsOf(c.node)); }};
const OpDef op_InstanceNormalization = {"InstanceNormalization", "", 22,
                                        [](InferContext& c) {
                                          // One group a channel; the count matters only for divisibility, which holds.
                                          infer(c, 1);
                                        },
                                        [](EvalContext& c) { eval(c, c.in(0).shape()[1]); }};
}  // namespace rutter::ops
