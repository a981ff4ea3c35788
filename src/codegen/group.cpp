#include "codegen/group.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>

#include "base/error.h"
#include "codegen/pointwise.h"

namespace rutter::codegen {
namespace {
using ir::Node;
using ir::Value;
using knobs::LayerKnobs;

enum class Family { kNone, kConv, kGemm, kReduce, kRow, kMove };
Family familyOf(const Node& n) {
  static const std::unordered_map<std::string, Family> t = {{"Conv", Family::kConv},
                                                            {"ConvTranspose", Family::kConv},
                                                            {"MatMul", Family::kGemm},
                                                            {"Gemm", Family::kGemm},
                                                            {"Softmax", Family::kRow},
                                                            {"LogSoftmax", Family::kRow},
                                                            {"LayerNormalization", Family::kRow},
                                                            {"RMSNormalization", Family::kRow},
                                                            {"MaxPool", Family::kMove},
                                                            {"AveragePool", Family::kMove},
                                                            {"Resize", Family::kMove},
                                                            {"Gather", Family::kMove},
                                                            {"Pad", Family::kMove},
                                                            {"Tile", Family::kMove}};
  auto it = t.find(n.op);
  if (it != t.end()) return it->second;
  if (n.op.rfind("Reduce", 0) == 0 || n.op.rfind("Global", 0) == 0 || n.op == "ArgMax" || n.op == "ArgMin")
    return Family::kReduce;
  return Family::kNone;
}

/// May `u` join a group whose result `v` it reads? Reads the knob that decides.
bool epilogueAllowed(Family f, const Node& u, const Value* v, const LayerKnobs& k) {
  const Value* other = nullptr;  // a further operand that is not a scalar constant
  for (const Value* x : u.inputs)
    if (x && x != v && !(x->constant && x->constant->size() == 1)) other = x;
  bool same = other && other->type.dims == u.outputs[0]->type.dims;
  switch (f) {
    case Family::kConv:
      return !other ? *k.get(knob::fuse_conv_activation)
             : same ? *k.get(knob::fuse_conv_residual)
                    : *k.get(knob::fuse_conv_bias);
    case Family::kGemm:
      return !other ? *k.get(knob::fuse_gemm_activation)
             : same ? *k.get(knob::fuse_gemm_residual)
                    : *k.get(knob::fuse_gemm_bias);
    case Family::kReduce:
      return *k.get(knob::fuse_reduce_epilogue);
    case Family::kRow:
      return *k.get(knob::fuse_row_epilogue);
    case Family::kMove:
      return *k.get(knob::fuse_pool_epilogue);
    default:
      return *k.get(knob::fuse_pointwise);
  }
}

class Former {
 public:
  Former(const ir::Graph& g, const Storage& s, const knobs::Route& r, const std::set<const Node*>& ref,
         const std::set<const Node*>& alone)
      : g_(g), storage_(s), route_(r), ref_(ref), alone_(alone) {
    int i = 0;
    for (auto& n : g.top().nodes) order_[n.get()] = i++;
  }
  std::vector<Group> run();

 private:
  bool plain(const Node* n) const { return isPointwise(*n) && isCompilable(*n) && !ref_.count(n); }
  bool escapes(const Value* v, const std::set<const Node*>& in) const {
    if (g_.isOutput(v)) return true;
    for (const Node* u : v->users)
      if (!in.count(u)) return true;
    return false;
  }
  /// Would a group of `in` plus `u` depend on itself through nodes outside?
  bool closesCycle(const std::set<const Node*>& in, const Node* u) const {
    std::vector<const Node*> stack;
    std::set<const Node*> seen;
    bool cycle = false;
    // A finished group runs as one: reaching one of its nodes is reaching the inputs of all.
    auto reach = [&](const Node* n, bool whole) {
      auto visitInputs = [&](const Node* m) {
        for (const Value* v : m->inputs) {
          if (!v || !v->producer) continue;
          if (in.count(v->producer)) {
            cycle |= m != u;
          } else if (seen.insert(v->producer).second) {
            stack.push_back(v->producer);
          }
        }
      };
      auto it = members_.find(n);
      if (whole && it != members_.end()) {
        for (const Node* m : *it->second) visitInputs(m);
      } else {
        visitInputs(n);
      }
    };
    reach(u, false);
    while (!stack.empty() && !cycle) {
      const Node* n = stack.back();
      stack.pop_back();
      reach(n, true);
    }
    return cycle;
  }
  void grow(Group& gr, std::set<const Node*>& in, Family f, int maxOutputs);
  void growPrologue(Group& gr, std::set<const Node*>& in);
  void finish(Group& gr, const std::set<const Node*>& in);

  const ir::Graph& g_;
  const Storage& storage_;
  const knobs::Route& route_;
  const std::set<const Node*>& ref_;
  const std::set<const Node*>& alone_;
  std::unordered_map<const Node*, int> order_;
  std::set<const Node*> taken_;
  std::unordered_map<const Node*, std::shared_ptr<std::vector<const Node*>>> members_;  ///< of finished groups
};

// Adds pointwise users while the space stays the same, keeping the largest set from which at most maxOutputs values
// escape.
void Former::grow(Group& gr, std::set<const Node*>& in, Family f, int maxOutputs) {
  Node* seed = gr.anchor ? gr.anchor : gr.nodes.front();
  LayerKnobs k(route_, seed->origins);
  int limit = int(*k.get(knob::fuse_max_nodes));
  if (!gr.anchor) maxOutputs = std::min<int>(maxOutputs, int(*k.get(knob::fuse_max_outputs)));
  const ir::Dims space = seed->outputs[0]->type.dims;
  std::vector<Node*> chain = gr.nodes, best = gr.nodes;
  std::set<const Node*> cur = in;
  std::set<std::pair<int, Node*>> frontier;
  auto addUsers = [&](const Node* n) {
    for (const Value* v : n->outputs)
      if (v)
        for (Node* u : v->users)
          if (!cur.count(u)) frontier.insert({order_.at(u), u});
  };
  for (const Node* n : cur) addUsers(n);
  while (!frontier.empty() && int(chain.size()) < limit) {
    Node* u = frontier.begin()->second;
    frontier.erase(frontier.begin());
    if (taken_.count(u) || cur.count(u) || !plain(u) || u->outputs.size() != 1 || !(u->outputs[0]->type.dims == space))
      continue;
    if (isCopy(*u) && f != Family::kNone) continue;  // an anchor writes its own layout best
    bool ok = true;
    const Value* through = nullptr;
    for (const Value* x : u->inputs)
      if (x && x->producer && cur.count(x->producer)) {
        through = x;
        ok &= x->type.dims == space;
      }
    if (!ok || !through) continue;
    // A node that fuses into a later convolution or GEMM of its own is left to it when this group is a plain loop.
    LayerKnobs at(route_, through->producer->origins);
    Family step = through->producer == gr.anchor || gr.anchor ? f : Family::kNone;
    bool allowed = epilogueAllowed(step, *u, through, at);
    gr.reads.insert(at.reads().begin(), at.reads().end());
    if (!allowed || closesCycle(cur, u)) continue;
    cur.insert(u);
    chain.push_back(u);
    addUsers(u);
    int out = 0;
    for (const Node* n : cur) out += escapes(n->outputs[0], cur);
    if (out <= maxOutputs) {
      best = chain;
      in = cur;
    }
  }
  gr.nodes = best;
  std::sort(gr.nodes.begin(), gr.nodes.end(), [&](Node* a, Node* b) { return order_.at(a) < order_.at(b); });
  gr.reads.insert(k.reads().begin(), k.reads().end());
}

// Pointwise producers whose only reader is this reduction or row, over the same space.
void Former::growPrologue(Group& gr, std::set<const Node*>& in) {
  Value* x = gr.anchor->inputs[0];
  std::vector<Node*> stack = {x->producer};
  const ir::Dims space = x->type.dims;
  while (!stack.empty()) {
    Node* n = stack.back();
    stack.pop_back();
    if (!n || in.count(n) || taken_.count(n) || !plain(n) || isCopy(*n) || n->outputs.size() != 1) continue;
    if (!(n->outputs[0]->type.dims == space) || escapes(n->outputs[0], in)) continue;
    LayerKnobs k(route_, n->origins);
    bool row = familyOf(*gr.anchor) == Family::kRow;
    bool allowed = *k.get(row ? knob::fuse_row_prologue : knob::fuse_reduce_prologue);
    gr.reads.insert(k.reads().begin(), k.reads().end());
    if (!allowed || closesCycle(in, n)) continue;
    in.insert(n);
    gr.prologue.push_back(n);
    for (Value* v : n->inputs)
      if (v) stack.push_back(v->producer);
  }
  std::sort(gr.prologue.begin(), gr.prologue.end(), [&](Node* a, Node* b) { return order_.at(a) < order_.at(b); });
}

void Former::finish(Group& gr, const std::set<const Node*>& in) {
  auto members = std::make_shared<std::vector<const Node*>>(in.begin(), in.end());
  for (Node* n : gr.all()) {
    taken_.insert(n);
    if (gr.kind == GroupKind::kCompute) members_[n] = members;
    if (gr.kind != GroupKind::kCopyPart)
      for (const Value* v : n->outputs)
        if (v && escapes(v, in)) gr.outputs.push_back(v);
    gr.type += (gr.type.empty() ? "" : "+") + n->op;
    if (n == gr.anchor) gr.anchorOrigin = gr.origins.size();
    for (const std::string& o : n->origins)
      if (std::find(gr.origins.begin(), gr.origins.end(), o) == gr.origins.end()) gr.origins.push_back(o);
  }
  Node* lead = gr.anchor ? gr.anchor : gr.nodes.front();
  gr.name = lead->name;
  if (gr.anchorOrigin >= gr.origins.size()) gr.anchorOrigin = 0;
}

std::vector<Group> Former::run() {
  std::vector<Group> groups;
  std::vector<Node*> nodes;
  for (auto& n : g_.top().nodes) nodes.push_back(n.get());
  auto single = [&](Node* n, GroupKind kind, size_t part) {
    Group gr;
    gr.kind = kind;
    gr.nodes = {n};
    gr.part = part;
    finish(gr, {n});
    if (kind == GroupKind::kCopyPart) {
      gr.name = fmt::format("{}:{}", n->name, part);
      gr.outputs = {n->outputs[0]};
    }
    groups.push_back(std::move(gr));
  };
  // Anchors first, so that a pointwise node goes to the kernel that computes its input; later anchors win residuals.
  for (auto it = nodes.rbegin(); it != nodes.rend(); ++it) {
    Node* n = *it;
    Family f = familyOf(*n);
    if (f == Family::kNone || storage_.isFree(n) || ref_.count(n) || !isCompilable(*n)) continue;
    Group gr;
    gr.anchor = n;
    std::set<const Node*> in = {n};
    bool fuse = !alone_.count(n);
    if (fuse && (f == Family::kReduce || f == Family::kRow)) growPrologue(gr, in);
    if (fuse && n->op != "Tile") grow(gr, in, f, 1);
    finish(gr, in);
    groups.push_back(std::move(gr));
  }
  for (Node* n : nodes) {
    if (taken_.count(n) || storage_.isFree(n)) continue;
    if (ref_.count(n) || !isCompilable(*n)) {
      single(n, GroupKind::kReference, 0);
    } else if (n->op == "Concat") {
      for (size_t i = 0; i < n->inputs.size(); i++)
        if (!storage_.isInPlace(n, i)) single(n, GroupKind::kCopyPart, i);
    } else if (isViewOp(*n)) {
      single(n, GroupKind::kCopy, 0);
    } else {
      RUTTER_CHECK(isPointwise(*n), "node {} ({}) has no kernel family", n->name, n->op);
      Group gr;
      gr.nodes = {n};
      std::set<const Node*> in = {n};
      grow(gr, in, Family::kNone, 4);
      finish(gr, in);
      groups.push_back(std::move(gr));
    }
  }
  // Execution order: a group is ready when the groups of its inputs have run. Free nodes pass readiness through.
  std::unordered_map<const Node*, std::vector<int>> groupsOf;
  for (int i = 0; i < int(groups.size()); i++)
    for (Node* n : groups[i].all()) groupsOf[n].push_back(i);
  std::vector<int> state(groups.size(), 0);
  std::vector<int> sequence;
  std::set<const Node*> visited;
  std::function<void(int)> visit;
  std::function<void(const Node*)> need = [&](const Node* n) {
    if (!n) return;
    auto it = groupsOf.find(n);
    if (it != groupsOf.end())
      for (int i : it->second) visit(i);
    // Free nodes, and Concats (whose in-place parts are written by other groups), depend on their inputs.
    if (it == groupsOf.end() || n->op == "Concat") {
      if (!visited.insert(n).second) return;
      for (const Value* v : n->inputs)
        if (v) need(v->producer);
    }
  };
  visit = [&](int i) {
    if (state[i] == 2) return;
    RUTTER_CHECK(state[i] == 0, "fusion made a cycle at {}", groups[i].name);
    state[i] = 1;
    Group& gr = groups[i];
    if (gr.kind == GroupKind::kCopyPart) {
      need(gr.nodes[0]->inputs[gr.part]->producer);
    } else {
      for (Node* n : gr.all())
        for (const Value* v : n->inputs)
          if (v && v->producer) {
            auto it = groupsOf.find(v->producer);
            bool own = it != groupsOf.end() && std::find(it->second.begin(), it->second.end(), i) != it->second.end();
            if (!own) need(v->producer);
          }
    }
    state[i] = 2;
    sequence.push_back(i);
  };
  for (Node* n : nodes) {
    auto it = groupsOf.find(n);
    if (it != groupsOf.end())
      for (int i : it->second) visit(i);
  }
  std::vector<Group> sorted;
  for (int i : sequence) sorted.push_back(std::move(groups[i]));
  return sorted;
}
}  // namespace

std::vector<Node*> Group::all() const {
  std::vector<Node*> v = prologue;
  if (anchor) v.push_back(anchor);
  v.insert(v.end(), nodes.begin(), nodes.end());
  return v;
}

std::vector<Group> formGroups(const ir::Graph& g, const Storage& storage, const knobs::Route& route,
                              const std::set<const Node*>& reference, const std::set<const Node*>& alone) {
  return Former(g, storage, route, reference, alone).run();
}

}  // namespace rutter::codegen
