#include <algorithm>
#include <cmath>

#include "passes/patterns.h"
#include "passes/rules.h"

namespace rutter::passes {
namespace {

// A reduction that keeps its axes: what it reduces, over which.
struct Reduced {
  ir::Value* of;
  std::vector<int64_t> axes;  ///< sorted, non-negative
  std::vector<const ir::Node*> nodes;
};
std::optional<Reduced> reduction(ir::Value* v, const char* op) {
  ir::Node* n = producer(v, op);
  if (!n || n->getInt("keepdims", 1) != 1 || n->outputs.size() != 1) return std::nullopt;
  Reduced r{n->inputs[0], {}, {n}};
  int64_t rank = int64_t(r.of->type.rank());
  if (n->input(1)) {
    auto axes = knownInts(n->inputs[1]);
    if (!axes) return std::nullopt;
    r.axes = *axes;
  }
  if (r.axes.empty()) return std::nullopt;
  for (int64_t& a : r.axes) a += a < 0 ? rank : 0;
  std::sort(r.axes.begin(), r.axes.end());
  return r;
}
// ReduceMean(x), or ReduceSum(x) times 1/n.
std::optional<Reduced> mean(ir::Value* v) {
  if (auto r = reduction(v, "ReduceMean")) return r;
  ir::Node* n = producer(v, "Mul");
  if (!n) n = producer(v, "Div");
  if (!n || n->inputs.size() != 2) return std::nullopt;
  auto c = splat(n->inputs[1]);
  auto r = reduction(n->inputs[0], "ReduceSum");
  if (!c || !r || !isScalarFor(n->inputs[1], n->inputs[0])) return std::nullopt;
  ir::Dim size(1);
  for (int64_t a : r->axes) size = size * r->of->type.dims[size_t(a)];
  if (!size.isConstant() ||
      std::abs((n->op == "Mul" ? *c * double(size.value()) : *c / double(size.value())) - 1) > 1e-6)
    return std::nullopt;
  r->nodes.push_back(n);
  return r;
}
// v is a * a: the value a.
ir::Value* squareOf(ir::Value* v, std::vector<const ir::Node*>& nodes) {
  ir::Node* n = producer(v, "Mul");
  if (n && n->inputs[0] == n->inputs[1]) {
    nodes.push_back(n);
    return n->inputs[0];
  }
  n = producer(v, "Pow");
  if (n && isSplat(n->inputs[1], 2) && isScalarFor(n->inputs[1], n->inputs[0])) {
    nodes.push_back(n);
    return n->inputs[0];
  }
  return nullptr;
}
void append(std::vector<const ir::Node*>& to, const std::vector<const ir::Node*>& from) {
  to.insert(to.end(), from.begin(), from.end());
}

struct Variance {
  ir::Value* x;          ///< what is normalised
  ir::Value* meanValue;  ///< null: no mean is subtracted (RMS)
  std::vector<int64_t> axes;
  std::vector<const ir::Node*> nodes;
};
std::optional<Variance> variance(ir::Value* v) {
  std::vector<const ir::Node*> nodes;
  if (ir::Node* m = producer(v, "Max"); m && m->inputs.size() == 2 && isSplat(m->inputs[1], 0)) {
    nodes.push_back(m);
    v = m->inputs[0];
  }
  // E[x^2] - E[x]^2
  if (ir::Node* sub = producer(v, "Sub")) {
    nodes.push_back(sub);
    ir::Value* meanValue = squareOf(sub->inputs[1], nodes);
    auto second = mean(sub->inputs[0]);
    if (!meanValue || !second) return std::nullopt;
    auto first = mean(meanValue);
    ir::Value* x = squareOf(second->of, nodes);
    if (!first || x != first->of || first->axes != second->axes) return std::nullopt;
    append(nodes, first->nodes);
    append(nodes, second->nodes);
    return Variance{x, meanValue, first->axes, nodes};
  }
  auto outer = mean(v);
  if (!outer) return std::nullopt;
  append(nodes, outer->nodes);
  ir::Value* d = squareOf(outer->of, nodes);
  if (!d) return std::nullopt;
  // E[(x - E[x])^2]
  if (ir::Node* sub = producer(d, "Sub"))
    if (auto inner = mean(sub->inputs[1]); inner && inner->of == sub->inputs[0] && inner->axes == outer->axes) {
      append(nodes, inner->nodes);
      return Variance{sub->inputs[0], sub->inputs[1], outer->axes, nodes};
    }
  return Variance{d, nullptr, outer->axes, nodes};
}

// A constant that varies along the normalised axes only, as a tensor of their extents; nothing otherwise.
std::optional<ir::Tensor> alongAxes(const ir::Value* c, const ir::Dims& dims, const std::vector<int64_t>& axes) {
  if (!c || !c->constant || !ir::isFloat(c->constant->dtype()) || c->type.rank() > dims.size()) return std::nullopt;
  std::vector<int64_t> shape;
  for (int64_t a : axes) {
    if (!dims[size_t(a)].isConstant()) return std::nullopt;
    shape.push_back(dims[size_t(a)].value());
  }
  size_t lead = dims.size() - c->type.rank();
  const auto& have = c->constant->shape();
  std::vector<int64_t> own;  // extents of c along the axes
  for (size_t i = 0; i < dims.size(); i++) {
    int64_t extent = i < lead ? 1 : have[i - lead];
    bool normalised = std::find(axes.begin(), axes.end(), int64_t(i)) != axes.end();
    if (normalised)
      own.push_back(extent);
    else if (extent != 1)
      return std::nullopt;
  }
  if (own == shape) return c->constant->reshaped(shape);
  if (c->constant->size() != 1) return std::nullopt;
  ir::Tensor t(c->constant->dtype(), shape);
  for (int64_t i = 0; i < t.size(); i++) t.setDouble(i, c->constant->getDouble(0));
  return t;
}

// The one user of v if it is `op`.
ir::Node* onlyUser(const ir::Graph& g, const ir::Value* v, const char* op) {
  return hasOneUse(g, v) && isOp(v->users[0], op) ? v->users[0] : nullptr;
}

bool ruleLayerNorm(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  if (!isOp(n, "Sqrt")) return false;
  ir::Node* add = producer(n->inputs[0], "Add");
  if (!add) return false;
  auto eps = splat(add->inputs[1]);
  if (!eps || !isScalarFor(add->inputs[1], add->inputs[0])) return false;
  auto var = variance(add->inputs[0]);
  if (!var || !hasOneUse(g, n->outputs[0])) return false;
  ir::Value* x = var->x;
  if (!ir::isFloat(x->type.dtype)) return false;
  std::vector<const ir::Node*> nodes = var->nodes;
  nodes.push_back(add);
  nodes.push_back(n);

  // The centred value: x, or Sub(x, mean).
  auto centred = [&](ir::Value* d) {
    if (!var->meanValue) return d == x;
    ir::Node* sub = producer(d, "Sub");
    if (!sub || sub->inputs[0] != x || sub->inputs[1] != var->meanValue) return false;
    nodes.push_back(sub);
    return true;
  };
  std::optional<ir::Tensor> gamma, beta;
  ir::Value* y = nullptr;
  ir::Node* user = n->outputs[0]->users[0];
  if (isOp(user, "Div") && user->inputs[1] == n->outputs[0] && centred(user->inputs[0])) {
    y = user->outputs[0];
    nodes.push_back(user);
  } else {
    bool reciprocal = isOp(user, "Reciprocal") || (isOp(user, "Div") && isSplat(user->inputs[0], 1));
    if (!reciprocal) return false;
    nodes.push_back(user);
    ir::Value* q = user->outputs[0];
    ir::Node* m = onlyUser(g, q, "Mul");
    if (!m) return false;
    ir::Value* other = m->inputs[0] == q ? m->inputs[1] : m->inputs[0];
    if (auto scale = alongAxes(other, x->type.dims, var->axes)) {  // rsqrt * gamma first
      gamma = scale;
      nodes.push_back(m);
      q = m->outputs[0];
      m = onlyUser(g, q, "Mul");
      if (!m) return false;
      other = m->inputs[0] == q ? m->inputs[1] : m->inputs[0];
    }
    if (!centred(other)) return false;
    nodes.push_back(m);
    y = m->outputs[0];
  }
  if (!gamma)
    if (ir::Node* m = onlyUser(g, y, "Mul"))
      if (auto scale = alongAxes(m->inputs[1], x->type.dims, var->axes)) {
        gamma = scale;
        y = m->outputs[0];
        nodes.push_back(m);
      }
  if (var->meanValue)
    if (ir::Node* a = onlyUser(g, y, "Add"))
      if (auto shift = alongAxes(a->inputs[1], x->type.dims, var->axes)) {
        beta = shift;
        y = a->outputs[0];
        nodes.push_back(a);
      }
  std::vector<int64_t> extents;
  for (int64_t a : var->axes) {
    if (!x->type.dims[size_t(a)].isConstant()) return false;
    extents.push_back(x->type.dims[size_t(a)].value());
  }
  const ir::Node& at = x->producer ? *x->producer : *n;
  if (!ctx.get(knob::fuse_layer_norm, at)) return false;

  std::reverse(nodes.begin(), nodes.end());
  Builder b(g, y->producer, nodes);
  if (!gamma) {
    gamma = ir::Tensor(x->type.dtype, extents);
    for (int64_t i = 0; i < gamma->size(); i++) gamma->setDouble(i, 1);
  }
  // The operator normalises trailing axes: others are moved there and back, which is free where strides allow.
  int64_t rank = int64_t(x->type.rank()), first = rank - int64_t(var->axes.size());
  std::vector<int64_t> perm, back(static_cast<size_t>(rank));
  for (int64_t i = 0; i < rank; i++)
    if (std::find(var->axes.begin(), var->axes.end(), i) == var->axes.end()) perm.push_back(i);
  perm.insert(perm.end(), var->axes.begin(), var->axes.end());
  for (int64_t i = 0; i < rank; i++) back[size_t(perm[size_t(i)])] = i;
  std::vector<ir::Value*> inputs = {b.transpose(x, perm), b.constant(*gamma)};
  if (beta) inputs.push_back(b.constant(*beta));
  ir::Value* out = b.node(var->meanValue ? "LayerNormalization" : "RMSNormalization", inputs,
                          {{"axis", first}, {"epsilon", float(*eps)}});
  return replaceValue(g, y, b.transpose(out, back));
}

bool ruleSoftmax(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  if (!isOp(n, "Exp")) return false;
  ir::Value* e = n->outputs[0];
  ir::Node* sub = producer(n->inputs[0], "Sub");
  if (!sub || e->users.size() != 2 || g.isOutput(e)) return false;
  ir::Value* x = sub->inputs[0];
  auto max = reduction(sub->inputs[1], "ReduceMax");
  if (!max || max->of != x || max->axes.size() != 1 || !ir::isFloat(x->type.dtype)) return false;
  for (ir::Node* u : e->users) {
    std::vector<const ir::Node*> nodes = {max->nodes[0], sub, n};
    ir::Value* total = nullptr;
    if (isOp(u, "Div") && u->inputs[0] == e) {
      total = u->inputs[1];
    } else if (isOp(u, "Mul")) {
      ir::Node* r = producer(u->inputs[0] == e ? u->inputs[1] : u->inputs[0], "Reciprocal");
      if (!r) continue;
      nodes.push_back(r);
      total = r->inputs[0];
    } else {
      continue;
    }
    auto sum = reduction(total, "ReduceSum");
    if (!sum || sum->of != e || sum->axes != max->axes) continue;
    if (!ctx.get(knob::fuse_softmax, x->producer ? *x->producer : *n)) return false;
    append(nodes, sum->nodes);
    nodes.push_back(u);
    std::reverse(nodes.begin(), nodes.end());
    Builder b(g, u, nodes);
    return replaceValue(g, u->outputs[0], b.node("Softmax", {x}, {{"axis", max->axes[0]}}));
  }
  return false;
}

}  // namespace

void MatchNormalisations::apply(ir::Graph& g, PassContext& ctx) const {
  applyRules(g, ctx, {ruleLayerNorm, ruleSoftmax});
}

}  // namespace rutter::passes
