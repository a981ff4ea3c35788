#include "api/objects.h"
#include "base/cpu.h"
#include "runtime/engine.h"

namespace rutter::api {
namespace {

const char* verbosityName(ProfilingVerbosity v) {
  return v == ProfilingVerbosity::kDETAILED ? "detailed" : v == ProfilingVerbosity::kNONE ? "none" : "layer_names_only";
}

class Builder final : public IBuilder {
 public:
  explicit Builder(ILogger* logger) : reporter_(logger) {}
  IBuilderConfig* createBuilderConfig() noexcept override {
    return reporter_.guard(static_cast<IBuilderConfig*>(nullptr),
                           [&]() -> IBuilderConfig* { return new BuilderConfig(reporter_); });
  }
  INetworkDefinition* createNetworkV2(uint32_t flags) noexcept override {
    return reporter_.guard(static_cast<INetworkDefinition*>(nullptr), [&]() -> INetworkDefinition* {
      if (flags) throw UserError("network flags {:#x}: this version knows none", flags);
      return new Network(reporter_);
    });
  }
  IOptimizationProfile* createOptimizationProfile() noexcept override {
    return reporter_.guard(static_cast<IOptimizationProfile*>(nullptr), [&]() -> IOptimizationProfile* {
      profiles_.push_back(std::make_unique<OptimizationProfile>(reporter_));
      return profiles_.back().get();
    });
  }
  IHostMemory* buildSerializedNetwork(INetworkDefinition& network, IBuilderConfig& config) noexcept override {
    return reporter_.guard(static_cast<IHostMemory*>(nullptr),
                           [&]() -> IHostMemory* { return new HostMemory(build(network, config)); });
  }
  bool buildSerializedNetworkToStream(INetworkDefinition& network, IBuilderConfig& config,
                                      IStreamWriter& writer) noexcept override {
    return reporter_.guard(false, [&] {
      std::string bytes = build(network, config);
      int64_t n = writer.write(bytes.data(), int64_t(bytes.size()));
      if (n != int64_t(bytes.size())) throw DeviceError("the stream writer took {} of {} bytes", n, bytes.size());
      return true;
    });
  }
  IEngine* buildEngineWithConfig(INetworkDefinition& network, IBuilderConfig& config) noexcept override {
    return reporter_.guard(static_cast<IEngine*>(nullptr), [&]() -> IEngine* {
      std::string bytes = build(network, config);
      if (!runtime_) {
        runtime_.reset(createInferRuntime(*reporter_.logger()));
      }
      if (!runtime_) throw InternalError("no runtime");
      runtime_->setMaxThreads(usableThreads(threads_));
      runtime_->setErrorRecorder(reporter_.recorder());
      return runtime_->deserializeEngine(bytes.data(), bytes.size());
    });
  }
  bool isNetworkSupported(INetworkDefinition const& network, IBuilderConfig const& config) const noexcept override {
    return reporter_.guard(false, [&] {
      auto& n = static_cast<const Network&>(network);
      needOutputs(n);
      compiler::BuildOptions o = options(n, static_cast<const BuilderConfig&>(config));
      o.optimizationLevel = std::min(o.optimizationLevel, 3);  // what can be built is no matter of time
      compiler::decideModel(n.model(), o);
      return true;
    });
  }
  bool setMaxThreads(int32_t n) noexcept override {
    return reporter_.guard(false, [&] {
      if (n < 0 || n > 4096) throw UserError("{} threads asked for; 0 (all) to 4096 are possible", n);
      threads_ = n;
      return true;
    });
  }
  int32_t getMaxThreads() const noexcept override {
    return threads_ ? threads_ : reporter_.guard(int32_t(1), [] { return int32_t(usableThreads()); });
  }
  void setErrorRecorder(IErrorRecorder* r) noexcept override { reporter_.setRecorder(r); }
  IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_.recorder(); }
  ILogger* getLogger() const noexcept override { return reporter_.logger(); }
  void reset() noexcept override {
    reporter_.guard(false, [&] { return cache_ = std::make_unique<compiler::KernelCache>(), true; });
  }

 private:
  static void needOutputs(const Network& n) {
    if (!n.graph()) throw UserError("the network is empty: parse a model first");
    if (n.graph()->top().outputs.empty()) throw UserError("the network has no outputs: mark one");
  }
  compiler::BuildOptions options(const Network& n, const BuilderConfig& c) const {
    compiler::BuildOptions o;
    o.route = c.route();
    o.profiles = c.profiles();
    if (o.profiles.empty()) o.profiles.push_back({});
    o.target = c.getTarget();
    o.isa = c.getIsa();
    o.threads = threads_;
    o.ioLayouts = n.ioLayouts();
    o.strictRoutes = c.getFlag(BuilderFlag::kSTRICT_ROUTES);
    o.verify = c.getFlag(BuilderFlag::kDEBUG);
    o.optimizationLevel = c.getBuilderOptimizationLevel();
    o.maxTactics = c.getMaxNbTactics();
    o.avgTiming = c.getAvgTimingIterations();
    o.errorOnTimingMiss = c.getFlag(BuilderFlag::kERROR_ON_TIMING_CACHE_MISS);
    if (!c.getFlag(BuilderFlag::kDISABLE_TIMING_CACHE)) o.timings = c.timings();
    if (o.optimizationLevel >= 4 && o.errorOnTimingMiss && !o.timings)
      throw UserError("kERROR_ON_TIMING_CACHE_MISS without a timing cache: every time would be missing");
    return o;
  }
  std::string build(INetworkDefinition& network, IBuilderConfig& config) {
    auto& n = static_cast<Network&>(network);
    auto& c = static_cast<BuilderConfig&>(config);
    needOutputs(n);
    compiler::BuildOptions o = options(n, c);
    std::string phase;
    IProgressMonitor* m = c.getProgressMonitor();
    if (m)
      o.progress = [&, m](std::string_view name, int step, int steps) {
        if (phase != name) {
          if (!phase.empty()) m->phaseFinish(phase.c_str());
          phase = name;
          m->phaseStart(phase.c_str(), nullptr, steps);
        }
        if (!m->stepComplete(phase.c_str(), step))
          throw CodedError(ErrorCode::kINVALID_STATE, "the build was cancelled by its progress monitor");
      };
    auto lossy = knobs::lossyAssignments(o.route);
    if (!lossy.empty()) {
      std::string names;
      for (const auto& a : lossy)
        names += (names.empty() ? "" : " ") + knobs::Route({a}, knobs::Registry::builtin()).print();
      logWarning("the route asks for reduced accuracy: {}", names);
    }
    compiler::KernelCache own;
    auto r = compiler::buildEngine(n.model(), o, c.getFlag(BuilderFlag::kDISABLE_COMPILATION_CACHE) ? own : *cache_);
    if (m && !phase.empty()) m->phaseFinish(phase.c_str());
    for (const std::string& w : r.warnings) logWarning("{}", w);
    const size_t needs = size_t(compiler::workspaceBytes(r, o.threads));
    if (const size_t limit = c.getMemoryPoolLimit(MemoryPoolType::kWORKSPACE); limit < needs)
      throw CodedError(
          ErrorCode::kINVALID_CONFIG,
          fmt::format("the engine needs {} bytes of activations and scratch, the workspace limit is {}", needs, limit));
    compiler::keepDetail(r.parts, verbosityName(c.getProfilingVerbosity()));
    return runtime::writeEngine(r.parts);
  }

  Reporter reporter_;
  int32_t threads_ = 0;
  std::unique_ptr<compiler::KernelCache> cache_ = std::make_unique<compiler::KernelCache>();
  std::vector<std::unique_ptr<OptimizationProfile>> profiles_;
  std::unique_ptr<IRuntime> runtime_;
};

}  // namespace
}  // namespace rutter::api

extern "C" void* rutterCreateInferBuilder(void* logger, int32_t apiVersion) noexcept {
  auto* l = static_cast<rutter::ILogger*>(logger);
  rutter::api::Reporter reporter(l);
  return reporter.guard(static_cast<void*>(nullptr), [&]() -> void* {
    if (!l) throw rutter::UserError("createInferBuilder needs a logger");
    if (apiVersion < 1 || apiVersion > RUTTER_API_VERSION)
      throw rutter::UserError(
          "the program was compiled against version {} of Rutter's headers, this library has {}: use matching ones",
          apiVersion, RUTTER_API_VERSION);
    return static_cast<rutter::IBuilder*>(new rutter::api::Builder(l));
  });
}
