// DepthToSpace and SpaceToDepth: a reshape to six axes, a transposition, a reshape back.
#include "ops/support.h"

namespace rutter::ops {
namespace {
int64_t blockOf(const ir::Node& n) {
  int64_t b = n.getInt("blocksize", 0);
  if (b < 1) throw UserError("attribute blocksize is {} and must be at least 1", b);
  return b;
}
bool columnFirst(const ir::Node& n) {
  std::string m = n.getString("mode", "DCR");
  if (m != "DCR" && m != "CRD") throw UserError("attribute mode is '{}'; supported: DCR, CRD", m);
  return m == "CRD";
}
void inferToSpace(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  needRank(c, 0, 4, "input");
  columnFirst(c.node);
  Dim b(blockOf(c.node));
  const Dims& x = c.in(0).dims;
  c.requireDivisible(x[1], b * b, "channels must be divisible by blocksize squared");
  c.out(0, c.in(0).dtype, {x[0], floorDiv(x[1], b * b), x[2] * b, x[3] * b});
}
void inferToDepth(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  needRank(c, 0, 4, "input");
  columnFirst(c.node);
  Dim b(blockOf(c.node));
  const Dims& x = c.in(0).dims;
  for (size_t i : {2, 3}) c.requireDivisible(x[i], b, "height and width must be divisible by blocksize");
  c.out(0, c.in(0).dtype, {x[0], x[1] * b * b, floorDiv(x[2], b), floorDiv(x[3], b)});
}
// View x as `split`, permute its axes, and view the result as `shape`.
void permute(EvalContext& c, const Extents& split, const Extents& order, const Extents& shape) {
  Extents dense = ir::rowMajorStrides(split), to, strides;
  for (int64_t a : order) {
    to.push_back(split[size_t(a)]);
    strides.push_back(dense[size_t(a)]);
  }
  Tensor y(c.in(0).dtype(), to);
  if (y.size() != c.in(0).size()) throw UserError("the shape does not divide into blocks");
  stridedCopy(y, c.in(0), strides);
  c.outputs[0] = y.reshaped(shape);
}
void evalToSpace(EvalContext& c) {
  const Extents& s = c.in(0).shape();
  int64_t b = blockOf(c.node), d = s[1] / (b * b);
  Extents shape{s[0], d, s[2] * b, s[3] * b};
  if (columnFirst(c.node))
    permute(c, {s[0], d, b, b, s[2], s[3]}, {0, 1, 4, 2, 5, 3}, shape);
  else
    permute(c, {s[0], b, b, d, s[2], s[3]}, {0, 3, 4, 1, 5, 2}, shape);
}
void evalToDepth(EvalContext& c) {
  const Extents& s = c.in(0).shape();
  int64_t b = blockOf(c.node), h = s[2] / b, w = s[3] / b;
  Extents order = columnFirst(c.node) ? Extents{0, 1, 3, 5, 2, 4} : Extents{0, 3, 5, 1, 2, 4};
  permute(c, {s[0], s[1], h, b, w, b}, order, {s[0], s[1] * b * b, h, w});
}
}  // namespace
const OpDef op_DepthToSpace = {"DepthToSpace", "", 28, inferToSpace, evalToSpace};
const OpDef op_SpaceToDepth = {"SpaceToDepth", "", 28, inferToDepth, evalToDepth};
}  // namespace rutter::ops
