// Rules that keep broadcast values small: Expand moves down until an operator broadcasts by itself.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "passes/rules.h"

namespace rutter::passes {
namespace {
bool othersRead(const ir::Graph& g, const ir::Value* v, const ir::Node* n) {
  return g.isOutput(v) || std::any_of(v->users.begin(), v->users.end(), [&](const ir::Node* u) { return u != n; });
}
ir::Value* expand(Builder& b, ir::Value* x, const ir::Dims& dims) {
  return b.node("Expand", {x, b.shape(dims)});
}
}  // namespace

// unary(Expand(x)) -> Expand(unary(x)), and reductions over other axes than the expanded ones likewise.
bool ruleSinkExpand(ir::Graph& g, ir::Node* n, PassContext&) {
  ir::Node* e = producer(n->input(0), "Expand");
  if (!e || n->outputs.size() != 1) return false;
  ir::Value *x = e->inputs[0], *y = n->outputs[0];
  if (x->type.rank() != e->outputs[0]->type.rank() || x->constant) return false;
  auto inputs = n->inputs;
  inputs[0] = x;
  if (isUnaryPointwise(n)) {
    Builder b(g, n, {n, e});
    return replaceValue(g, y, expand(b, b.node(n->op, inputs, n->attrs, n->domain), y->type.dims));
  }
  if (isOp(n, "Expand")) {
    if (othersRead(g, e->outputs[0], n)) return false;
    Builder b(g, n, {n, e});
    return replaceValue(g, y, expand(b, x, y->type.dims));
  }
  if (!n->domain.empty() || n->op.rfind("Reduce", 0) != 0 || n->getInt("keepdims", 1) != 1) return false;
  auto axes = knownInts(n->input(1));
  if (!axes || axes->empty()) return false;
  for (int64_t a : *axes) {
    size_t i = size_t(a < 0 ? a + int64_t(x->type.rank()) : a);
    if (!(x->type.dims[i] == e->outputs[0]->type.dims[i])) return false;
  }
  Builder b(g, n, {n, e});
  return replaceValue(g, y, expand(b, b.node(n->op, inputs, n->attrs), y->type.dims));
}

// A part of a constant whose elements are all alike is one element, expanded; so is a row gathered by such indices.
bool ruleSplat(ir::Graph& g, ir::Node* n, PassContext&) {
  if (!n->domain.empty() || n->outputs.size() != 1) return false;
  ir::Value* y = n->outputs[0];
  if (n->op == "Slice") {
    ir::Value* x = n->inputs[0];
    if (!splat(x) || ir::constants(y->type.dims)) return false;  // of known size: folded as it is
    Builder b(g, n, {n});
    ir::Tensor one(x->constant->dtype(), std::vector<int64_t>(y->type.rank(), 1));
    one.setDouble(0, *splat(x));
    return replaceValue(g, y, expand(b, b.constant(std::move(one)), y->type.dims));
  }
  if (n->op == "Expand") {  // of an expanded constant
    ir::Node* e = producer(n->inputs[0], "Expand");
    if (!e || !e->inputs[0]->constant) return false;
    Builder b(g, n, {n, e});
    return replaceValue(g, y, expand(b, e->inputs[0], y->type.dims));
  }
  if (n->op == "Gather" && n->inputs[0]->constant) {
    ir::Node* e = producer(n->inputs[1], "Expand");
    ir::Value* index = e ? e->inputs[0] : nullptr;
    if (!index || !index->constant || index->constant->size() != 1) return false;
    Builder b(g, n, {n, e});
    ir::Tensor i = index->constant->reshaped(std::vector<int64_t>(n->inputs[1]->type.rank(), 1));
    return replaceValue(g, y,
                        expand(b, b.node("Gather", {n->inputs[0], b.constant(std::move(i))}, n->attrs), y->type.dims));
  }
  return false;
}

// One-hot rows times a matrix is a row of the matrix: Cast(Equal(i, [0 … n-1])) x W -> Gather(W with a row of zeros,
// i).
bool ruleOneHot(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  if (!isOp(n, "MatMul") || !n->inputs[1]->constant || n->inputs[1]->type.rank() != 2 ||
      !ir::isFloat(n->inputs[1]->type.dtype))
    return false;
  ir::Node* cast = producer(n->inputs[0], "Cast");
  ir::Node* equal = cast ? producer(cast->inputs[0], "Equal") : nullptr;
  if (!equal) return false;
  const ir::Tensor& w = *n->inputs[1]->constant;
  int64_t rows = w.shape()[0], columns = w.shape()[1];
  ir::Value* index = nullptr;
  eitherOrder(equal, [&](ir::Value* iota, ir::Value* other) {
    if (!iota->constant || !ir::isInteger(iota->type.dtype) || iota->constant->size() != rows ||
        iota->constant->shape().back() != rows)
      return false;
    for (int64_t i = 0; i < rows; i++)
      if (iota->constant->getInt(i) != i) return false;
    if (other->type.dtype != ir::DType::kI32 && other->type.dtype != ir::DType::kI64) return false;
    if (other->constant || other->type.rank() != equal->outputs[0]->type.rank() || !other->type.dims.back().is(1))
      return false;
    index = other;
    return true;
  });
  if (!index || rows < 8) return false;
  for (int64_t i = 0; i < w.size(); i++)
    if (!(std::abs(w.getDouble(i)) < 1e300)) return false;  // infinities times zero are not zero
  if (!ctx.get(knob::fuse_one_hot, *equal)) return false;
  Builder b(g, n, {n, cast, equal});
  ir::Tensor table(w.dtype(), {rows + 1, columns});
  std::memcpy(table.mutableData(), w.data(), size_t(w.bytes()));  // the last row stays zero
  ir::Value* i = b.reshape(index, ir::Dims(index->type.dims.begin(), index->type.dims.end() - 1));
  auto number = [&](int64_t v) {
    ir::Tensor t(index->type.dtype, {});
    t.setInt(0, v);
    return b.constant(std::move(t));
  };
  ir::Value* inside = b.node("And", {b.node("GreaterOrEqual", {i, number(0)}), b.node("Less", {i, number(rows)})});
  i = b.node("Where", {inside, i, number(rows)});
  return replaceValue(g, n->outputs[0], b.node("Gather", {b.constant(std::move(table)), i}, {{"axis", int64_t(0)}}));
}

// A pooling whose window is the whole image, without padding, is a global one.
bool ruleGlobalPool(ir::Graph& g, ir::Node* n, PassContext&) {
  if ((!isOp(n, "AveragePool") && !isOp(n, "MaxPool")) || n->output(1)) return false;
  const ir::Value* x = n->inputs[0];
  auto kernel = n->getInts("kernel_shape"), pads = n->getInts("pads"), dilations = n->getInts("dilations");
  std::string mode = n->getString("auto_pad", "NOTSET");
  if ((mode != "NOTSET" && mode != "VALID") || kernel.size() + 2 != x->type.rank()) return false;
  for (size_t i = 0; i < kernel.size(); i++)
    if (!x->type.dims[i + 2].is(kernel[i]) || !n->outputs[0]->type.dims[i + 2].is(1)) return false;
  auto all = [](const std::vector<int64_t>& v, int64_t k) {
    return std::all_of(v.begin(), v.end(), [k](int64_t i) { return i == k; });
  };
  if (!all(pads, 0) || !all(dilations, 1)) return false;
  Builder b(g, n, {n});
  return replaceValue(g, n->outputs[0],
                      b.node(n->op == "MaxPool" ? "GlobalMaxPool" : "GlobalAveragePool", {n->inputs[0]}));
}

// GatherND with constant indices is a Gather of one axis, or a Reshape if it takes all elements in their order.
bool ruleGatherND(ir::Graph& g, ir::Node* n, PassContext&) {
  if (!isOp(n, "GatherND") || n->getInt("batch_dims", 0) != 0 || !n->inputs[1]->constant) return false;
  const ir::Tensor& indices = *n->inputs[1]->constant;
  ir::Value *x = n->inputs[0], *y = n->outputs[0];
  if (x->constant || indices.rank() == 0) return false;
  size_t depth = size_t(indices.shape().back());
  auto extents = ir::constants(ir::Dims(x->type.dims.begin(), x->type.dims.begin() + int64_t(depth)));
  if (!extents || depth == 0) return false;
  std::vector<int64_t> shape(indices.shape().begin(), indices.shape().end() - 1);
  ir::Tensor flat(ir::DType::kI64, shape);
  int64_t total = ir::elementCount(*extents);
  bool inOrder = flat.size() == total;
  for (int64_t i = 0; i < flat.size(); i++) {
    int64_t at = 0;
    for (size_t k = 0; k < depth; k++) {
      int64_t index = indices.getInt(i * int64_t(depth) + int64_t(k)), extent = (*extents)[k];
      if (index < -extent || index >= extent) return false;  // the kernel reports it
      at = at * extent + (index < 0 ? index + extent : index);
    }
    flat.setInt(i, at);
    inOrder &= at == i;
  }
  Builder b(g, n, {n});
  if (inOrder) return replaceValue(g, y, b.reshape(x, y->type.dims));
  ir::Dims rows = {total};
  rows.insert(rows.end(), x->type.dims.begin() + int64_t(depth), x->type.dims.end());
  return replaceValue(g, y,
                      b.node("Gather", {b.reshape(x, rows), b.constant(std::move(flat))}, {{"axis", int64_t(0)}}));
}

}  // namespace rutter::passes
