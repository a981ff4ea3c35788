#pragma once
// What a worker builds and measures with. The real one is the compiler and the runtime (compiler_backend.cpp); tests
// have a synthetic one with planted times and faults, in the same processes.
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ir/tensor.h"
#include "tuner/measure.h"
#include "tuner/search.h"

namespace rutter::tuner {

using Tensors = std::vector<std::pair<std::string, ir::Tensor>>;

/// An engine in this process, bound to inputs and to outputs of its own.
class LoadedEngine {
 public:
  virtual ~LoadedEngine() = default;
  /// Inputs by name; the caller keeps them alive. Output buffers are made for their shapes.
  virtual void bind(const Tensors& inputs) = 0;
  /// UserError if the engine reports a failure.
  virtual void run() = 0;
  /// Fills every output buffer with `byte`.
  virtual void poison(uint8_t byte) = 0;
  virtual Tensors outputs() const = 0;  ///< copies
  /// Median times of `runs` profiled runs, layer by layer.
  virtual std::vector<LayerTime> profile(int runs) = 0;
};

/// An engine that was built into a file.
struct Built {
  std::string hash;                      ///< as hashOf gives it for the whole engine
  std::map<std::string, double> stepMs;  ///< milliseconds of "decide", "emit", "link", "assemble", "write"
};

/// What an engine file says it was built of; "" for what it does not say.
struct EngineOrigin {
  std::string route;
  std::string decision;   ///< hash of what the route decided for its model and shapes (Decision::hash)
  std::string modelHash;  ///< as "model_hash" of Backend::describe
};

class Backend {
 public:
  virtual ~Backend() = default;

  // ---- in a worker, which runs no candidate code and no second thread ----
  /// Parses the model, makes or reads the input sets. `options`: TuneOptions as JSON.
  virtual void prepare(const Json& options) = 0;
  virtual void buildDefault() {}
  /// Decisions are made by time: before buildDefault() (route "") and before decide(), a child is to call
  /// measureTimes() and what it gives is to be admitted here.
  virtual bool decidesByTime() const { return false; }
  virtual void admitTimes(const std::string&) {}
  /// {"model_hash", "model_nodes", "stack": {name: version}, "machine": hash, "default": {"decision", "build_ms",
  /// "knobs_read"}}.
  virtual Json describe() const = 0;
  virtual const std::vector<Tensors>& inputs() const = 0;
  /// Makes up inputs in another way, of kInputWays (make_inputs.h; 0: as prepare() did). False if it is no other.
  virtual bool otherInputs(int) { return false; }
  /// References from the user's files, one a set; empty: the oracle's.
  virtual const std::vector<Tensors>& references() const = 0;
  /// May keep what it decided for a build of the same route in a child that is forked next.
  virtual Decision decide(const std::string& route) = 0;
  virtual void forgetDecision() {}
  /// Writes the default engine to a file (private folder: no sync).
  virtual void writeDefault(const std::string& path) = 0;
  virtual void admitKernels(const std::string& blob) = 0;

  // ---- in a child ----
  /// Runs kernels to measure what deciding `route` needs and is not known; "" if all is known. UserError: rejected.
  virtual std::string measureTimes(const std::string&) { return ""; }
  /// Times choices of the default engine's kernels, each kernel alone, for about so many seconds a layer (by first
  /// origin). The route of what was clearly faster, scoped to layers; "" if nothing was.
  virtual std::string timedRoute(const std::map<std::string, double>&) { return ""; }
  /// The oracle's outputs for one input set.
  virtual Tensors oracle(int set) = 0;
  /// Builds and writes the engine to a file, which may refer to the default's (see writeDefault). UserError: rejected.
  virtual Built build(const std::string& route, const std::string& path) = 0;
  /// Kernels that build() emitted and the worker does not have; "" if none.
  virtual std::string newKernels() = 0;

  // ---- anywhere, without prepare ----
  /// Loads an engine file (mapped: its weights are shared by all that load it); engines of one process share a pool of
  /// `threads` (0: all usable). `luck` decides where the arena lies.
  virtual std::unique_ptr<LoadedEngine> load(const std::string& path, int threads, uint64_t luck) = 0;
  /// The bytes of a whole engine, from a file that build or writeDefault wrote.
  virtual std::string wholeEngine(const std::string& path);
  /// Checks an engine file and returns a hash that differs whenever the engine does. UserError if it is torn or
  /// altered.
  virtual std::string hashOf(const std::string& path);
  /// Checks an engine and returns what it was built of. UserError if it is torn or altered.
  virtual EngineOrigin originOf(const std::string& path) = 0;
  virtual Clock& clock() = 0;
  /// The knobs that routes are made of.
  virtual std::shared_ptr<const knobs::Registry> registry(const Json& options) = 0;
};

using BackendFactory = std::function<std::unique_ptr<Backend>()>;

/// Tensors to and from a file in the private folder; UserError if torn.
std::string packTensors(const Tensors& t);
Tensors unpackTensors(std::string_view bytes);

}  // namespace rutter::tuner
