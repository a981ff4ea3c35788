#include "codegen/in_place.h"

#include <set>
#include <unordered_map>

namespace rutter::codegen {
namespace {
using ir::Dim;
using ir::Value;

Dim byteSize(const Value* v) {
  return v->type.size() * Dim(ir::bitsOf(v->type.dtype) / 8);
}

class InPlace {
 public:
  explicit InPlace(Decision& d) : d_(d) {
    for (const Value* v : d.graph->top().inputs) outside_.insert(v);
    for (const Value* v : d.graph->top().outputs) outside_.insert(v);
    for (size_t at = 0; at < d.layers.size(); at++) {
      const Layer& l = d.layers[at];
      auto touch = [&](const Value* root) {
        first_.try_emplace(root, at);
        last_[root] = at;
      };
      for (const auto& s : l.lowered.operands) touch(s.root);
      if (l.tactic) continue;
      for (const ir::Node* n : l.group.all())
        for (const auto* list : {&n->inputs, &n->outputs})
          for (const Value* v : *list)
            if (v) touch(d.storage->of(v).root);
    }
  }
  void run() {
    for (size_t at = 0; at < d_.layers.size(); at++) {
      Layer& l = d_.layers[at];
      if (!l.tactic || !l.mayOverwrite) continue;
      const Problem& p = l.lowered.problem;
      for (int o = p.firstOutput(); o < int(p.operands.size()); o++) {
        const auto& out = l.lowered.operands[size_t(o)];
        if (out.value == out.root && !outside_.count(out.root) && first_.at(out.root) == at) output(l, at, o);
      }
    }
  }

 private:
  // A loop may write over an input that dies here if each point reads exactly the element that it writes.
  void output(Layer& l, size_t at, int o) {
    const Problem& p = l.lowered.problem;
    const Value* out = l.lowered.operands[size_t(o)].root;
    for (const auto& [done, from] : l.overwrites)
      if (done == out) return;
    for (int i = 0; i < p.firstOutput(); i++) {
      const auto& s = l.lowered.operands[size_t(i)];
      if (s.root->constant || outside_.count(s.root) || last_.at(s.root) != at || taken_.count(s.root)) continue;
      if (s.value != s.root || !s.offset.is(0) || !p.operands[size_t(i)].lo.empty()) continue;
      if (ir::bitsOf(s.root->type.dtype) != ir::bitsOf(out->type.dtype) || !(byteSize(s.root) == byteSize(out)))
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
  std::unordered_map<const Value*, size_t> first_, last_;  // layers that touch it
};
}  // namespace

void decideInPlace(Decision& d) {
  InPlace(d).run();
}

}  // namespace rutter::codegen
