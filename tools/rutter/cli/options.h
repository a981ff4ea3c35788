#pragma once
// What a command line asks for, typed and checked. Nothing here touches a model, a file or a device.
#include <optional>
#include <string>
#include <vector>

#include "cli/flags.h"
#include "cli/values.h"

namespace rutter::cli {

struct ProfileShapes {
  std::vector<NamedShape> min, opt, max;
  bool operator==(const ProfileShapes&) const = default;
};
struct RefPair {
  std::vector<NamedFile> inputs, refOutputs;
};

struct ModelOptions {
  std::string onnx, loadEngine, saveEngine, check;
};

struct BuildOptions {
  std::vector<ProfileShapes> profiles;  ///< completed: min, opt and max name the same inputs
  int optimizationLevel = 3;
  std::string timingCacheFile;
  bool noBuilderCache = false, noCompilationCache = false, errorOnTimingCacheMiss = false;
  int maxTactics = -1, avgTiming = 8;
  std::optional<uint64_t> workspaceBytes;
  std::string profilingVerbosity = "layer_names_only";
  std::vector<std::string> inputFormats, outputFormats;  ///< "fp32:chw" as written, lower case
  std::optional<std::string> route;                      ///< --setBuildRoute
  bool strictRoutes = false;
  std::string isa, target = "cpu", tempdir;
  bool skipInference = false, getPlanVersionOnly = false;
};

struct TuningOptions {
  std::optional<double> tuneSeconds;  ///< --tune: its budget
  std::optional<std::string> expression, expressionFile;
  std::string search = "fast", cacheFile;
  double timeOutSeconds = -1;  ///< not above 0: none
  bool resume = false, dryRun = false, saveAllEngines = false, force = false, yes = false;
  double buildTimeOutSeconds = -1, runTimeOutSeconds = -1;  ///< not above 0: derived
  double minGainPercent = 1;
  int64_t seed = 1;
  int64_t maxCandidates = -1;  ///< below 0: all

  bool active() const { return tuneSeconds || expression || expressionFile || resume; }
  bool automatic() const { return tuneSeconds && !expression && !expressionFile; }  ///< --tune chooses the routes
};

struct InferenceOptions {
  std::vector<NamedShape> shapes;
  std::vector<RefPair> pairs;  ///< one without reference outputs for a plain --loadInputs
  double accuracyThreshold = 0;
  std::string accuracyAlgorithm = "l0";
  double atol = 1e-5, rtol = 1e-5;
  int64_t iterations = 10;
  double warmUpMs = 200, durationSeconds = 3, sleepMs = 0, idleMs = 0;  ///< duration -1: until interrupted
  int streams = 1;
  bool threadPerStream = false;
  int cpuThreads = 0;     ///< 0: all that the process may use
  std::vector<int> cpus;  ///< --cpuMask; empty: as inherited
  bool timeDeserialize = false;
  int useProfile = 0;
  std::string allocationStrategy = "static";
  int device = 0;
};

struct ReportingOptions {
  bool verbose = false, json = false;
  int avgRuns = 10;
  std::vector<double> percentiles = {90, 95, 99};
  bool dumpOutput = false, dumpRawBindings = false, dumpProfile = false, dumpLayerInfo = false,
       dumpOptimizationProfile = false;
  std::string exportOutput, exportProfile, exportLayerInfo, exportTimes;

  /// Whether a search is to run its winner for a report.
  bool reports() const {
    return dumpOutput || dumpRawBindings || dumpProfile || dumpLayerInfo || dumpOptimizationProfile ||
           !exportOutput.empty() || !exportProfile.empty() || !exportLayerInfo.empty() || !exportTimes.empty();
  }
};

struct Options {
  ModelOptions model;
  BuildOptions build;
  TuningOptions tuning;
  InferenceOptions inference;
  ReportingOptions reporting;
  std::vector<std::string> warnings;  ///< for the log, in the order of the command line
};

/// UserError for flags that contradict one another or lack one that they need.
Options makeOptions(const CommandLine& line);

/// The options as understood, in groups: "=== Model Options ===", then "Key: value" a line.
std::vector<std::string> echoOptions(const Options& o);

}  // namespace rutter::cli
