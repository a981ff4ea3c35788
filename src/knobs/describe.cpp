// The knob database as documents: JSON for programs (spec section 6), Markdown for docs/knobs.md.
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "knobs/registry.h"

namespace rutter::knobs {
namespace {

nlohmann::ordered_json entry(const KnobInfo& k) {
  nlohmann::ordered_json e;
  e["option"] = k.name;
  e["allowed_values"] = k.allowedValues();
  e["default_value"] = k.defaultValue;
  e["help"] = k.help;
  e["domain"] = toString(k.domain);
  if (!k.bounded()) {
    e["min"] = k.min;
    e["max"] = k.max;
  }
  auto& n = e["numerics"] = nlohmann::ordered_json::object();
  if (!k.bounded()) n["int32_t"] = toString(k.numerics[0]);
  for (size_t i = 0; k.bounded() && i < k.values.size(); i++) n[k.values[i]] = toString(k.numerics[i]);
  e["target"] = toString(k.target);
  e["area"] = k.area;
  return e;
}

// "exact", or "reorders (f43, f63: lossy)".
std::string numericsText(const KnobInfo& k) {
  std::string out(toString(k.numerics[0])), rest;
  for (size_t i = 1; i < k.numerics.size(); i++)
    if (k.numerics[i] != k.numerics[0])
      rest += fmt::format("{}{}: {}", rest.empty() ? "" : ", ", k.values[i], toString(k.numerics[i]));
  return rest.empty() ? out : out + "; " + rest;
}

}  // namespace

std::string allBuildRoutesJson(const Registry& r, std::string_view pattern) {
  nlohmann::ordered_json doc;
  doc["tuner_version"] = kTunerVersion;
  auto& options = doc["tuner_options"] = nlohmann::ordered_json::array();
  if (pattern.empty()) {
    for (const auto& k : r.knobs()) options.push_back(entry(k));
  } else {
    for (const auto* k : r.select(pattern)) options.push_back(entry(*k));
    if (options.empty()) {
      auto dashed = pattern.starts_with('-') ? std::string(pattern) : "-" + std::string(pattern);
      throw UserError("no knob is named '{}'; nearest: {}; --helpBuildRoute without a name lists all", pattern,
                      joinOr(r.nearest(dashed)));
    }
  }
  return doc.dump(1);
}

std::string knobsMarkdown(const Registry& r, const std::unordered_map<std::string, std::string>& notes) {
  std::string out =
      "# Knobs\n\nGenerated from `src/knobs/*.def`; do not edit. A knob that is not set has its default; `auto` lets a "
      "heuristic decide for each layer.\nNumerics is what a value may do to results: nothing (`exact`), another order "
      "of the same operations (`reorders`), or anything else (`lossy`).\n";
  std::string area;
  for (const auto& k : r.knobs()) {
    if (k.area != area) {
      area = k.area;
      out += fmt::format("\n## {}\n\n| knob | values | default | numerics | target | effect |{}\n", area,
                         notes.empty() ? "" : " measured |");
      out += fmt::format("| --- | --- | --- | --- | --- | --- |{}\n", notes.empty() ? "" : " --- |");
    }
    out += fmt::format("| `{}` | {} | `{}` | {} | {} | {} |", k.name,
                       k.bounded() ? fmt::format("`{}`", fmt::join(k.values, "` `")) : k.domainText(), k.defaultValue,
                       numericsText(k), toString(k.target), k.help);
    if (!notes.empty()) {
      auto at = notes.find(k.name);
      out += fmt::format(" {} |", at == notes.end() ? "" : at->second);
    }
    out += "\n";
  }
  return out;
}

}  // namespace rutter::knobs
