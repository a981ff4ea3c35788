#include "build.h"

#include <rutter/builder.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "api/objects.h"
#include "base/clock.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "base/text.h"
#include "cli/exports.h"
#include "cli/values.h"
#include "compiler/timing_cache.h"
#include "knobs/route.h"
#include "passes/infer.h"

namespace rutter::cli {
namespace {

double peakMiB() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) / 1024;
}

// Phases of a build in the verbose log; Ctrl-C cancels between two steps.
class BuildMonitor : public IProgressMonitor {
 public:
  explicit BuildMonitor(Console& c) : console_(c) {}
  void phaseStart(char const*, char const*, int32_t steps) noexcept override {
    begin_ = monotonicSeconds();
    steps_ = steps;
  }
  bool stepComplete(char const*, int32_t) noexcept override { return Interrupts::count() == 0; }
  void phaseFinish(char const* name) noexcept override {
    try {
      console_.log(rutter::Severity::kVerbose,
                   fmt::format("{}: {} steps in {:.3g} s", name, steps_, monotonicSeconds() - begin_));
    } catch (const std::exception&) {
    }
  }

 private:
  Console& console_;
  double begin_ = 0;
  int32_t steps_ = 0;
};

Dims toDims(const std::vector<int64_t>& v) {
  RUTTER_CHECK(v.size() <= Dims::MAX_DIMS, "rank {}", v.size());
  Dims d;
  d.nbDims = static_cast<int32_t>(v.size());
  std::copy(v.begin(), v.end(), d.d);
  return d;
}

std::vector<ITensor*> tensors(const INetworkDefinition& n, bool inputs) {
  std::vector<ITensor*> out;
  for (int32_t i = 0; i < (inputs ? n.getNbInputs() : n.getNbOutputs()); i++)
    out.push_back(inputs ? n.getInput(i) : n.getOutput(i));
  return out;
}

void setFormats(const std::vector<ITensor*>& all, const std::vector<std::string>& formats, std::string_view flag) {
  std::vector<FormatTensor> infos;
  for (const auto* t : all)
    infos.push_back({t->getName(), static_cast<ir::DType>(t->getType()), t->getDimensions().nbDims});
  for (const auto& name : channelsLast(infos, formats, flag))
    for (auto* t : all)
      if (t->getName() == name) t->setAllowedFormats(1u << static_cast<uint32_t>(TensorFormat::kHWC));
}

void configure(IBuilderConfig& config, IBuilder& builder, const Options& o, const ShapePlan& plan, Errors& errors) {
  const auto& b = o.build;
  if (b.route) {
    if (b.route->empty())
      throw UserError("--setBuildRoute= is empty: leave the flag out for the default route, or write -knob=value");
    knobs::Route::parse(*b.route);  // its errors carry kind and column
    errors.need(config.setBuildRoute(b.route->c_str()), "the build route was refused");
  }
  if (b.strictRoutes) config.setFlag(BuilderFlag::kSTRICT_ROUTES);
  errors.need(config.setTarget(b.target.c_str()), "the target was refused");
  if (!b.isa.empty()) errors.need(config.setIsa(b.isa.c_str()), "the instruction set was refused");
  if (b.workspaceBytes) config.setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, *b.workspaceBytes);
  config.setProfilingVerbosity(b.profilingVerbosity == "detailed" ? ProfilingVerbosity::kDETAILED
                               : b.profilingVerbosity == "none"   ? ProfilingVerbosity::kNONE
                                                                  : ProfilingVerbosity::kLAYER_NAMES_ONLY);
  config.setBuilderOptimizationLevel(b.optimizationLevel);
  config.setAvgTimingIterations(b.avgTiming);
  config.setMaxNbTactics(b.maxTactics);
  if (b.noBuilderCache) config.setFlag(BuilderFlag::kDISABLE_TIMING_CACHE);
  if (b.noCompilationCache) config.setFlag(BuilderFlag::kDISABLE_COMPILATION_CACHE);
  if (b.errorOnTimingCacheMiss && b.optimizationLevel >= 4) config.setFlag(BuilderFlag::kERROR_ON_TIMING_CACHE_MISS);
  for (const auto& ranges : plan.profiles) {
    if (ranges.empty()) continue;
    auto* profile = errors.need(builder.createOptimizationProfile(), "a profile could not be created");
    for (const auto& [name, r] : ranges)
      for (const auto& [select, dims] : {std::pair{OptProfileSelector::kMIN, r.min},
                                         {OptProfileSelector::kOPT, r.opt},
                                         {OptProfileSelector::kMAX, r.max}})
        errors.need(profile->setDimensions(name.c_str(), select, toDims(dims)), "the shapes of a profile were refused");
    if (config.addOptimizationProfile(profile) < 0) errors.raise("a profile was refused");
  }
}

// The cache of --timingCacheFile, read and set; null if there is none or nothing is timed.
std::unique_ptr<ITimingCache> readTimings(IBuilderConfig& config, const BuildOptions& b, Errors& errors) {
  if (b.timingCacheFile.empty() || b.optimizationLevel < 4) return nullptr;
  const auto bytes = compiler::TimingCache::read(b.timingCacheFile).serialize();
  std::unique_ptr<ITimingCache> cache(
      errors.need(config.createTimingCache(bytes.data(), bytes.size()), "the timing cache was refused"));
  errors.need(config.setTimingCache(*cache, false), "the timing cache was refused");
  return cache;
}
void writeTimings(const ITimingCache* cache, const BuildOptions& b, Console& console) {
  if (!cache || b.errorOnTimingCacheMiss) return;  // then there is nothing new
  std::unique_ptr<IHostMemory> bytes(cache->serialize());
  if (!bytes) return;
  const auto times = compiler::TimingCache::parse({static_cast<const char*>(bytes->data()), bytes->size()});
  times.write(b.timingCacheFile);
  console.info(fmt::format("Timing cache: {} times in {}", times.size(), b.timingCacheFile));
}

void createRuntime(Session& s, const Options& o) {
  s.runtime.reset(s.errors.need(createInferRuntime(s.logger), "the runtime could not be created"));
  s.runtime->setErrorRecorder(&s.errors);
  if (o.inference.cpuThreads)
    s.errors.need(s.runtime->setMaxThreads(o.inference.cpuThreads), "the number of threads was refused");
  if (!o.build.tempdir.empty()) s.runtime->setTemporaryDirectory(o.build.tempdir.c_str());
}

// What the public interface does not show of a network: what becomes of its inputs, which shapes its outputs have.
const ir::Graph& graphOf(const INetworkDefinition& network) {
  return *static_cast<const api::Network&>(network).graph();
}

// What inputs and references can be wrong about is said before the build, which takes long.
void checkFilesOfPairs(const Options& o, const ir::Graph& network, const ShapeMap& inputs) {
  if (o.inference.pairs.empty() || o.build.skipInference || o.inference.timeDeserialize) return;
  const auto graph = network.clone();
  passes::Profile profile;
  for (const auto& [name, dims] : inputs) profile[name] = passes::ShapeRange::fixed(dims);
  passes::specialise(*graph, profile);
  std::vector<IoTensor> io;
  ShapeMap shapes;
  for (const bool input : {true, false})
    for (const ir::Value* v : input ? graph->top().inputs : graph->top().outputs) {
      io.push_back({v->name, v->type.dtype, input, {}});
      if (auto dims = ir::constants(v->type.dims)) shapes[v->name] = *dims;
    }
  checkFiles(io, shapes, o);
}

void buildFromModel(Session& s, const Options& o) {
  auto& console = s.console;
  const double start = monotonicSeconds();
  std::unique_ptr<IBuilder> builder(s.errors.need(createInferBuilder(s.logger), "the builder could not be created"));
  builder->setErrorRecorder(&s.errors);
  if (o.inference.cpuThreads)
    s.errors.need(builder->setMaxThreads(o.inference.cpuThreads), "the number of threads was refused");
  std::unique_ptr<INetworkDefinition> network(
      s.errors.need(builder->createNetworkV2(0), "the network could not be created"));
  network->setErrorRecorder(&s.errors);
  {
    std::unique_ptr<onnx::IParser> parser(
        s.errors.need(onnx::createParser(*network, s.logger), "the parser could not be created"));
    // What was reported names the file and, of operators without a rule, all nodes; the parser's errors are one each.
    s.errors.need(parser->parseFromFile(o.model.onnx.c_str(), 0), "the model could not be read");
  }
  console.info(
      fmt::format("Model with {} layers read in {:.3g} s", network->getNbLayers(), monotonicSeconds() - start));
  setFormats(tensors(*network, true), o.build.inputFormats, "inputIOFormats");
  setFormats(tensors(*network, false), o.build.outputFormats, "outputIOFormats");
  std::vector<InputInfo> inputs;
  for (const auto* t : tensors(*network, true)) {
    const auto dims = t->getDimensions();  // -1: none in the model; more than it holds is an error of the parser
    if (dims.nbDims < 0)
      inputs.push_back({t->getName(), {}, false});
    else
      inputs.push_back({t->getName(), toVector(dims)});
  }
  const auto plan = planShapes(inputs, o);
  for (const auto& w : plan.warnings) console.warning(w);
  s.shapes = plan.run;
  s.rules = tuner::inputRules(graphOf(*network));

  std::unique_ptr<IBuilderConfig> config(
      s.errors.need(builder->createBuilderConfig(), "the configuration could not be created"));
  configure(*config, *builder, o, plan, s.errors);
  const auto timings = readTimings(*config, o.build, s.errors);
  checkFilesOfPairs(o, graphOf(*network), plan.run);
  BuildMonitor monitor(console);
  config->setProgressMonitor(&monitor);
  Interrupts interrupts;
  const double begin = monotonicSeconds();
  std::unique_ptr<IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
  writeTimings(timings.get(), o.build, console);  // also of a build that was interrupted: times are dear
  s.errors.need(bytes.get(), "the build failed");
  console.info(fmt::format("Engine built in {:.4g} sec.", monotonicSeconds() - begin));
  console.info(fmt::format("Created engine with size: {:.4g} MiB", static_cast<double>(bytes->size()) / (1 << 20)));
  console.info(fmt::format("Peak memory of the build: {:.0f} MiB", peakMiB()));
  createRuntime(s, o);
  const auto& path = o.model.saveEngine;
  const bool mapped = !path.empty() && !*notAFile(path);  // a pipe is written, and cannot be read again
  if (!path.empty()) {
    writeFileAtomically(path, {static_cast<const char*>(bytes->data()), bytes->size()});
    console.info(fmt::format("Engine saved to {}", path));
  }
  if (mapped) bytes.reset();
  s.engine.reset(s.errors.need(
      mapped ? s.runtime->deserializeFile(path.c_str()) : s.runtime->deserializeEngine(bytes->data(), bytes->size()),
      "the engine could not be loaded"));
}

// Flags that build an engine with these profiles and tune it for `run`, which lies in profile `use`.
std::vector<std::string> shapeFlags(const std::vector<RangeMap>& profiles, size_t use, const ShapeMap& run) {
  auto list = [](const RangeMap& p, auto&& of) {
    std::vector<std::string> out;
    for (const auto& [name, range] : p) out.push_back(printShape(name, of(name, range)));
    return fmt::format("{}", fmt::join(out, ","));
  };
  const auto here = [&](auto& name, auto&) { return run.at(name); };
  const bool open = std::any_of(profiles.begin(), profiles.end(), [](auto& p) {
    return std::any_of(p.begin(), p.end(), [](auto& in) { return in.second.min != in.second.max; });
  });
  const bool one = profiles.size() == 1;
  if (one && !open) return {"--shapes=" + list(profiles[0], here)};
  std::vector<std::string> out;
  for (size_t i = 0; i < profiles.size(); i++) {
    const RangeMap& p = profiles[i];
    if (!one) out.push_back(fmt::format("--profile={}", i));
    out.push_back("--minShapes=" + list(p, [](auto&, auto& r) { return r.min; }));
    out.push_back("--optShapes=" + (one ? list(p, here) : list(p, [](auto&, auto& r) { return r.opt; })));
    out.push_back("--maxShapes=" + list(p, [](auto&, auto& r) { return r.max; }));
  }
  if (!one) out.insert(out.end(), {fmt::format("--useProfile={}", use), "--shapes=" + list(profiles[use], here)});
  return out;
}

// The runtime compares machine and versions with the fingerprint; which shapes are run on how many threads is known
// only here.
void warnIfTunedForSomethingElse(const Session& s, size_t use) {
  const char* text = s.engine->getTuningFingerprint();
  if (!text || !*text) return;
  std::vector<std::string> differences;
  auto add = [&](const std::string& name, const std::string& there, const std::string& here) {
    if (there != here) differences.push_back(fmt::format("{}: {} there, {} here", name, there, here));
  };
  auto facts = Fingerprint::parse(text).facts;
  bool open = false;  // the model's shapes
  for (const auto& [name, dims] : s.shapes)
    if (auto it = facts.find("shape:" + name); it != facts.end())
      open = true, add("shape of " + name, it->second, printDims(dims));
  const bool otherShapes = !differences.empty();
  const auto threads = std::to_string(s.runtime->getMaxThreads());
  // Cores that are not there are the runtime's to tell.
  if (auto it = facts.find("threads"); it != facts.end() && Fingerprint::ofMachine().facts["cores"] == facts["cores"])
    add("threads", it->second, threads);
  if (differences.empty()) return;
  // A static model takes no shapes.
  std::vector<std::string> args =
      open ? shapeFlags(engineProfiles(*s.engine), use, s.shapes) : std::vector<std::string>{};
  args.insert(args.end(), {"--threads=" + threads, "--tune"});
  s.console.warning(fmt::format(
      "the engine was tuned for {} ({}): it is right here too, but to make it fast tune it for this: "
      "rutter --onnx=<its model> {}",
      otherShapes ? "other shapes" : "another number of threads", fmt::join(differences, "; "), shellJoin(args)));
}

}  // namespace

std::vector<std::string> channelsLast(const std::vector<FormatTensor>& all, const std::vector<std::string>& formats,
                                      std::string_view flag) {
  static const std::map<std::string, ir::DType> kTypes = {
      {"fp32", ir::DType::kF32},  {"fp16", ir::DType::kF16}, {"bf16", ir::DType::kBF16}, {"int32", ir::DType::kI32},
      {"int64", ir::DType::kI64}, {"int8", ir::DType::kI8},  {"uint8", ir::DType::kU8},  {"bool", ir::DType::kBool}};
  std::vector<std::string> out;
  if (formats.empty()) return out;
  if (formats.size() != 1 && formats.size() != all.size())
    throw UserError("--{}: {} formats for {} tensors; give one for each, or one for all", flag, formats.size(),
                    all.size());
  for (size_t i = 0; i < all.size(); i++) {
    const auto& f = formats[formats.size() == 1 ? 0 : i];
    const auto colon = f.find(':');
    const auto& t = all[i];
    if (colon != f.npos && kTypes.at(f.substr(0, colon)) != t.dtype)
      throw UserError("--{}: '{}' is {} in the model, not {}; types come from the model", flag, t.name,
                      ir::dtypeName(t.dtype), f.substr(0, colon));
    if (f.substr(colon == f.npos ? 0 : colon + 1) != "hwc") continue;
    if (t.rank < 3) throw UserError("--{}: '{}' has rank {}; hwc needs 3 at least", flag, t.name, t.rank);
    out.push_back(t.name);
  }
  return out;
}

std::vector<std::string> channelsLastTensors(const ir::Graph& g, const Options& o) {
  std::vector<std::string> out;
  for (const bool input : {true, false}) {
    std::vector<FormatTensor> tensors;
    for (const auto* v : input ? g.top().inputs : g.top().outputs)
      tensors.push_back({v->name, v->type.dtype, v->type.known ? static_cast<int>(v->type.rank()) : -1});
    for (auto& name : channelsLast(tensors, input ? o.build.inputFormats : o.build.outputFormats,
                                   input ? "inputIOFormats" : "outputIOFormats"))
      out.push_back(std::move(name));
  }
  return out;
}

std::vector<InputInfo> modelInputs(const ir::Graph& g) {
  std::vector<InputInfo> out;
  for (const ir::Value* v : g.top().inputs) {
    InputInfo in{v->name, {}, v->type.known};
    for (const auto& d : v->type.dims) in.dims.push_back(d.constant().value_or(-1));
    out.push_back(std::move(in));
  }
  return out;
}

frontend::Model readModel(const std::string& path, Console& console) {
  const double begin = monotonicSeconds();
  auto model = frontend::importFile(path);
  console.info(fmt::format("Model: {} nodes, opset {}, IR version {}{}{}; read in {:.3g} s", model.nodes, model.opset,
                           model.irVersion, model.producer.empty() ? "" : ", made by ", model.producer,
                           monotonicSeconds() - begin));
  return model;
}

void loadEngine(Session& s, const std::string& path, const Options& o) {
  createRuntime(s, o);
  const double begin = monotonicSeconds();
  s.engine.reset(s.runtime->deserializeFile(path.c_str()));
  if (!s.engine) {
    const std::string text = s.errors.getNbErrors() ? s.errors.getErrorDesc(0) : "the engine could not be loaded";
    if (text.find(path) == text.npos) throw UserError("{}: {}", path, text);
    s.errors.raise(text);
  }
  s.console.info(fmt::format("Engine loaded in {:.4g} sec.", monotonicSeconds() - begin));
  std::error_code ignored;
  s.console.info(fmt::format("Loaded engine with size: {:.4g} MiB",
                             static_cast<double>(std::filesystem::file_size(path, ignored)) / (1 << 20)));
  if (auto* route = s.engine->getBuildRoute(); route && *route)
    s.console.info(fmt::format("Build route of the engine: {}", route));
  std::vector<InputInfo> inputs;
  for (const auto& t : ioTensors(*s.engine))
    if (t.input) inputs.push_back({t.name, t.dims});
  s.shapes = planRun(inputs, engineProfiles(*s.engine), o);
  warnIfTunedForSomethingElse(s, size_t(o.inference.useProfile));
}

void checkTempdir(const Options& o) {
  const auto& path = o.build.tempdir;
  if (path.empty()) return;
  struct stat st{};
  if (::stat(path.c_str(), &st) != 0) throw UserError("--tempdir={}: {}", path, std::strerror(errno));
  if (!S_ISDIR(st.st_mode)) throw UserError("--tempdir={}: it is no folder", path);
  if (::access(path.c_str(), W_OK | X_OK) != 0)
    throw UserError("--tempdir={}: nothing can be written there: {}", path, std::strerror(errno));
}

void prepareEngine(Session& s, const Options& o) {
  if (o.model.loadEngine.empty())
    buildFromModel(s, o);
  else
    loadEngine(s, o.model.loadEngine, o);
}

}  // namespace rutter::cli
