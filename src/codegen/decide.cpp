#include "codegen/decide.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/bytes.h"
#include "base/error.h"
#include "codegen/in_place.h"
#include "codegen/pointwise.h"
#include "runtime/attrs.h"

namespace rutter::codegen {
namespace {
using ir::Node;
using ir::Value;

/// Schedule of a layer's launches: the tactic's own choice, unless a knob says otherwise.
void scheduleLaunches(const Problem& p, const knobs::Route& route, const Group& group, Choice& c) {
  knobs::LayerKnobs k(route, group.origins, group.anchorOrigin);
  auto schedule = k.get(knob::threads_schedule);
  auto grain = k.get(knob::threads_grain), limit = k.get(knob::threads_limit);
  // Two threads meet in about 2 us; below this work the second one brings less than the meeting costs.
  double serialBelow = double(k.getOr(knob::threads_serial_below, 16384));
  bool serial = p.flops() + p.bytes() < serialBelow;
  for (LaunchSpec& l : c.lowering.launches) {
    if (schedule != "auto") l.schedule = schedule == "static" ? 0 : schedule == "interleaved" ? 1 : 2;
    if (grain) l.grain = *grain;
    if (limit) l.maxThreads = l.maxThreads ? std::min(l.maxThreads, int(*limit)) : int(*limit);
    if (serial) l.maxThreads = 1;
  }
  c.reads.insert(k.reads().begin(), k.reads().end());
}

/// Chooses and configures; false if no tactic takes the problem (reasons are in layer.refusals).
bool choose(Layer& layer, const knobs::Route& route, const Target& target, const MachineProfile& machine,
            TacticTimer* timer) {
  const Problem& p = layer.lowered.problem;
  const LayerRoute r{route, layer.group.origins, layer.group.anchorOrigin};
  std::vector<Choice> all = choices(p, r, target, machine, layer.refusals);
  if (all.empty()) return false;
  const size_t best =
      size_t(std::min_element(all.begin(), all.end(), [](auto& a, auto& b) { return a.cost < b.cost; }) - all.begin());
  auto complete = [&](Choice& c) {
    c.lowering = c.tactic->lower(p, c.config);
    scheduleLaunches(p, route, layer.group, c);
  };
  Choice c;
  if (timer) {
    c = fastest(layer.lowered, r, std::move(all), best, machine, *timer, complete);
  } else {
    c = std::move(all[best]);
    complete(c);
  }
  layer.tactic = c.tactic;
  layer.config = std::move(c.config);
  layer.lowering = std::move(c.lowering);
  layer.reads = std::move(c.reads);
  const auto& registry = knobs::Registry::builtin();
  for (const auto& [k, v] : c.variation)
    layer.timed.push_back({k, v, layer.group.origins.empty() ? "" : layer.group.origins.front(), 0});
  if (p.kind == ProblemKind::kLoop && layer.tactic->allowsInPlace()) {
    knobs::LayerKnobs k(route, layer.group.origins, layer.group.anchorOrigin);
    layer.mayOverwrite = *k.get(knob::memory_in_place);
    layer.reads.insert(k.reads().begin(), k.reads().end());
  }
  for (const knobs::Refusal& f : c.refusals)
    layer.refusals.push_back(fmt::format("{}={}: {}", registry[f.knob].name, f.value, f.reason));
  layer.refused = std::move(c.refusals);
  return true;
}

bool referenceGroup(const Group& g) {
  return g.kind == GroupKind::kReference;
}

// Reference nodes read and write dense row-major memory: views and other layouts get a copy in front.
void densifyReferenceOperands(ir::Graph& g, const std::set<const Node*>& reference) {
  for (auto& n : g.top().nodes) {
    if (!reference.count(n.get())) continue;
    for (size_t i = 0; i < n->inputs.size(); i++) {
      Value* v = n->inputs[i];
      if (!v || v->constant) continue;
      const Node* from = v->producer;  // null: an input of the model, dense in the layout that the caller asked for
      if (!from && v->type.layout.isRowMajor()) continue;
      bool copied = from && from->op == "LayoutCast" && v->type.layout.isRowMajor();
      if (copied || (from && reference.count(from))) continue;
      if (from && !isViewOp(*from) && v->type.layout.isRowMajor() && v->users.size() == 1) continue;
      ir::Type t = v->type;
      t.layout = {};
      Value* c = g.makeValue(v->name + ".dense", t);
      Node* copy = g.makeNode(g.top(), "LayoutCast", {v}, {c}, n.get());
      copy->domain = "rutter";
      copy->name = c->name;
      copy->origins = from ? from->origins : n->origins;
      g.setInput(n.get(), i, c);
    }
    for (Value* v : n->outputs) {
      if (!v) continue;
      if (g.isOutput(v) && !v->type.layout.isRowMajor())
        throw UserError("output '{}' can only be row-major: it is made by {} ({}), which has no kernel", v->name,
                        n->name, n->op);
      v->type.layout = {};
    }
  }
}
}  // namespace

Decision decide(std::unique_ptr<ir::Graph> graph, const knobs::Route& route, const Target& target,
                const MachineProfile& machine, TacticTimer* timer) {
  Decision d;
  d.graph = std::move(graph);
  std::set<const Node*> reference;
  std::set<const Node*> alone;  // anchors whose kernels take them, but not what was fused to them
  std::map<const Node*, std::string> reasons;
  for (auto& n : d.graph->top().nodes)
    if (!isCompilable(*n)) {
      reference.insert(n.get());
      reasons[n.get()] = "no kernel for this operator or its element types";
    }
  // A refusal found late turns a node into a reference node, which changes what may share memory: decide again.
  const size_t most = 2 * d.graph->top().nodes.size() + 8;
  for (size_t round = 0;; round++) {
    RUTTER_CHECK(round <= most, "deciding does not settle");
    densifyReferenceOperands(*d.graph, reference);
    d.layers.clear();
    d.storage = std::make_unique<Storage>(*d.graph, route, reference);
    bool changed = false;
    for (Group& g : formGroups(*d.graph, *d.storage, route, reference, alone)) {
      Layer layer;
      layer.group = std::move(g);
      if (!referenceGroup(layer.group)) {
        Node* culprit = layer.group.anchor ? layer.group.anchor : layer.group.nodes.front();
        try {
          layer.lowered = lowerGroup(*d.graph, layer.group, *d.storage);
          if (!choose(layer, route, target, machine, timer)) {
            std::string why;
            for (auto& r : layer.refusals) why += (why.empty() ? "" : "; ") + r;
            if (layer.group.anchor && layer.group.all().size() > 1 && alone.insert(culprit).second) {
              changed = true;
            } else {
              for (Node* n : layer.group.anchor ? std::vector<Node*>{culprit} : layer.group.all()) {
                reference.insert(n);
                reasons[n] = why.empty() ? "no tactic for this problem" : why;
              }
              changed = true;
            }
          }
        } catch (const LowerRefusal& r) {
          reference.insert(culprit);
          reasons[culprit] = r.reason;
          changed = true;
        }
      } else {
        layer.refusals.push_back("reference: " + reasons[layer.group.nodes.front()]);
      }
      d.layers.push_back(std::move(layer));
    }
    if (!changed) break;
  }

  findLifetimes(d);
  decideInPlace(d);
  ByteWriter all;
  all.put(machine.serialize());
  const auto& registry = knobs::Registry::builtin();
  auto placementText = [&](const Value* v) {
    const Placement& p = d.storage->of(v);
    std::string s = fmt::format("{}@{}", p.root->name, p.offset.text());
    for (const ir::Dim& x : p.strides) s += "," + x.text();
    return s;
  };
  for (Layer& l : d.layers) {
    l.reads.insert(l.group.reads.begin(), l.group.reads.end());
    for (Node* n : l.group.all())
      if (auto it = d.storage->reads().find(n->name); it != d.storage->reads().end())
        l.reads.insert(it->second.begin(), it->second.end());
    for (knobs::KnobId id : l.reads) l.knobsRead.push_back(registry[id].name);
    if (l.tactic) {
      l.kernelKey = kernelKey(l.lowered.problem, l.config, machine, target);
      all.put(l.kernelKey.lo);
      all.put(l.kernelKey.hi);
      all.put(l.lowering.serialize());
      all.put(uint32_t(l.overwrites.size()));
      for (const auto& [out, from] : l.overwrites) all.put(out->name), all.put(from->name);
      for (size_t i = 0; i < l.lowered.operands.size(); i++) {
        const auto& s = l.lowered.operands[i];
        if (s.root->constant) {
          auto h = s.root->constant->contentHash();
          all.put(h.lo);
          all.put(s.offset.text());
        } else {
          all.put(fmt::format("{}@{}", s.root->name, s.offset.text()));
        }
      }
      for (const ir::Dim& p : l.lowered.params) all.put(p.text());
    } else {
      const Node* n = l.group.nodes.front();
      all.put(n->name);
      all.put(n->op);
      all.put(n->domain);
      all.put(runtime::encodeAttrs(n->attrs));
      for (const Value* v : n->inputs) {
        all.put(v ? placementText(v) : "");
        if (v) all.put(v->type.dtype);
        if (!v || !v->constant || v->type.dtype == ir::DType::kString) continue;
        const Hash128 h = v->constant->contentHash();
        all.put(h.lo);
        all.put(h.hi);
      }
      for (const Value* v : n->outputs) all.put(v ? placementText(v) : "");
    }
  }
  d.hash = hashBytes(all.bytes());
  return d;
}

}  // namespace rutter::codegen
