#include "passes/pass.h"

#include <fmt/format.h>

#include "base/error.h"
#include "passes/check.h"

namespace rutter::passes {

void PassContext::note(const knobs::LayerKnobs& k) {
  if (k.origins().empty()) reads[""].insert(k.reads().begin(), k.reads().end());
  for (const std::string& o : k.origins()) reads[o].insert(k.reads().begin(), k.reads().end());
  for (const knobs::Refusal& r : k.refusals()) refusals.push_back({k.origins(), r});
}
bool PassContext::get(knobs::BoolKnob k, const ir::Node& n, bool fallback) {
  knobs::LayerKnobs l = layer(n);
  bool v = l.getOr(k, fallback);
  note(l);
  return v;
}
void PassContext::refuse(knobs::BoolKnob k, const ir::Node& n, const std::string& reason) {
  knobs::LayerKnobs l = layer(n);
  if (!l.explicitly(k) || !l.getOr(k, false)) return;
  l.refuse(k, reason);
  note(l);
}
std::string PassContext::get(knobs::EnumKnob k, const ir::Node& n) {
  knobs::LayerKnobs l = layer(n);
  std::string v(l.get(k));
  note(l);
  return v;
}
bool PassContext::get(knobs::BoolKnob k, bool fallback) {
  auto l = knobs::LayerKnobs::modelWide(route);
  bool v = l.getOr(k, fallback);
  note(l);
  return v;
}
int64_t PassContext::get(knobs::IntKnob k, int64_t fallback) {
  auto l = knobs::LayerKnobs::modelWide(route);
  int64_t v = l.getOr(k, fallback);
  note(l);
  return v;
}
std::string PassContext::get(knobs::EnumKnob k) {
  auto l = knobs::LayerKnobs::modelWide(route);
  std::string v(l.get(k));
  note(l);
  return v;
}

void runPasses(ir::Graph& g, PassContext& ctx, const std::vector<AnyPass>& passes) {
  if (ctx.dump) ctx.dump("input", g);
  for (const AnyPass& p : passes) {
    p.apply(g, ctx);
    g.removeDead();
    g.removeDeadValues();
    if (ctx.verify) {
      try {
        checkGraph(g);
      } catch (const InternalError& e) {
        throw InternalError(fmt::format("after pass {}: {}", p.name, e.what()));
      }
    }
    if (ctx.dump) ctx.dump(p.name, g);
  }
}

}  // namespace rutter::passes
