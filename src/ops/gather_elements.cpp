#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  accept(c, 1, Accept::kIndex);
  const ir::Type &x = c.in(0), &index = c.in(1);
  if (x.rank() == 0 || x.rank() != index.rank())
    throw UserError("data and indices have {} and {} axes, which must be equal and at least 1", x.rank(), index.rank());
  size_t axis = size_t(c.axis(c.node.getInt("axis", 0), x.rank()));
  for (size_t i = 0; i < x.rank(); i++)
    if (i != axis && (x.dims[i] - index.dims[i]).range(c.graph.symbols).second < 0)
      throw UserError("indices reach beyond the data on axis {}: {} against {}", i, index.dims[i].text(),
                      x.dims[i].text());
  c.out(0, x.dtype, index.dims);
}
void eval(EvalContext& c) {
  const Tensor &x = c.in(0), &index = c.in(1);
  size_t axis = size_t(c.axis(c.node.getInt("axis", 0), x.rank()));
  int64_t extent = x.shape()[axis];
  Extents strides = ir::rowMajorStrides(x.shape());
  int64_t along = strides[axis];
  for (size_t i = 0; i < strides.size(); i++)
    if (i != axis && index.shape()[i] > x.shape()[i]) throw UserError("indices reach beyond the data on axis {}", i);
  strides[axis] = 0;
  Tensor& y = c.out(0, x.dtype(), index.shape());
  byWidth(x, [&](auto zero) {
    using T = decltype(zero);
    T* p = y.as<T>();
    forEach<1>(index.shape(), {strides}, [&](int64_t i, const auto& base) {
      int64_t k = index.getInt(i);
      if (k < -extent || k >= extent) throw UserError("index {} is outside [-{}, {})", k, extent, extent);
      p[i] = at<T>(x, base[0] + (k < 0 ? k + extent : k) * along);
    });
  });
}
}  // namespace
const OpDef op_GatherElements = {"GatherElements", "", 13, infer, eval};
}  // namespace rutter::ops
