// ScatterElements and ScatterND: a copy of the data with elements replaced, or combined with what is there.
#include "ops/support.h"

namespace rutter::ops {
namespace {
std::string reduction(const ir::Node& n) {
  std::string r = n.getString("reduction", "none");
  for (const char* known : {"none", "add", "mul", "max", "min"})
    if (r == known) return r;
  throw UserError("attribute reduction is '{}'; supported: none, add, mul, max, min", r);
}
void inferCommon(InferContext& c) {
  accept(c, 0, reduction(c.node) == "none" ? Accept::kNumberOrBool : Accept::kNumber);
  accept(c, 1, Accept::kIndex);
  sameType(c, 0, 2);
  if (c.in(0).rank() == 0) throw UserError("input 0 must have at least 1 axis");
  c.out(0, c.in(0).dtype, c.in(0).dims);
}
template <typename T>
void combine(const std::string& how, T& to, T x) {
  if (how == "none")
    to = x;
  else if (how == "add")
    to += x;
  else if (how == "mul")
    to *= x;
  else if (how == "max")
    to = x > to || x != x ? x : to;
  else
    to = x < to || x != x ? x : to;
}
int64_t checked(int64_t i, int64_t extent, size_t axis) {
  if (i < -extent || i >= extent) throw UserError("index {} is outside [-{}, {}) of axis {}", i, extent, extent, axis);
  return i < 0 ? i + extent : i;
}

void inferElements(InferContext& c) {
  inferCommon(c);
  const Dims &x = c.in(0).dims, &index = c.in(1).dims, &updates = c.in(2).dims;
  c.axis(c.node.getInt("axis", 0), x.size());
  if (index.size() != x.size() || updates.size() != x.size())
    throw UserError("data, indices and updates have {}, {} and {} axes, which must be equal", x.size(), index.size(),
                    updates.size());
  for (size_t i = 0; i < x.size(); i++)
    c.requireEqual(index[i], updates[i], fmt::format("indices and updates must agree on axis {}", i));
}
void evalElements(EvalContext& c) {
  const Tensor &x = c.in(0), &index = c.in(1);
  size_t axis = size_t(c.axis(c.node.getInt("axis", 0), x.rank()));
  std::string how = reduction(c.node);
  Extents strides = ir::rowMajorStrides(x.shape());
  int64_t along = strides[axis], extent = x.shape()[axis];
  for (size_t i = 0; i < strides.size(); i++)
    if (i != axis && index.shape()[i] > x.shape()[i]) throw UserError("indices reach beyond the data on axis {}", i);
  if (index.shape() != c.in(2).shape()) throw UserError("indices and updates differ in shape");
  strides[axis] = 0;
  compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto v = load<T>(x), u = load<T>(c.in(2));
    forEach<1>(index.shape(), {strides}, [&](int64_t i, const auto& base) {
      combine(how, v[size_t(base[0] + checked(index.getInt(i), extent, axis) * along)], u[size_t(i)]);
    });
    store(c.out(0, x.dtype(), x.shape()), v);
  });
}

void inferND(InferContext& c) {
  inferCommon(c);
  const Dims &x = c.in(0).dims, &index = c.in(1).dims, &updates = c.in(2).dims;
  if (index.empty()) throw UserError("input 1 (indices) must have at least 1 axis");
  auto depth = index.back().constant();
  if (!depth)
    throw UserError("the last extent of the indices, {}, must be known when the engine is built", index.back().text());
  if (*depth < 0 || *depth > int64_t(x.size())) throw UserError("indices address {} axes of {}", *depth, x.size());
  Dims want(index.begin(), index.end() - 1);
  want.insert(want.end(), x.begin() + *depth, x.end());
  if (want.size() != updates.size())
    throw UserError("updates have {} axes and must have {}", updates.size(), want.size());
  for (size_t i = 0; i < want.size(); i++)
    c.requireEqual(updates[i], want[i], fmt::format("updates must fit indices and data on axis {}", i));
}
void evalND(EvalContext& c) {
  const Tensor &x = c.in(0), &index = c.in(1);
  std::string how = reduction(c.node);
  int64_t depth = index.shape().back(), tuples = depth ? index.size() / depth : 0, row = 1;
  Extents strides = ir::rowMajorStrides(x.shape());
  for (int64_t i = depth; i < x.rank(); i++) row *= x.shape()[size_t(i)];
  if (c.in(2).size() != tuples * row)
    throw UserError("updates have {} elements instead of {}", c.in(2).size(), tuples * row);
  compute(x.dtype(), [&](auto zero) {
    using T = decltype(zero);
    auto v = load<T>(x), u = load<T>(c.in(2));
    for (int64_t t = 0; t < tuples; t++) {
      int64_t to = 0;
      for (int64_t d = 0; d < depth; d++)
        to += checked(index.getInt(t * depth + d), x.shape()[size_t(d)], size_t(d)) * strides[size_t(d)];
      for (int64_t i = 0; i < row; i++) combine(how, v[size_t(to + i)], u[size_t(t * row + i)]);
    }
    store(c.out(0, x.dtype(), x.shape()), v);
  });
}
}  // namespace
const OpDef op_ScatterElements = {"ScatterElements", "", 18, inferElements, evalElements};
const OpDef op_ScatterND = {"ScatterND", "", 18, inferND, evalND};
}  // namespace rutter::ops
