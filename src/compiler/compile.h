#pragma once
// Model + route + profile -> engine: the driver that puts the rooms in a row.
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "codegen/decide.h"
#include "compiler/kernel_cache.h"
#include "compiler/timing_cache.h"
#include "knobs/route.h"
#include "onnx/import.h"
#include "passes/infer.h"
#include "runtime/engine_file.h"

namespace rutter::compiler {

struct BuildOptions {
  knobs::Route route;
  std::vector<passes::Profile> profiles;        ///< at least one; an engine serves the union of their ranges
  std::string target = "cpu", isa;              ///< isa "": the best of this machine
  int threads = 0;                              ///< 0: all usable cores
  int emitThreads = 0;                          ///< that emit kernels during the build; 0: all usable cores
  std::map<std::string, ir::Layout> ioLayouts;  ///< memory order of inputs and outputs that are not row-major
  bool strictRoutes = false;       ///< a wish that no layer takes, or a scope that matches nothing, is a UserError
  int optimizationLevel = 3;       ///< 0 to 3 time nothing; 4 and 5 time tactics and their tiles
  int maxTactics = -1;             ///< levels 4, 5: choices timed for a problem; -1: by level
  int avgTiming = 8;               ///< levels 4, 5: measurements of a choice, the median of which counts
  bool errorOnTimingMiss = false;  ///< levels 4, 5: a time that the cache lacks is a UserError
  std::map<std::string, double> timingSeconds;  ///< levels 4, 5: bounds of measuring, see TimingOptions::seconds
  std::shared_ptr<TimingCache> timings;         ///< levels 4, 5: read and added to; null: one of this build alone
  std::function<void(std::string_view phase, int step, int steps)> progress;  ///< may throw to cancel
  std::function<void(std::string_view pass, const ir::Graph&)> dumpPass;
  bool verify = false;  ///< checks the graph after every pass
};

/// The cheap half of a build.
struct Decided {
  codegen::Decision decision;
  codegen::MachineProfile machine;
  const codegen::Target* target = nullptr;
  std::set<knobs::KnobId> reads;      ///< by layers, by passes (nodes that are gone included), by the whole engine
  std::vector<std::string> warnings;  ///< unmatched scopes, wishes that nobody took
  std::string timingHash;             ///< levels 4, 5: of the times that it was decided by; else empty
  int timesMeasured = 0;              ///< that the timing cache lacked
  knobs::Route timedRoute;            ///< levels 4, 5: with it, level 3 chooses what was chosen by time
  std::map<Hash128, std::shared_ptr<const codegen::KernelObject>>
      emitted;  ///< kernels of this decision that were timed
};
/// `kernels`: where levels 4 and 5 look up what they time.
Decided decideModel(const frontend::Model& model, const BuildOptions& o, const KernelCache& kernels = {});

struct BuildResult {
  runtime::EngineParts parts;  ///< weights point into `owners`
  std::vector<std::shared_ptr<const void>> owners;
  Hash128 decisionHash;
  std::vector<std::string> warnings;
  int kernels = 0, kernelsCompiled = 0, referenceNodes = 0;
  double decideSeconds = 0, emitSeconds = 0, linkSeconds = 0, assembleSeconds = 0;
};
/// Decides, emits what the cache lacks, links, packs weights, plans memory. `cache` keeps what was emitted.
BuildResult buildEngine(const frontend::Model& model, const BuildOptions& o, KernelCache& cache);
/// The same from a decision that was made already.
BuildResult buildEngine(const frontend::Model& model, const BuildOptions& o, Decided decided, KernelCache& cache);

/// What an engine tells about its layers: all ("detailed"), their names ("layer_names_only"), or nothing ("none": a
/// failing layer then has only a number). UserError for another word.
void keepDetail(runtime::EngineParts& parts, const std::string& verbosity);

/// Bytes that a context of the engine needs on so many threads (0: all usable): activations, and scratch a thread.
int64_t workspaceBytes(const BuildResult& r, int threads);

}  // namespace rutter::compiler
