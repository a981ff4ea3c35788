#include "tuner/wire.h"

#include "base/error.h"
#include "tuner/accuracy.h"

namespace rutter::tuner {
namespace {

template <typename T>
Json orNull(const std::optional<T>& v) {
  return v ? Json(*v) : Json(nullptr);
}
Json orNull(const std::optional<Ratio>& r) {
  return r ? Json{{"ratio", r->ratio}, {"lo", r->lo}, {"hi", r->hi}} : Json(nullptr);
}
template <typename T>
std::optional<T> optional(const Json& j, const char* key) {
  auto it = j.find(key);
  if (it == j.end() || it->is_null()) return std::nullopt;
  return it->get<T>();
}
std::optional<Ratio> ratio(const Json& j, const char* key) {
  auto it = j.find(key);
  if (it == j.end() || it->is_null()) return std::nullopt;
  return Ratio{it->at("ratio"), it->at("lo"), it->at("hi")};
}

}  // namespace

Json toJson(const TuneOptions& o) {
  Json profiles = Json::array(), pairs = Json::array();
  for (const auto& p : o.build.profiles) {
    Json inputs = Json::object();
    for (const auto& [name, r] : p) inputs[name] = {{"min", r.min}, {"opt", r.opt}, {"max", r.max}};
    profiles.push_back(inputs);
  }
  for (const IoPair& p : o.pairs) pairs.push_back({{"inputs", p.inputs}, {"refs", p.refOutputs}});
  return {{"model", o.model.path},
          {"edits", o.model.edits},
          {"directory", o.model.directory},
          {"profiles", profiles},
          {"shapes", o.build.runShapes},
          {"isa", o.build.isa},
          {"threads", o.build.threads},
          {"level", o.build.builderOptimizationLevel},
          {"workspace", o.build.workspaceBytes},
          {"strict", o.build.strictRoutes},
          {"timing_cache", o.build.timingCacheFile},
          {"formats", o.build.formats},
          {"verbosity", o.build.profilingVerbosity},
          {"max_tactics", o.build.maxTactics},
          {"avg_timing", o.build.avgTiming},
          {"error_on_miss", o.build.errorOnTimingMiss},
          {"keep_kernels", o.build.keepKernels},
          {"search", int(o.search)},
          {"expression", o.expression},
          {"budget", o.budgetSeconds},
          {"max_candidates", o.maxCandidates},
          {"accuracy",
           {{"algorithm", lossFlag(o.accuracy.algorithm)},
            {"threshold", o.accuracy.threshold},
            {"atol", o.accuracy.atol},
            {"rtol", o.accuracy.rtol}}},
          {"pairs", pairs},
          {"build_timeout", o.buildTimeOut},
          {"run_timeout", o.runTimeOut},
          {"begun", o.begun},
          {"min_gain", o.minGain},
          {"seed", o.seed},
          {"cache", o.cacheFile},
          {"save", o.saveEngine},
          {"save_all", o.saveAllEngines},
          {"resume", o.resume},
          {"force", o.force},
          {"tempdir", o.tempDir},
          {"argv", o.argv}};
}

TuneOptions optionsFromJson(const Json& j) {
  TuneOptions o;
  o.model.path = j.at("model");
  o.model.edits = j.at("edits");
  o.model.directory = j.value("directory", "");
  for (const Json& p : j.at("profiles")) {
    std::map<std::string, ShapeRange> inputs;
    for (const auto& [name, r] : p.items())
      inputs[name] = {r.at("min").get<std::vector<int64_t>>(), r.at("opt").get<std::vector<int64_t>>(),
                      r.at("max").get<std::vector<int64_t>>()};
    o.build.profiles.push_back(std::move(inputs));
  }
  o.build.runShapes = j.at("shapes").get<std::map<std::string, std::vector<int64_t>>>();
  o.build.isa = j.at("isa");
  o.build.threads = j.at("threads");
  o.build.builderOptimizationLevel = j.at("level");
  o.build.workspaceBytes = j.at("workspace");
  o.build.strictRoutes = j.at("strict");
  o.build.timingCacheFile = j.at("timing_cache");
  o.build.formats = j.value("formats", o.build.formats);
  o.build.profilingVerbosity = j.value("verbosity", o.build.profilingVerbosity);
  o.build.maxTactics = j.value("max_tactics", -1);
  o.build.avgTiming = j.value("avg_timing", 8);
  o.build.errorOnTimingMiss = j.value("error_on_miss", false);
  o.build.keepKernels = j.value("keep_kernels", true);
  o.search = SearchKind(j.at("search").get<int>());
  o.expression = j.at("expression");
  o.budgetSeconds = j.at("budget");
  o.maxCandidates = j.at("max_candidates");
  const Json& a = j.at("accuracy");
  o.accuracy = {parseLoss(a.at("algorithm")), a.at("threshold"), a.at("atol"), a.at("rtol")};
  for (const Json& p : j.at("pairs"))
    o.pairs.push_back({p.at("inputs").get<std::map<std::string, std::string>>(),
                       p.at("refs").get<std::map<std::string, std::string>>()});
  o.buildTimeOut = j.at("build_timeout");
  o.runTimeOut = j.at("run_timeout");
  o.begun = j.at("begun");
  o.minGain = j.at("min_gain");
  o.seed = j.at("seed");
  o.cacheFile = j.at("cache");
  o.saveEngine = j.at("save");
  o.saveAllEngines = j.at("save_all");
  o.resume = j.at("resume");
  o.force = j.at("force");
  o.tempDir = j.at("tempdir");
  o.argv = j.at("argv").get<std::vector<std::string>>();
  return o;
}

Json toJson(const CandidateInfo& c) {
  return {{"iter", c.iter},
          {"phase", c.phase},
          {"route", c.route},
          {"status", statusName(c.status)},
          {"error", c.error},
          {"losses", lossesToJson(c.losses)},
          {"ms", orNull(c.milliseconds)},
          {"ranking", orNull(c.ranking)},
          {"same_as", orNull(c.sameAs)},
          {"no_effect", c.lostWishes}};
}

CandidateInfo infoFromJson(const Json& j) {
  CandidateInfo c;
  c.iter = j.at("iter");
  c.phase = j.at("phase");
  c.route = j.at("route");
  c.status = parseStatus(j.at("status"));
  c.error = j.at("error");
  c.losses = lossesFromJson(j.at("losses"));
  c.milliseconds = optional<double>(j, "ms");
  c.ranking = ratio(j, "ranking");
  c.sameAs = optional<int64_t>(j, "same_as");
  c.lostWishes = j.at("no_effect");
  return c;
}

Json toJson(const Progress& p) {
  return {{"done", p.done},
          {"planned", orNull(p.planned)},
          {"phase", p.phase},
          {"elapsed", p.elapsedSeconds},
          {"eta", orNull(p.etaSeconds)},
          {"best", p.best ? toJson(*p.best) : Json(nullptr)}};
}

Progress progressFromJson(const Json& j) {
  Progress p;
  p.done = j.at("done");
  p.planned = optional<int64_t>(j, "planned");
  p.phase = j.at("phase");
  p.elapsedSeconds = j.at("elapsed");
  p.etaSeconds = optional<double>(j, "eta");
  if (!j.at("best").is_null()) p.best = infoFromJson(j.at("best"));
  return p;
}

Json toJson(const TuneResult& r) {
  return {{"outcome", int(r.outcome)},
          {"reason", r.reason},
          {"failure", r.error},
          {"iter", r.winnerIter},
          {"route", r.route},
          {"confirmed", orNull(r.confirmed)},
          {"processes", r.processes},
          {"default_ms", orNull(r.defaultMs)},
          {"best_ms", orNull(r.bestMs)},
          {"losses", lossesToJson(r.losses)},
          {"relative_error", orNull(r.relativeError)},
          {"default_relative_error", orNull(r.defaultRelativeError)},
          {"counts", r.counts},
          {"candidates", r.candidates},
          {"distinct", r.distinctEngines},
          {"elapsed", r.elapsedSeconds},
          {"busy", r.busySeconds},
          {"engine", r.enginePath},
          {"journal", r.journalPath},
          {"cache", r.cachePath},
          {"interrupted", r.interrupted}};
}

TuneResult resultFromJson(const Json& j) {
  TuneResult r;
  r.outcome = TuneResult::Outcome(j.at("outcome").get<int>());
  r.reason = j.at("reason");
  r.error = j.at("failure");
  r.winnerIter = j.at("iter");
  r.route = j.at("route");
  r.confirmed = ratio(j, "confirmed");
  r.processes = j.at("processes");
  r.defaultMs = optional<double>(j, "default_ms");
  r.bestMs = optional<double>(j, "best_ms");
  r.losses = lossesFromJson(j.at("losses"));
  r.relativeError = optional<double>(j, "relative_error");
  r.defaultRelativeError = optional<double>(j, "default_relative_error");
  r.counts = j.at("counts").get<std::map<std::string, int64_t>>();
  r.candidates = j.at("candidates");
  r.distinctEngines = j.at("distinct");
  r.elapsedSeconds = j.at("elapsed");
  r.busySeconds = j.at("busy");
  r.enginePath = j.at("engine");
  r.journalPath = j.at("journal");
  r.cachePath = j.at("cache");
  r.interrupted = j.at("interrupted");
  return r;
}

}  // namespace rutter::tuner
