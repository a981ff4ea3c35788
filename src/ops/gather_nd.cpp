#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  accept(c, 1, Accept::kIndex);
  const ir::Type &x = c.in(0), &index = c.in(1);
  int64_t batch = c.node.getInt("batch_dims", 0), r = int64_t(x.rank()), q = int64_t(index.rank());
  if (r < 1 || q < 1 || batch < 0 || batch >= std::min(r, q))
    throw UserError("batch_dims is {}, which must be below the numbers of axes of data ({}) and indices ({})", batch, r,
                    q);
  if (!index.dims.back().isConstant())
    throw UserError("the last extent of the indices, {}, must be known when the engine is built",
                    index.dims.back().text());
  int64_t depth = index.dims.back().value();
  if (depth < 1 || depth > r - batch)
    throw UserError("indices address {} axes, but data has {} after batch_dims", depth, r - batch);
  for (int64_t i = 0; i < batch; i++)
    c.requireEqual(x.dims[i], index.dims[i], fmt::format("data and indices must agree on batch axis {}", i));
  Dims out(index.dims.begin(), index.dims.end() - 1);
  out.insert(out.end(), x.dims.begin() + batch + depth, x.dims.end());
  c.out(0, x.dtype, std::move(out));
}
void eval(EvalContext& c) {
  const Tensor &x = c.in(0), &index = c.in(1);
  int64_t batch = c.node.getInt("batch_dims", 0), depth = index.shape().back();
  Extents shape(index.shape().begin(), index.shape().end() - 1), strides = ir::rowMajorStrides(x.shape());
  int64_t tuples = ir::elementCount(shape), batches = 1;
  for (int64_t i = 0; i < batch; i++) batches *= x.shape()[i];
  Extents rest(x.shape().begin() + batch + depth, x.shape().end());
  shape.insert(shape.end(), rest.begin(), rest.end());
  Tensor& y = c.out(0, x.dtype(), shape);
  int64_t unit = ir::bytesOf(x.dtype(), 1), row = ir::elementCount(rest), perBatch = batches ? tuples / batches : 0;
  for (int64_t t = 0; t < tuples; t++) {
    int64_t from = (t / perBatch) * (x.size() / batches);
    for (int64_t d = 0; d < depth; d++) {
      int64_t k = index.getInt(t * depth + d), extent = x.shape()[batch + d];
      if (k < -extent || k >= extent)
        throw UserError("index {} is outside [-{}, {}) of axis {}", k, extent, extent, batch + d);
      from += (k < 0 ? k + extent : k) * strides[batch + d];
    }
    if (row) std::memcpy(y.as<char>() + t * row * unit, x.as<char>() + from * unit, size_t(row * unit));
  }
}
}  // namespace
const OpDef op_GatherND = {"GatherND", "", 13, infer, eval};
}  // namespace rutter::ops
