#include "cli/argv.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "cli/values.h"

namespace rutter::cli {
namespace {

std::string_view nameOf(const std::string& arg) {
  if (!arg.starts_with("--")) return {};
  return std::string_view(arg).substr(2, std::min(arg.find('='), arg.size()) - 2);
}

const FlagInfo* flagOf(const std::string& arg) {
  for (const auto& f : flagTable())
    if (f.name == nameOf(arg)) return &f;
  return nullptr;
}

std::string absolute(const std::string& path, const std::string& folder) {
  const auto p = std::filesystem::path(expandHome(path));
  return (p.is_absolute() ? p : std::filesystem::path(folder) / p).lexically_normal().string();
}

bool isAny(const std::string& arg, std::initializer_list<Flag> flags) {
  const auto* f = flagOf(arg);
  return f && std::find(flags.begin(), flags.end(), f->flag) != flags.end();
}

bool given(const std::vector<std::string>& args, Flag flag) {
  return std::any_of(args.begin(), args.end(), [&](auto& a) { return isAny(a, {flag}); });
}
// "" if it is not there, or has no value.
std::string valueOf(const std::vector<std::string>& args, Flag flag) {
  for (const auto& a : args)
    if (isAny(a, {flag}) && a.find('=') != a.npos) return a.substr(a.find('=') + 1);
  return "";
}

}  // namespace

std::vector<std::string> absoluteArgs(const std::vector<std::string>& args, const std::string& folder) {
  std::vector<std::string> out;
  for (const auto& arg : args) {
    const auto* f = flagOf(arg);
    const auto eq = arg.find('=');
    if (!f || eq == arg.npos || (f->kind != Kind::Path && f->kind != Kind::Files)) {
      out.push_back(arg);
      continue;
    }
    const auto value = arg.substr(eq + 1);
    auto changed = arg.substr(0, eq + 1);
    if (f->kind == Kind::Path) {
      changed += absolute(value, folder);
    } else {
      bool first = true;
      for (const auto& file : parseFiles(f->name, value)) {
        changed += (first ? "'" : ",'") + file.name + "':" + absolute(file.file, folder);
        first = false;
      }
    }
    out.push_back(changed);
  }
  return out;
}

std::vector<std::string> continuedArgs(const tuner::LastSearch& last, const std::vector<std::string>& now) {
  const std::vector<std::string> recorded(last.argv.begin() + 1, last.argv.end());
  const bool ownExpression = given(now, Flag::k_tuneBuildRoutes) || given(now, Flag::k_tuneBuildRouteFile);
  const bool ownSpace = ownExpression || given(now, Flag::k_tune);
  const bool tunes = ownSpace ? !ownExpression : last.search == "tune";
  std::vector<std::string> out;
  for (const auto& a : recorded) {
    if (isAny(a, {Flag::k_tuneBuildRoutes, Flag::k_tuneBuildRouteFile, Flag::k_tune, Flag::k_tuningTimeOut,
                  Flag::k_continue, Flag::k_tuningCacheFile, Flag::k_force, Flag::k_json, Flag::k_verbose}))
      continue;
    // Which routes of the expression: the last session's, and nothing beside --tune.
    if (isAny(a, {Flag::k_tuningSearch}) && (!ownSpace || tunes)) continue;
    out.push_back(a);
  }
  if (!last.saveEngine.empty() && !given(recorded, Flag::k_saveEngine))
    out.push_back("--saveEngine=" + last.saveEngine);

  // "": none.
  std::string budget;
  if (given(now, Flag::k_tuningTimeOut))
    budget = valueOf(now, Flag::k_tuningTimeOut);
  else if (last.budgetSeconds)
    budget = *last.budgetSeconds > 0 ? fmt::format("{}s", *last.budgetSeconds) : "";
  else
    for (Flag f : {Flag::k_tune, Flag::k_tuningTimeOut})
      if (given(recorded, f)) budget = valueOf(recorded, f);
  if (!ownSpace && tunes) {
    out.push_back(budget.empty() ? "--tune" : "--tune=" + budget);
  } else if (!ownSpace) {
    if (!last.search.empty()) out.push_back("--tuningSearch=" + last.search);
    out.push_back("--tuneBuildRoutes=" + last.expression);
  }
  // --tune brings its own. Beside it, a time-out of this very command line is a conflict, and stays one.
  if (!tunes && !budget.empty() && !given(now, Flag::k_tune)) out.push_back("--tuningTimeOut=" + budget);
  for (const auto& a : now) {
    if (isAny(a, {Flag::k_continue, Flag::k_force, Flag::k_tuningCacheFile})) continue;
    if (isAny(a, {Flag::k_tuningTimeOut}) && !given(now, Flag::k_tune)) continue;  // it is in the budget
    out.push_back(a);
  }
  return out;
}

std::vector<std::string> sameEngineArgs(const std::vector<std::string>& args, const std::string& route,
                                        const std::string& timingCacheFile) {
  std::vector<std::string> out;
  for (const auto& a : args) {
    // The number of threads and the cores decide how work is cut; --threads alone says nothing about them.
    const bool number = isAny(a, {Flag::k_threads}) && a.find('=') != a.npos && !a.ends_with("=true");
    if (number || isAny(a, {Flag::k_onnx, Flag::k_shapes, Flag::k_profile, Flag::k_minShapes, Flag::k_optShapes,
                            Flag::k_maxShapes, Flag::k_useProfile, Flag::k_inputIOFormats, Flag::k_outputIOFormats,
                            Flag::k_profilingVerbosity, Flag::k_isa, Flag::k_target, Flag::k_cpuMask,
                            Flag::k_memPoolSize, Flag::k_strictRoutes, Flag::k_builderOptimizationLevel,
                            Flag::k_maxTactics, Flag::k_avgTiming, Flag::k_errorOnTimingCacheMiss}))
      out.push_back(a);
  }
  if (!timingCacheFile.empty()) out.push_back("--timingCacheFile=" + timingCacheFile);
  if (!route.empty()) out.push_back("--setBuildRoute=" + route);
  return out;
}

}  // namespace rutter::cli
