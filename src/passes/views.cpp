// Rules on operators that only move or rename elements.
#include <algorithm>
#include <set>

#include "base/error.h"
#include "passes/rules.h"

namespace rutter::passes {
namespace {

bool allOf(const std::vector<int64_t>& v, int64_t x) {
  return std::all_of(v.begin(), v.end(), [&](int64_t i) { return i == x; });
}

bool isNoOp(const ir::Node* n) {
  const ir::Value *x = n->input(0), *y = n->output(0);
  if (!n->domain.empty() || !x || !y) return false;
  const std::string& op = n->op;
  if (op == "Identity") return true;
  if (op == "Dropout") {
    auto training = splat(n->input(2));
    return !n->output(1) && (!n->input(2) || (training && *training == 0));
  }
  if (op == "Cast" || op == "CastLike") return x->type.dtype == y->type.dtype;
  if ((op == "Concat" || op == "Sum" || op == "Min" || op == "Max" || op == "Mean") && n->inputs.size() == 1)
    return true;
  if (!sameDims(x->type.dims, y->type.dims)) return false;
  if (op == "Reshape" || op == "Squeeze" || op == "Unsqueeze" || op == "Flatten" || op == "Expand" || op == "Tile")
    return true;
  if (op == "Split") return n->outputs.size() == 1;
  if (op == "Slice") {
    if (!n->input(4)) return true;
    auto steps = knownInts(n->input(4));
    return steps && std::all_of(steps->begin(), steps->end(), [](int64_t s) { return s > 0; });
  }
  if (op == "Pad") {
    auto pads = knownInts(n->input(1));
    return pads && allOf(*pads, 0);
  }
  if (op == "Transpose") {
    auto perm = n->getInts("perm");
    return !perm.empty() && std::is_sorted(perm.begin(), perm.end());
  }
  return false;
}

std::vector<int64_t> permOf(const ir::Node* n) {
  auto perm = n->getInts("perm");
  if (perm.empty())
    for (size_t i = n->inputs[0]->type.rank(); i-- > 0;) perm.push_back(int64_t(i));
  return perm;
}

// Axes whose extent is not 1, in order.
std::vector<size_t> wideAxes(const ir::Dims& d) {
  std::vector<size_t> out;
  for (size_t i = 0; i < d.size(); i++)
    if (!d[i].is(1)) out.push_back(i);
  return out;
}
// True if b is a with axes of extent 1 put in or left out.
bool differsByOnes(const ir::Dims& a, const ir::Dims& b) {
  auto wa = wideAxes(a), wb = wideAxes(b);
  if (wa.size() != wb.size()) return false;
  for (size_t i = 0; i < wa.size(); i++)
    if (!(a[wa[i]] == b[wb[i]])) return false;
  return true;
}
bool broadcastsTo(const std::vector<const ir::Value*>& in, const ir::Dims& out) {
  for (size_t i = 0; i < out.size(); i++) {
    bool wide = out[i].is(1);
    for (const ir::Value* v : in) {
      size_t r = v->type.rank();
      if (r > out.size()) return false;
      if (i + r < out.size()) continue;
      wide |= v->type.dims[i + r - out.size()] == out[i];
    }
    if (!wide) return false;
  }
  return true;
}
}  // namespace

bool ruleNoOp(ir::Graph& g, ir::Node* n, PassContext&) {
  if (!isNoOp(n)) return false;
  if (n->op == "Identity" && n->inputs[0]->constant && g.isOutput(n->outputs[0])) return false;
  ir::Value* x = n->inputs[0];
  if (g.isOutput(n->outputs[0]) && !canReplace(g, n->outputs[0], x)) {
    // The output of the graph needs a node of its own: an Identity, the simplest there is.
    if (n->op == "Identity") return false;
    Builder b(g, n, {n});
    return replaceValue(g, n->outputs[0], b.node("Identity", {x}));
  }
  if (x->producer) addOrigins(x->producer, n);
  return replaceValue(g, n->outputs[0], x);
}

bool ruleViewToReshape(ir::Graph& g, ir::Node* n, PassContext&) {
  if (!n->domain.empty()) return false;
  ir::Value *x = n->input(0), *y = n->output(0);
  if (n->op == "Transpose") {
    // Moving only axes of extent 1 leaves memory as it is.
    std::vector<int64_t> wide;
    for (int64_t p : permOf(n))
      if (!x->type.dims[size_t(p)].is(1)) wide.push_back(p);
    if (!std::is_sorted(wide.begin(), wide.end())) return false;
  } else if (n->op == "Reshape") {
    if (n->getInt("allowzero", 0) == 1 && n->inputs[1] && (n->inputs[1]->constant || n->inputs[1]->producer)) {
      auto now = knownDims(n->inputs[1]);
      if (now && *now == y->type.dims) return false;  // already in its plain form
    }
  } else if (n->op == "Expand" || n->op == "Tile") {
    if (!differsByOnes(x->type.dims, y->type.dims)) return false;
  } else if (n->op != "Squeeze" && n->op != "Unsqueeze" && n->op != "Flatten") {
    return false;
  }
  Builder b(g, n, {n});
  return replaceValue(g, y, b.reshape(x, y->type.dims));
}

bool ruleMergeReshapes(ir::Graph& g, ir::Node* n, PassContext&) {
  if (!isOp(n, "Reshape")) return false;
  ir::Node* first = producer(n->inputs[0], "Reshape");
  if (!first) return false;
  const ir::Dims& dims = n->outputs[0]->type.dims;
  ir::Value* x = first->inputs[0];
  if (sameDims(x->type.dims, dims)) {
    if (!canReplace(g, n->outputs[0], x)) return false;
    if (x->producer) addOrigins(x->producer, n);
    return replaceValue(g, n->outputs[0], x);
  }
  Builder b(g, n, {first, n});
  return replaceValue(g, n->outputs[0], b.reshape(x, dims));
}

bool ruleMergeTransposes(ir::Graph& g, ir::Node* n, PassContext&) {
  if (!isOp(n, "Transpose")) return false;
  ir::Node* first = producer(n->inputs[0], "Transpose");
  if (!first) return false;
  auto p = permOf(first), q = permOf(n);
  std::vector<int64_t> r;
  for (int64_t i : q) r.push_back(p[size_t(i)]);
  Builder b(g, n, {first, n});
  ir::Value* x = first->inputs[0];
  if (std::is_sorted(r.begin(), r.end())) {
    if (!canReplace(g, n->outputs[0], x)) return false;
    return replaceValue(g, n->outputs[0], x);
  }
  return replaceValue(g, n->outputs[0], b.transpose(x, r));
}

bool ruleTransposeOfReshape(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  if (!isOp(n, "Transpose")) return false;
  ir::Node* r = producer(n->inputs[0], "Reshape");
  if (!r || !hasOneUse(g, r->outputs[0]) || r->inputs[0]->constant) return false;
  ir::Value *x = r->inputs[0], *y = n->outputs[0];
  if (!differsByOnes(x->type.dims, r->outputs[0]->type.dims) || !ctx.get(knob::graph_sink_reshape, *r)) return false;
  auto from = wideAxes(x->type.dims), to = wideAxes(r->outputs[0]->type.dims);
  std::vector<int64_t> perm(x->type.rank());
  for (size_t i = 0; i < perm.size(); i++) perm[i] = int64_t(i);
  size_t slot = 0;
  for (int64_t p : permOf(n)) {
    auto at = std::find(to.begin(), to.end(), size_t(p));
    if (at != to.end()) perm[from[slot++]] = int64_t(from[size_t(at - to.begin())]);
  }
  Builder b(g, n, {n, r});
  return replaceValue(g, y, b.reshape(b.transpose(x, perm), y->type.dims));
}

bool ruleKeepDims(ir::Graph& g, ir::Node* n, PassContext&) {
  if (!n->domain.empty() || (n->op.rfind("Reduce", 0) != 0 && n->op != "ArgMax" && n->op != "ArgMin")) return false;
  if (n->getInt("keepdims", 1) == 1) return false;
  Builder b(g, n, {n});
  auto attrs = n->attrs;
  attrs["keepdims"] = int64_t(1);
  ir::Value* kept = b.node(n->op, n->inputs, attrs);
  return replaceValue(g, n->outputs[0], b.reshape(kept, n->outputs[0]->type.dims));
}

bool ruleDropExpand(ir::Graph& g, ir::Node* n, PassContext&) {
  if (!isPointwise(n) || isUnaryPointwise(n) || n->op == "PRelu") return false;
  bool changed = false;
  for (size_t i = 0; i < n->inputs.size(); i++) {
    ir::Node* e = producer(n->inputs[i], "Expand");
    if (!e) continue;
    std::vector<const ir::Value*> in(n->inputs.begin(), n->inputs.end());
    in[i] = e->inputs[0];
    if (!broadcastsTo(in, n->outputs[0]->type.dims)) continue;
    addOrigins(n, e);
    g.setInput(n, i, e->inputs[0]);
    changed = true;
  }
  return changed;
}

bool ruleSinkReshape(ir::Graph& g, ir::Node* n, PassContext& ctx) {
  bool unary = isUnaryPointwise(n), binary = isBinaryPointwise(n) && n->op != "PRelu";
  if ((!unary && !binary) || n->outputs.size() != 1) return false;
  const ir::Dims& out = n->outputs[0]->type.dims;
  // The operand whose Reshape sinks must have the shape of the result, and nobody else may want it reshaped.
  for (size_t i = 0; i < (unary ? 1u : 2u); i++) {
    ir::Node* r = producer(n->inputs[i], "Reshape");
    if (!r || g.isOutput(r->outputs[0]) || !sameDims(r->outputs[0]->type.dims, out)) continue;
    const auto& users = r->outputs[0]->users;
    if (std::any_of(users.begin(), users.end(), [&](const ir::Node* u) { return u != n; })) continue;
    ir::Value* x = r->inputs[0];
    if (x->constant) continue;
    std::vector<const ir::Node*> replaced = {n, r};
    std::vector<ir::Value*> inputs = n->inputs;
    inputs[i] = x;
    if (binary) {
      ir::Value* o = n->inputs[1 - i];
      ir::Node* r2 = producer(o, "Reshape");
      if (o == n->inputs[i]) {
        inputs[1 - i] = x;
      } else if (r2 && sameDims(r2->inputs[0]->type.dims, x->type.dims) && sameDims(r2->outputs[0]->type.dims, out)) {
        inputs[1 - i] = r2->inputs[0];
        replaced.push_back(r2);
      } else if (isScalarFor(o, x)) {
        // broadcasts to any shape
      } else if (o->constant && differsByOnes(x->type.dims, out)) {
        auto to = wideAxes(x->type.dims), from = wideAxes(out);
        std::vector<int64_t> shape(x->type.rank(), 1);
        bool fits = o->type.rank() <= out.size();
        for (size_t k = 0; fits && k < to.size(); k++) {
          size_t lead = out.size() - o->type.rank();
          if (from[k] >= lead) shape[to[k]] = o->constant->shape()[from[k] - lead];
        }
        if (!fits || ir::elementCount(shape) != o->constant->size()) continue;
        Builder b(g, n, {n});
        inputs[1 - i] = b.constant(o->constant->reshaped(shape));
      } else {
        continue;
      }
    }
    if (!ctx.get(knob::graph_sink_reshape, *r)) return false;
    Builder b(g, n, {n});
    ir::Value* y = b.node(n->op, inputs, n->attrs, n->domain);
    Builder after(g, n, replaced);
    return replaceValue(g, n->outputs[0], after.reshape(y, out));
  }
  return false;
}

}  // namespace rutter::passes
