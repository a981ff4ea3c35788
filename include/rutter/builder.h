#pragma once
/// \file builder.h
/// Building engines: network, ONNX parser, optimization profiles, builder configuration with build routes, builder.
///
/// Names and semantics follow TensorRT 11. Objects made by create… belong to the caller and are deleted before their
/// maker; an IOptimizationProfile belongs to the builder. Strings returned belong to the object that returned them.
#include <rutter/runtime.h>
#include <rutter/types.h>

namespace rutter {

/// A tensor of a network.
class ITensor {
 public:
  /// Inputs only: renaming an inner tensor is refused. \return false, with the reason reported, if the name is null,
  /// empty, or that of another tensor of the network, inner ones included; the old name stays. The name that the tensor
  /// has is no error.
  virtual bool setName(char const* name) noexcept = 0;
  virtual char const* getName() const noexcept = 0;
  /// Inputs only: narrows dynamic extents before a build (-1 keeps one dynamic). \return false if rank or a static
  /// extent differs.
  virtual bool setDimensions(Dims const& dims) noexcept = 0;
  virtual Dims getDimensions() const noexcept = 0;  ///< -1 where dynamic; nbDims -1 if unknown
  virtual DataType getType() const noexcept = 0;
  virtual bool isNetworkInput() const noexcept = 0;
  virtual bool isNetworkOutput() const noexcept = 0;
  /// Inputs and outputs only: bits 1 << TensorFormat of the layouts that it may have in memory. The first of kLINEAR,
  /// kHWC that is set is used; other bits are passed over. \return false, with the reason reported, if neither is set,
  /// or if only kHWC is and the tensor has fewer than 3 axes or a rank that the model does not tell; the old formats
  /// stay.
  virtual bool setAllowedFormats(uint32_t formats) noexcept = 0;
  virtual uint32_t getAllowedFormats() const noexcept = 0;
  virtual char const* getDimensionName(int32_t index) const noexcept = 0;  ///< the symbol of a dynamic extent, or null
  virtual ~ITensor() = default;
  // since version 3 of the headers
  /// Inputs only: names a dynamic extent. Extents of one name, of one input or of several, are equal at run time, and a
  /// build makes use of it. Null or "": the extent is free again. \return false, with the reason reported, if the
  /// extent is static or missing, or the name is something else than up to 200 letters, digits, '_' and '.' that begin
  /// with a letter or '_'; the old name stays.
  virtual bool setDimensionName(int32_t index, char const* name) noexcept = 0;
};

/// A node of a network.
class ILayer {
 public:
  virtual char const* getName() const noexcept = 0;
  virtual char const* getType() const noexcept = 0;  ///< ONNX operator
  virtual int32_t getNbInputs() const noexcept = 0;
  virtual ITensor* getInput(int32_t index) const noexcept = 0;  ///< null: left out, or out of range
  virtual int32_t getNbOutputs() const noexcept = 0;
  virtual ITensor* getOutput(int32_t index) const noexcept = 0;
  virtual ~ILayer() = default;
};

/// A network, filled by a parser.
class INetworkDefinition {
 public:
  virtual int32_t getNbInputs() const noexcept = 0;
  virtual int32_t getNbOutputs() const noexcept = 0;
  virtual int32_t getNbLayers() const noexcept = 0;
  virtual ITensor* getInput(int32_t index) const noexcept = 0;
  virtual ITensor* getOutput(int32_t index) const noexcept = 0;
  virtual ILayer* getLayer(int32_t index) const noexcept = 0;
  /// Makes an inner tensor an output, after those there are. Marking an output again does nothing.
  virtual void markOutput(ITensor& tensor) noexcept = 0;
  virtual void unmarkOutput(ITensor& tensor) noexcept = 0;
  virtual void setName(char const* name) noexcept = 0;
  virtual char const* getName() const noexcept = 0;
  virtual uint32_t getFlags() const noexcept = 0;  ///< 0: typing is always strong
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
  virtual ~INetworkDefinition() = default;
};

/// Ranges of the inputs' shapes.
class IOptimizationProfile {
 public:
  /// \return false unless the extents are 0 or more and agree in rank with those set before.
  virtual bool setDimensions(char const* inputName, OptProfileSelector select, Dims const& dims) noexcept = 0;
  virtual Dims getDimensions(char const* inputName,
                             OptProfileSelector select) const noexcept = 0;  ///< nbDims -1 if not set
  virtual bool isValid() const noexcept = 0;  ///< every input has all three, and min <= opt <= max
  virtual ~IOptimizationProfile() = default;
  // since version 3 of the headers
  /// Ranges of the values of a shape input: false (kUNSUPPORTED_STATE), since this version builds no engine that has
  /// one.
  virtual bool setShapeValuesV2(char const* inputName, OptProfileSelector select, int64_t const* values,
                                int32_t nbValues) noexcept = 0;
  virtual int32_t getNbShapeValues(char const* inputName) const noexcept = 0;  ///< -1: none are set
  /// Null: none are set.
  virtual int64_t const* getShapeValuesV2(char const* inputName, OptProfileSelector select) const noexcept = 0;
  /// Share of the device's free memory that the profile may use beyond what it needs, 0 to 1. An engine on a CPU uses
  /// what it needs, whatever is free: \return true for 1, which is the default; false for another share
  /// (kUNSUPPORTED_STATE) or no share at all (kINVALID_ARGUMENT). IBuilderConfig::setMemoryPoolLimit bounds the need.
  virtual bool setExtraMemoryTarget(float target) noexcept = 0;
  virtual float getExtraMemoryTarget() const noexcept = 0;  ///< 1
};

/// Watches a build. Implemented by the program; called from the building thread.
class IProgressMonitor {
 public:
  virtual void phaseStart(char const* phaseName, char const* parentPhase, int32_t nbSteps) noexcept = 0;
  /// \return false to cancel the build.
  virtual bool stepComplete(char const* phaseName, int32_t step) noexcept = 0;
  virtual void phaseFinish(char const* phaseName) noexcept = 0;
  virtual ~IProgressMonitor() = default;
};

/// Times of kernels on one machine, measured by builds at optimization levels 4 and 5. Builds with equal caches make
/// equal engines. Made by IBuilderConfig::createTimingCache; must outlive the configurations that it is set on.
class ITimingCache {
 public:
  /// The cache as bytes; the caller deletes them. Machine and version are in them.
  virtual IHostMemory* serialize() const noexcept = 0;
  /// Takes over times of another cache that this one does not have. \return false if the other is of another machine or
  /// version and that is not to be ignored.
  virtual bool combine(ITimingCache const& other, bool ignoreMismatch) noexcept = 0;
  virtual bool reset() noexcept = 0;  ///< forgets all times
  /// 32 hexadecimal digits: of machine, version and all times. An engine records the hash of those that it was decided
  /// by. Valid until the next call on this object.
  virtual char const* getHash() const noexcept = 0;
  virtual ~ITimingCache() = default;
};

enum class MemoryPoolType : int32_t {
  kWORKSPACE = 0,             ///< activations and scratch
  kTACTIC_SHARED_MEMORY = 5,  ///< of GPUs: none on a CPU, and a limit for it is kUNSUPPORTED_STATE
};
/// Flags that this version cannot honour are reported as kUNSUPPORTED_STATE when they are set, and stay clear.
enum class BuilderFlag : int32_t {
  kDEBUG = 0,          ///< checks the graph after every pass
  kSTRICT_ROUTES = 1,  ///< a wish of the route that no layer takes, or a scope that matches nothing, fails the build
  kDISABLE_TIMING_CACHE = 2,        ///< levels 4 and 5: every time is measured, none is kept
  kERROR_ON_TIMING_CACHE_MISS = 3,  ///< levels 4 and 5: a time that the cache lacks fails the build
  kDISABLE_COMPILATION_CACHE = 4,   ///< kernels of earlier builds are not taken over
  // since version 3 of the headers
  kTF32 = 5,  ///< on at first: permits TF32 in fp32 maths, which no CPU has; engines are the same without it
  /// NaN and infinity are kept as IEEE 754 and ONNX say. So they are without it: no pass or tactic assumes their
  /// absence.
  kSTRICT_NANS = 6,
  kGPU_FALLBACK = 7,            ///< of accelerators that leave layers to a GPU: cannot be set
  kREFIT = 8,                   ///< weights that can be changed later: cannot be set yet
  kSPARSE_WEIGHTS = 9,          ///< kernels for structured sparsity: cannot be set
  kVERSION_COMPATIBLE = 10,     ///< engines for other versions of Rutter: cannot be set yet
  kSTRIP_PLAN = 11,             ///< engines without their weights: cannot be set yet
  kEDITABLE_TIMING_CACHE = 12,  ///< timing caches whose entries can be asked for and changed: cannot be set yet
};

/// How to build.
class IBuilderConfig {
 public:
  /// Sets the route of later builds: knob assignments `-area:what=value`, possibly scoped `-area:what@<glob>=value`.
  /// Null or "" clears it. Names and values are checked. \return false if the route is wrong: the old one stays, the
  /// reason is reported.
  virtual bool setBuildRoute(char const* route) noexcept = 0;
  virtual char const* getBuildRoute() const noexcept = 0;  ///< "" if unset; valid until the next setBuildRoute
  /// Every knob with its domain, default and help, as JSON; valid as long as this object.
  virtual char const* getAllBuildRoutes() const noexcept = 0;
  virtual void setFlag(BuilderFlag flag) noexcept = 0;
  virtual void clearFlag(BuilderFlag flag) noexcept = 0;
  virtual bool getFlag(BuilderFlag flag) const noexcept = 0;
  virtual void setFlags(uint32_t flags) noexcept = 0;  ///< bits 1 << BuilderFlag; those that cannot be set stay clear
  virtual uint32_t getFlags() const noexcept = 0;
  /// Most bytes of activations and scratch an engine may need at its profiles' maximum; a build above it fails.
  virtual void setMemoryPoolLimit(MemoryPoolType pool, std::size_t bytes) noexcept = 0;
  virtual std::size_t getMemoryPoolLimit(MemoryPoolType pool) const noexcept = 0;  ///< 0 for pools of GPUs
  /// \return the profile's index, or -1 if it is not valid.
  virtual int32_t addOptimizationProfile(IOptimizationProfile const* profile) noexcept = 0;
  virtual int32_t getNbOptimizationProfiles() const noexcept = 0;
  /// Detail of layer information in the engine.
  virtual void setProfilingVerbosity(ProfilingVerbosity verbosity) noexcept = 0;
  virtual ProfilingVerbosity getProfilingVerbosity() const noexcept = 0;
  virtual void setProgressMonitor(IProgressMonitor* monitor) noexcept = 0;
  virtual IProgressMonitor* getProgressMonitor() const noexcept = 0;
  /// "cpu". \return false for a target that this version does not have.
  virtual bool setTarget(char const* target) noexcept = 0;
  virtual char const* getTarget() const noexcept = 0;
  /// generic, avx2, avx512, or "" for the best that this machine has. \return false for another word.
  virtual bool setIsa(char const* isa) noexcept = 0;
  virtual char const* getIsa() const noexcept = 0;
  virtual void reset() noexcept = 0;  ///< back to the state after creation
  virtual ~IBuilderConfig() = default;
  // since version 2 of the headers
  /// 0 to 5, at first 3; above 5 acts as 5, below 0 as 0. Up to 3 tactics are chosen by estimates and nothing is timed;
  /// 4 and 5 build and time tactics and their tiles for each layer on this machine.
  virtual void setBuilderOptimizationLevel(int32_t level) noexcept = 0;
  virtual int32_t getBuilderOptimizationLevel() const noexcept = 0;
  /// Levels 4 and 5: measurements of each choice, the median of which counts; at first 8, below 1 acts as 1.
  virtual void setAvgTimingIterations(int32_t avgTiming) noexcept = 0;
  virtual int32_t getAvgTimingIterations() const noexcept = 0;
  /// Levels 4 and 5: most choices timed for a layer; -1: by level.
  virtual void setMaxNbTactics(int32_t maxNbTactics) noexcept = 0;
  virtual int32_t getMaxNbTactics() const noexcept = 0;
  /// A cache from ITimingCache::serialize's bytes, or an empty one (null or no bytes). The caller deletes it. \return
  /// null if the bytes are something else, or torn.
  virtual ITimingCache* createTimingCache(void const* blob, std::size_t size) const noexcept = 0;
  /// The cache that builds at levels 4 and 5 read and add to; it must outlive this. \return false if it is of another
  /// machine or version and that is not to be ignored.
  virtual bool setTimingCache(ITimingCache const& cache, bool ignoreMismatch) noexcept = 0;
  virtual ITimingCache const* getTimingCache() const noexcept = 0;  ///< null if none is set
};

/// Builds engines from networks. One build at a time; kernels emitted by a build serve later builds of the same
/// builder.
class IBuilder {
 public:
  virtual IBuilderConfig* createBuilderConfig() noexcept = 0;
  /// \param flags 0. \return null for other flags.
  virtual INetworkDefinition* createNetworkV2(uint32_t flags) noexcept = 0;
  virtual IOptimizationProfile* createOptimizationProfile() noexcept = 0;
  /// \return the engine's bytes, or null with the reason reported.
  virtual IHostMemory* buildSerializedNetwork(INetworkDefinition& network, IBuilderConfig& config) noexcept = 0;
  /// Writes the engine's bytes in one call of the writer. \return false with the reason reported: the build failed, and
  /// nothing was written, or the writer did not take all bytes, and what it has is no engine.
  virtual bool buildSerializedNetworkToStream(INetworkDefinition& network, IBuilderConfig& config,
                                              IStreamWriter& writer) noexcept = 0;
  /// Builds and loads. The builder must outlive the engine.
  virtual IEngine* buildEngineWithConfig(INetworkDefinition& network, IBuilderConfig& config) noexcept = 0;
  /// Whether a build would get as far as emitting code, decided without doing so; the reason is reported if not: no
  /// outputs, shapes that do not fit, types that an operator does not take, a route or formats that cannot be had. A
  /// node without a kernel is no reason: a reference evaluator runs it, slowly (layer information shows which, under
  /// "Reference"). The workspace limit, and times missing at levels 4 and 5, show in a build only.
  virtual bool isNetworkSupported(INetworkDefinition const& network, IBuilderConfig const& config) const noexcept = 0;
  /// Threads that built engines are decided for; 0 is all usable ones.
  virtual bool setMaxThreads(int32_t maxThreads) noexcept = 0;
  virtual int32_t getMaxThreads() const noexcept = 0;
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
  virtual ILogger* getLogger() const noexcept = 0;
  virtual void reset() noexcept = 0;  ///< forgets kernels of earlier builds
  virtual ~IBuilder() = default;
};

namespace onnx {

/// Why parsing failed.
class IParserError {
 public:
  virtual ErrorCode code() const noexcept = 0;
  virtual char const* desc() const noexcept = 0;
  virtual int32_t node() const noexcept = 0;  ///< index of the node in the model, -1 if the error is not a node's
  virtual char const* nodeName() const noexcept = 0;
  virtual char const* nodeOperator() const noexcept = 0;

 protected:
  virtual ~IParserError() = default;

 public:
  // since version 3 of the headers
  /// Where Rutter reported the error: a source file of its own, the line, and the method of IParser that was called.
  virtual char const* file() const noexcept = 0;
  virtual int32_t line() const noexcept = 0;
  virtual char const* func() const noexcept = 0;
};

/// How to parse. Flags that this version cannot honour are reported as kUNSUPPORTED_STATE.
enum class OnnxParserFlag : int32_t {
  kNATIVE_INSTANCENORM = 0,                           ///< on, and cannot be cleared: no operator is left to a plugin
  kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA = 1,  ///< of an accelerator: cannot be set
  kREPORT_CAPABILITY_DLA = 2,                         ///< of an accelerator: cannot be set
  kENABLE_PLUGIN_OVERRIDE = 3,                        ///< there are no plugins: cannot be set
  kADJUST_FOR_DLA = 4,                                ///< of an accelerator: cannot be set
};

/// Fills a network from an ONNX model.
class IParser {
 public:
  /// \param path where external data is looked for beside it; null: no external data. The bytes are copied.
  virtual bool parse(void const* data, std::size_t size, char const* path = nullptr) noexcept = 0;
  /// External data is looked for beside the file. \param verbosity the least important ILogger::Severity that reaches
  /// the logger from this call, as a number: at 3 (kINFO) a line about the model, at 4 (kVERBOSE) its inputs, outputs
  /// and nodes. Errors always do. \return false with the reason reported and in getError.
  virtual bool parseFromFile(char const* path, int32_t verbosity) noexcept = 0;
  /// Whether parse would succeed; fills the errors and leaves the network alone.
  virtual bool supportsModelV2(void const* data, std::size_t size, char const* path = nullptr) noexcept = 0;
  virtual bool supportsOperator(char const* name) const noexcept = 0;
  virtual int32_t getNbErrors() const noexcept = 0;
  virtual IParserError const* getError(int32_t index) const noexcept = 0;
  virtual void clearErrors() noexcept = 0;
  virtual ~IParser() = default;
  // since version 3 of the headers
  /// \return false, with the reason reported, if the flag cannot be set.
  virtual bool setFlag(OnnxParserFlag flag) noexcept = 0;
  virtual bool clearFlag(OnnxParserFlag flag) noexcept = 0;  ///< \return false, reported, if it cannot be cleared
  virtual bool getFlag(OnnxParserFlag flag) const noexcept = 0;
  /// What the last supportsModelV2 found: the nodes in an order in which they can run, cut wherever operators that are
  /// supported and operators that are not meet. 0 before that, and for a model that cannot be read for another reason.
  virtual int64_t getNbSubgraphs() const noexcept = 0;
  /// Whether all operators of its nodes, functions and nested graphs included, are supported. \return false, reported,
  /// if there is no such subgraph.
  virtual bool isSubgraphSupported(int64_t index) noexcept = 0;
  /// Indices of its nodes in the model's graph; valid until the next supportsModelV2. \return null, reported, with a
  /// length of 0, if there is no such subgraph.
  virtual int64_t const* getSubgraphNodes(int64_t index, int64_t& subgraphLength) noexcept = 0;
};

}  // namespace onnx
}  // namespace rutter

extern "C" void* rutterCreateInferBuilder(void* logger, int32_t apiVersion) noexcept;
extern "C" void* rutterCreateOnnxParser(void* network, void* logger, int32_t apiVersion) noexcept;

namespace rutter {
/// Null on failure. The logger must outlive the builder.
inline IBuilder* createInferBuilder(ILogger& logger) noexcept {
  return static_cast<IBuilder*>(rutterCreateInferBuilder(&logger, RUTTER_API_VERSION));
}
namespace onnx {
/// Null on failure. Network and logger must outlive the parser.
inline IParser* createParser(INetworkDefinition& network, ILogger& logger) noexcept {
  return static_cast<IParser*>(rutterCreateOnnxParser(&network, &logger, RUTTER_API_VERSION));
}
}  // namespace onnx
}  // namespace rutter
