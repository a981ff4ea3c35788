#pragma once
// A graph with symbols, for one particular shape: what the oracle can run.
#include <cstdint>
#include <map>
#include <string>

#include "base/error.h"
#include "ir/graph.h"
#include "passes/rewrite.h"

namespace rutter::test {

/// Gives every symbol a value: types, symbolic contents and constraints become constants, rutter.ShapeValue nodes
/// become Constant values. UserError if a constraint does not hold.
inline void bindSymbols(ir::Graph& g, const std::map<std::string, int64_t>& symbols) {
  for (const ir::Constraint& c : g.constraints) {
    int64_t a = c.a.evaluate(symbols), b = c.b.evaluate(symbols);
    bool ok = c.kind == ir::Constraint::Kind::kEqual       ? a == b
              : c.kind == ir::Constraint::Kind::kDivisible ? b != 0 && a % b == 0
                                                           : a >= b;
    if (!ok) throw UserError("{}: {} = {} and {} = {} break it", c.where, c.a.text(), a, c.b.text(), b);
  }
  g.constraints.clear();
  for (auto& v : g.values()) {
    for (ir::Dim& d : v->type.dims) d = d.evaluate(symbols);
    if (v->symbolic)
      for (ir::Dim& d : *v->symbolic) d = d.evaluate(symbols);
  }
  for (ir::Node* n : passes::allNodes(g)) {
    if (n->domain != "rutter" || n->op != "ShapeValue") continue;
    ir::Value* out = n->outputs[0];
    auto contents = ir::constants(*out->symbolic);
    ir::Tensor t(out->type.dtype, *ir::constants(out->type.dims));
    for (int64_t i = 0; i < t.size(); i++) t.setInt(i, (*contents)[i]);
    ir::Value* c = g.makeConstant(out->name, std::move(t));
    g.replaceUses(out, c);
    g.eraseNode(n);
  }
  g.symbols.clear();
}

}  // namespace rutter::test
