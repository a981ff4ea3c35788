#include "ops/support.h"

namespace rutter::ops {
namespace {
// Files write INT64_MAX for "to the end"; far beyond any extent is enough and cannot overflow.
constexpr int64_t kFar = int64_t{1} << 40;
Dim tame(const Dim& d) {
  return d.isConstant() ? Dim(std::clamp(d.value(), -kFar, kFar)) : d;
}

// A start or end counted from the front: negative ones count from the back.
Dim fromFront(InferContext& c, const Dim& v, const Dim& extent, const char* what) {
  if (atLeast(c, v, 0)) return v;
  if (below(c, v, 0)) return v + extent;
  throw UserError("{} {} may be negative or not: its sign must be known when the engine is built", what, v.text());
}
struct Cut {
  Dim begin, size;
};
Cut cutOf(InferContext& c, const Dim& start, const Dim& end, int64_t step, const Dim& extent) {
  if (step == 0) throw UserError("a step is 0");
  Dim s = fromFront(c, tame(start), extent, "start"), e = fromFront(c, tame(end), extent, "end");
  if (step > 0) {
    s = smaller(c, larger(c, s, Dim(0)), extent);
    e = smaller(c, larger(c, e, Dim(0)), extent);
    return {s, larger(c, ceilDiv(e - s, Dim(step)), Dim(0))};
  }
  s = smaller(c, larger(c, s, Dim(-1)), extent - Dim(1));
  e = smaller(c, larger(c, e, Dim(-1)), extent - Dim(1));
  return {s, larger(c, ceilDiv(s - e, Dim(-step)), Dim(0))};
}

void infer(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  Dims out = c.in(0).dims;
  Dims starts = c.needSymbolic(1, "starts"), ends = c.needSymbolic(2, "ends");
  Extents axes, steps(starts.size(), 1);
  if (c.has(3))
    axes = c.needInts(3, "axes");
  else
    for (size_t i = 0; i < starts.size(); i++) axes.push_back(int64_t(i));
  if (c.has(4)) steps = c.needInts(4, "steps");
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    throw UserError("{} starts, {} ends, {} axes and {} steps are given", starts.size(), ends.size(), axes.size(),
                    steps.size());
  axes = normalAxes(c, axes, out.size());
  std::optional<Cut> only;
  for (size_t i = 0; i < axes.size(); i++) {
    Cut cut = cutOf(c, starts[i], ends[i], steps[i], out[axes[i]]);
    out[axes[i]] = cut.size;
    only = cut;
  }
  c.out(0, c.in(0).dtype, out);
  auto values = c.symbolic(0);
  if (!values || out.size() != 1) return;
  if (!only) return c.setSymbolic(0, *values);
  if (!only->begin.isConstant() || !only->size.isConstant()) return;
  Dims picked;
  for (int64_t k = 0; k < only->size.value(); k++)
    picked.push_back(values->at(size_t(only->begin.value() + k * steps[0])));
  c.setSymbolic(0, std::move(picked));
}
void eval(EvalContext& c) {
  const Tensor& x = c.in(0);
  Extents starts = c.in(1).toInts(), ends = c.in(2).toInts(), axes, steps(starts.size(), 1);
  if (c.has(3))
    axes = c.in(3).toInts();
  else
    for (size_t i = 0; i < starts.size(); i++) axes.push_back(int64_t(i));
  if (c.has(4)) steps = c.in(4).toInts();
  if (ends.size() != starts.size() || axes.size() != starts.size() || steps.size() != starts.size())
    throw UserError("{} starts, {} ends, {} axes and {} steps are given", starts.size(), ends.size(), axes.size(),
                    steps.size());
  Extents shape = x.shape(), strides = ir::rowMajorStrides(shape);
  int64_t offset = 0;
  for (size_t i = 0; i < axes.size(); i++) {
    size_t a = size_t(c.axis(axes[i], x.rank()));
    int64_t n = x.shape()[a], step = std::clamp(steps[i], -kFar, kFar), lo = step > 0 ? 0 : -1,
            hi = step > 0 ? n : n - 1;
    if (step == 0) throw UserError("a step is 0");
    auto clamp = [&](int64_t v) {
      v = std::clamp(v, -kFar, kFar);
      return std::clamp(v < 0 ? v + n : v, lo, std::max(lo, hi));
    };
    int64_t s = clamp(starts[i]), e = clamp(ends[i]);
    shape[a] = std::max<int64_t>(0, step > 0 ? (e - s + step - 1) / step : (s - e - step - 1) / -step);
    offset += s * strides[a];
    strides[a] *= step;
  }
  stridedCopy(c.out(0, x.dtype(), shape), x, strides, offset);
}
}  // namespace
const OpDef op_Slice = {"Slice", "", 13, infer, eval};
}  // namespace rutter::ops
