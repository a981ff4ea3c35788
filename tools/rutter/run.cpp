#include "run.h"

#include <sched.h>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "base/clock.h"
#include "base/cpu.h"
#include "base/error.h"
#include "base/file.h"
#include "build.h"
#include "cli/dry_run.h"
#include "cli/exports.h"
#include "distinct.h"
#include "inference.h"
#include "outputs.h"
#include "tuning.h"

namespace rutter::cli {
namespace {

void setAffinity(const std::vector<int>& cpus) {
  if (cpus.empty()) return;
  cpu_set_t set;
  CPU_ZERO(&set);
  for (int c : cpus) {
    if (c >= CPU_SETSIZE) throw UserError("--cpuMask: there is no core {}", c);
    CPU_SET(c, &set);
  }
  if (::sched_setaffinity(0, sizeof set, &set) != 0)
    throw UserError("--cpuMask: these cores cannot be used: {}", std::strerror(errno));
}

void checkOutputs(const Options& o) {
  const auto& r = o.reporting;
  for (const auto& [flag, path] : {std::pair{"saveEngine", o.model.saveEngine},
                                   {"timingCacheFile", o.build.timingCacheFile},
                                   {"exportTimes", r.exportTimes},
                                   {"exportOutput", r.exportOutput},
                                   {"exportProfile", r.exportProfile},
                                   {"exportLayerInfo", r.exportLayerInfo}})
    if (!path.empty()) checkWritable(flag, path);
}

bool check(const Options& o, Console& console) {
  const auto model = readModel(o.model.check, console);
  for (const auto* v : model.graph->top().inputs)
    console.info(
        fmt::format("input {}: {}", v->name,
                    v->type.known ? v->type.text() : std::string(ir::dtypeName(v->type.dtype)) + ", no shape"));
  for (const auto* v : model.graph->top().outputs) console.info(fmt::format("output {}: {}", v->name, v->type.text()));
  console.info("The model can be read and all of its operators are known");
  return true;
}

bool planVersion(const Options& o, Console& console) {
  std::ifstream in(o.model.loadEngine, std::ios::binary);
  std::string head(64, '\0');
  if (!in.read(head.data(), static_cast<std::streamsize>(head.size())))
    throw UserError("cannot read an engine from '{}'", o.model.loadEngine);
  const auto version = rutterEngineFormatVersion(head.data(), head.size());
  if (version < 0) throw UserError("'{}' is not an engine", o.model.loadEngine);
  console.info(fmt::format("Plan was created with format version {}", version));
  return true;
}

void timeDeserialize(Session& s, const Options& o, Console& console) {
  constexpr int kLoads = 20;
  const auto path = o.model.loadEngine.empty() ? o.model.saveEngine : o.model.loadEngine;
  std::unique_ptr<IHostMemory> bytes;
  if (path.empty()) bytes.reset(s.errors.need(s.engine->serialize(), "the engine could not be serialised"));
  std::vector<double> ms;
  for (int i = 0; i < kLoads; i++) {
    const double begin = monotonicSeconds();
    std::unique_ptr<IEngine> e(bytes ? s.runtime->deserializeEngine(bytes->data(), bytes->size())
                                     : s.runtime->deserializeFile(path.c_str()));
    s.errors.need(e.get(), "the engine could not be loaded");
    ms.push_back(1000 * (monotonicSeconds() - begin));
  }
  const double first = ms.front();
  const auto sum = summarize(ms, {});
  console.info(
      fmt::format("Total deserialization time = {:g} milliseconds in {} iterations, average time = {:g} milliseconds, "
                  "first time = {:g} "
                  "milliseconds, median = {:g} milliseconds",
                  sum.mean * kLoads, kLoads, sum.mean, first, sum.median));
}

// Integers that are no indices of anything known may still index a table inside a loaded engine. The default draw is
// tried first; if the engine refuses it, every integer is 0 or 1.
std::unique_ptr<Inference> startInference(Session& s, const Options& o) {
  auto inference = std::make_unique<Inference>(s, o);
  if (o.model.loadEngine.empty() || !o.inference.pairs.empty()) return inference;
  try {
    inference->tryOnce();
    return inference;
  } catch (const UserError&) {
    for (const auto& t : ioTensors(*s.engine))
      if (t.input && ir::isInteger(t.dtype)) s.rules[t.name] = {tuner::InputRule::Kind::kMask, 2};
    return std::make_unique<Inference>(s, o);
  }
}

bool infer(Session& s, const Options& o, Console& console, bool result = true) {
  auto inference = startInference(s, o);
  const auto& r = o.reporting;
  if (r.dumpLayerInfo) console.lines(layerInfoLines(s, &inference->context()));
  if (!r.exportLayerInfo.empty()) writeFileAtomically(r.exportLayerInfo, layerInfoJson(s, &inference->context()));

  const auto accuracy = inference->checkAccuracy();
  std::optional<Trace> trace;
  if (accuracy.ok) {
    console.info("Starting inference");
    trace = cutWarmUp(inference->measure(), o.inference.warmUpMs);
    const auto report = performanceReport(*trace, r.avgRuns, r.percentiles, o.inference.streams);
    console.lines(report.lines);
    for (const auto& w : report.warnings) console.warning(w);
    if (!r.exportTimes.empty()) writeFileAtomically(r.exportTimes, timesJson(trace->measured));
  }
  const auto outputs = inference->outputs();
  if (r.dumpOutput) console.lines(outputLines(outputs));
  if (!r.exportOutput.empty()) writeFileAtomically(r.exportOutput, outputsJson(outputs));
  if (r.dumpRawBindings) dumpRaw(inference->inputs(), outputs);
  if (r.dumpProfile || !r.exportProfile.empty()) {
    const auto layers = inference->profile();
    if (r.dumpProfile) console.lines(profileTable(layers));
    if (!r.exportProfile.empty()) writeFileAtomically(r.exportProfile, profileJson(layers));
  }
  if (result && console.json()) console.result(resultJson(s, o, trace ? &*trace : nullptr, accuracy));
  return accuracy.ok;
}

// Export and dump flags of a search are about its winner.
bool reportWinner(const Options& o, const std::string& engine, Console& console) {
  const auto& r = o.reporting;
  if (!r.reports()) return true;
  if (engine.empty()) {
    console.warning("reports need the winner's engine, which was not saved; give --saveEngine");
    return true;
  }
  Options w = o;
  w.model = {};
  w.model.loadEngine = engine;
  Session s(console);
  prepareEngine(s, w);
  if (r.dumpOptimizationProfile) console.lines(profileShapeLines(*s.engine));
  return infer(s, w, console, false);
}

}  // namespace

bool run(const Options& given, const std::vector<std::string>& argv, Console& console) {
  // A resumed search is, in everything, the one that it resumes.
  std::vector<std::string> args(argv.begin() + 1, argv.end());
  const Options o = given.tuning.resume ? resumedOptions(given, args) : given;
  if (given.tuning.resume)
    for (const auto& w : o.warnings) console.warning(w);
  const bool checkOnly = !o.model.check.empty();
  if (!checkOnly) console.lines(echoOptions(o));  // which are about builds and runs
  console.info("Rutter version " RUTTER_VERSION);
  setAffinity(o.inference.cpus);
  if (const int cores = usableThreads(); o.inference.cpuThreads > cores)
    console.warning(
        fmt::format("--threads={}: {} core{} can be used here; threads beyond that only wait for each other",
                    o.inference.cpuThreads, cores, cores == 1 ? "" : "s"));
  checkTempdir(o);
  if (checkOnly) return check(o, console);
  if (o.build.getPlanVersionOnly) return planVersion(o, console);
  if (o.tuning.dryRun) {
    auto expression = readExpression(o.tuning);
    const auto model = readModel(o.model.onnx, console);
    listRoutes(expression, o.tuning, console);
    for (const auto& line : distinctLines(countDistinct(model, expression, o, 5))) console.note(line);
    return true;
  }
  checkOutputs(o);
  if (o.tuning.active()) {
    std::string engine;
    return runTuning(o, argv[0], args, console, engine) && reportWinner(o, engine, console);
  }

  Session s(console);
  prepareEngine(s, o);
  if (o.reporting.dumpOptimizationProfile) console.lines(profileShapeLines(*s.engine));
  if (o.build.skipInference || o.inference.timeDeserialize) {
    if (o.reporting.dumpLayerInfo) console.lines(layerInfoLines(s, nullptr));
    if (!o.reporting.exportLayerInfo.empty())
      writeFileAtomically(o.reporting.exportLayerInfo, layerInfoJson(s, nullptr));
    if (o.inference.timeDeserialize) timeDeserialize(s, o, console);
    if (console.json()) console.result(resultJson(s, o, nullptr, {}));
    return true;
  }
  return infer(s, o, console);
}

}  // namespace rutter::cli
