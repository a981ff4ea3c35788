// Reshape, Flatten, Squeeze, Unsqueeze: the same elements under another shape.
#include <fmt/ranges.h>

#include "ops/support.h"

namespace rutter::ops {
namespace {
// Drops extents that both lists hold: what is left decides. Keeps divisions exact where an extent is a sum.
void cancel(Dims& a, Dims& b) {
  for (size_t i = 0; i < a.size();) {
    auto it = std::find(b.begin(), b.end(), a[i]);
    if (it == b.end() || a[i].is(0)) {
      i++;
      continue;
    }
    b.erase(it);
    a.erase(a.begin() + int64_t(i));
  }
}

void inferReshape(InferContext& c) {
  const Dims in = c.in(0).dims;
  if (c.in(1).rank() != 1) throw UserError("input 1 (shape) must have one axis");
  Dims shape = c.needSymbolic(1, "shape");
  bool zeroIsZero = c.node.getInt("allowzero", 0);
  int64_t free = -1;
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i].is(-1)) {
      if (free >= 0) throw UserError("shape [{}] has more than one -1", ir::toString(shape));
      free = int64_t(i);
    } else if (shape[i].is(0) && !zeroIsZero) {
      if (i >= in.size()) throw UserError("shape [{}] copies axis {}, which the input lacks", ir::toString(shape), i);
      shape[i] = in[i];
    } else if (shape[i].isConstant() && shape[i].value() < 0) {
      throw UserError("shape [{}] has an invalid extent", ir::toString(shape));
    }
  }
  Dims have = in, want = shape;
  if (free >= 0) want.erase(want.begin() + free);
  cancel(have, want);
  Dim total = ir::product(have), rest = ir::product(want);
  std::string what = fmt::format("shape {} does not hold the elements of {}", ir::toString(shape), ir::toString(in));
  if (free < 0) {
    c.requireEqual(total, rest, what);
  } else if (rest.is(0)) {
    throw UserError("shape {} has a -1 that cannot be determined, since the other extents make 0", ir::toString(shape));
  } else if (auto exact = exactDiv(total, rest)) {
    shape[free] = *exact;
  } else {
    c.requireDivisible(total, rest, what);
    shape[free] = floorDiv(total, rest);
  }
  c.out(0, c.in(0).dtype, std::move(shape));
  symbolicCopy(c);
}
void evalReshape(EvalContext& c) {
  const Tensor& x = c.in(0);
  Extents shape = c.in(1).toInts();
  bool zeroIsZero = c.node.getInt("allowzero", 0);
  int64_t rest = 1, free = -1;
  for (size_t i = 0; i < shape.size(); i++) {
    if (shape[i] == 0 && !zeroIsZero) {
      if (i >= x.shape().size())
        throw UserError("shape [{}] copies axis {}, which the input lacks", fmt::join(shape, ","), i);
      shape[i] = x.shape()[i];
    }
    if (shape[i] == -1 && free < 0)
      free = int64_t(i);
    else if (shape[i] < 0)
      throw UserError("shape [{}] has an invalid extent", fmt::join(shape, ","));
    else
      rest *= shape[i];
  }
  if (free >= 0) shape[free] = rest && x.size() % rest == 0 ? x.size() / rest : 0;
  if (ir::elementCount(shape) != x.size())
    throw UserError("shape [{}] does not hold the {} elements of [{}]", fmt::join(shape, ","), x.size(),
                    fmt::join(x.shape(), ","));
  c.outputs[0] = x.reshaped(std::move(shape));
}

int64_t flattenAxis(const ir::Node& n, int64_t rank) {
  int64_t a = n.getInt("axis", 1);
  if (a < -rank || a > rank) throw UserError("axis {} is outside [-{}, {}]", a, rank, rank);
  return a < 0 ? a + rank : a;
}
void inferFlatten(InferContext& c) {
  const ir::Type& t = c.in(0);
  size_t a = size_t(flattenAxis(c.node, int64_t(t.rank())));
  c.out(0, t.dtype, {ir::product(t.dims, 0, a), ir::product(t.dims, a)});
}
void evalFlatten(EvalContext& c) {
  const Extents& s = c.in(0).shape();
  int64_t a = flattenAxis(c.node, c.in(0).rank());
  Extents head(s.begin(), s.begin() + a), tail(s.begin() + a, s.end());
  c.outputs[0] = c.in(0).reshaped({ir::elementCount(head), ir::elementCount(tail)});
}

void inferSqueeze(InferContext& c) {
  const Dims in = c.in(0).dims;
  std::vector<bool> gone(in.size());
  if (c.has(1)) {
    for (int64_t a : normalAxes(c, c.needInts(1, "axes"), in.size())) {
      gone[a] = true;
      c.requireEqual(in[a], Dim(1), fmt::format("axis {} to squeeze out must have extent 1", a));
    }
  } else {
    for (size_t i = 0; i < in.size(); i++) {
      if (!in[i].isConstant() && atLeast(c, in[i], 2)) continue;
      if (!in[i].isConstant())
        throw UserError("without axes, extent {} of axis {} must be known when the engine is built", in[i].text(), i);
      gone[i] = in[i].is(1);
    }
  }
  Dims out;
  for (size_t i = 0; i < in.size(); i++)
    if (!gone[i]) out.push_back(in[i]);
  c.out(0, c.in(0).dtype, std::move(out));
  symbolicCopy(c);
}
void evalSqueeze(EvalContext& c) {
  const Extents& in = c.in(0).shape();
  std::vector<bool> gone(in.size());
  if (c.has(1)) {
    for (int64_t a : c.in(1).toInts()) {
      a = c.axis(a, int64_t(in.size()));
      if (in[a] != 1) throw UserError("axis {} to squeeze out has extent {}, not 1", a, in[a]);
      gone[a] = true;
    }
  } else {
    for (size_t i = 0; i < in.size(); i++) gone[i] = in[i] == 1;
  }
  Extents out;
  for (size_t i = 0; i < in.size(); i++)
    if (!gone[i]) out.push_back(in[i]);
  c.outputs[0] = c.in(0).reshaped(std::move(out));
}

void inferUnsqueeze(InferContext& c) {
  const Dims in = c.in(0).dims;
  auto axes = c.needInts(1, "axes");
  size_t rank = in.size() + axes.size();
  std::vector<bool> fresh(rank);
  for (int64_t a : normalAxes(c, axes, rank)) fresh[a] = true;
  Dims out;
  for (size_t i = 0, from = 0; i < rank; i++) out.push_back(fresh[i] ? Dim(1) : in[from++]);
  c.out(0, c.in(0).dtype, std::move(out));
  symbolicCopy(c);
}
void evalUnsqueeze(EvalContext& c) {
  Extents axes = c.in(1).toInts(), out;
  int64_t rank = c.in(0).rank() + int64_t(axes.size());
  std::vector<bool> fresh(rank);
  for (int64_t a : axes) fresh[c.axis(a, rank)] = true;
  for (int64_t i = 0, from = 0; i < rank; i++) out.push_back(fresh[i] ? 1 : c.in(0).shape().at(from++));
  c.outputs[0] = c.in(0).reshaped(std::move(out));
}
}  // namespace
const OpDef op_Reshape = {"Reshape", "", 25, inferReshape, evalReshape};
const OpDef op_Flatten = {"Flatten", "", 25, inferFlatten, evalFlatten};
const OpDef op_Squeeze = {"Squeeze", "", 25, inferSqueeze, evalSqueeze};
const OpDef op_Unsqueeze = {"Unsqueeze", "", 25, inferUnsqueeze, evalUnsqueeze};
}  // namespace rutter::ops
