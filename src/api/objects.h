#pragma once
// The classes behind the builder half of the public API.
#include <rutter/builder.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "api/runtime/report.h"
#include "compiler/compile.h"

namespace rutter::api {

class Network;

class Tensor final : public ITensor {
 public:
  Tensor(Network& network, ir::Value* value) : network_(network), value_(value) {}
  bool setName(char const* name) noexcept override;
  char const* getName() const noexcept override { return value_->name.c_str(); }
  bool setDimensions(Dims const& dims) noexcept override;
  Dims getDimensions() const noexcept override;
  DataType getType() const noexcept override { return static_cast<DataType>(value_->type.dtype); }
  bool isNetworkInput() const noexcept override;
  bool isNetworkOutput() const noexcept override;
  bool setAllowedFormats(uint32_t formats) noexcept override;
  uint32_t getAllowedFormats() const noexcept override { return formats_; }
  char const* getDimensionName(int32_t index) const noexcept override;
  bool setDimensionName(int32_t index, char const* name) noexcept override;
  ir::Value* value() const { return value_; }

 private:
  Network& network_;
  ir::Value* value_;
  uint32_t formats_ = 1u << int(TensorFormat::kLINEAR);
  mutable std::string dimensionName_;
};

class Layer final : public ILayer {
 public:
  Layer(Network& network, ir::Node* node) : network_(network), node_(node) {}
  char const* getName() const noexcept override { return node_->name.c_str(); }
  char const* getType() const noexcept override { return node_->op.c_str(); }
  int32_t getNbInputs() const noexcept override { return int32_t(node_->inputs.size()); }
  ITensor* getInput(int32_t index) const noexcept override;
  int32_t getNbOutputs() const noexcept override { return int32_t(node_->outputs.size()); }
  ITensor* getOutput(int32_t index) const noexcept override;

 private:
  Network& network_;
  ir::Node* node_;
};

class Network final : public INetworkDefinition {
 public:
  explicit Network(const Reporter& reporter) : reporter_(reporter) {}
  int32_t getNbInputs() const noexcept override { return graph() ? int32_t(graph()->top().inputs.size()) : 0; }
  int32_t getNbOutputs() const noexcept override { return graph() ? int32_t(graph()->top().outputs.size()) : 0; }
  int32_t getNbLayers() const noexcept override { return int32_t(layers_.size()); }
  ITensor* getInput(int32_t index) const noexcept override;
  ITensor* getOutput(int32_t index) const noexcept override;
  ILayer* getLayer(int32_t index) const noexcept override;
  void markOutput(ITensor& tensor) noexcept override;
  void unmarkOutput(ITensor& tensor) noexcept override;
  void setName(char const* name) noexcept override;
  char const* getName() const noexcept override { return graph() ? graph()->name.c_str() : name_.c_str(); }
  uint32_t getFlags() const noexcept override { return 0; }
  void setErrorRecorder(IErrorRecorder* r) noexcept override { reporter_.setRecorder(r); }
  IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_.recorder(); }

  /// What the network was read from: a file, or bytes with the folder of their external data ("": none).
  struct Source {
    std::string path;
    std::shared_ptr<const std::string> bytes;
    std::string directory;
  };
  void take(frontend::Model model, Source source);
  const Source& source() const { return source_; }
  /// What was changed since, for processes that read the source again: see TuneOptions::model. "" if nothing was.
  std::string edits() const;
  /// A name for an extent that no extent of an input has, like `wish`.
  std::string unusedSymbol(const std::string& wish) const;
  ITensor* tensor(ir::Value* v) const noexcept;  ///< null, and reported, if memory is out
  ir::Graph* graph() const { return model_.graph.get(); }
  const frontend::Model& model() const { return model_; }
  /// Layouts of inputs and outputs that are not row-major.
  std::map<std::string, ir::Layout> ioLayouts() const;
  Reporter& reporter() { return reporter_; }

 private:
  Reporter reporter_;
  std::string name_;
  frontend::Model model_;
  Source source_;
  std::vector<std::pair<std::string, ir::Dims>> inputsRead_;  ///< names and extents as read
  std::vector<ir::Value*> outputsRead_;
  mutable std::unordered_map<ir::Value*, std::unique_ptr<Tensor>> tensors_;
  std::vector<std::unique_ptr<Layer>> layers_;
};

class OptimizationProfile final : public IOptimizationProfile {
 public:
  explicit OptimizationProfile(const Reporter& reporter) : reporter_(reporter) {}
  bool setDimensions(char const* name, OptProfileSelector select, Dims const& dims) noexcept override;
  Dims getDimensions(char const* name, OptProfileSelector select) const noexcept override;
  bool isValid() const noexcept override;
  bool setShapeValuesV2(char const* name, OptProfileSelector select, int64_t const* values,
                        int32_t n) noexcept override;
  int32_t getNbShapeValues(char const*) const noexcept override { return -1; }
  int64_t const* getShapeValuesV2(char const*, OptProfileSelector) const noexcept override { return nullptr; }
  bool setExtraMemoryTarget(float target) noexcept override;
  float getExtraMemoryTarget() const noexcept override { return 1; }
  passes::Profile profile() const;  ///< of a valid one

 private:
  Reporter reporter_;
  std::map<std::string, std::map<OptProfileSelector, std::vector<int64_t>>> shapes_;
};

class TimingCache final : public ITimingCache {
 public:
  TimingCache(const Reporter& reporter, compiler::TimingCache cache)
      : reporter_(reporter), cache_(std::make_shared<compiler::TimingCache>(std::move(cache))) {}
  IHostMemory* serialize() const noexcept override;
  bool combine(ITimingCache const& other, bool ignoreMismatch) noexcept override;
  bool reset() noexcept override;
  char const* getHash() const noexcept override;
  const std::shared_ptr<compiler::TimingCache>& cache() const { return cache_; }

 private:
  Reporter reporter_;
  std::shared_ptr<compiler::TimingCache> cache_;
  mutable std::string hash_;
};

class BuilderConfig final : public IBuilderConfig {
 public:
  explicit BuilderConfig(const Reporter& reporter);
  bool setBuildRoute(char const* route) noexcept override;
  char const* getBuildRoute() const noexcept override { return routeText_.c_str(); }
  char const* getAllBuildRoutes() const noexcept override { return database_.c_str(); }
  void setFlag(BuilderFlag f) noexcept override;
  void clearFlag(BuilderFlag f) noexcept override { flags_ &= ~bit(f); }
  bool getFlag(BuilderFlag f) const noexcept override { return flags_ & bit(f); }
  void setFlags(uint32_t flags) noexcept override;
  uint32_t getFlags() const noexcept override { return flags_; }
  void setMemoryPoolLimit(MemoryPoolType pool, std::size_t bytes) noexcept override;
  std::size_t getMemoryPoolLimit(MemoryPoolType pool) const noexcept override {
    return pool == MemoryPoolType::kWORKSPACE ? workspace_ : 0;
  }
  int32_t addOptimizationProfile(IOptimizationProfile const* profile) noexcept override;
  int32_t getNbOptimizationProfiles() const noexcept override { return int32_t(profiles_.size()); }
  void setProfilingVerbosity(ProfilingVerbosity v) noexcept override { verbosity_ = v; }
  ProfilingVerbosity getProfilingVerbosity() const noexcept override { return verbosity_; }
  void setProgressMonitor(IProgressMonitor* m) noexcept override { monitor_ = m; }
  IProgressMonitor* getProgressMonitor() const noexcept override { return monitor_; }
  bool setTarget(char const* target) noexcept override;
  char const* getTarget() const noexcept override { return target_.c_str(); }
  bool setIsa(char const* isa) noexcept override;
  char const* getIsa() const noexcept override { return isa_.c_str(); }
  void reset() noexcept override;

  void setBuilderOptimizationLevel(int32_t level) noexcept override { level_ = std::clamp(level, 0, 5); }
  int32_t getBuilderOptimizationLevel() const noexcept override { return level_; }
  void setAvgTimingIterations(int32_t n) noexcept override { avgTiming_ = std::max(n, 1); }
  int32_t getAvgTimingIterations() const noexcept override { return avgTiming_; }
  void setMaxNbTactics(int32_t n) noexcept override { maxTactics_ = n > 0 ? n : -1; }
  int32_t getMaxNbTactics() const noexcept override { return maxTactics_; }
  ITimingCache* createTimingCache(void const* blob, std::size_t size) const noexcept override;
  bool setTimingCache(ITimingCache const& cache, bool ignoreMismatch) noexcept override;
  ITimingCache const* getTimingCache() const noexcept override { return timings_; }

  const knobs::Route& route() const { return route_; }
  std::shared_ptr<compiler::TimingCache> timings() const { return timings_ ? timings_->cache() : nullptr; }
  const std::vector<passes::Profile>& profiles() const { return profiles_; }

 private:
  /// Of a flag that there is not: none.
  static constexpr uint32_t bit(BuilderFlag f) { return uint32_t(f) < 32 ? 1u << uint32_t(f) : 0; }
  static constexpr uint32_t kDefaultFlags = 1u << uint32_t(BuilderFlag::kTF32);
  Reporter reporter_;
  knobs::Route route_;
  std::string routeText_, database_, target_ = "cpu", isa_;
  uint32_t flags_ = kDefaultFlags;
  std::size_t workspace_ = SIZE_MAX;
  std::vector<passes::Profile> profiles_;
  ProfilingVerbosity verbosity_ = ProfilingVerbosity::kLAYER_NAMES_ONLY;
  IProgressMonitor* monitor_ = nullptr;
  int32_t level_ = 3, avgTiming_ = 8, maxTactics_ = -1;
  const TimingCache* timings_ = nullptr;
};

}  // namespace rutter::api
