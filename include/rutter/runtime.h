#pragma once
/// \file runtime.h
/// Running engines: IRuntime reads one, IEngine describes it, IExecutionContext runs it.
/// \code
///   std::unique_ptr<rutter::IRuntime> runtime{rutter::createInferRuntime(logger)};
///   std::unique_ptr<rutter::IEngine> engine{runtime->deserializeFile("model.engine")};
///   std::unique_ptr<rutter::IExecutionContext> context{engine->createExecutionContext()};
///   context->setInputShape("x", {4, {1, 3, 320, 320}});
///   context->setTensorAddress("x", input.data());
///   context->setTensorAddress("y", output.data());
///   context->enqueueV3(nullptr);
/// \endcode
/// A program that uses only this header links librutter_runtime, which needs no compiler.
#include <rutter/types.h>

namespace rutter {

class IExecutionContext;
class IEngineInspector;
class IEngine;

/// Runs work in order on a thread of its own, as a CUDA stream does on a GPU. Made by IRuntime::createQueue; deleting
/// it waits for what was put in.
class IQueue {
 public:
  /// Waits until everything enqueued so far is done. \return false if some of it failed since the last call.
  virtual bool synchronize() noexcept = 0;
  virtual ~IQueue() = default;
};

/// Settings of an execution context.
class IRuntimeConfig {
 public:
  virtual void setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy strategy) noexcept = 0;
  virtual ExecutionContextAllocationStrategy getExecutionContextAllocationStrategy() const noexcept = 0;
  virtual ~IRuntimeConfig() = default;
};

/// Tells what an engine consists of. Strings are valid until the next call on the inspector.
class IEngineInspector {
 public:
  /// Sizes, flops and bytes are then those of the context's shapes (otherwise of the first profile's opt).
  /// The context must outlive the inspector or be replaced. Null: none. \return false if it is of another engine.
  virtual bool setExecutionContext(IExecutionContext const* context) noexcept = 0;
  virtual IExecutionContext const* getExecutionContext() const noexcept = 0;
  /// One layer: its name (kONELINE: with tactic and configuration), or in JSON an object with the keys Name, LayerType,
  /// Inputs, Outputs, Origins, Tactic, Configuration, Kernels, KnobsRead, Refusals, Layouts, Flops, Bytes, Reference;
  /// a string, the name, if the engine keeps names only. \return null if there is no such layer.
  virtual AsciiChar const* getLayerInformation(int32_t layerIndex, LayerInformationFormat format) const noexcept = 0;
  /// All layers: a line each, or an object with Layers, Bindings and I/O Tensors, and with Engine: model, route,
  /// hashes, versions, ISA features, sizes in bytes.
  virtual AsciiChar const* getEngineInformation(LayerInformationFormat format) const noexcept = 0;
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
  virtual ~IEngineInspector() = default;
};

/// Runs one engine for one set of shapes at a time. One thread at a time may use a context; several contexts of one
/// engine, on several threads, run at once and share the runtime's threads.
class IExecutionContext {
 public:
  /// \return false if there is no such input, or if rank or extents do not fit the profile.
  virtual bool setInputShape(char const* tensorName, Dims const& dims) noexcept = 0;
  /// Extents under the shapes set so far, -1 where not known yet; nbDims -1 if there is no such tensor.
  virtual Dims getTensorShape(char const* tensorName) const noexcept = 0;
  /// Elements from one index of an axis to the next, by logical axis; -1 where not known yet.
  virtual Dims getTensorStrides(char const* tensorName) const noexcept = 0;
  virtual bool allInputDimensionsSpecified() const noexcept = 0;
  /// Evaluates all shapes. \return 0; or how many inputs lack a shape, the names of the first `nbMaxNames` of them in
  /// `tensorNames` (valid as long as the engine); or -1 if the shapes do not fit the model (see the error recorder).
  virtual int32_t inferShapes(int32_t nbMaxNames, char const** tensorNames) noexcept = 0;

  /// Where an input or output lies in host memory. Any alignment; 64 bytes is fastest. \return false: no such tensor.
  virtual bool setTensorAddress(char const* tensorName, void* data) noexcept = 0;
  virtual bool setInputTensorAddress(char const* tensorName, void const* data) noexcept = 0;
  virtual bool setOutputTensorAddress(char const* tensorName, void* data) noexcept = 0;
  /// Null if not set or no such tensor.
  virtual void const* getTensorAddress(char const* tensorName) const noexcept = 0;
  virtual void* getOutputTensorAddress(char const* tensorName) const noexcept = 0;

  /// Runs the engine. Every input and output needs an address (outputs: or an allocator). With a null queue, returns
  /// when it is done; otherwise at once, and the context, its shapes and buffers are the queue's until it is done.
  /// \return false on failure: a layer that fails is kFAILED_EXECUTION, and its name is in the description.
  virtual bool enqueueV3(IQueue* queue) noexcept = 0;
  /// Sets all addresses, in the order of the engine's I/O tensors, and runs. \return false on failure.
  virtual bool executeV2(void* const* bindings) noexcept = 0;

  /// Profile of the shapes set from now on; forgets the shapes of inputs with dynamic extents. `queue`: see enqueueV3.
  virtual bool setOptimizationProfileAsync(int32_t profileIndex, IQueue* queue) noexcept = 0;
  virtual int32_t getOptimizationProfile() const noexcept = 0;

  /// Null: back to the address. \return false if there is no such output.
  virtual bool setOutputAllocator(char const* tensorName, IOutputAllocator* outputAllocator) noexcept = 0;
  virtual IOutputAllocator* getOutputAllocator(char const* tensorName) const noexcept = 0;
  /// Bytes that an output takes at most in the profile in use; -1 if there is no such output.
  virtual int64_t getMaxOutputSize(char const* tensorName) const noexcept = 0;

  /// Null: none. Layers are timed only while a profiler is set.
  virtual void setProfiler(IProfiler* profiler) noexcept = 0;
  virtual IProfiler* getProfiler() const noexcept = 0;
  /// true (default): every run reports. false: a run only measures, and reportToProfiler reports the last one.
  virtual void setEnqueueEmitsProfile(bool enqueueEmitsProfile) noexcept = 0;
  virtual bool getEnqueueEmitsProfile() const noexcept = 0;
  /// \return false if there is no profiler or nothing has run under it.
  virtual bool reportToProfiler() const noexcept = 0;

  /// Memory for activations and scratch of a kUSER_MANAGED context: 64-byte aligned, `size` bytes (at least
  /// updateDeviceMemorySizeForShapes()). The program's to free, after the context's last run. Null takes it away. An
  /// address that is not aligned, a negative size, or a context of another strategy goes to the logger and the error
  /// recorder, and what was set before stays; too small a size for the shapes of a run fails that run.
  virtual void setDeviceMemoryV2(void* memory, int64_t size) noexcept = 0;
  /// Bytes that the shapes set need; 0 if they are not all set or do not fit.
  virtual std::size_t updateDeviceMemorySizeForShapes() noexcept = 0;

  virtual void setName(char const* name) noexcept = 0;
  virtual char const* getName() const noexcept = 0;
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
  virtual IEngine const& getEngine() const noexcept = 0;
  /// Events exist on GPUs only: false (and kUNSUPPORTED_STATE) unless null.
  virtual bool setInputConsumedEvent(void* event) noexcept = 0;
  /// A CPU runs layer after layer in any case; the setting is kept for programs that ask.
  virtual void setDebugSync(bool sync) noexcept = 0;
  virtual bool getDebugSync() const noexcept = 0;
  virtual ~IExecutionContext() = default;
};

/// A compiled model. Immutable, may be shared by threads. I/O tensors: inputs first, then outputs.
class IEngine {
 public:
  virtual int32_t getNbIOTensors() const noexcept = 0;
  virtual char const* getIOTensorName(int32_t index) const noexcept = 0;  ///< null if there is none
  /// -1 where an extent depends on the shapes set at run time; nbDims -1 if there is no such tensor.
  virtual Dims getTensorShape(char const* tensorName) const noexcept = 0;
  virtual DataType getTensorDataType(char const* tensorName) const noexcept = 0;  ///< kFLOAT if there is no such tensor
  virtual TensorIOMode getTensorIOMode(char const* tensorName) const noexcept = 0;      ///< kNONE if there is none
  virtual TensorLocation getTensorLocation(char const* tensorName) const noexcept = 0;  ///< kHOST on a CPU
  virtual TensorFormat getTensorFormat(char const* tensorName) const noexcept = 0;
  virtual char const* getTensorFormatDesc(
      char const* tensorName) const noexcept = 0;  ///< "row-major", "order=0231"; null
  virtual int32_t getNbLayers() const noexcept = 0;
  virtual char const* getName() const noexcept = 0;  ///< of the model

  /// The caller's, to be deleted before the engine. Null on failure.
  virtual IExecutionContext* createExecutionContext(
      ExecutionContextAllocationStrategy strategy = ExecutionContextAllocationStrategy::kSTATIC) noexcept = 0;
  virtual IExecutionContext* createExecutionContext(IRuntimeConfig* config) noexcept = 0;
  virtual IRuntimeConfig* createRuntimeConfig() noexcept = 0;
  virtual IEngineInspector* createEngineInspector() const noexcept = 0;
  /// The engine's file, as read. Null if out of memory.
  virtual IHostMemory* serialize() const noexcept = 0;

  virtual int32_t getNbOptimizationProfiles() const noexcept = 0;
  /// nbDims -1 if there is no such input or profile.
  virtual Dims getProfileShape(char const* tensorName, int32_t profileIndex,
                               OptProfileSelector select) const noexcept = 0;
  /// Ranges of the values of a shape input: null, since this version builds no engine that has one.
  virtual int64_t const* getProfileTensorValuesV2(char const* tensorName, int32_t profileIndex,
                                                  OptProfileSelector select) const noexcept = 0;
  /// Whether shapes depend on the values of this tensor: false in engines of this version.
  virtual bool isShapeInferenceIO(char const* tensorName) const noexcept = 0;
  /// Bytes of activations and scratch that a context takes for any profile, with the runtime's threads.
  virtual int64_t getDeviceMemorySizeV2() const noexcept = 0;
  virtual int64_t getDeviceMemorySizeForProfileV2(int32_t profileIndex) const noexcept = 0;  ///< -1: no such profile
  virtual int32_t getNbAuxStreams() const noexcept = 0;                                      ///< 0 on a CPU
  virtual int64_t getEngineStat(EngineStat stat) const noexcept = 0;
  virtual bool isRefittable() const noexcept = 0;  ///< false: this version builds no refittable engines
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;  ///< contexts made later inherit it
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
  /// The build route, "" for the default one.
  virtual char const* getBuildRoute() const noexcept = 0;
  /// JSON of what a tuned engine was tuned on (machine, versions, shapes); "" if it was not tuned.
  virtual char const* getTuningFingerprint() const noexcept = 0;
  virtual ~IEngine() = default;
};
using ICudaEngine = IEngine;

/// Reads engines and owns the threads on which they run. Engines are trusted code, like shared libraries: load only
/// what you would execute.
class IRuntime {
 public:
  /// From memory, which may be freed afterwards (the bytes are copied). Null if torn, altered, of another version or
  /// for an instruction set that this machine lacks; the description says which.
  virtual IEngine* deserializeEngine(void const* blob, std::size_t size) noexcept = 0;
  virtual IEngine* deserializeEngine(IStreamReaderV2& streamReader) noexcept = 0;
  /// From a file, which is mapped: weights are not copied, and processes share them. It must not change while in use.
  virtual IEngine* deserializeFile(char const* path) noexcept = 0;
  IEngine* deserializeCudaEngine(void const* blob, std::size_t size) noexcept { return deserializeEngine(blob, size); }
  IEngine* deserializeCudaEngine(IStreamReaderV2& streamReader) noexcept { return deserializeEngine(streamReader); }

  /// Threads that run kernels, the calling one included, for engines read from now on. The default is the number of
  /// physical cores that affinity and cgroup leave. \return false if below 1.
  virtual bool setMaxThreads(int32_t maxThreads) noexcept = 0;
  virtual int32_t getMaxThreads() const noexcept = 0;
  /// A queue for enqueueV3. Null on failure.
  virtual IQueue* createQueue() noexcept = 0;
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;  ///< engines read later inherit it
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
  virtual ILogger* getLogger() const noexcept = 0;
  /// Used where the system allows no executable memory files. Null: TMPDIR, else /tmp.
  virtual void setTemporaryDirectory(char const* path) noexcept = 0;
  virtual char const* getTemporaryDirectory() const noexcept = 0;
  virtual ~IRuntime() = default;
};

}  // namespace rutter

/// Behind createInferRuntime: null if the headers are newer than the library.
extern "C" void* rutterCreateInferRuntime(void* logger, int32_t apiVersion) noexcept;
/// Format version of a serialised engine, -1 if it is none.
extern "C" int32_t rutterEngineFormatVersion(void const* blob, std::size_t size) noexcept;

namespace rutter {
/// Null on failure. The logger must outlive the runtime.
inline IRuntime* createInferRuntime(ILogger& logger) noexcept {
  return static_cast<IRuntime*>(rutterCreateInferRuntime(&logger, RUTTER_API_VERSION));
}
}  // namespace rutter
