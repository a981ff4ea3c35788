#include "ops/support.h"

namespace rutter::ops {
namespace {
// Without sizes: num_outputs (or as many as the node has) equal parts, the last one smaller.
int64_t partsOf(const ir::Node& n) {
  int64_t parts = n.getInt("num_outputs", int64_t(n.outputs.size()));
  if (parts != int64_t(n.outputs.size()))
    throw UserError("num_outputs is {}, but the node has {} outputs", parts, n.outputs.size());
  return parts;
}
void infer(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  const Dims in = c.in(0).dims;
  size_t axis = size_t(c.axis(c.node.getInt("axis", 0), in.size())), n = c.node.outputs.size();
  Dims sizes;
  if (c.has(1)) {
    sizes = c.needSymbolic(1, "split");
    if (sizes.size() != n) throw UserError("input 1 (split) has {} sizes for {} outputs", sizes.size(), n);
    Dim sum;
    for (const Dim& d : sizes) {
      if (d.isConstant() && d.value() < 0) throw UserError("input 1 (split) holds the negative size {}", d.value());
      sum = sum + d;
    }
    c.requireEqual(sum, in[axis], fmt::format("the sizes of the parts must add up to axis {}", axis));
  } else {
    Dim part = ceilDiv(in[axis], Dim(partsOf(c.node)));
    for (size_t i = 0; i + 1 < n; i++) sizes.push_back(part);
    Dim last = in[axis] - part * Dim(int64_t(n) - 1);
    if (last.isConstant() && last.value() < 0)
      throw UserError("axis {} of extent {} cannot be cut into {} parts", axis, in[axis].text(), n);
    c.requireAtLeast(last, Dim(0), fmt::format("the last of {} parts of axis {}", n, axis));
    sizes.push_back(last);
  }
  auto values = c.symbolic(0);
  int64_t at = 0;
  for (size_t k = 0; k < n; k++) {
    Dims out = in;
    out[axis] = sizes[k];
    c.out(k, c.in(0).dtype, out);
    if (!values || in.size() != 1 || !sizes[k].isConstant()) {
      values.reset();
      continue;
    }
    int64_t end = at + sizes[k].value();
    if (end > int64_t(values->size())) continue;
    c.setSymbolic(k, Dims(values->begin() + at, values->begin() + end));
    at = end;
  }
}
void eval(EvalContext& c) {
  const Tensor& x = c.in(0);
  size_t axis = size_t(c.axis(c.node.getInt("axis", 0), x.rank()));
  int64_t n = int64_t(c.outputs.size()), extent = x.shape()[axis], sum = 0;
  Extents sizes;
  if (c.has(1)) {
    sizes = c.in(1).toInts();
  } else {
    int64_t part = (extent + partsOf(c.node) - 1) / n;
    sizes.assign(n, part);
    sizes[n - 1] = extent - part * (n - 1);
  }
  for (int64_t s : sizes) sum += s;
  if (int64_t(sizes.size()) != n || sum != extent)
    throw UserError("{} parts of {} in all do not fit axis {} of extent {}", sizes.size(), sum, axis, extent);
  Extents strides = ir::rowMajorStrides(x.shape());
  int64_t begin = 0;
  for (int64_t k = 0; k < n; k++) {
    Extents shape = x.shape();
    shape[axis] = sizes[k];
    stridedCopy(c.out(size_t(k), x.dtype(), shape), x, strides, begin * strides[axis]);
    begin += sizes[k];
  }
}
}  // namespace
const OpDef op_Split = {"Split", "", 18, infer, eval};
}  // namespace rutter::ops
