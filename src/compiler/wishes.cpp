#include "compiler/wishes.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/assemble.h"

namespace rutter::compiler {
namespace {
using knobs::Assignment;
using knobs::KnobId;
using knobs::LayerKnobs;

struct Fate {
  int taken = 0, refused = 0;  // by so many readers
  std::string reason;          // of the first refusal
};
using Fates = std::map<const Assignment*, Fate>;

void readBy(Fates& fates, const LayerKnobs& k, KnobId id, const knobs::Refusal* refusal) {
  const Assignment* a = k.assignment(id);
  if (!a) return;
  Fate& f = fates[a];
  if (!refusal) {
    f.taken++;
    return;
  }
  if (!f.refused++) f.reason = refusal->reason;
}
}  // namespace

std::vector<std::string> lostWishes(const knobs::Route& route, const std::vector<std::string>& origins,
                                    const codegen::Decision& d, const passes::PassContext& passes) {
  Fates fates;
  for (const codegen::Layer& l : d.layers) {
    const LayerKnobs k(route, l.group.origins, l.group.anchorOrigin);
    for (KnobId id : l.reads) {
      auto it = std::find_if(l.refused.begin(), l.refused.end(), [&](const knobs::Refusal& r) { return r.knob == id; });
      readBy(fates, k, id, it == l.refused.end() ? nullptr : &*it);
    }
  }
  for (const auto& [origin, ids] : passes.reads) {
    const LayerKnobs k = origin.empty() ? LayerKnobs::modelWide(route) : LayerKnobs(route, {origin});
    for (KnobId id : ids) {
      auto it =
          std::find_if(passes.refusals.begin(), passes.refusals.end(), [&](const passes::PassContext::Refusal& r) {
            return r.refusal.knob == id &&
                   (origin.empty() ? r.origins.empty()
                                   : std::find(r.origins.begin(), r.origins.end(), origin) != r.origins.end());
          });
      readBy(fates, k, id, it == passes.refusals.end() ? nullptr : &it->refusal);
    }
  }
  for (KnobId id : modelWideKnobs()) readBy(fates, LayerKnobs::modelWide(route), id, nullptr);

  std::vector<std::string> lost;
  const std::vector<knobs::UnmatchedScope> nowhere = knobs::unmatchedScopes(route, origins);
  for (const Assignment& a : route.assignments()) {
    if (auto u = std::find_if(nowhere.begin(), nowhere.end(), [&](auto& s) { return s.assignment == a; });
        u != nowhere.end()) {
      lost.push_back(knobs::describe(*u, route.registry()));
      continue;
    }
    if (a.value == "auto") continue;
    const auto it = fates.find(&a);
    if (it != fates.end() && it->second.taken) continue;
    const std::string text = knobs::printAssignment(a, route.registry());
    if (it != fates.end())
      lost.push_back(fmt::format("{} has no effect: {} refused it: {}", text,
                                 it->second.refused == 1
                                     ? "the only layer that it is for"
                                     : fmt::format("all {} layers that it is for", it->second.refused),
                                 it->second.reason));
    else if (a.scope.empty())
      lost.push_back(
          fmt::format("no layer of this model reads {}: the assignment has no effect", route.registry()[a.knob].name));
    else {
      const auto& all = route.assignments();
      const bool rival = std::any_of(all.begin(), all.end(), [&](auto& o) { return &o != &a && o.knob == a.knob; });
      lost.push_back(fmt::format("{} has no effect: no layer in its scope reads {}{}", text,
                                 route.registry()[a.knob].name, rival ? ", or another assignment comes first" : ""));
    }
  }
  return lost;
}

}  // namespace rutter::compiler
