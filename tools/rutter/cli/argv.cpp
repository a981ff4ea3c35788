#include "cli/argv.h"

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

std::vector<std::string> continuedArgs(const std::vector<std::string>& recorded, const std::string& recordedExpression,
                                       const std::vector<std::string>& now) {
  static constexpr std::initializer_list<Flag> kSpace = {Flag::k_tuneBuildRoutes, Flag::k_tuneBuildRouteFile,
                                                         Flag::k_tune};
  const bool ownSpace = std::any_of(now.begin(), now.end(), [&](auto& a) { return isAny(a, kSpace); });
  const bool ownLimit = std::any_of(now.begin(), now.end(), [](auto& a) { return isAny(a, {Flag::k_tuningTimeOut}); });
  std::vector<std::string> out;
  bool automatic = false;
  for (const auto& a : recorded) {
    if (isAny(a, {Flag::k_continue, Flag::k_tuningCacheFile, Flag::k_force, Flag::k_json, Flag::k_verbose})) continue;
    if (isAny(a, kSpace)) {
      if (!ownSpace && isAny(a, {Flag::k_tune})) {
        automatic = true;
        out.push_back(a);
      }
      continue;
    }
    if (ownLimit && isAny(a, {Flag::k_tuningTimeOut})) continue;
    out.push_back(a);
  }
  if (!ownSpace && !automatic) out.push_back("--tuneBuildRoutes=" + recordedExpression);
  for (const auto& a : now)
    if (!isAny(a, {Flag::k_continue, Flag::k_force, Flag::k_tuningCacheFile})) out.push_back(a);
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
