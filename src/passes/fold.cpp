#include "passes/fold.h"

#include <algorithm>

#include "base/error.h"
#include "ops/op.h"
#include "passes/rewrite.h"

namespace rutter::passes {
namespace {

bool isShapeValue(const ir::Node* n) {
  return n && n->domain == "rutter" && n->op == "ShapeValue";
}

// A constant in place of a computed value. An output of the graph keeps a node that produces it.
void replaceByConstant(ir::Graph& g, ir::Value* v, ir::Tensor t) {
  ir::Node* n = v->producer;
  ir::Value* c = g.makeConstant(v->name, std::move(t));
  bool output = g.isOutput(v);
  if (!output) {
    g.replaceUses(v, c);
    return;
  }
  if (isOp(n, "Identity") && n->inputs[0]->constant) return;
  ir::Value* copy = g.makeValue(v->name, c->type);
  ir::Node* id = g.makeNode(*n->parent, "Identity", {c}, {copy}, n);
  id->origins = n->origins;
  std::swap(v->name, copy->name);
  g.replaceUses(v, copy);
}

// Symbolic contents that are all integers are a constant; other contents, if something computes them, a ShapeValue.
void foldSymbolic(ir::Graph& g, ir::Node* n) {
  for (ir::Value* v : n->outputs) {
    if (!v || !v->symbolic || v->constant || isShapeValue(n) || (v->users.empty() && !g.isOutput(v))) continue;
    if (auto ints = ir::constants(*v->symbolic)) {
      auto shape = ir::constants(v->type.dims);
      if (!shape || ir::elementCount(*shape) != int64_t(ints->size())) continue;
      ir::Tensor t(v->type.dtype, *shape);
      for (size_t i = 0; i < ints->size(); i++) t.setInt(int64_t(i), (*ints)[i]);
      replaceByConstant(g, v, std::move(t));
    } else {
      if (g.isOutput(v) && isOp(n, "Identity") && isShapeValue(n->inputs[0]->producer)) continue;
      ir::Value* s = g.makeValue(v->name, v->type);
      s->symbolic = v->symbolic;
      ir::Node* m = g.makeNode(*n->parent, "ShapeValue", {}, {s}, n);
      m->domain = "rutter";
      m->origins = n->origins;
      replaceValue(g, v, s);
    }
  }
}

bool foldable(const ir::Node* n) {
  if (n->inputs.empty() || !n->regions.empty() || isShapeValue(n)) return n->op == "Constant" && n->domain.empty();
  for (const ir::Value* v : n->inputs)
    if (v && !v->constant) return false;
  return true;
}

}  // namespace

void FoldConstants::apply(ir::Graph& g, PassContext& ctx) const {
  int64_t limit = ctx.get(knob::graph_fold_limit, 0);
  for (ir::Node* n : allNodes(g)) {
    foldSymbolic(g, n);
    if (!foldable(n)) continue;
    // A result no larger than its inputs always pays: it replaces them.
    int64_t in = 0, out = 0;
    bool known = true;
    for (const ir::Value* v : n->inputs)
      if (v) in += v->constant->bytes();
    for (const ir::Value* v : n->outputs)
      if (v) {
        auto size = v->type.size().constant();
        known &= size.has_value();
        if (size) out += ir::bytesOf(v->type.dtype, *size);
      }
    bool copy = isOp(n, "Identity") || isOp(n, "Constant");
    if (!known || (!copy && out > std::max(limit, in))) continue;
    if (isOp(n, "Identity") && !g.isOutput(n->outputs[0])) {
      g.replaceUses(n->outputs[0], n->inputs[0]);
      continue;
    }
    if (isOp(n, "Identity")) continue;
    std::vector<const ir::Tensor*> inputs;
    for (const ir::Value* v : n->inputs) inputs.push_back(v ? &*v->constant : nullptr);
    auto results = ops::evalNode(*n, inputs);
    for (size_t i = 0; i < results.size(); i++)
      if (ir::Value* v = n->outputs[i]; v && (!v->users.empty() || g.isOutput(v)))
        replaceByConstant(g, v, std::move(results[i]));
  }
}

}  // namespace rutter::passes
