#pragma once
// The classes behind the runtime half of the public API.
#include <rutter/runtime.h>

#include <memory>
#include <string>
#include <vector>

#include "api/runtime/report.h"
#include "runtime/context.h"

namespace rutter::api {

class Engine final : public IEngine {
 public:
  Engine(std::shared_ptr<const runtime::Engine> engine, std::shared_ptr<runtime::Pool> pool, const Reporter& reporter);

  int32_t getNbIOTensors() const noexcept override { return engine_->ioCount(); }
  char const* getIOTensorName(int32_t index) const noexcept override;
  Dims getTensorShape(char const* name) const noexcept override;
  DataType getTensorDataType(char const* name) const noexcept override;
  TensorIOMode getTensorIOMode(char const* name) const noexcept override;
  TensorLocation getTensorLocation(char const* name) const noexcept override;
  TensorFormat getTensorFormat(char const* name) const noexcept override;
  char const* getTensorFormatDesc(char const* name) const noexcept override;
  int32_t getNbLayers() const noexcept override;
  char const* getName() const noexcept override { return engine_->manifest().modelName.c_str(); }
  IExecutionContext* createExecutionContext(ExecutionContextAllocationStrategy strategy) noexcept override;
  IExecutionContext* createExecutionContext(IRuntimeConfig* config) noexcept override;
  IRuntimeConfig* createRuntimeConfig() noexcept override;
  IEngineInspector* createEngineInspector() const noexcept override;
  IHostMemory* serialize() const noexcept override;
  int32_t getNbOptimizationProfiles() const noexcept override { return engine_->profiles(); }
  Dims getProfileShape(char const* name, int32_t profile, OptProfileSelector select) const noexcept override;
  int64_t const* getProfileTensorValuesV2(char const*, int32_t, OptProfileSelector) const noexcept override {
    return nullptr;
  }
  bool isShapeInferenceIO(char const*) const noexcept override { return false; }
  int64_t getDeviceMemorySizeV2() const noexcept override;
  int64_t getDeviceMemorySizeForProfileV2(int32_t profile) const noexcept override;
  int32_t getNbAuxStreams() const noexcept override { return 0; }
  int64_t getEngineStat(EngineStat stat) const noexcept override;
  bool isRefittable() const noexcept override { return false; }
  void setErrorRecorder(IErrorRecorder* r) noexcept override { reporter_.setRecorder(r); }
  IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_.recorder(); }
  char const* getBuildRoute() const noexcept override { return engine_->manifest().route.c_str(); }
  char const* getTuningFingerprint() const noexcept override { return engine_->manifest().fingerprint.c_str(); }

  const std::shared_ptr<const runtime::Engine>& engine() const { return engine_; }

 private:
  int find(char const* name) const noexcept { return name ? engine_->findIo(name) : -1; }
  std::shared_ptr<const runtime::Engine> engine_;
  std::shared_ptr<runtime::Pool> pool_;
  Reporter reporter_;
  std::vector<std::string> formats_;
};

class ExecutionContext final : public IExecutionContext {
 public:
  ExecutionContext(const Engine& engine, std::shared_ptr<runtime::Pool> pool, runtime::MemoryPolicy policy,
                   const Reporter& reporter);

  bool setInputShape(char const* name, Dims const& dims) noexcept override;
  Dims getTensorShape(char const* name) const noexcept override;
  Dims getTensorStrides(char const* name) const noexcept override;
  bool allInputDimensionsSpecified() const noexcept override { return context_.unspecifiedInputs() == 0; }
  int32_t inferShapes(int32_t nbMaxNames, char const** names) noexcept override;
  bool setTensorAddress(char const* name, void* data) noexcept override;
  bool setInputTensorAddress(char const* name, void const* data) noexcept override;
  bool setOutputTensorAddress(char const* name, void* data) noexcept override;
  void const* getTensorAddress(char const* name) const noexcept override;
  void* getOutputTensorAddress(char const* name) const noexcept override;
  bool enqueueV3(IQueue* queue) noexcept override;
  bool executeV2(void* const* bindings) noexcept override;
  bool setOptimizationProfileAsync(int32_t profile, IQueue* queue) noexcept override;
  int32_t getOptimizationProfile() const noexcept override { return context_.profile(); }
  bool setOutputAllocator(char const* name, IOutputAllocator* allocator) noexcept override;
  IOutputAllocator* getOutputAllocator(char const* name) const noexcept override;
  int64_t getMaxOutputSize(char const* name) const noexcept override;
  void setProfiler(IProfiler* profiler) noexcept override;
  IProfiler* getProfiler() const noexcept override { return profiler_; }
  void setEnqueueEmitsProfile(bool emits) noexcept override { emitsProfile_ = emits; }
  bool getEnqueueEmitsProfile() const noexcept override { return emitsProfile_; }
  bool reportToProfiler() const noexcept override;
  void setDeviceMemoryV2(void* memory, int64_t size) noexcept override;
  std::size_t updateDeviceMemorySizeForShapes() noexcept override;
  void setName(char const* name) noexcept override;
  char const* getName() const noexcept override { return name_.c_str(); }
  void setErrorRecorder(IErrorRecorder* r) noexcept override { reporter_.setRecorder(r); }
  IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_.recorder(); }
  IEngine const& getEngine() const noexcept override { return engine_; }
  bool setInputConsumedEvent(void* event) noexcept override;
  void setDebugSync(bool sync) noexcept override { debugSync_ = sync; }
  bool getDebugSync() const noexcept override { return debugSync_; }

  runtime::Context& context() const { return context_; }

 private:
  /// Index of a tensor that must exist. mode kNONE: either.
  int need(char const* name, TensorIOMode mode = TensorIOMode::kNONE) const;
  bool setAddress(char const* name, TensorIOMode mode, void* data) noexcept;
  bool run(IQueue* queue) noexcept;

  const Engine& engine_;
  mutable runtime::Context context_;
  Reporter reporter_;
  std::string name_;
  std::vector<IOutputAllocator*> allocators_;  // by I/O index
  std::vector<int> order_;
  IProfiler* profiler_ = nullptr;
  bool emitsProfile_ = true, debugSync_ = false, profiled_ = false;
};

class EngineInspector final : public IEngineInspector {
 public:
  EngineInspector(std::shared_ptr<const runtime::Engine> engine, const Reporter& reporter)
      : engine_(std::move(engine)), reporter_(reporter) {}
  bool setExecutionContext(IExecutionContext const* context) noexcept override;
  IExecutionContext const* getExecutionContext() const noexcept override { return context_; }
  AsciiChar const* getLayerInformation(int32_t layer, LayerInformationFormat format) const noexcept override;
  AsciiChar const* getEngineInformation(LayerInformationFormat format) const noexcept override;
  void setErrorRecorder(IErrorRecorder* r) noexcept override { reporter_.setRecorder(r); }
  IErrorRecorder* getErrorRecorder() const noexcept override { return reporter_.recorder(); }

 private:
  std::vector<int64_t> values() const;
  std::shared_ptr<const runtime::Engine> engine_;
  Reporter reporter_;
  const ExecutionContext* context_ = nullptr;
  mutable std::string text_;
};

class Queue;  // queue.cpp
IQueue* makeQueue(const Reporter& reporter);
/// Puts work into a queue that makeQueue made; `work` returns false on failure. UserError if it is another's.
void enqueue(IQueue* queue, std::function<bool()> work);

}  // namespace rutter::api
