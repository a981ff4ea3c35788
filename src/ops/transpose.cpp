#include <fmt/ranges.h>

#include "ops/support.h"

namespace rutter::ops {
namespace {
Extents permutation(const ir::Node& n, size_t rank) {
  Extents p = n.getInts("perm");
  if (!n.has("perm"))
    for (size_t i = rank; i-- > 0;) p.push_back(int64_t(i));
  std::vector<bool> seen(rank);
  bool ok = p.size() == rank;
  for (size_t i = 0; ok && i < rank; i++) {
    ok = p[i] >= 0 && p[i] < int64_t(rank) && !seen[p[i]];
    if (ok) seen[p[i]] = true;
  }
  if (!ok) throw UserError("perm [{}] is not a permutation of {} axes", fmt::join(p, ","), rank);
  return p;
}
void infer(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  Dims out;
  for (int64_t a : permutation(c.node, c.in(0).rank())) out.push_back(c.in(0).dims[a]);
  c.out(0, c.in(0).dtype, std::move(out));
  symbolicCopy(c);
}
void eval(EvalContext& c) {
  const Tensor& x = c.in(0);
  Extents dense = ir::rowMajorStrides(x.shape()), shape, strides;
  for (int64_t a : permutation(c.node, x.shape().size())) {
    shape.push_back(x.shape()[a]);
    strides.push_back(dense[a]);
  }
  stridedCopy(c.out(0, x.dtype(), shape), x, strides);
}
}  // namespace
const OpDef op_Transpose = {"Transpose", "", 25, infer, eval};
}  // namespace rutter::ops
