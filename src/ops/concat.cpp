#include <fmt/ranges.h>

#include "ops/support.h"

namespace rutter::ops {
namespace {
void infer(InferContext& c) {
  accept(c, 0, Accept::kMovable);
  if (!c.node.has("axis")) throw UserError("attribute axis is missing");
  Dims out = c.in(0).dims;
  if (out.empty()) throw UserError("scalars cannot be concatenated");
  size_t axis = size_t(c.axis(c.node.getInt("axis", 0), out.size()));
  for (size_t k = 1; k < c.inputs(); k++) {
    sameType(c, 0, k);
    const Dims& d = c.in(k).dims;
    if (d.size() != out.size()) throw UserError("inputs 0 and {} have {} and {} axes", k, out.size(), d.size());
    for (size_t i = 0; i < out.size(); i++) {
      if (i == axis) {
        out[i] = out[i] + d[i];
      } else {
        c.requireEqual(out[i], d[i], fmt::format("parts 0 and {} must agree on axis {}", k, i));
        if (d[i].isConstant()) out[i] = d[i];
      }
    }
  }
  c.out(0, c.in(0).dtype, out);
  if (out.size() != 1) return;
  Dims all;
  for (size_t k = 0; k < c.inputs(); k++) {
    auto part = c.symbolic(k);
    if (!part) return;
    all.insert(all.end(), part->begin(), part->end());
  }
  c.setSymbolic(0, std::move(all));
}
void eval(EvalContext& c) {
  Extents shape = c.in(0).shape();
  size_t axis = size_t(c.axis(c.node.getInt("axis", 0), int64_t(shape.size())));
  for (size_t k = 1; k < c.inputs.size(); k++) {
    const Extents& s = c.in(k).shape();
    for (size_t i = 0; i < shape.size(); i++)
      if (s.size() != shape.size() || (i != axis && s[i] != shape[i]))
        throw UserError("parts of shapes [{}] and [{}] do not fit on axis {}", fmt::join(c.in(0).shape(), ","),
                        fmt::join(s, ","), axis);
    shape[axis] += s[axis];
  }
  Tensor& y = c.out(0, c.in(0).dtype(), shape);
  int64_t unit = ir::bytesOf(y.dtype(), 1), outer = 1;
  for (size_t i = 0; i < axis; i++) outer *= shape[i];
  if (y.size() == 0) return;
  int64_t row = y.size() / outer * unit, offset = 0;
  for (size_t k = 0; k < c.inputs.size(); k++) {
    int64_t part = c.in(k).size() / outer * unit;
    for (int64_t o = 0; o < outer && part; o++)
      std::memcpy(y.as<char>() + o * row + offset, c.in(k).as<char>() + o * part, size_t(part));
    offset += part;
  }
}
}  // namespace
const OpDef op_Concat = {"Concat", "", 13, infer, eval};
}  // namespace rutter::ops
