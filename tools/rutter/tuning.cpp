#include "tuning.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "build.h"
#include "cli/argv.h"
#include "cli/dry_run.h"
#include "cli/shapes.h"
#include "host.h"
#include "tuner/accuracy.h"

namespace rutter::cli {
namespace {

std::string workingFolder() {
  std::error_code error;
  const auto folder = std::filesystem::current_path(error);
  if (error) throw UserError("the working folder cannot be found ({}): change to one that exists", error.message());
  return folder.string();
}

std::string absolutePath(const std::string& path) {
  return path.empty() ? path : (std::filesystem::path(workingFolder()) / expandHome(path)).lexically_normal().string();
}

// Names with one `*` become the tensors that they match.
std::map<std::string, std::string> namedFiles(const std::vector<NamedFile>& files,
                                              const std::vector<std::string>& tensors, std::string_view flag) {
  std::vector<InputInfo> infos;
  for (const auto& t : tensors) infos.push_back({t, {}});
  std::map<std::string, std::string> out;
  for (const auto& f : files)
    for (const auto& [name, dims] : matchShapes(infos, {{f.name, {}}}, std::string(flag)))
      if (!out.emplace(name, absolutePath(f.file)).second) throw UserError("--{}: '{}' gets two files", flag, name);
  return out;
}

std::vector<std::string> namesOf(const std::vector<ir::Value*>& values) {
  std::vector<std::string> out;
  for (const auto* v : values) out.push_back(v->name);
  return out;
}

std::string defaultEngine(const std::string& onnx) {
  return std::filesystem::path(onnx).replace_extension(".engine").string();
}

tuner::TuneOptions tuneOptions(const Options& o, const std::vector<std::string>& argv, Console& console) {
  const auto& t = o.tuning;
  tuner::TuneOptions out;
  out.begun = monotonicSeconds();  // a large model takes seconds to read
  const auto model = readModel(o.model.onnx, console);
  const auto plan = planShapes(modelInputs(*model.graph), o);
  for (const auto& w : plan.warnings) console.warning(w);
  out.model.path = absolutePath(o.model.onnx);
  for (const auto& p : plan.profiles) {
    std::map<std::string, tuner::ShapeRange> ranges;
    for (const auto& [name, r] : p) ranges[name] = {r.min, r.opt, r.max};
    if (!ranges.empty()) out.build.profiles.push_back(std::move(ranges));
  }
  out.build.runShapes = plan.run;
  for (const auto& name : channelsLastTensors(*model.graph, o)) out.build.formats[name] = "hwc";
  out.build.profilingVerbosity = o.build.profilingVerbosity;
  out.build.isa = o.build.isa;
  out.build.threads = o.inference.cpuThreads;
  out.build.builderOptimizationLevel = o.build.optimizationLevel;
  if (o.build.workspaceBytes) out.build.workspaceBytes = static_cast<int64_t>(*o.build.workspaceBytes);
  out.build.strictRoutes = o.build.strictRoutes;
  out.build.timingCacheFile = absolutePath(o.build.timingCacheFile);
  out.build.maxTactics = o.build.maxTactics;
  out.build.avgTiming = o.build.avgTiming;
  out.build.errorOnTimingMiss = o.build.errorOnTimingCacheMiss;
  out.build.keepKernels = !o.build.noCompilationCache;

  if (t.expression || t.expressionFile) {
    const auto expression = readExpression(t);
    if (auto lossy = knobs::lossyAssignments(expression); !lossy.empty() && !(o.inference.accuracyThreshold > 0)) {
      std::string names;
      for (const auto& a : lossy)
        names += (names.empty() ? "" : ", ") + knobs::printAssignment(a, expression.registry());
      throw UserError(
          "the expression holds values that may lose accuracy ({}): say how much may be lost by --accuracyThreshold",
          names);
    }
    out.expression = expression.text();
    out.search = tuner::parseSearch(t.search);
  } else {
    out.search = tuner::SearchKind::kTune;
  }
  out.budgetSeconds = t.tuneSeconds.value_or(t.timeOutSeconds);
  out.maxCandidates = t.maxCandidates;
  out.accuracy = {tuner::parseLoss(o.inference.accuracyAlgorithm), o.inference.accuracyThreshold, o.inference.atol,
                  o.inference.rtol};
  const auto inputs = namesOf(model.graph->top().inputs), outputs = namesOf(model.graph->top().outputs);
  for (const auto& pair : o.inference.pairs)
    out.pairs.push_back(
        {namedFiles(pair.inputs, inputs, "loadInputs"), namedFiles(pair.refOutputs, outputs, "loadRefOutputs")});
  out.buildTimeOut = std::max(t.buildTimeOutSeconds, 0.0);
  out.runTimeOut = std::max(t.runTimeOutSeconds, 0.0);
  out.minGain = t.minGainPercent / 100;
  out.seed = static_cast<uint64_t>(t.seed);
  auto engine = o.model.saveEngine;
  if (engine.empty() && t.tuneSeconds) engine = defaultEngine(o.model.onnx);
  out.saveEngine = absolutePath(engine);
  out.cacheFile = absolutePath(t.cacheFile.empty() ? tuner::defaultCacheFile(engine) : t.cacheFile);
  out.saveAllEngines = t.saveAllEngines;
  out.resume = t.resume;
  out.force = t.force;
  out.tempDir = absolutePath(o.build.tempdir);
  out.argv = argv;
  return out;
}

class Listener : public tuner::TuneListener {
 public:
  Listener(Console& c, bool automatic)
      : console_(c), automatic_(automatic), terminal_(!c.json() && ::isatty(STDOUT_FILENO)) {}
  ~Listener() override { clear(); }

  // --tune shows one line of progress; an expression, the lines that trtexec's readers know.
  void onBegin(int64_t iter, const std::string& route) override {
    route_ = route;
    if (automatic_) return;
    clear();
    console_.marker("TASK_BEGIN", tail(iter, route));
  }
  void onEnd(const tuner::CandidateInfo& c) override {
    if (automatic_) {
      for (const auto& lost : c.lostWishes)
        console_.log(Severity::kVerbose, fmt::format("candidate {}: {}", c.iter, lost));
      if (c.status != tuner::Status::kOk)
        console_.log(Severity::kVerbose,
                     fmt::format("candidate {} {}: {}", c.iter, tuner::statusName(c.status), c.error));
      return;
    }
    clear();
    for (const auto& lost : c.lostWishes) console_.warning(lost);
    if (const char* status = tuner::statusName(c.status); c.status != tuner::Status::kOk && !c.error.empty())
      console_.warning(c.error == status ? c.error : fmt::format("{}: {}", status, c.error));
    console_.marker(c.status == tuner::Status::kOk ? "TASK_END" : "TASK_ABORT", tail(c.iter, c.route));
  }
  void onProgress(const tuner::Progress& p) override {
    const auto now = monotonicSeconds();
    const bool news = p.best && (!best_ || *best_ != p.best->iter);
    if (p.best) best_ = p.best->iter;
    if (terminal_) {
      auto line = progressLine(p);
      if (line.size() > 118) line = line.substr(0, 115) + "...";
      std::printf("\r%-*s", static_cast<int>(std::max(shown_, line.size())), line.c_str());
      std::fflush(stdout);
      shown_ = line.size();
    } else if (news || p.phase != phase_ || now - last_ >= 10) {
      console_.info(progressLine(p));
      last_ = now;
    }
    phase_ = p.phase;
  }
  void onMessage(int severity, const std::string& text) override {
    clear();
    console_.log(static_cast<Severity>(severity), text);
  }
  void clear() {
    if (!shown_) return;
    std::printf("\r%*s\r", static_cast<int>(shown_), "");
    std::fflush(stdout);
    shown_ = 0;
  }

 private:
  static std::string tail(int64_t iter, const std::string& route) {
    return fmt::format("[iter={}] BuildRoute = '{}'", iter, route);
  }
  Console& console_;
  bool automatic_, terminal_;
  std::string route_, phase_;
  std::optional<int64_t> best_;
  size_t shown_ = 0;
  double last_ = 0;
};

std::string ratioText(const tuner::Ratio& r) {
  return fmt::format("{:.3f}x (95 % interval {:.3f} to {:.3f})", r.ratio, r.lo, r.hi);
}

std::string lossText(const std::map<std::string, double>& losses) {
  std::string out;
  for (const auto& [name, l] : losses) out += fmt::format("{}{} {:.3g}", out.empty() ? "" : ", ", name, l);
  return out;
}

}  // namespace

// For one line of progress; the summary and the record have it whole.
static std::string shortened(const std::string& route) {
  if (route.size() <= 64) return route;
  const auto words = 1 + std::count(route.begin(), route.end(), ' ');
  return fmt::format("{} ... ({} assignments)", route.substr(0, route.rfind(' ', 64)), words);
}
std::string progressLine(const tuner::Progress& p) {
  auto out = fmt::format("[{}{} {}] {:.1f} s", p.done, p.planned ? fmt::format("/{}", *p.planned) : "", p.phase,
                         p.elapsedSeconds);
  if (p.best) {
    out += p.best->ranking ? fmt::format(", best {:.3f}x", p.best->ranking->ratio) : ", best";
    out += fmt::format(" {}", p.best->route.empty() ? "the default route" : shortened(p.best->route));
  }
  if (p.etaSeconds) out += fmt::format(", about {:.0f} s left", *p.etaSeconds);
  return out;
}

std::vector<std::string> tuningSummary(const tuner::TuneResult& r, const Options& o,
                                       const std::vector<std::string>& args) {
  using Outcome = tuner::TuneResult::Outcome;
  std::vector<std::string> out{"=== Tuning summary ==="};
  if (r.interrupted) out.push_back("Interrupted: this is the best so far");
  if (r.defaultMs) out.push_back(fmt::format("Default: {:.4g} ms", *r.defaultMs));
  if (r.outcome == Outcome::kImproved) {
    out.push_back(fmt::format("Best: {:.4g} ms, {}, from {} processes", r.bestMs.value_or(0),
                              r.confirmed ? ratioText(*r.confirmed) : "unconfirmed", r.processes));
    out.push_back(fmt::format("Best build route: '{}' (candidate {})", r.route, r.winnerIter));
  } else if (r.outcome == Outcome::kNoImprovement) {
    out.push_back("no improvement found: the default route stays" + (r.reason.empty() ? "" : " (" + r.reason + ")"));
    out.push_back(fmt::format("Best build route: '' ({:.4g} ms)", r.defaultMs.value_or(0)));
  } else {
    out.push_back("no candidate succeeded: " + r.reason);
  }
  if (r.losses && !r.losses->empty()) out.push_back("Accuracy loss: " + lossText(*r.losses));
  const bool references = std::any_of(o.inference.pairs.begin(), o.inference.pairs.end(),
                                      [](const RefPair& p) { return !p.refOutputs.empty(); });
  if (r.relativeError && r.defaultRelativeError)
    out.push_back(fmt::format("Relative error: default {:.2g}, best {:.2g}, against {}", *r.defaultRelativeError,
                              *r.relativeError, references ? "the references" : "the oracle"));
  const auto ok = r.counts.count("ok") ? r.counts.at("ok") : 0;
  out.push_back(fmt::format("{} / {} candidates succeeded, {} distinct engines", ok, r.candidates, r.distinctEngines));
  std::string failures;
  for (const auto& [status, n] : r.counts)
    if (status != "ok" && n > 0) failures += fmt::format("{}{} {}", failures.empty() ? "" : ", ", n, status);
  if (!failures.empty()) out.push_back("Others: " + failures);
  out.push_back(fmt::format("Time: {:.1f} s, {:.0f} % of it building or measuring candidates", r.elapsedSeconds,
                            r.elapsedSeconds > 0 ? r.busySeconds / r.elapsedSeconds * 100 : 0));
  if (!r.enginePath.empty())
    out.push_back(fmt::format("Engine: {}; run it: rutter --loadEngine={}{}", r.enginePath, shellJoin({r.enginePath}),
                              o.inference.cpuThreads ? fmt::format(" --threads={}", o.inference.cpuThreads) : ""));
  if (!r.cachePath.empty())
    out.push_back(fmt::format("Record: {}; go on: rutter --continue --tuningCacheFile={}", r.cachePath,
                              shellJoin({r.cachePath})));
  if (r.outcome != Outcome::kFailed) {
    std::string times;
    if (o.build.optimizationLevel >= 4)
      times = o.build.timingCacheFile.empty() ? r.cachePath + ".timing" : o.build.timingCacheFile;
    out.push_back("The same engine again: rutter " +
                  shellJoin(sameEngineArgs(args, r.outcome == Outcome::kImproved ? r.route : "", times)));
  }
  return out;
}

std::string tuningJson(const tuner::TuneResult& r) {
  using Outcome = tuner::TuneResult::Outcome;
  nlohmann::ordered_json j;
  j["outcome"] = r.outcome == Outcome::kImproved        ? "improved"
                 : r.outcome == Outcome::kNoImprovement ? "no_improvement"
                                                        : "failed";
  j["reason"] = r.reason;
  j["error"] = r.error;
  j["build_route"] = r.route;
  j["iter"] = r.winnerIter;
  auto number = [](const std::optional<double>& v) {
    return v ? nlohmann::ordered_json(*v) : nlohmann::ordered_json(nullptr);
  };
  j["default_ms"] = number(r.defaultMs);
  j["best_ms"] = number(r.bestMs);
  if (r.confirmed) {
    j["ratio"] = r.confirmed->ratio;
    j["ratio_lo"] = r.confirmed->lo;
    j["ratio_hi"] = r.confirmed->hi;
    j["processes"] = r.processes;
  }
  if (r.losses)
    for (const auto& [name, l] : *r.losses) j["accuracy_loss"][name] = l;
  j["relative_error"] = number(r.relativeError);
  j["default_relative_error"] = number(r.defaultRelativeError);
  j["candidates"] = r.candidates;
  j["distinct_engines"] = r.distinctEngines;
  j["counts"] = r.counts;
  j["elapsed_s"] = r.elapsedSeconds;
  j["busy_s"] = r.busySeconds;
  j["engine"] = r.enginePath;
  j["cache"] = r.cachePath;
  j["journal"] = r.journalPath;
  j["interrupted"] = r.interrupted;
  return j.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

Options resumedOptions(const Options& given, std::vector<std::string>& args) {
  const auto last = tuner::lastSearch(absolutePath(given.tuning.cacheFile));
  if (last.argv.empty()) throw UserError("--continue: {} records no command line", given.tuning.cacheFile);
  if (!given.tuning.tuneSeconds && !given.tuning.expression && !given.tuning.expressionFile)
    tuner::refuseOwnStrategy(last, given.tuning.cacheFile);
  args = continuedArgs(last, args);
  auto out = makeOptions(CommandLine::parse(args));
  out.tuning.resume = true;
  out.tuning.force = given.tuning.force;
  out.tuning.cacheFile = given.tuning.cacheFile;
  return out;
}

bool runTuning(const Options& o, const std::string& program, const std::vector<std::string>& args, Console& console,
               std::string& enginePath) {
  std::vector<std::string> recorded{program};
  const auto folder = workingFolder();
  for (auto& a : absoluteArgs(args, folder)) recorded.push_back(std::move(a));
  const auto options = tuneOptions(o, recorded, console);
  Interrupts interrupts;
  tuner::TuneResult result;
  {
    Listener listener(console, o.tuning.tuneSeconds.has_value());
    result = tuner::tune(options, listener, &Interrupts::count());
  }
  console.lines(tuningSummary(result, o, args));
  if (console.json()) console.result(tuningJson(result));
  enginePath = result.enginePath;
  if (!result.error.empty()) {
    console.error(result.error);
    return false;
  }
  return result.outcome != tuner::TuneResult::Outcome::kFailed;
}

}  // namespace rutter::cli
