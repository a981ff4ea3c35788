#include "codegen/in_place.h"

#include <set>

namespace rutter::codegen {
namespace {
using ir::Value;

class InPlace {
 public:
  explicit InPlace(Decision& d) : d_(d) {
    for (const Value* v : d.graph->top().inputs) outside_.insert(v);
    for (const Value* v : d.graph->top().outputs) outside_.insert(v);
  }
  void run() {
    for (int at = 0; at < int(d_.layers.size()); at++) {
      Layer& l = d_.layers[size_t(at)];
      if (!l.tactic || !l.mayOverwrite) continue;
      const Problem& p = l.lowered.problem;
      for (int o = p.firstOutput(); o < int(p.operands.size()); o++) {
        const auto& out = l.lowered.operands[size_t(o)];
        if (out.value == out.root && !outside_.count(out.root) && d_.lifetimes.at(out.root).first == at)
          output(l, at, o);
      }
    }
  }

 private:
  // A loop may write over an input that dies here if each point reads exactly the element that it writes.
  void output(Layer& l, int at, int o) {
    const Problem& p = l.lowered.problem;
    const Value* out = l.lowered.operands[size_t(o)].root;
    for (const auto& [done, from] : l.overwrites)
      if (done == out) return;
    for (int i = 0; i < p.firstOutput(); i++) {
      const auto& s = l.lowered.operands[size_t(i)];
      if (s.root->constant || outside_.count(s.root) || d_.lifetimes.at(s.root).last != at || taken_.count(s.root))
        continue;
      if (s.value != s.root || !s.offset.is(0) || !p.operands[size_t(i)].lo.empty()) continue;
      if (ir::bitsOf(s.root->type.dtype) != ir::bitsOf(out->type.dtype) ||
          !(s.root->type.byteSize() == out->type.byteSize()))
        continue;
      if (p.operands[size_t(i)].strides != p.operands[size_t(o)].strides) continue;
      bool once = true;  // the same memory read with other strides would see overwritten elements
      for (int j = 0; j < p.firstOutput(); j++) once &= j == i || l.lowered.operands[size_t(j)].root != s.root;
      if (!once) continue;
      taken_.insert(s.root);
      l.overwrites.emplace_back(out, s.root);
      return;
    }
  }

  Decision& d_;
  std::set<const Value*> outside_;  // the caller's memory
  std::set<const Value*> taken_;
};
}  // namespace

void findLifetimes(Decision& d) {
  for (int at = 0; at < int(d.layers.size()); at++) {
    const Layer& l = d.layers[size_t(at)];
    auto touch = [&](const Value* root) { d.lifetimes.try_emplace(root, Lifetime{at, at}).first->second.last = at; };
    for (const auto& s : l.lowered.operands) touch(s.root);
    if (l.tactic) continue;
    for (const ir::Node* n : l.group.all())
      for (const auto* list : {&n->inputs, &n->outputs})
        for (const Value* v : *list)
          if (v) touch(d.storage->of(v).root);
  }
}

void decideInPlace(Decision& d) {
  InPlace(d).run();
}

}  // namespace rutter::codegen
