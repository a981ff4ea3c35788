// Which flags exclude or need one another (spec sections 2 and 7).
#include <span>

#include "base/error.h"
#include "cli/options.h"

namespace rutter::cli {
namespace {

struct Exclusion {
  Flag a, b;
  std::string_view why;
};
constexpr Exclusion kExclusions[] = {
    {Flag::k_tuneBuildRoutes, Flag::k_tuneBuildRouteFile, "both give the expression"},
    {Flag::k_setBuildRoute, Flag::k_tuneBuildRoutes, "one is a single build, the other a search"},
    {Flag::k_setBuildRoute, Flag::k_tuneBuildRouteFile, "one is a single build, the other a search"},
    {Flag::k_setBuildRoute, Flag::k_tune, "one is a single build, the other a search"},
    {Flag::k_dryRun, Flag::k_continue, "a dry run records nothing that could be continued"},
    {Flag::k_dryRun, Flag::k_tune, "a dry run lists an expression's routes; --tune chooses its own while it measures"},
    {Flag::k_helpBuildRoute, Flag::k_continue, "help runs nothing"},
    {Flag::k_saveEngine, Flag::k_loadEngine, "an engine is either written or read"},
    {Flag::k_loadEngine, Flag::k_setBuildRoute, "a route has no effect on an engine that is built already"},
    {Flag::k_loadRefOutputs, Flag::k_skipInference, "outputs are compared by running the engine"},
    {Flag::k_tune, Flag::k_tuningTimeOut, "both give the budget"},
    {Flag::k_noBuilderCache, Flag::k_timingCacheFile, "one keeps no times, the other is where they are kept"},
    {Flag::k_noBuilderCache, Flag::k_errorOnTimingCacheMiss, "without a timing cache every time is missing"},
    {Flag::k_timeDeserialize, Flag::k_skipInference, "one loads the engine 20 times, the other never"},
};

// What a flag is for: without it, the flag does nothing, and silence would hide a mistake.
constexpr Flag kTuningOnly[] = {
    Flag::k_tuningSearch, Flag::k_tuningCacheFile, Flag::k_tuningTimeOut, Flag::k_dryRun,        Flag::k_saveAllEngines,
    Flag::k_buildTimeOut, Flag::k_runTimeOut,      Flag::k_minGain,       Flag::k_maxCandidates,
};
// How a plain run is measured. A search measures in its own way; what it reports on its winner goes by these.
constexpr Flag kReportOnly[] = {
    Flag::k_iterations, Flag::k_warmUp,  Flag::k_duration, Flag::k_sleepTime,  Flag::k_idleTime,
    Flag::k_infStreams, Flag::k_streams, Flag::k_avgRuns,  Flag::k_percentile, Flag::k_allocationStrategy,
};
constexpr Flag kTimingOnly[] = {
    Flag::k_timingCacheFile, Flag::k_noBuilderCache, Flag::k_errorOnTimingCacheMiss,
    Flag::k_maxTactics,      Flag::k_avgTiming,
};
constexpr Flag kComparingOnly[] = {Flag::k_accuracyThreshold, Flag::k_accuracyAlgorithm, Flag::k_atol, Flag::k_rtol};
constexpr Flag kBuildingOnly[] = {
    Flag::k_isa,
    Flag::k_target,
    Flag::k_minShapes,
    Flag::k_optShapes,
    Flag::k_maxShapes,
    Flag::k_profile,
    Flag::k_builderOptimizationLevel,
    Flag::k_memPoolSize,
    Flag::k_inputIOFormats,
    Flag::k_outputIOFormats,
    Flag::k_strictRoutes,
};
constexpr Flag kOfRuns[] = {
    Flag::k_exportTimes, Flag::k_exportOutput, Flag::k_exportProfile,
    Flag::k_dumpOutput,  Flag::k_dumpProfile,  Flag::k_dumpRawBindingsToFile,
};
constexpr Flag kWithContinue[] = {
    Flag::k_continue, Flag::k_tuningCacheFile, Flag::k_tuneBuildRoutes, Flag::k_tuneBuildRouteFile,
    Flag::k_tune,     Flag::k_tuningTimeOut,   Flag::k_force,           Flag::k_json,
    Flag::k_verbose,
};

std::string nameOf(const CommandLine& line, Flag f) {
  for (const auto& g : line.all())
    if (g.flag == f && f == Flag::k_duration) return fmt::format("--{}={}", info(f).name, *g.value);
  return fmt::format("--{}", info(f).name);
}

// "--flag has no effect" and why, for each of `flags` that is given.
void warnOfEach(std::span<const Flag> flags, std::string_view why, const CommandLine& line,
                std::vector<std::string>& warnings) {
  for (Flag f : flags)
    if (line.given(f)) warnings.push_back(fmt::format("--{} has no effect{}", info(f).name, why));
}

void checkContinue(const CommandLine& line) {
  if (!line.has(Flag::k_continue)) {
    if (line.has(Flag::k_force)) throw UserError("--force needs --continue");
    return;
  }
  if (!line.given(Flag::k_tuningCacheFile))
    throw UserError("--continue needs --tuningCacheFile=PATH: the search to go on with");
  for (const auto& g : line.all()) {
    bool allowed = false;
    for (Flag f : kWithContinue) allowed = allowed || g.flag == f;
    if (!allowed)
      throw UserError(
          "--continue cannot stand beside --{}: model, shapes and options come from the record of the search",
          info(g.flag).name);
  }
}

void checkTuning(const CommandLine& line, const Options& o, std::vector<std::string>& warnings) {
  const auto& t = o.tuning;
  if (line.has(Flag::k_yes) && !t.dryRun) warnings.push_back("--yes has no effect without --dryRun: nothing is asked");
  if (t.automatic() && line.given(Flag::k_tuningSearch))
    warnings.push_back(
        "--tuningSearch has no effect beside --tune, which chooses its own routes; it is for --tuneBuildRoutes");
  if (!t.active()) {
    if (line.has(Flag::k_noCompilationCache))
      warnings.push_back("--noCompilationCache has no effect on a single build: it takes over no kernels");
    if (t.dryRun) throw UserError("--dryRun needs --tuneBuildRoutes or --tuneBuildRouteFile");
    return warnOfEach(kTuningOnly, " without --tuneBuildRoutes or --tune", line, warnings);
  }
  for (Flag f : {Flag::k_loadEngine, Flag::k_skipInference, Flag::k_timeDeserialize})
    if (line.has(f)) throw UserError("tuning builds and measures engines; it cannot stand beside --{}", info(f).name);
  if (o.inference.durationSeconds < 0)
    throw UserError("tuning cannot stand beside {}: no measurement would end", nameOf(line, Flag::k_duration));
  if (!t.dryRun && !t.resume && !o.reporting.reports())
    warnOfEach(kReportOnly, ": a search measures in its own way, and no report on its winner is asked for", line,
               warnings);
  if (t.saveAllEngines && o.model.saveEngine.empty())
    throw UserError("--saveAllEngines needs --saveEngine=PATH: engines are written as PATH.iter<N>");
  if (o.model.saveEngine.empty() && !t.tuneSeconds && !t.resume && !t.dryRun) {
    bool refs = line.given(Flag::k_loadRefOutputs) || line.given(Flag::k_refPair);
    if (refs) throw UserError("tuning with reference outputs needs --saveEngine=PATH for the winner");
    warnings.push_back("there is no --saveEngine: the winner will not be saved");
  }
}

void checkTiming(const CommandLine& line, const Options& o, std::vector<std::string>& warnings) {
  if (o.build.optimizationLevel < 4) {
    warnOfEach(kTimingOnly, " below --builderOptimizationLevel=4: nothing is timed", line, warnings);
  } else if (o.build.noBuilderCache && o.tuning.active()) {
    throw UserError(
        "--noBuilderCache cannot stand beside a search at level 4 or 5: a route must be the same engine throughout it");
  } else if (o.build.errorOnTimingCacheMiss && o.build.timingCacheFile.empty()) {
    throw UserError("--errorOnTimingCacheMiss needs --timingCacheFile=PATH: without it every time is missing");
  }
}

void checkAccuracy(const CommandLine& line, const Options& o, std::vector<std::string>& warnings) {
  const auto& i = o.inference;
  if (!o.tuning.active() && !line.given(Flag::k_loadRefOutputs))
    warnOfEach(kComparingOnly, " without --loadRefOutputs or a search: nothing is compared", line, warnings);
  if (line.given(Flag::k_loadRefOutputs) && !(i.accuracyThreshold > 0))
    throw UserError("--loadRefOutputs needs --accuracyThreshold above 0: which loss is too much");
  if (i.accuracyAlgorithm != "l0")
    for (Flag f : {Flag::k_atol, Flag::k_rtol})
      if (line.given(f))
        throw UserError("--{} belongs to --accuracyAlgorithm=l0; {} does not use it", info(f).name,
                        i.accuracyAlgorithm);
}

}  // namespace

void checkConflicts(const CommandLine& line, const Options& o, std::vector<std::string>& warnings) {
  for (const auto& x : kExclusions)
    if (line.has(x.a) && line.has(x.b))
      throw UserError("--{} and --{} exclude each other: {}", info(x.a).name, info(x.b).name, x.why);
  checkContinue(line);
  checkTuning(line, o, warnings);
  if (line.given(Flag::k_loadEngine)) warnOfEach(kBuildingOnly, " on an engine that is built already", line, warnings);
  if (line.given(Flag::k_skipInference)) warnOfEach(kOfRuns, " with --skipInference: nothing is run", line, warnings);
  checkTiming(line, o, warnings);
  checkAccuracy(line, o, warnings);
  const auto& m = o.model;
  if (m.onnx.empty() && m.loadEngine.empty() && m.check.empty() && !o.tuning.resume &&
      !line.given(Flag::k_helpBuildRoute))
    throw UserError("there is no model: give --onnx=PATH, or --loadEngine=PATH for an engine built before");
  if (!m.onnx.empty() && !m.loadEngine.empty())
    throw UserError("--onnx and --loadEngine exclude each other: a model is compiled, an engine is loaded");
  if (o.build.getPlanVersionOnly && m.loadEngine.empty())
    throw UserError("--getPlanVersionOnly needs --loadEngine=PATH");
}

}  // namespace rutter::cli
