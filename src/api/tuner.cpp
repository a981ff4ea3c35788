// Tuning through the public API: options from the builder's objects, strategies and listeners of the program's own.
#include <rutter/tuner.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <mutex>

#include "api/objects.h"
#include "base/file.h"
#include "base/private_folder.h"
#include "knobs/expression.h"
#include "tuner/accuracy.h"
#include "tuner/journal.h"
#include "tuner/tune.h"

namespace rutter::api {
namespace {

// Files of one tuner: inputs, timing cache, and whatever the user gave no place for. Tuners of one process share its
// private folder (a process has one of a prefix), each with a folder of its own in it.
class Folder {
 public:
  Folder() {
    static std::mutex mutex;
    static std::weak_ptr<PrivateFolder> ofProcess;
    static int made = 0;
    std::lock_guard lock(mutex);
    shared_ = ofProcess.lock();
    if (!shared_) {
      const char* t = std::getenv("TMPDIR");
      ofProcess = shared_ = std::make_shared<PrivateFolder>(t && *t ? t : "/tmp", tuner::kFolderPrefix);
    }
    path_ = fmt::format("{}/{}", shared_->path(), made++);
    std::filesystem::create_directory(path_);
  }
  ~Folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::shared_ptr<PrivateFolder> shared_;
  std::string path_;
};

void writeFile(const std::string& path, std::string_view bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(bytes.data(), std::streamsize(bytes.size()));
  if (!out.flush()) throw DeviceError("cannot write {} ({} bytes)", path, bytes.size());
}

TuningCandidate candidateOf(const tuner::CandidateInfo& c) {
  TuningCandidate out;
  out.route = c.route.c_str();
  out.status = static_cast<TuningStatus>(c.status);
  out.error = c.error.c_str();
  out.milliseconds = c.milliseconds.value_or(-1);
  if (c.ranking) {
    out.ratio = c.ranking->ratio;
    out.ratioLow = c.ranking->lo;
    out.ratioHigh = c.ranking->hi;
  }
  return out;
}

class TuningResult final : public ITuningResult {
 public:
  TuningResult(tuner::TuneResult r, std::string engine, std::string journal)
      : result_(std::move(r)), engine_(std::move(engine)), journal_(std::move(journal)) {}
  bool isImproved() const noexcept override { return result_.outcome == tuner::TuneResult::Outcome::kImproved; }
  char const* getReason() const noexcept override { return result_.reason.c_str(); }
  char const* getBuildRoute() const noexcept override { return result_.route.c_str(); }
  double getRatio() const noexcept override { return ratio().ratio; }
  double getRatioLow() const noexcept override { return ratio().lo; }
  double getRatioHigh() const noexcept override { return ratio().hi; }
  int32_t getNbProcesses() const noexcept override { return result_.processes; }
  int64_t getNbCandidates() const noexcept override { return result_.candidates; }
  IHostMemory const* getEngine() const noexcept override { return engine_.size() ? &engine_ : nullptr; }
  char const* getJournal() const noexcept override { return journal_.c_str(); }

 private:
  tuner::Ratio ratio() const { return result_.confirmed.value_or(tuner::Ratio{1, 1, 1}); }
  tuner::TuneResult result_;
  HostMemory engine_;
  std::string journal_;
};

class Listener final : public tuner::TuneListener {
 public:
  Listener(ITuningListener* user, std::atomic<int>& stop) : user_(user), stop_(stop) {}
  void onEnd(const tuner::CandidateInfo& c) override {
    if (user_) user_->candidateFinished(c.iter, candidateOf(c));
  }
  void onProgress(const tuner::Progress& p) override {
    TuningProgress out;
    out.phase = p.phase.c_str();
    out.done = p.done;
    out.elapsedSeconds = p.elapsedSeconds;
    if (p.best && p.best->ranking) out.bestRatio = p.best->ranking->ratio;
    if (user_ && !user_->progress(out)) {
      int none = 0;
      stop_.compare_exchange_strong(none, 1);
    }
  }
  void onMessage(int severity, const std::string& text) override { logMessage(Severity(severity), text); }

 private:
  ITuningListener* user_;
  std::atomic<int>& stop_;
};

class UserStrategy final : public tuner::HostStrategy {
 public:
  explicit UserStrategy(IStrategy& s) : strategy_(s) {}
  std::optional<std::string> ask() override {
    const char* route = strategy_.ask();
    return route ? std::optional<std::string>(route) : std::nullopt;
  }
  void tell(const tuner::CandidateInfo& c) override { strategy_.tell(candidateOf(c)); }

 private:
  IStrategy& strategy_;
};

class Tuner final : public ITuner {
 public:
  Tuner(IBuilder& builder, Network& network, BuilderConfig& config)
      : reporter_(builder.getLogger(), builder.getErrorRecorder()),
        builder_(builder),
        network_(network),
        config_(config) {
    options_.budgetSeconds = 60;
    options_.search = tuner::SearchKind::kTune;
  }
  void setBudget(double seconds) noexcept override { options_.budgetSeconds = seconds; }
  void setMaxCandidates(int64_t count) noexcept override { options_.maxCandidates = count; }
  void setStrategy(IStrategy* strategy) noexcept override {
    reporter_.guard(false, [&] {
      strategy_ = strategy;
      options_.search = strategy ? tuner::SearchKind::kUser : tuner::SearchKind::kTune;
      options_.expression = strategy && strategy->getName() ? strategy->getName() : "";
      if (strategy && options_.expression.empty()) options_.expression = "strategy";
      return true;
    });
  }
  bool setExpression(char const* search, char const* expression) noexcept override {
    return reporter_.guard(false, [&] {
      const auto e = knobs::Expression::parse(expression ? expression : "");
      options_.search = tuner::parseSearch(search ? search : "");
      options_.expression = e.text();
      strategy_ = nullptr;
      return true;
    });
  }
  bool setAccuracy(char const* algorithm, double threshold, double atol, double rtol) noexcept override {
    return reporter_.guard(false, [&] {
      if (!(threshold > 0) || !(atol >= 0) || !(rtol >= 0))
        throw UserError("the accuracy threshold must be above 0, the tolerances not below");
      options_.accuracy = {tuner::parseLoss(algorithm ? algorithm : ""), threshold, atol, rtol};
      return true;
    });
  }
  bool setInput(int32_t set, char const* name, void const* data, std::size_t bytes) noexcept override {
    return reporter_.guard(false, [&] { return put(set, name, data, bytes, true); });
  }
  bool setReferenceOutput(int32_t set, char const* name, void const* data, std::size_t bytes) noexcept override {
    return reporter_.guard(false, [&] { return put(set, name, data, bytes, false); });
  }
  bool setInputShape(char const* name, Dims const& dims) noexcept override {
    return reporter_.guard(false, [&] {
      if (!name) throw UserError("the input's name is null");
      if (dims.nbDims < 0 || dims.nbDims > Dims::MAX_DIMS) throw UserError("rank {} for input '{}'", dims.nbDims, name);
      for (int32_t i = 0; i < dims.nbDims; i++)
        if (dims.d[i] < 0) throw UserError("extent {} of input '{}' is negative", dims.d[i], name);
      options_.build.runShapes[name] = std::vector<int64_t>(dims.d, dims.d + dims.nbDims);
      return true;
    });
  }
  void setMinGain(double gain) noexcept override { options_.minGain = gain; }
  void setProgressListener(ITuningListener* listener) noexcept override { listener_ = listener; }
  bool setCacheFile(char const* path, bool resume) noexcept override {
    return reporter_.guard(false, [&] {
      if (resume && !path) throw UserError("a search that is to be resumed needs its cache file");
      options_.cacheFile = path ? std::filesystem::absolute(path).string() : "";
      options_.resume = resume;
      return true;
    });
  }
  ITuningResult* run() noexcept override {
    return reporter_.guard(static_cast<ITuningResult*>(nullptr), [&]() -> ITuningResult* { return search(); });
  }
  void stop(int32_t level) noexcept override { stop_ = std::clamp(level, 0, 2); }
  void setErrorRecorder(IErrorRecorder* r) noexcept override { reporter_.setRecorder(r); }
  IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_.recorder(); }

 private:
  const Folder& folder() {
    if (!folder_) folder_ = std::make_unique<Folder>();
    return *folder_;
  }
  bool put(int32_t set, char const* name, void const* data, std::size_t bytes, bool input) {
    if (!name || (!data && bytes)) throw UserError("name or data of a tensor is null");
    if (set < 0 || size_t(set) > options_.pairs.size())
      throw UserError("set {} of inputs: there are {} so far, and sets are given without gaps", set,
                      options_.pairs.size());
    const std::string file = folder().file(fmt::format("tensor{}.bin", files_++));
    writeFile(file, {static_cast<const char*>(data), bytes});
    if (size_t(set) == options_.pairs.size()) options_.pairs.emplace_back();
    (input ? options_.pairs[size_t(set)].inputs : options_.pairs[size_t(set)].refOutputs)[name] = file;
    return true;
  }

  tuner::TuneOptions gather() {
    tuner::TuneOptions o = options_;
    if (!network_.graph()) throw UserError("the network is empty: parse a model first");
    if (network_.graph()->top().outputs.empty()) throw UserError("the network has no outputs: mark one");
    if (!config_.route().isDefault())
      throw UserError("the configuration has a build route: clear it, a search compares with the default route");
    if (o.search <= tuner::SearchKind::kMixed && !(o.accuracy.threshold > 0))
      if (auto lossy = knobs::lossyAssignments(knobs::Expression::parse(o.expression)); !lossy.empty())
        throw UserError(
            "the expression holds values that may lose accuracy ({}): say how much may be lost by setAccuracy",
            knobs::printAssignment(lossy[0], knobs::Registry::builtin()));
    o.model.path = network_.source().path;
    if (network_.source().bytes) o.model.bytes = *network_.source().bytes;
    o.model.directory = network_.source().directory;
    if (!o.model.directory.empty()) o.model.directory = std::filesystem::absolute(o.model.directory).string();
    o.model.edits = network_.edits();
    for (const passes::Profile& p : config_.profiles()) {
      std::map<std::string, tuner::ShapeRange> ranges;
      for (const auto& [name, r] : p) ranges[name] = {r.min, r.opt, r.max};
      o.build.profiles.push_back(std::move(ranges));
    }
    o.build.isa = config_.getIsa();
    o.build.threads = builder_.getMaxThreads();
    for (const auto& [name, layout] : network_.ioLayouts()) o.build.formats[name] = "hwc";
    const auto verbosity = config_.getProfilingVerbosity();
    o.build.profilingVerbosity = verbosity == ProfilingVerbosity::kDETAILED ? "detailed"
                                 : verbosity == ProfilingVerbosity::kNONE   ? "none"
                                                                            : "layer_names_only";
    const size_t workspace = config_.getMemoryPoolLimit(MemoryPoolType::kWORKSPACE);
    if (workspace <= size_t(INT64_MAX)) o.build.workspaceBytes = int64_t(workspace);
    o.build.strictRoutes = config_.getFlag(BuilderFlag::kSTRICT_ROUTES);
    o.build.builderOptimizationLevel = config_.getBuilderOptimizationLevel();
    o.build.maxTactics = config_.getMaxNbTactics();
    o.build.avgTiming = config_.getAvgTimingIterations();
    o.build.errorOnTimingMiss = config_.getFlag(BuilderFlag::kERROR_ON_TIMING_CACHE_MISS);
    o.build.keepKernels = !config_.getFlag(BuilderFlag::kDISABLE_COMPILATION_CACHE);
    if (o.build.builderOptimizationLevel >= 4) {
      if (config_.getFlag(BuilderFlag::kDISABLE_TIMING_CACHE))
        throw UserError("a search at level 4 or 5 keeps its times: clear kDISABLE_TIMING_CACHE");
      if (auto times = config_.timings()) {
        o.build.timingCacheFile = folder().file("times");
        writeFile(o.build.timingCacheFile, times->serialize());
      }
    }
    o.saveEngine = folder().file("engine");
    if (o.cacheFile.empty()) o.cacheFile = folder().file("cache.jsonl");
    return o;
  }

  ITuningResult* search() {
    const tuner::TuneOptions o = gather();
    Listener listener(listener_, stop_);
    std::optional<UserStrategy> user;
    if (strategy_) user.emplace(*strategy_);
    tuner::TuneResult r = tuner::tune(o, listener, &stop_, user ? &*user : nullptr);
    if (!r.error.empty()) reporter_.report(ErrorCode::kFAILED_EXECUTION, r.error.c_str());
    if (!o.build.timingCacheFile.empty())
      config_.timings()->combine(compiler::TimingCache::read(o.build.timingCacheFile), false);
    std::string engine = r.enginePath.empty() ? "" : readWholeFile(r.enginePath);
    return new TuningResult(std::move(r), std::move(engine), readWholeFile(o.cacheFile + ".journal"));
  }

  Reporter reporter_;
  IBuilder& builder_;
  Network& network_;
  BuilderConfig& config_;
  tuner::TuneOptions options_;
  IStrategy* strategy_ = nullptr;
  ITuningListener* listener_ = nullptr;
  std::atomic<int> stop_{0};
  std::unique_ptr<Folder> folder_;
  int files_ = 0;
};

}  // namespace
}  // namespace rutter::api

extern "C" void* rutterCreateTuner(void* builder, void* network, void* config, int32_t apiVersion) noexcept {
  auto* b = static_cast<rutter::IBuilder*>(builder);
  rutter::api::Reporter reporter(b ? b->getLogger() : nullptr, b ? b->getErrorRecorder() : nullptr);
  return reporter.guard(static_cast<void*>(nullptr), [&]() -> void* {
    if (!b || !network || !config)
      throw rutter::UserError("createTuner needs a builder, a network and a configuration");
    if (apiVersion < 2 || apiVersion > RUTTER_API_VERSION)
      throw rutter::UserError(
          "the program was compiled against version {} of Rutter's headers, this library has {}: use matching ones",
          apiVersion, RUTTER_API_VERSION);
    auto* n = static_cast<rutter::api::Network*>(static_cast<rutter::INetworkDefinition*>(network));
    auto* c = static_cast<rutter::api::BuilderConfig*>(static_cast<rutter::IBuilderConfig*>(config));
    return static_cast<rutter::ITuner*>(new rutter::api::Tuner(*b, *n, *c));
  });
}
