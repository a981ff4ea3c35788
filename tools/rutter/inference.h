#pragma once
// Running an engine: measured runs, accuracy against references, times by layer.
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "bindings.h"
#include "build.h"
#include "cli/report.h"

namespace rutter::cli {

struct AccuracyResult {
  std::map<std::string, double> losses;  ///< output -> largest loss over all pairs
  bool ok = true;
};

class Inference {
 public:
  /// Makes the contexts (one a stream) and their buffers; inputs are those of pair 0.
  Inference(Session& s, const Options& o);

  /// One run, to see whether the engine accepts the inputs.
  void tryOnce() { run(streams_[0]); }
  /// Runs every pair with reference outputs once and compares. Losses at or above the threshold are logged.
  AccuracyResult checkAccuracy();
  /// Runs until count and duration are reached; Ctrl-C ends it.
  std::vector<RunTimes> measure();
  /// Times by layer from runs of their own, in execution order.
  std::vector<LayerTimes> profile();
  NamedTensors inputs() const { return streams_[0].bindings->inputs(); }
  NamedTensors outputs() const { return streams_[0].bindings->outputs(); }
  const IExecutionContext& context() const { return *streams_[0].context; }

 private:
  struct Stream {
    std::unique_ptr<void, void (*)(void*)> memory{nullptr, std::free};  ///< with --allocationStrategy=runtime
    std::unique_ptr<IExecutionContext> context;
    std::unique_ptr<Bindings> bindings;
  };
  void run(Stream& s);

  Session& session_;
  const Options& options_;
  std::vector<IoTensor> io_;
  std::vector<Stream> streams_;
  TensorMap firstInputs_;
};

}  // namespace rutter::cli
