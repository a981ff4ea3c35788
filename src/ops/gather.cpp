#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  accept(c, 1, Accept::kIndex);
  const Dims in = c.in(0).dims, index = c.in(1).dims;
  size_t axis = size_t(c.axis(c.node.getInt("axis", 0), in.size()));
  Dims out(in.begin(), in.begin() + int64_t(axis));
  out.insert(out.end(), index.begin(), index.end());
  out.insert(out.end(), in.begin() + int64_t(axis) + 1, in.end());
  c.out(0, c.in(0).dtype, out);
  auto values = c.symbolic(0), picks = c.symbolic(1);
  if (!values || !picks || in.size() != 1 || out.size() > 1) return;
  Dims r;
  for (const Dim& p : *picks) {
    if (!p.isConstant()) return;
    r.push_back((*values)[size_t(c.axis(p.value(), values->size()))]);
  }
  c.setSymbolic(0, std::move(r));
}
void eval(EvalContext& c) {
  const Tensor &x = c.in(0), &index = c.in(1);
  size_t axis = size_t(c.axis(c.node.getInt("axis", 0), x.rank()));
  Extents shape(x.shape().begin(), x.shape().begin() + int64_t(axis));
  int64_t outer = ir::elementCount(shape), extent = x.shape()[axis];
  Extents rest(x.shape().begin() + int64_t(axis) + 1, x.shape().end());
  shape.insert(shape.end(), index.shape().begin(), index.shape().end());
  shape.insert(shape.end(), rest.begin(), rest.end());
  Tensor& y = c.out(0, x.dtype(), shape);
  int64_t row = ir::elementCount(rest) * ir::bytesOf(x.dtype(), 1);
  for (int64_t o = 0; o < outer; o++)
    for (int64_t k = 0; k < index.size(); k++) {
      int64_t i = index.getInt(k);
      if (i < -extent || i >= extent)
        throw UserError("index {} at position {} is outside [-{}, {})", i, k, extent, extent);
      if (row)
        std::memcpy(y.as<char>() + (o * index.size() + k) * row,
                    x.as<char>() + (o * extent + (i < 0 ? i + extent : i)) * row, size_t(row));
    }
}
}  // namespace
const OpDef op_Gather = {"Gather", "", 13, infer, eval};
}  // namespace rutter::ops
