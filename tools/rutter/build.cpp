#include "build.h"

#include <sys/resource.h>

#include <chrono>
#include <filesystem>

#include "base/cpu.h"
#include "compiler/compile.h"
#include "knobs/route.h"
#include "runtime/engine_file.h"

namespace rutter::cli {
namespace {

double seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double peakMiB() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  return static_cast<double>(u.ru_maxrss) / 1024;
}

void refuseWhatDoesNotExist(const BuildOptions& b) {
  if (b.optimizationLevel > 3)
    throw UserError(
        "--builderOptimizationLevel={}: levels 4 and 5, which time tactics, do not exist yet; use 0 to 3, or --tune",
        b.optimizationLevel);
  if (!b.timingCacheFile.empty())
    throw UserError("--timingCacheFile={}: kernels are not kept between runs yet", b.timingCacheFile);
}

compiler::BuildOptions buildOptions(const frontend::Model& model, const Options& o, const ShapePlan& plan,
                                    Console& console) {
  compiler::BuildOptions b;
  if (o.build.route) {
    if (o.build.route->empty())
      throw UserError("--setBuildRoute= is empty: leave the flag out for the default route, or write -knob=value");
    b.route = knobs::Route::parse(*o.build.route);
  }
  if (auto lossy = knobs::lossyAssignments(b.route); !lossy.empty()) {
    std::string names;
    for (const auto& a : lossy) names += (names.empty() ? "" : ", ") + knobs::printAssignment(a, b.route.registry());
    console.warning("the route may lose accuracy: " + names);
  }
  for (const auto& p : plan.profiles) {
    passes::Profile profile;
    for (const auto& [name, r] : p) profile[name] = {r.min, r.opt, r.max};
    b.profiles.push_back(std::move(profile));
  }
  b.target = o.build.target;
  b.isa = o.build.isa;
  b.threads = o.inference.cpuThreads;
  b.strictRoutes = o.build.strictRoutes;
  b.ioLayouts = ioLayouts(*model.graph, o.build);
  if (o.reporting.verbose)
    b.progress = [&console](std::string_view phase, int step, int steps) {
      if (step == 0) console.log(Severity::kVerbose, fmt::format("{} ({} steps)", phase, steps));
    };
  return b;
}

void createRuntime(Session& s, const Options& o) {
  s.runtime.reset(s.errors.need(createInferRuntime(s.logger), "the runtime could not be created"));
  s.runtime->setErrorRecorder(&s.errors);
  if (o.inference.cpuThreads)
    s.errors.need(s.runtime->setMaxThreads(o.inference.cpuThreads), "the number of threads was refused");
  if (!o.build.tempdir.empty()) s.runtime->setTemporaryDirectory(o.build.tempdir.c_str());
}

void checkWorkspace(const Session& s, const Options& o) {
  if (!o.build.workspaceBytes) return;
  const auto needs = static_cast<uint64_t>(s.engine->getDeviceMemorySizeV2());
  if (needs > *o.build.workspaceBytes)
    throw UserError("the engine needs {:.1f} MiB of memory for activations, and --memPoolSize=workspace allows {:.1f}",
                    static_cast<double>(needs) / (1 << 20), static_cast<double>(*o.build.workspaceBytes) / (1 << 20));
}

void buildFromModel(Session& s, const Options& o) {
  refuseWhatDoesNotExist(o.build);
  auto& console = s.console;
  const auto model = readModel(o.model.onnx, console);
  const auto plan = planShapes(modelInputs(*model.graph), o);
  for (const auto& w : plan.warnings) console.warning(w);
  s.shapes = plan.run;
  s.rules = tuner::inputRules(*model.graph);
  const auto options = buildOptions(model, o, plan, console);

  const double begin = seconds();
  compiler::KernelCache cache;
  const auto result = compiler::buildEngine(model, options, cache);
  for (const auto& w : result.warnings) console.warning(w);
  createRuntime(s, o);
  size_t size = 0;
  if (!o.model.saveEngine.empty()) {
    runtime::writeEngineFile(result.parts, o.model.saveEngine);
    size = std::filesystem::file_size(o.model.saveEngine);
    s.engine.reset(
        s.errors.need(s.runtime->deserializeFile(o.model.saveEngine.c_str()), "the engine could not be loaded"));
  } else {
    const auto bytes = runtime::writeEngine(result.parts);
    size = bytes.size();
    s.engine.reset(
        s.errors.need(s.runtime->deserializeEngine(bytes.data(), bytes.size()), "the engine could not be loaded"));
  }
  console.info(fmt::format("Engine built in {:.4g} sec.", seconds() - begin));
  console.info(fmt::format("Created engine with size: {:.4g} MiB", static_cast<double>(size) / (1 << 20)));
  console.info(fmt::format(
      "{} layers, {} kernels, {} reference nodes; decided in {:.3g} s, compiled in {:.3g} s; peak memory {:.0f} MiB",
      s.engine->getNbLayers(), result.kernels, result.referenceNodes, result.decideSeconds, result.emitSeconds,
      peakMiB()));
  checkWorkspace(s, o);
  if (!o.model.saveEngine.empty()) console.info(fmt::format("Engine saved to {}", o.model.saveEngine));
}

}  // namespace

std::vector<InputInfo> modelInputs(const ir::Graph& g) {
  std::vector<InputInfo> out;
  for (const ir::Value* v : g.top().inputs) {
    InputInfo in{v->name, {}};
    for (const auto& d : v->type.dims) in.dims.push_back(d.constant().value_or(-1));
    out.push_back(std::move(in));
  }
  return out;
}

std::map<std::string, ir::Layout> ioLayouts(const ir::Graph& g, const BuildOptions& b) {
  static const std::map<std::string, ir::DType> kTypes = {
      {"fp32", ir::DType::kF32},  {"fp16", ir::DType::kF16}, {"bf16", ir::DType::kBF16}, {"int32", ir::DType::kI32},
      {"int64", ir::DType::kI64}, {"int8", ir::DType::kI8},  {"uint8", ir::DType::kU8},  {"bool", ir::DType::kBool}};
  std::map<std::string, ir::Layout> out;
  auto apply = [&](const std::vector<std::string>& formats, const std::vector<ir::Value*>& values,
                   std::string_view flag) {
    if (formats.empty()) return;
    if (formats.size() != 1 && formats.size() != values.size())
      throw UserError("--{}: {} formats for {} tensors; give one for each, or one for all", flag, formats.size(),
                      values.size());
    for (size_t i = 0; i < values.size(); i++) {
      const auto& f = formats[formats.size() == 1 ? 0 : i];
      const auto colon = f.find(':');
      const auto& v = *values[i];
      if (colon != f.npos && kTypes.at(f.substr(0, colon)) != v.type.dtype)
        throw UserError("--{}: '{}' is {} in the model, not {}; types come from the model", flag, v.name,
                        ir::dtypeName(v.type.dtype), f.substr(0, colon));
      if (f.substr(colon == f.npos ? 0 : colon + 1) != "hwc") continue;
      if (v.type.rank() < 3)
        throw UserError("--{}: '{}' has rank {}; hwc needs 3 at least", flag, v.name, v.type.rank());
      out[v.name] = ir::Layout::channelsLast(v.type.rank());
    }
  };
  apply(b.inputFormats, g.top().inputs, "inputIOFormats");
  apply(b.outputFormats, g.top().outputs, "outputIOFormats");
  return out;
}

frontend::Model readModel(const std::string& path, Console& console) {
  const double begin = seconds();
  auto model = frontend::importFile(path);
  console.info(fmt::format("Model: {} nodes, opset {}, IR version {}{}{}; read in {:.3g} s", model.nodes, model.opset,
                           model.irVersion, model.producer.empty() ? "" : ", made by ", model.producer,
                           seconds() - begin));
  return model;
}

void loadEngine(Session& s, const std::string& path, const Options& o) {
  createRuntime(s, o);
  const double begin = seconds();
  s.engine.reset(s.errors.need(s.runtime->deserializeFile(path.c_str()), "the engine could not be loaded"));
  s.console.info(fmt::format("Engine loaded in {:.4g} sec.", seconds() - begin));
  std::error_code ignored;
  s.console.info(fmt::format("Loaded engine with size: {:.4g} MiB",
                             static_cast<double>(std::filesystem::file_size(path, ignored)) / (1 << 20)));
  if (auto* route = s.engine->getBuildRoute(); route && *route)
    s.console.info(fmt::format("Build route of the engine: {}", route));
  std::vector<InputInfo> inputs;
  for (const auto& t : ioTensors(*s.engine))
    if (t.input) inputs.push_back({t.name, t.dims});
  s.shapes = planRun(inputs, engineProfiles(*s.engine), o);
}

void prepareEngine(Session& s, const Options& o) {
  if (o.model.loadEngine.empty())
    buildFromModel(s, o);
  else
    loadEngine(s, o.model.loadEngine, o);
}

}  // namespace rutter::cli
