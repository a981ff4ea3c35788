#include "knobs/resolve.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace rutter::knobs {

LayerKnobs::LayerKnobs(const Route& route, std::vector<std::string> origins, size_t anchor)
    : route_(&route), origins_(std::move(origins)), anchor_(anchor) {
  RUTTER_CHECK(origins_.empty() || anchor_ < origins_.size(), "anchor {} of {} origins", anchor_, origins_.size());
}

const Assignment* LayerKnobs::resolve(KnobId k) const {
  const auto& all = route_->assignments();
  const Assignment* unscoped = nullptr;
  bool scopes = false;
  for (const auto& a : all)
    if (a.knob == k) {
      if (a.scope.empty())
        unscoped = &a;
      else
        scopes = true;
    }
  if (!scopes || origins_.empty()) return unscoped;
  auto lastFor = [&](const std::string& origin) {
    const Assignment* found = nullptr;
    for (const auto& a : all)
      if (a.knob == k && !a.scope.empty() && globMatch(a.scope, origin)) found = &a;
    return found;
  };
  if (auto* a = lastFor(origins_[anchor_])) return a;
  for (size_t i = origins_.size(); i-- > 0;)
    if (auto* a = lastFor(origins_[i])) return a;
  return unscoped;
}

const std::string& LayerKnobs::valueText(KnobId k) const {
  if (auto* a = resolve(k)) return a->value;
  return route_->registry()[k].defaultValue;
}

const std::string& LayerKnobs::read(KnobId k, Domain domain, Domain other) const {
  const auto& info = route_->registry()[k];
  RUTTER_CHECK(info.domain == domain || info.domain == other, "{} is no {}", info.name, toString(domain));
  reads_.insert(k);
  return valueText(k);
}

std::optional<int64_t> LayerKnobs::get(IntKnob k) const {
  const auto& text = read(k.id, Domain::kInts, Domain::kRange);
  if (text == "auto") return std::nullopt;
  int64_t v = 0;
  std::from_chars(text.data(), text.data() + text.size(), v);
  return v;
}

std::optional<bool> LayerKnobs::get(BoolKnob k) const {
  const auto& text = read(k.id, Domain::kBool, Domain::kBool);
  if (text == "auto") return std::nullopt;
  return text == "on";
}

std::string_view LayerKnobs::get(EnumKnob k) const {
  return read(k.id, Domain::kEnum, Domain::kEnum);
}

bool LayerKnobs::explicitly(KnobId k) const {
  auto* a = resolve(k);
  return a && a->value != "auto";
}

void LayerKnobs::refuse(KnobId k, std::string reason) {
  if (!explicitly(k)) return;
  reads_.insert(k);
  const auto& value = valueText(k);
  for (const auto& r : refusals_)
    if (r.knob == k && r.reason == reason) return;
  refusals_.push_back({k, value, std::move(reason)});
}

std::vector<UnmatchedScope> unmatchedScopes(const Route& route, std::span<const std::string> names) {
  std::vector<UnmatchedScope> out;
  for (const auto& a : route.assignments()) {
    if (a.scope.empty()) continue;
    if (std::any_of(names.begin(), names.end(), [&](const auto& n) { return globMatch(a.scope, n); })) continue;
    std::vector<std::string> closest = nearestNames(a.scope, names);
    for (std::string& n : closest) n = encodeScope(n);  // as it has to be written
    out.push_back({a, std::move(closest)});
  }
  return out;
}

std::string describe(const UnmatchedScope& s, const Registry& registry) {
  return fmt::format("the scope of '{}' (column {}) matches no layer{}", printAssignment(s.assignment, registry),
                     s.assignment.column,
                     s.closest.empty() ? "; the model has none" : "; closest: " + joinOr(s.closest));
}

}  // namespace rutter::knobs
