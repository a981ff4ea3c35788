#include "passes/rules.h"

#include "base/error.h"

namespace rutter::passes {

int applyRules(ir::Graph& g, PassContext& ctx, std::initializer_list<Rule> rules) {
  int fired = 0;
  for (int sweep = 0;; sweep++) {
    RUTTER_CHECK(sweep < 1000, "rewrite rules do not settle");
    int now = 0;
    for (ir::Node* n : allNodes(g))
      for (Rule rule : rules) {
        bool used = false;  // an earlier rule may have left the node without uses
        for (const ir::Value* v : n->outputs) used |= v && (!v->users.empty() || g.isOutput(v));
        if (!used) break;
        now += rule(g, n, ctx);
      }
    if (!now) return fired;
    fired += now;
    g.removeDead();
  }
}

}  // namespace rutter::passes
