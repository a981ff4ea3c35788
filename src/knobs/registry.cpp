#include "knobs/registry.h"

#include <algorithm>
#include <charconv>
#include <set>
#include <sstream>

#include "base/error.h"
#include "base/text.h"

namespace rutter::knobs {
namespace {

std::vector<std::string> split(std::string_view s, char sep) {
  std::vector<std::string> out;
  if (s.empty()) return out;
  for (size_t from = 0;;) {
    size_t to = s.find(sep, from);
    out.emplace_back(s.substr(from, to == s.npos ? s.npos : to - from));
    if (to == s.npos) return out;
    from = to + 1;
  }
}

std::optional<int64_t> parseInt(std::string_view s) {
  int64_t v = 0;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), v);
  if (error != std::errc() || end != s.data() + s.size()) return std::nullopt;
  return v;
}

Numerics numericsWord(std::string_view knob, std::string_view w) {
  if (w == "exact") return Numerics::kExact;
  if (w == "reorders") return Numerics::kReorders;
  if (w == "lossy") return Numerics::kLossy;
  throw InternalError(fmt::format("knob {}: unknown numerics class '{}'", knob, w));
}

// "exact,on=reorders": the class of all values, then exceptions.
void applyNumerics(KnobInfo& k, std::string_view text) {
  auto parts = split(text, ',');
  RUTTER_CHECK(!parts.empty(), "knob {} has no numerics class", k.name);
  k.numerics.assign(std::max<size_t>(1, k.bounded() ? k.values.size() : 1), numericsWord(k.name, parts[0]));
  for (size_t i = 1; i < parts.size(); i++) {
    auto eq = parts[i].find('=');
    RUTTER_CHECK(eq != parts[i].npos, "knob {}: '{}' is not value=class", k.name, parts[i]);
    auto at = std::find(k.values.begin(), k.values.end(), parts[i].substr(0, eq));
    RUTTER_CHECK(k.bounded() && at != k.values.end(), "knob {} has no value '{}'", k.name, parts[i].substr(0, eq));
    k.numerics[at - k.values.begin()] = numericsWord(k.name, std::string_view(parts[i]).substr(eq + 1));
  }
}

KnobInfo makeInfo(KnobSpec s, KnobId id) {
  KnobInfo k;
  k.id = id;
  k.name = "-" + s.area + (s.area.empty() ? "" : ":") + s.what;
  k.area = s.area;
  k.domain = s.domain;
  k.values = split(s.values, '|');
  k.min = s.min;
  k.max = s.max;
  k.defaultValue = s.defaultValue;
  k.target = s.target;
  k.help = s.help;
  if (s.domain == Domain::kRange) {
    RUTTER_CHECK(k.values.empty() && k.min <= k.max && k.min >= INT32_MIN && k.max <= INT32_MAX,
                 "knob {}: the range must lie in int32", k.name);
    if (k.defaultValue == "auto") k.values = {"auto"};
  }
  std::set<std::string> seen;
  for (const auto& v : k.values) {
    RUTTER_CHECK(!v.empty() && v.find_first_of(" \t\n\r|[]=@%#") == v.npos, "knob {}: bad value '{}'", k.name, v);
    RUTTER_CHECK(seen.insert(v).second, "knob {}: value '{}' is listed twice", k.name, v);
    if (k.domain == Domain::kBool)
      RUTTER_CHECK(v == "auto" || v == "on" || v == "off", "knob {}: '{}' is no boolean", k.name, v);
    if (k.domain == Domain::kInts) RUTTER_CHECK(v == "auto" || parseInt(v), "knob {}: '{}' is no integer", k.name, v);
  }
  RUTTER_CHECK(k.bounded() ? k.values.size() > 1 : true, "knob {} has fewer than two values", k.name);
  RUTTER_CHECK(k.canonical(k.defaultValue) == k.defaultValue, "knob {}: default '{}' is not in its domain", k.name,
               k.defaultValue);
  applyNumerics(k, s.numerics);
  return k;
}

std::vector<KnobSpec> declared() {
  constexpr Target cpu = Target::kCpu, cuda = Target::kCuda, any = Target::kAny;
  (void)cuda;
  return {
#define KNOB_BOOL(area, what, values, def, target, numerics, help) \
  {Domain::kBool, #area, #what, values, 0, 0, def, target, numerics, help},
#define KNOB_INTS(area, what, values, def, target, numerics, help) \
  {Domain::kInts, #area, #what, values, 0, 0, def, target, numerics, help},
#define KNOB_ENUM(area, what, values, def, target, numerics, help) \
  {Domain::kEnum, #area, #what, values, 0, 0, def, target, numerics, help},
#define KNOB_RANGE(area, what, min, max, def, target, numerics, help) \
  {Domain::kRange, #area, #what, "", min, max, def, target, numerics, help},
#include "knobs/all.def"
  };
}

}  // namespace

std::string_view toString(Domain d) {
  switch (d) {
    case Domain::kBool:
      return "bool";
    case Domain::kEnum:
      return "enum";
    case Domain::kInts:
    case Domain::kRange:
      return "int";
  }
  return "";
}
std::string_view toString(Target t) {
  return t == Target::kCpu ? "cpu" : t == Target::kCuda ? "cuda" : "any";
}
std::string_view toString(Numerics n) {
  return n == Numerics::kExact ? "exact" : n == Numerics::kReorders ? "reorders" : "lossy";
}

std::optional<std::string> KnobInfo::canonical(std::string_view text) const {
  if (std::find(values.begin(), values.end(), text) != values.end()) return std::string(text);
  if (bounded()) return std::nullopt;
  auto v = parseInt(text);
  if (!v || *v < min || *v > max) return std::nullopt;
  return std::to_string(*v);
}

Numerics KnobInfo::numericsOf(std::string_view value) const {
  if (!bounded()) return numerics[0];
  auto at = std::find(values.begin(), values.end(), value);
  RUTTER_CHECK(at != values.end(), "{} has no value '{}'", name, value);
  return numerics[at - values.begin()];
}

std::string KnobInfo::allowedValues() const {
  if (!bounded()) return name + "=int32_t";
  return fmt::format("{}=[{}]", name, fmt::join(values, "|"));
}

std::string KnobInfo::domainText() const {
  if (bounded()) return joinOr(values);
  return fmt::format("{}an integer from {} to {}", values.empty() ? "" : "auto or ", min, max);
}

Registry::Registry(std::vector<KnobSpec> specs) {
  for (auto& s : specs) {
    auto id = static_cast<uint16_t>(knobs_.size());
    knobs_.push_back(makeInfo(std::move(s), static_cast<KnobId>(id)));
    names_.push_back(knobs_.back().name);
    RUTTER_CHECK(byName_.emplace(names_.back(), id).second, "knob {} is declared twice", names_.back());
  }
}

const Registry& Registry::builtin() {
  static const Registry r([] {
    std::vector<KnobSpec> specs = declared();
#ifdef RUTTER_PLANTED_DEFAULTS
    // A build with defaults that are wrong on purpose, which --tune must recover from (bench/planted).
    std::istringstream in(RUTTER_PLANTED_DEFAULTS);
    for (std::string word; in >> word;) {
      const size_t eq = word.find('=');
      auto at = std::find_if(specs.begin(), specs.end(), [&](const KnobSpec& s) {
        return fmt::format("-{}:{}", s.area, s.what) == word.substr(0, eq);
      });
      RUTTER_CHECK(eq != word.npos && at != specs.end(), "RUTTER_PLANTED_DEFAULTS: '{}' is no assignment", word);
      at->defaultValue = word.substr(eq + 1);
    }
#endif
    return specs;
  }());
  return r;
}

const KnobInfo& Registry::operator[](KnobId id) const {
  RUTTER_CHECK(static_cast<size_t>(id) < knobs_.size(), "knob {} is not in the registry", static_cast<size_t>(id));
  return knobs_[static_cast<size_t>(id)];
}

const KnobInfo* Registry::find(std::string_view name) const {
  auto at = byName_.find(std::string(name));
  return at == byName_.end() ? nullptr : &knobs_[at->second];
}

std::vector<std::string> Registry::nearest(std::string_view name, size_t n) const {
  return nearestNames(name, names_, n);
}

std::vector<const KnobInfo*> Registry::select(std::string_view pattern) const {
  std::string p(pattern);
  if (!p.starts_with('-')) p = "-" + p;
  std::vector<const KnobInfo*> out;
  for (const auto& k : knobs_)
    if (globMatch(p, k.name)) out.push_back(&k);
  return out;
}

std::string Registry::defaultRouteText() const {
  std::string out;
  for (const auto& k : knobs_) out += (out.empty() ? "" : " ") + k.name + "=" + k.defaultValue;
  return out;
}

}  // namespace rutter::knobs
