#include "codegen/alternatives.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/bytes.h"
#include "base/error.h"

namespace rutter::codegen {
namespace {

/// The knob that names a tactic for this kind of problem, if there is one.
const knobs::EnumKnob* tacticKnob(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::kConv:
      return &knob::conv_tactic;
    case ProblemKind::kDeconv:
      return &knob::conv_transposed;
    case ProblemKind::kGemm:
      return &knob::gemm_tactic;
    case ProblemKind::kLoop:
      return &knob::pointwise_tactic;
    default:
      return nullptr;
  }
}

// What decides most about a kernel's speed: its register tile, or the axis and number of its vectors.
constexpr knobs::KnobId kMain[] = {
    knob::gemm_tile_m.id,      knob::gemm_tile_n.id,     knob::conv_tile_m.id,   knob::conv_tile_n.id,
    knob::conv_dw_tile.id,     knob::conv_dw_vectors.id, knob::reduce_vector.id, knob::reduce_chains.id,
    knob::row_vector.id,       knob::row_unroll.id,      knob::pool_vector.id,   knob::pool_unroll.id,
    knob::pointwise_unroll.id,
};
bool isMain(knobs::KnobId k) {
  return std::find(std::begin(kMain), std::end(kMain), k) != std::end(kMain);
}

// An alternative must be faster by this much: less is within what placement and noise do.
constexpr double kClearly = 0.97;

std::vector<std::string> otherValues(const knobs::KnobInfo& k) {
  std::vector<std::string> out;
  for (const std::string& v : k.values)
    if (v != "auto" && k.numericsOf(v) != knobs::Numerics::kLossy) out.push_back(v);
  return out;
}

using Variation = std::vector<std::pair<knobs::KnobId, std::string>>;

bool holds(const Variation& v, knobs::KnobId k) {
  return std::any_of(v.begin(), v.end(), [&](const auto& x) { return x.first == k; });
}
// The route with these knobs set for the one layer that is looked at.
knobs::Route with(const LayerRoute& r, const Variation& o) {
  std::vector<knobs::Assignment> all;
  for (const knobs::Assignment& a : r.route.assignments())
    if (!holds(o, a.knob)) all.push_back(a);
  for (const auto& [k, v] : o) all.push_back({k, v, "", 0});
  return knobs::Route(std::move(all), r.route.registry());
}

struct Search {
  const LoweredGroup& l;
  const LayerRoute& r;
  const MachineProfile& machine;
  const std::function<void(Choice&)>& complete;
  std::set<std::string> seen;  // configurations

  // Nothing if it comes to what was seen already, for instance because the tactic cannot take a value.
  std::optional<Choice> vary(const Choice& from, Variation v) {
    const knobs::Route route = with(r, v);
    knobs::LayerKnobs k(route, r.origins, r.anchor);
    Choice c;
    c.tactic = from.tactic;
    c.config = c.tactic->configure(l.problem, machine, k);
    c.config.tactic = c.tactic->name();
    if (!seen.insert(c.config.serialize()).second) return std::nullopt;
    c.cost = c.tactic->cost(l.problem, c.config, machine);
    c.reads = k.reads();
    c.reads.insert(from.reads.begin(), from.reads.end());
    c.refusals = from.refusals;
    c.variation = std::move(v);
    complete(c);
    return c;
  }
  // Knobs that a choice read and that may be varied: the route leaves them to the heuristics.
  std::vector<const knobs::KnobInfo*> free(const Choice& c, bool main) const {
    knobs::LayerKnobs k(r.route, r.origins, r.anchor);
    std::vector<const knobs::KnobInfo*> out;
    for (knobs::KnobId id : c.reads) {
      const knobs::KnobInfo& info = r.route.registry()[id];
      const bool tactic = info.area != "codegen" && info.area != "threads" && info.domain != knobs::Domain::kRange;
      const bool named = tacticKnob(l.problem.kind) && tacticKnob(l.problem.kind)->id == id;
      if (tactic && !named && isMain(id) == main && info.defaultValue == "auto" && !k.explicitly(id))
        out.push_back(&info);
    }
    return out;
  }
  // Every combination of the main knobs' values.
  void combine(const Choice& from, std::vector<Choice>& out) {
    std::vector<Variation> all = {{}};
    for (const knobs::KnobInfo* k : free(from, true)) {
      const size_t n = all.size();
      for (size_t i = 0; i < n; i++)
        for (const std::string& v : otherValues(*k)) {
          all.push_back(all[i]);
          all.back().emplace_back(k->id, v);
        }
    }
    for (Variation& v : all)
      if (!v.empty())
        if (auto c = vary(from, std::move(v))) out.push_back(std::move(*c));
  }
};

}  // namespace

std::vector<Choice> choices(const Problem& p, const LayerRoute& r, const Target& target, const MachineProfile& machine,
                            std::vector<std::string>& notes) {
  knobs::LayerKnobs k(r.route, r.origins, r.anchor);
  const knobs::EnumKnob* named = tacticKnob(p.kind);
  const std::string_view wish = named ? k.get(*named) : "auto";
  std::string wishReason = "no such tactic for this problem";
  std::vector<Choice> out;
  for (const Tactic* t : target.tactics()) {
    if (t->kind() != p.kind) continue;
    if (auto why = t->refuses(p, machine)) {
      notes.push_back(fmt::format("tactic {}: {}", t->name(), *why));
      if (t->name() == wish) wishReason = *why;
      continue;
    }
    knobs::LayerKnobs mine = k;
    Choice c;
    c.tactic = t;
    c.config = t->configure(p, machine, mine);
    c.config.tactic = t->name();
    c.cost = t->cost(p, c.config, machine);
    c.reads = mine.reads();
    c.refusals = mine.refusals();
    const bool granted = t->name() == wish;
    if (granted) out.clear();
    out.push_back(std::move(c));
    if (granted) return out;
  }
  if (wish != "auto") {
    k.refuse(*named, wishReason);
    for (Choice& c : out) c.refusals.insert(c.refusals.begin(), k.refusals().begin(), k.refusals().end());
  }
  return out;
}

Choice fastest(const LoweredGroup& l, const LayerRoute& r, std::vector<Choice> all, size_t best,
               const MachineProfile& machine, TacticTimer& timer, const std::function<void(Choice&)>& complete) {
  Search s{l, r, machine, complete, {}};
  const Tactic* const usual = all[best].tactic;
  const knobs::EnumKnob* named = tacticKnob(l.problem.kind);
  auto asRoute = [&](Choice c) {
    if (named && c.tactic != usual) c.variation.emplace_back(named->id, std::string(c.tactic->name()));
    return c;
  };
  timer.nextLayer(r.origins);
  for (Choice& c : all) {
    s.seen.insert(c.config.serialize());
    complete(c);
  }
  auto byCost = [](const Choice& a, const Choice& b) { return a.cost < b.cost; };
  std::swap(all[0], all[best]);
  std::stable_sort(all.begin() + 1, all.end(), byCost);
  std::vector<Choice> more;  // beside every tactic as it would be
  for (const Choice& c : all) s.combine(c, more);
  std::stable_sort(more.begin(), more.end(), byCost);
  all.insert(all.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));

  const size_t budget = size_t(std::max(1, timer.mostTactics()));
  const size_t first = std::min(all.size(), timer.level() >= 5 ? (budget + 1) / 2 : budget);
  const double standard = timer.seconds(l, all[0]);
  size_t winner = 0;
  double time = standard;
  for (size_t i = 1; i < first; i++)
    if (const double t = timer.seconds(l, all[i]); t < time && t < standard * kClearly) winner = i, time = t;
  Choice now = std::move(all[winner]);
  if (timer.level() < 5) return asRoute(std::move(now));

  // What is left of the budget goes to the fastest one's further choices, one knob after the other.
  size_t left = budget - first;
  for (const knobs::KnobInfo* k : s.free(now, false)) {
    std::optional<Choice> better;
    for (const std::string& value : otherValues(*k)) {
      if (left == 0) break;
      Variation v = now.variation;
      v.emplace_back(k->id, value);
      std::optional<Choice> c = s.vary(now, std::move(v));
      if (!c) continue;
      left--;
      if (const double t = timer.seconds(l, *c); t < time * kClearly) better = std::move(c), time = t;
    }
    if (better) now = std::move(*better);
  }
  return asRoute(std::move(now));
}

Hash128 kernelKey(const Problem& p, const Config& c, const MachineProfile& m, const Target& target) {
  ByteWriter w;
  w.put(p.serialize());
  w.put(c.serialize());
  w.put(m.isa);
  w.put(m.features);
  w.put(m.vectorBytes);
  w.put(m.registers);
  w.put(target.emitterId());
  return hashBytes(w.bytes());
}

Hash128 timingKey(const Hash128& kernel, const Lowering& l, const MachineProfile& m) {
  ByteWriter w;
  w.put(kernel.lo);
  w.put(kernel.hi);
  w.put(l.serialize());
  w.put(m.serialize());
  return hashBytes(w.bytes());
}

}  // namespace rutter::codegen
