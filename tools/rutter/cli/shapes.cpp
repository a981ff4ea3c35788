#include "cli/shapes.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"

namespace rutter::cli {
namespace {

std::string printDeclared(const std::vector<int64_t>& dims) {
  if (dims.empty()) return "scalar";
  std::string out;
  for (auto d : dims) out += (out.empty() ? "" : "x") + (d < 0 ? std::string("?") : std::to_string(d));
  return out;
}

// What was given, and for the others a guess that a person can edit: as an input that looks the same, else batch 1,
// images of 224, sequences of 128.
std::string suggestion(const std::vector<InputInfo>& inputs, const ShapeMap& given) {
  std::string out;
  for (const auto& in : inputs) {
    if (!in.dynamic()) continue;
    auto dims = in.known ? in.dims : std::vector<int64_t>{-1, 3, 224, 224};
    for (const auto& like : inputs)
      if (auto it = given.find(like.name); it != given.end() && like.known && like.dims == in.dims) dims = it->second;
    if (auto it = given.find(in.name); it != given.end()) dims = it->second;
    for (size_t i = 0; i < dims.size(); i++)
      if (dims[i] < 0) dims[i] = i == 0 ? 1 : dims.size() == 4 ? (i == 1 ? 3 : 224) : 128;
    out += (out.empty() ? "" : ",") + printShape(in.name, dims);
  }
  return out;
}

Shape ones(const std::vector<int64_t>& dims) {
  Shape s = dims;
  for (auto& d : s) d = d < 0 ? 1 : d;
  return s;
}

bool inside(const Shape& s, const Range& r) {
  if (s.size() != r.min.size()) return false;
  for (size_t i = 0; i < s.size(); i++)
    if (s[i] < r.min[i] || s[i] > r.max[i]) return false;
  return true;
}

std::string quoted(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

bool InputInfo::dynamic() const {
  return !known || std::any_of(dims.begin(), dims.end(), [](auto d) { return d < 0; });
}

ShapeMap matchShapes(const std::vector<InputInfo>& inputs, const std::vector<NamedShape>& given,
                     const std::string& flag, std::string_view of) {
  ShapeMap out;
  for (const auto& g : given) {
    bool any = false;
    for (const auto& in : inputs) {
      // One star, no other wildcard: a "?" in a tensor's name is itself.
      const auto star = g.name.find('*');
      const bool match = star == g.name.npos
                             ? in.name == g.name
                             : in.name.size() + 1 >= g.name.size() && in.name.starts_with(g.name.substr(0, star)) &&
                                   in.name.ends_with(g.name.substr(star + 1));
      if (!match) continue;
      any = true;
      bool fits = !in.known || in.dims.size() == g.dims.size();
      for (size_t i = 0; in.known && fits && i < g.dims.size(); i++) fits = in.dims[i] < 0 || in.dims[i] == g.dims[i];
      if (!fits)
        throw UserError("--{}: '{}' is {} in the {}, {} does not fit", flag, in.name, printDeclared(in.dims), of,
                        printDims(g.dims));
      if (!out.emplace(in.name, g.dims).second) throw UserError("--{}: '{}' gets two shapes", flag, in.name);
    }
    if (!any) {
      std::vector<std::string> names;
      for (const auto& in : inputs) names.push_back(in.name);
      throw UserError("--{}: '{}' is no input of the {}; nearest: {}", flag, g.name, of,
                      joinOr(nearestNames(g.name, names)));
    }
  }
  return out;
}

ShapePlan planShapes(const std::vector<InputInfo>& inputs, const Options& o) {
  ShapePlan plan;
  const bool any = std::any_of(inputs.begin(), inputs.end(), [](auto& i) { return i.dynamic(); });
  const auto& shapes = o.inference.shapes;
  if (!any && (!shapes.empty() || !o.build.profiles.empty())) {
    // Names are checked first: a wrong name is the likelier mistake.
    matchShapes(inputs, shapes, "shapes");
    throw UserError("the model is static ({}): shapes cannot be given for it",
                    inputs.empty() ? "no inputs" : fmt::format("{}:{}", inputs[0].name, printDims(inputs[0].dims)));
  }
  const auto run = matchShapes(inputs, shapes, "shapes");
  const size_t count = std::max<size_t>(o.build.profiles.size(), 1);
  std::vector<std::string> missing;
  for (size_t p = 0; p < count; p++) {
    RangeMap ranges;
    if (p < o.build.profiles.size()) {
      const auto& flags = o.build.profiles[p];
      auto min = matchShapes(inputs, flags.min, "minShapes"), opt = matchShapes(inputs, flags.opt, "optShapes"),
           max = matchShapes(inputs, flags.max, "maxShapes");
      for (const auto& [name, s] : opt) ranges[name] = {min.at(name), s, max.at(name)};
    }
    for (const auto& in : inputs) {
      if (!in.dynamic() || ranges.count(in.name)) continue;
      auto given = run.find(in.name);
      if (given != run.end()) {
        ranges[in.name] = {given->second, given->second, given->second};
        continue;
      }
      if (!in.known)
        throw UserError("input '{}' has no shape in the model, not even a rank: give one, for example --shapes={}",
                        in.name, suggestion(inputs, run));
      auto s = ones(in.dims);
      ranges[in.name] = {s, s, s};
      missing.push_back(in.name);
      plan.warnings.push_back(
          fmt::format("input '{}' ({}) has no shape; its dynamic dimensions become 1: {}; give it one, for example "
                      "--shapes={}",
                      in.name, printDeclared(in.dims), printDims(s), suggestion(inputs, run)));
    }
    plan.profiles.push_back(std::move(ranges));
  }
  if (!missing.empty() && o.tuning.active())
    throw UserError("tuning needs the shapes of all inputs, and {} {} none; for example --shapes={}", quoted(missing),
                    missing.size() == 1 ? "has" : "have", suggestion(inputs, run));
  plan.run = planRun(inputs, plan.profiles, o);
  return plan;
}

ShapeMap planRun(const std::vector<InputInfo>& inputs, const std::vector<RangeMap>& profiles, const Options& o) {
  const auto use = static_cast<size_t>(o.inference.useProfile);
  if (use >= profiles.size())
    throw UserError("--useProfile={}: there {} {} profile{}", use, profiles.size() == 1 ? "is" : "are", profiles.size(),
                    profiles.size() == 1 ? "" : "s");
  ShapeMap run = matchShapes(inputs, o.inference.shapes, "shapes", o.model.loadEngine.empty() ? "model" : "engine");
  for (const auto& in : inputs) {
    auto range = profiles[use].find(in.name);
    auto [at, fresh] = run.try_emplace(in.name, range == profiles[use].end() ? in.dims : range->second.opt);
    if (range != profiles[use].end() && !inside(at->second, range->second))
      throw UserError("--shapes: '{}' is {}, outside profile {} ({} to {})", in.name, printDims(at->second), use,
                      printDims(range->second.min), printDims(range->second.max));
  }
  return run;
}

}  // namespace rutter::cli
