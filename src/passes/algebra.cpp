// Rules on scalars: neutral elements, cheaper forms, merged constants.
#include <cmath>
#include <limits>

#include "base/error.h"
#include "ops/op.h"
#include "passes/rules.h"

namespace rutter::passes {
namespace {

bool isFloatNode(const ir::Node* n) {
  return n->output(0) && ir::isFloat(n->output(0)->type.dtype);
}

bool useInput(ir::Graph& g, ir::Node* n, ir::Value* x) {
  if (!sameDims(x->type.dims, n->outputs[0]->type.dims) || !canReplace(g, n->outputs[0], x)) return false;
  if (x->producer) addOrigins(x->producer, n);
  return replaceValue(g, n->outputs[0], x);
}

bool powerOfTwo(double x) {
  int e;
  double m = std::frexp(std::abs(x), &e);
  return m == 0.5 && e > -120 && e < 120;
}

// Two constants combined by the oracle of `op`.
ir::Value* evaluate(ir::Graph& g, ir::Node* at, const std::string& op, ir::Value* a, ir::Value* b) {
  ir::Value in[2], out;
  ir::Node n;
  n.op = op;
  n.name = at->name;
  n.inputs = {a, b};
  n.outputs = {&out};
  auto r = ops::evalNode(n, {&*a->constant, &*b->constant});
  return g.makeConstant(at->outputs[0]->name + "_const", std::move(r[0]));
}

}  // namespace

bool ruleAlgebra(ir::Graph& g, ir::Node* n, PassContext&) {
  if (!isBinaryPointwise(n) || !n->inputs[0] || !n->inputs[1]) return false;
  const std::string& op = n->op;
  // Constants to the right, so that patterns need one form.
  if ((op == "Add" || op == "Mul" || op == "Max" || op == "Min") && n->inputs[0]->constant && !n->inputs[1]->constant) {
    ir::Value *a = n->inputs[0], *b = n->inputs[1];
    g.setInput(n, 0, b);
    g.setInput(n, 1, a);
    return true;
  }
  auto c = splat(n->inputs[1]);
  ir::Value* x = n->inputs[0];
  if (!c || x->constant ||
      (op != "Add" && op != "Sub" && op != "Mul" && op != "Div" && op != "Pow" && op != "Max" && op != "Min"))
    return false;
  constexpr double inf = std::numeric_limits<double>::infinity();
  if (((op == "Add" || op == "Sub") && *c == 0) || ((op == "Mul" || op == "Div" || op == "Pow") && *c == 1) ||
      (op == "Max" && *c == -inf) || (op == "Min" && *c == inf))
    return useInput(g, n, x);
  // x - c is x + (-c), bit for bit.
  if (op == "Sub" && isFloatNode(n)) {
    Builder b(g, n, {n});
    ir::Tensor t(n->inputs[1]->constant->dtype(), n->inputs[1]->constant->shape());
    for (int64_t i = 0; i < t.size(); i++) t.setDouble(i, -n->inputs[1]->constant->getDouble(i));
    return replaceValue(g, n->outputs[0], b.node("Add", {x, b.constant(std::move(t))}));
  }
  return false;
}

bool ruleDivToMul(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  if (!isOp(n, "Div") || !isFloatNode(n) || !n->inputs[1]->constant || n->inputs[0]->constant) return false;
  const ir::Tensor& c = *n->inputs[1]->constant;
  bool exact = true;
  for (int64_t i = 0; i < c.size(); i++) {
    double v = c.getDouble(i);
    exact &= powerOfTwo(v);
    if (v == 0 || !std::isfinite(v) || std::abs(v) < 1e-30) return false;
  }
  if (!exact && !ctx.get(knob::graph_div_to_mul, *n)) return false;
  Builder b(g, n, {n});
  ir::Tensor t(c.dtype(), c.shape());
  for (int64_t i = 0; i < t.size(); i++) t.setDouble(i, 1.0 / c.getDouble(i));
  return replaceValue(g, n->outputs[0], b.node("Mul", {n->inputs[0], b.constant(std::move(t))}));
}

bool rulePow(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  if (!isOp(n, "Pow") || !isFloatNode(n)) return false;
  ir::Value* x = n->inputs[0];
  auto e = splat(n->inputs[1]);
  if (!e || x->type.dtype != n->outputs[0]->type.dtype || !sameDims(x->type.dims, n->outputs[0]->type.dims))
    return false;
  if (*e != 2 && *e != 3 && *e != 0.5 && *e != -1 && *e != -0.5) return false;
  if (!ctx.get(knob::graph_pow_to_mul, *n)) return false;
  Builder b(g, n, {n});
  ir::Value* y = nullptr;
  if (*e == 2) y = b.node("Mul", {x, x});
  if (*e == 3) y = b.node("Mul", {b.node("Mul", {x, x}), x});
  if (*e == 0.5) y = b.node("Sqrt", {x});
  if (*e == -1) y = b.node("Reciprocal", {x});
  if (*e == -0.5) y = b.node("Reciprocal", {b.node("Sqrt", {x})});
  return replaceValue(g, n->outputs[0], y);
}

bool ruleReassociate(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  if ((!isOp(n, "Add") && !isOp(n, "Mul")) || !isFloatNode(n) || !n->inputs[1]->constant) return false;
  ir::Node* first = producer(n->inputs[0], n->op);
  if (!first || !first->inputs[1]->constant || first->inputs[0]->constant || !hasOneUse(g, first->outputs[0]))
    return false;
  ir::Value *a = first->inputs[1], *c = n->inputs[1];
  // The merged constant must not outgrow both.
  if (a->constant->size() > 1 && c->constant->size() > 1 && a->constant->shape() != c->constant->shape()) return false;
  if (!ctx.get(knob::graph_reassociate, *first)) return false;
  Builder b(g, n, {first, n});
  return replaceValue(g, n->outputs[0], b.node(n->op, {first->inputs[0], evaluate(g, n, n->op, a, c)}));
}

}  // namespace rutter::passes
