#include "ops/support.h"

namespace rutter::ops {
namespace {
std::string modeOf(const ir::Node& n) {
  std::string m = n.getString("mode", "constant");
  for (const char* known : {"constant", "reflect", "edge", "wrap"})
    if (m == known) return m;
  throw UserError("attribute mode is '{}'; supported: constant, reflect, edge, wrap", m);
}
void infer(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  std::string mode = modeOf(c.node);
  Dims pads = c.needSymbolic(1, "pads"), out = c.in(0).dims;
  if (c.has(2)) sameType(c, 0, 2);
  Extents axes;
  if (c.has(3))
    axes = c.needInts(3, "axes");
  else
    for (size_t i = 0; i < out.size(); i++) axes.push_back(int64_t(i));
  axes = normalAxes(c, axes, out.size());
  size_t n = axes.size();
  if (pads.size() != 2 * n) throw UserError("input 1 (pads) has {} elements; {} axes need {}", pads.size(), n, 2 * n);
  for (size_t i = 0; i < n; i++) {
    Dim& d = out[axes[i]];
    if (mode == "reflect")
      for (const Dim& p : {pads[i], pads[n + i]})
        if ((p - d).range(c.graph.symbols).first >= 0 && !p.is(0))
          throw UserError("reflection cannot pad axis {} of extent {} by {}", axes[i], d.text(), p.text());
    d = d + pads[i] + pads[n + i];
    if (d.isConstant() && d.value() < 0) throw UserError("negative pads take more than axis {} has", axes[i]);
    c.requireAtLeast(d, Dim(0), fmt::format("what negative pads leave of axis {}", axes[i]));
  }
  c.out(0, c.in(0).dtype, std::move(out));
}
// Where result position i of an axis comes from; -1: the constant.
int64_t source(int64_t i, int64_t extent, const std::string& mode) {
  if (i >= 0 && i < extent) return i;
  if (mode == "constant") return -1;
  if (extent == 0) throw UserError("mode {} cannot pad an empty axis", mode);
  if (mode == "edge") return i < 0 ? 0 : extent - 1;
  if (mode == "wrap") return (i % extent + extent) % extent;
  if (extent == 1) return 0;
  int64_t period = 2 * (extent - 1), k = (i % period + period) % period;
  return k < extent ? k : period - k;
}
void eval(EvalContext& c) {
  const Tensor& x = c.in(0);
  std::string mode = modeOf(c.node);
  Extents pads = c.in(1).toInts(), axes, shape = x.shape(), dense = ir::rowMajorStrides(shape);
  if (c.has(3))
    axes = c.in(3).toInts();
  else
    for (int64_t i = 0; i < x.rank(); i++) axes.push_back(i);
  if (pads.size() != 2 * axes.size())
    throw UserError("input 1 (pads) has {} elements; {} axes need {}", pads.size(), axes.size(), 2 * axes.size());
  Extents before(shape.size(), 0);
  for (size_t i = 0; i < axes.size(); i++) {
    size_t a = size_t(c.axis(axes[i], x.rank()));
    before[a] = pads[i];
    shape[a] += pads[i] + pads[axes.size() + i];
  }
  // Offsets of each axis' positions; far negative where the constant goes, so that any sum with it is negative.
  constexpr int64_t kNone = -(int64_t{1} << 55);
  std::vector<Extents> from(shape.size());
  for (size_t a = 0; a < shape.size(); a++)
    for (int64_t i = 0; i < shape[a]; i++) {
      int64_t s = source(i - before[a], x.shape()[a], mode);
      from[a].push_back(s < 0 ? kNone : s * dense[a]);
    }
  Tensor& y = c.out(0, x.dtype(), shape);
  byWidth(x, [&](auto zero) {
    using T = decltype(zero);
    T fill = c.has(2) && c.in(2).size() ? at<T>(c.in(2), 0) : T(0);
    T* p = y.as<T>();
    Extents k(shape.size(), 0);
    for (int64_t i = 0; i < y.size(); i++) {
      int64_t offset = 0;
      for (size_t a = 0; a < shape.size(); a++) offset += from[a][size_t(k[a])];
      p[i] = offset < 0 ? fill : at<T>(x, offset);
      for (size_t a = shape.size(); a-- > 0;) {
        if (++k[a] < shape[a]) break;
        k[a] = 0;
      }
    }
  });
}
}  // namespace
const OpDef op_Pad = {"Pad", "", 25, infer, eval};
}  // namespace rutter::ops
