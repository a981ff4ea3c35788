// The options as understood, for the log. Keys follow trtexec's, so that scripts that read them go on working.
#include <fmt/format.h>

#include "base/text.h"
#include "cli/options.h"

namespace rutter::cli {
namespace {

class Echo {
 public:
  void group(std::string_view name) { lines_.push_back(fmt::format("=== {} ===", name)); }
  template <typename T>
  void put(std::string_view key, const T& value) {
    lines_.push_back(fmt::format("{}: {}", key, value));
  }
  void enabled(std::string_view key, bool on) { put(key, on ? "Enabled" : "Disabled"); }
  std::vector<std::string> take() { return std::move(lines_); }

 private:
  std::vector<std::string> lines_;
};

std::string limit(double seconds, std::string_view otherwise) {
  return seconds > 0 ? fmt::format("{:g}s", seconds) : std::string(otherwise);
}

void echoModel(Echo& e, const Options& o) {
  e.group("Model Options");
  e.put("Format", o.model.onnx.empty() ? "*" : "ONNX");
  e.put("Model", o.model.onnx);
}

void echoBuild(Echo& e, const Options& o) {
  e.group("Build Options");
  if (!o.model.loadEngine.empty()) return;
  const auto& b = o.build;
  e.put("Memory Pools", b.workspaceBytes
                            ? fmt::format("workspace: {:g} MiB", static_cast<double>(*b.workspaceBytes) / (1 << 20))
                            : "workspace: default");
  e.put("avgTiming", b.avgTiming);
  e.put("Max tactics", b.maxTactics < 0 ? "auto" : std::to_string(b.maxTactics));
  e.put("Builder optimization level", b.optimizationLevel);
  e.put("Timing cache", b.noBuilderCache ? "disabled" : b.timingCacheFile.empty() ? "local" : b.timingCacheFile);
  e.enabled("Compilation cache", !b.noCompilationCache);
  e.enabled("Error on timing cache miss", b.errorOnTimingCacheMiss);
  e.put("Profiling verbosity", b.profilingVerbosity);
  e.put("Target", b.target);
  e.put("ISA", b.isa.empty() ? "best of this machine" : b.isa);
  e.put("Build route", b.route.value_or(""));
  e.enabled("Strict routes", b.strictRoutes);
  e.enabled("Skip inference", b.skipInference);
  e.put("Save engine", o.model.saveEngine);
  e.put("Input(s)s format", b.inputFormats.empty() ? "chw" : fmt::format("{}", fmt::join(b.inputFormats, ",")));
  e.put("Output(s)s format", b.outputFormats.empty() ? "chw" : fmt::format("{}", fmt::join(b.outputFormats, ",")));
  if (b.profiles.empty()) e.put("Input build shapes", o.inference.shapes.empty() ? "model" : "those of --shapes");
  for (size_t p = 0; p < b.profiles.size(); p++)
    for (size_t i = 0; i < b.profiles[p].opt.size(); i++)
      e.put(fmt::format("Input build shape (profile {})", p),
            fmt::format("{}={}+{}+{}", b.profiles[p].opt[i].name, printDims(b.profiles[p].min[i].dims),
                        printDims(b.profiles[p].opt[i].dims), printDims(b.profiles[p].max[i].dims)));
  const auto& t = o.tuning;
  if (!t.active()) return;
  if (t.tuneSeconds) e.put("Tuning budget", limit(*t.tuneSeconds, ""));
  if (t.expression) e.put("Tuning expression", *t.expression);
  if (t.expressionFile) e.put("Tuning expression file", *t.expressionFile);
  e.put("Tuning search", t.automatic() ? "automatic" : t.search);
  e.put("Tuning cache file", t.cacheFile.empty() ? "default" : t.cacheFile);
  e.put("Tuning time out", limit(t.timeOutSeconds, "none"));
  e.put("Candidate limits", fmt::format("build {}, run {}", limit(t.buildTimeOutSeconds, "derived"),
                                        limit(t.runTimeOutSeconds, "derived")));
  e.put("Smallest gain", fmt::format("{:g}%", t.minGainPercent));
  e.put("Seed", t.seed);
}

void echoSystem(Echo& e, const Options& o) {
  e.group("System Options");
  e.put("Device", o.inference.device);
  e.put("CPU threads", o.inference.cpuThreads ? std::to_string(o.inference.cpuThreads) : "all");
  e.put("CPU cores", o.inference.cpus.empty() ? "all" : fmt::format("{}", fmt::join(o.inference.cpus, ",")));
  e.put("Temporary folder", o.build.tempdir.empty() ? "default" : o.build.tempdir);
}

void echoInference(Echo& e, const Options& o) {
  e.group("Inference Options");
  const auto& i = o.inference;
  if (i.shapes.empty()) e.put("Input inference shapes", "model");
  for (const auto& s : i.shapes) e.put(fmt::format("Input inference shape {}", s.name), printDims(s.dims));
  e.put("Iterations", i.iterations);
  e.put("Duration", i.durationSeconds < 0 ? fmt::format("until interrupted (+ {:g}ms warm up)", i.warmUpMs)
                                          : fmt::format("{:g}s (+ {:g}ms warm up)", i.durationSeconds, i.warmUpMs));
  e.put("Sleep time", fmt::format("{:g}ms", i.sleepMs));
  e.put("Idle time", fmt::format("{:g}ms", i.idleMs));
  e.put("Inference Streams", i.streams);
  e.enabled("Multithreading", i.threadPerStream);
  e.put("Profile", i.useProfile);
  e.put("Allocation strategy", i.allocationStrategy);
  e.enabled("Time Deserialize", i.timeDeserialize);
  if (i.accuracyThreshold > 0)
    e.put("Accuracy", fmt::format("{} below {:g} (atol {:g}, rtol {:g})", i.accuracyAlgorithm, i.accuracyThreshold,
                                  i.atol, i.rtol));
  for (size_t p = 0; p < i.pairs.size(); p++) {
    for (const auto& f : i.pairs[p].inputs) e.put(fmt::format("Input {} (pair {})", f.name, p), f.file);
    for (const auto& f : i.pairs[p].refOutputs) e.put(fmt::format("Reference output {} (pair {})", f.name, p), f.file);
  }
}

void echoReporting(Echo& e, const Options& o) {
  e.group("Reporting Options");
  const auto& r = o.reporting;
  e.enabled("Verbose", r.verbose);
  e.put("Averages", fmt::format("{} inferences", r.avgRuns));
  e.put("Percentiles", fmt::format("{}", fmt::join(r.percentiles, ",")));
  e.enabled("Dump output", r.dumpOutput);
  e.enabled("Profile", r.dumpProfile);
  e.put("Export timing to JSON file", r.exportTimes);
  e.put("Export output to JSON file", r.exportOutput);
  e.put("Export profile to JSON file", r.exportProfile);
  e.put("Export layer information to JSON file", r.exportLayerInfo);
}

}  // namespace

std::vector<std::string> echoOptions(const Options& o) {
  Echo e;
  echoModel(e, o);
  echoBuild(e, o);
  echoSystem(e, o);
  echoInference(e, o);
  echoReporting(e, o);
  return e.take();
}

}  // namespace rutter::cli
