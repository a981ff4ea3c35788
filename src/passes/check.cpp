#include "passes/check.h"

#include <algorithm>

#include "base/error.h"
#include "ops/op.h"

namespace rutter::passes {
namespace {
void checkType(const ir::Value* v) {
  RUTTER_CHECK(v->type.known, "value {} has no type", v->name);
  const auto& order = v->type.layout.order;
  if (order.empty()) return;
  std::vector<uint8_t> sorted(order);
  std::sort(sorted.begin(), sorted.end());
  for (size_t i = 0; i < sorted.size(); i++)
    RUTTER_CHECK(sorted.size() == v->type.rank() && sorted[i] == i, "value {}: layout {} of rank {}", v->name,
                 v->type.layout.text(), v->type.rank());
}
}  // namespace

void checkGraph(const ir::Graph& g) {
  g.verify();
  for (const ir::Value* v : g.top().inputs) checkType(v);
  for (const auto& n : g.top().nodes) {
    RUTTER_CHECK(!n->origins.empty(), "node {} ({}) has lost its origins", n->name, n->op);
    for (const ir::Value* v : n->outputs)
      if (v) checkType(v);
  }
  // Shape rules write into the node: run them on a copy and compare.
  auto copy = g.clone();
  auto a = g.top().nodes.begin();
  for (auto& n : copy->top().nodes) {
    if (n->regions.empty()) ops::inferNode(*copy, *n);
    for (size_t i = 0; i < n->outputs.size(); i++) {
      if (!n->outputs[i]) continue;
      const ir::Type &inferred = n->outputs[i]->type, &given = (*a)->outputs[i]->type;
      RUTTER_CHECK(inferred.dtype == given.dtype && inferred.rank() == given.rank(),
                   "{} ({}): output {} is {} but inferred {}", n->name, n->op, n->outputs[i]->name, given.text(),
                   inferred.text());
      for (size_t k = 0; k < given.rank(); k++)
        RUTTER_CHECK(!(inferred.dims[k] - given.dims[k]).constant() || inferred.dims[k] == given.dims[k],
                     "{} ({}): output {} is {} but inferred {}", n->name, n->op, n->outputs[i]->name, given.text(),
                     inferred.text());
    }
    ++a;
  }
}

}  // namespace rutter::passes
