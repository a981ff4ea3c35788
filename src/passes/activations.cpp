#include <algorithm>
#include <cmath>
#include <functional>

#include "passes/patterns.h"
#include "passes/polynomial.h"
#include "passes/rules.h"

namespace rutter::passes {
namespace {

// Values that `v` may be a polynomial of: itself, and what is above it through arithmetic with constants.
void leaves(ir::Value* v, int depth, std::vector<ir::Value*>& out) {
  if (!v || v->constant || std::find(out.begin(), out.end(), v) != out.end()) return;
  out.push_back(v);
  const ir::Node* n = v->producer;
  if (depth == 0 || !n || !n->domain.empty()) return;
  if (n->op != "Add" && n->op != "Sub" && n->op != "Mul" && n->op != "Div" && n->op != "Pow" && n->op != "Neg") return;
  for (ir::Value* in : n->inputs) leaves(in, depth - 1, out);
}
// Nodes between y and its leaves x and t.
void between(ir::Value* y, const ir::Value* x, const ir::Value* t, std::vector<const ir::Node*>& out) {
  if (y == x || y == t || y->constant || !y->producer) return;
  for (ir::Value* in : y->producer->inputs) between(in, x, t, out);
  if (std::find(out.begin(), out.end(), y->producer) == out.end()) out.push_back(y->producer);
}

// A value below t, through at most `depth` arithmetic nodes, that is the wanted polynomial of x and t.
ir::Value* findBelow(ir::Value* t, const ir::Value* x, const Polynomial& want, int depth) {
  std::vector<ir::Value*> level{t};
  for (int d = 0; d < depth && !level.empty(); d++) {
    std::vector<ir::Value*> next;
    for (ir::Value* v : level)
      for (ir::Node* u : v->users) {
        if (!u->domain.empty() || u->outputs.size() != 1) continue;
        if (u->op != "Add" && u->op != "Sub" && u->op != "Mul" && u->op != "Div") continue;
        ir::Value* y = u->outputs[0];
        auto p = polynomialOf(y, x, t);
        if (!p) continue;
        if (matches(*p, want)) return y;
        next.push_back(y);
      }
    level = std::move(next);
  }
  return nullptr;
}

struct Match {
  ir::Value *x, *y;
  std::vector<const ir::Node*> nodes;  ///< all that the match covers
};
// t = f(argument of x), y = polynomial of x and t. t must serve nothing else.
std::optional<Match> match(ir::Graph& g, ir::Node* f, const Polynomial& argument, const Polynomial& result) {
  ir::Value* t = f->outputs[0];
  if (t->users.size() != 1 || g.isOutput(t)) return std::nullopt;
  std::vector<ir::Value*> candidates;
  leaves(f->inputs[0], 6, candidates);
  for (ir::Value* x : candidates) {
    auto p = polynomialOf(f->inputs[0], x);
    if (!p || !matches(*p, argument)) continue;
    if (ir::Value* y = findBelow(t, x, result, 5)) {
      Match m{x, y, {}};
      between(f->inputs[0], x, nullptr, m.nodes);
      m.nodes.push_back(f);
      between(y, x, t, m.nodes);
      return m;
    }
  }
  return std::nullopt;
}

bool replaceBy(ir::Graph& g, PassContext& ctx, const Match& m, knobs::BoolKnob knob, const std::string& op,
               Builder::Attrs attrs, const std::string& domain = "") {
  const ir::Node& at = m.x->producer ? *m.x->producer : *m.nodes.front();
  if (!ctx.get(knob, at)) return false;
  std::vector<const ir::Node*> nodes(m.nodes.rbegin(), m.nodes.rend());  // the result's own name first
  Builder b(g, m.y->producer, nodes);
  return replaceValue(g, m.y, b.node(op, {m.x}, std::move(attrs), domain));
}

bool ruleGelu(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  const Polynomial result = {{{1, 0}, 0.5}, {{1, 1}, 0.5}};
  if (isOp(n, "Erf")) {
    if (auto m = match(g, n, {{{1, 0}, std::sqrt(0.5)}}, result))
      return replaceBy(g, ctx, *m, knob::fuse_gelu, "Gelu", {});
  } else if (isOp(n, "Tanh")) {
    double c = std::sqrt(2 / M_PI);
    if (auto m = match(g, n, {{{1, 0}, c}, {{3, 0}, 0.044715 * c}}, result))
      return replaceBy(g, ctx, *m, knob::fuse_gelu, "Gelu", {{"approximate", std::string("tanh")}});
  }
  return false;
}

bool ruleSilu(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  if (!isOp(n, "Sigmoid")) return false;
  auto m = match(g, n, {{{1, 0}, 1.0}}, {{{1, 1}, 1.0}});
  return m && replaceBy(g, ctx, *m, knob::fuse_silu, "Silu", {}, "rutter");
}

// Clip(x + 3, 0, 6) * x / 6, and HardSigmoid(1/6, 1/2) * x.
bool ruleHardSwish(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  std::optional<Match> m;
  if (isOp(n, "Clip") && isSplat(n->input(1), 0) && isSplat(n->input(2), 6))
    m = match(g, n, {{{1, 0}, 1.0}, {{0, 0}, 3.0}}, {{{1, 1}, 1.0 / 6}});
  if (isOp(n, "HardSigmoid") && std::abs(n->getFloat("alpha", 0.2f) - 1.0 / 6) < 1e-6 &&
      std::abs(n->getFloat("beta", 0.5f) - 0.5) < 1e-6)
    m = match(g, n, {{{1, 0}, 1.0}}, {{{1, 1}, 1.0}});
  return m && replaceBy(g, ctx, *m, knob::fuse_hard_swish, "HardSwish", {});
}

// Clip(a*x + b, 0, h) / h is HardSigmoid(a/h, b/h).
bool ruleHardSigmoid(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  if (!isOp(n, "Clip") || !isSplat(n->input(1), 0)) return false;
  auto high = splat(n->input(2));
  if (!high || !(*high > 0)) return false;
  std::vector<ir::Value*> candidates;
  leaves(n->inputs[0], 3, candidates);
  ir::Value* x = nullptr;
  double a = 0, c = 0;
  for (ir::Value* v : candidates) {
    auto p = polynomialOf(n->inputs[0], v);
    if (!p || p->rbegin()->first != std::pair(1, 0)) continue;
    x = v;  // the farthest leaf takes most with it
    a = (*p)[{1, 0}];
    c = (*p)[{0, 0}];
  }
  if (!x || (a == 1 && c == 0)) return false;
  auto m = match(g, n, {{{1, 0}, a}, {{0, 0}, c}}, {{{0, 1}, 1 / *high}});
  if (!m && *high == 1 && n->outputs[0]->users.size() >= 1) {
    m = Match{x, n->outputs[0], {}};
    between(n->inputs[0], x, nullptr, m->nodes);
    m->nodes.push_back(n);
  }
  return m && replaceBy(g, ctx, *m, knob::fuse_hard_swish, "HardSigmoid",
                        {{"alpha", float(a / *high)}, {"beta", float(c / *high)}});
}

}  // namespace

void MatchActivations::apply(ir::Graph& g, PassContext& ctx) const {
  applyRules(g, ctx, {ruleGelu, ruleSilu, ruleHardSwish});
  applyRules(g, ctx, {ruleHardSigmoid});
  applyRules(g, ctx, {ruleHardSwish});  // x * the hard sigmoid just made
}

}  // namespace rutter::passes
