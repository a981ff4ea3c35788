// Shape and Size: where expressions over symbolic extents begin.
#include "ops/support.h"

namespace rutter::ops {
namespace {
// [start, end) of the axes, clamped as in the specification.
std::pair<int64_t, int64_t> span(const ir::Node& n, int64_t rank) {
  auto clamp = [&](int64_t a) { return std::clamp<int64_t>(a < 0 ? a + rank : a, 0, rank); };
  int64_t start = clamp(n.getInt("start", 0)), end = clamp(n.getInt("end", rank));
  return {start, std::max(start, end)};
}
void inferShape(InferContext& c) {
  const Dims& d = c.in(0).dims;
  auto [start, end] = span(c.node, int64_t(d.size()));
  c.out(0, DType::kI64, {Dim(end - start)});
  c.setSymbolic(0, Dims(d.begin() + start, d.begin() + end));
}
void evalShape(EvalContext& c) {
  const Extents& s = c.in(0).shape();
  auto [start, end] = span(c.node, int64_t(s.size()));
  c.outputs[0] = Tensor::ofInts(Extents(s.begin() + start, s.begin() + end));
}
void inferSize(InferContext& c) {
  c.out(0, DType::kI64, {});
  c.setSymbolic(0, {c.in(0).size()});
}
}  // namespace
const OpDef op_Shape = {"Shape", "", 25, inferShape, evalShape};
const OpDef op_Size = {"Size", "", 25, inferSize,
                       [](EvalContext& c) { c.outputs[0] = Tensor::ofInts({c.in(0).size()}).reshaped({}); }};
}  // namespace rutter::ops
