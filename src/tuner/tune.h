#pragma once
// The tuner's public entry: options in, events out while it runs, a result at the end. The command line and the API
// are thin clients of it. The calling process is only the *host*: it starts libexec/rutter/rutter-worker, asks and
// listens; no candidate code ever runs in it, it never forks, and none of its signals change.
#include <atomic>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rutter::tuner {

/// How routes are chosen. kTune is the friendly form `--tune`: the hottest knobs of the default engine's profile.
/// kUser: a strategy of the calling program's own.
enum class SearchKind { kFast, kFull, kMixed, kTune, kUser };
/// "fast", "full", "mixed", "tune", "user".
const char* searchName(SearchKind kind);
/// UserError for `auto`, `random`, `evolve` (they do not exist yet) and for unknown words; names what exists.
SearchKind parseSearch(const std::string& word);

enum class LossKind { kL0, kL1, kL2, kLInf, kCos };
/// Accuracy as the user asks for it. threshold 0 = none given: the guard against the oracle applies (DESIGN section 8).
struct AccuracyOptions {
  LossKind algorithm = LossKind::kL0;
  double threshold = 0;  ///< a loss at or above it rejects
  double atol = 1e-5, rtol = 1e-5;
};

/// The network: a file (external data is looked for beside it) or bytes, and the edits made through the API.
struct ModelSource {
  std::string path;       ///< absolute; "" if only bytes are given
  std::string bytes;      ///< serialised ModelProto; "" = read `path`
  std::string directory;  ///< where external data of `bytes` is looked for; "" = there is none
  /// Edits made through the API, JSON: {"inputs": [{"name", "dims" (-1: as it is), "symbols" (names of dynamic extents;
  /// "": as it is)}] for all of them in their order, "outputs": [names]}; "" = none.
  std::string edits;
};

/// One dynamic-shape profile: input name -> dims. All three maps have the same names; a static input may be left out.
struct ShapeRange {
  std::vector<int64_t> min, opt, max;
};
/// How every route of the search is built: all that is not a knob.
struct BuildOptions {
  std::vector<std::map<std::string, ShapeRange>> profiles;  ///< empty: every input is static
  std::map<std::string, std::vector<int64_t>> runShapes;    ///< shapes that are measured; default: opt of profile 0
  std::string isa;                                          ///< "" = the machine's best
  /// Tensor -> "hwc": inputs and outputs that lie channels last in memory. Files of such tensors hold them so, too.
  std::map<std::string, std::string> formats;
  std::string profilingVerbosity = "layer_names_only";  ///< of every engine: see compiler::keepDetail
  int threads = 0;                                      ///< CPU threads of the engine; 0 = the process's quota
  /// 4, 5: tactics are chosen by time, for the default and for every candidate. The times are kept in timingCacheFile,
  /// or beside the tuning cache, so that the same route is the same engine at any time of the search.
  int builderOptimizationLevel = 3;
  int maxTactics = -1, avgTiming = 8;  ///< levels 4, 5: see compiler::BuildOptions
  bool errorOnTimingMiss = false;      ///< levels 4, 5: a route that needs a time which is not known is rejected
  bool keepKernels = true;             ///< candidates take over kernels that others compiled
  int64_t workspaceBytes = -1;         ///< -1 = no limit
  bool strictRoutes = false;
  std::string timingCacheFile;
};

/// One set of inputs, with or without reference outputs: tensor name -> file (raw, .npy or .pb, spec 5.3).
struct IoPair {
  std::map<std::string, std::string> inputs, refOutputs;
};

struct TuneOptions {
  ModelSource model;
  BuildOptions build;
  SearchKind search = SearchKind::kFast;
  std::string expression;     ///< spec 1.1; unused with kTune; with kUser the strategy's name
  double budgetSeconds = -1;  ///< wall time of the whole search, across resumes; <= 0 = none
  double begun = 0;           ///< monotonicSeconds(): where the budget begins; 0 = at tune()
  int64_t maxCandidates = -1;
  AccuracyOptions accuracy;
  std::vector<IoPair> pairs;                ///< empty: two sets are made from `seed`
  double buildTimeOut = 0, runTimeOut = 0;  ///< seconds for a candidate; 0 = derived from the default's own times
  double minGain = 0.01;                    ///< the confirmed lower bound must clear 1 + minGain
  uint64_t seed = 1;
  std::string cacheFile;          ///< the spec-4 view; the journal is `<cacheFile>.journal`
  std::string saveEngine;         ///< "" = the winner is not saved
  bool saveAllEngines = false;    ///< each candidate as `<saveEngine>.iter<N>`
  bool resume = false;            ///< --continue: take over what the journal of `cacheFile` holds
  bool force = false;             ///< with resume: go on although model, shapes, machine or stack differ
  std::string tempDir;            ///< parent of the private folder; "" = $TMPDIR or /tmp
  std::vector<std::string> argv;  ///< as typed, for the cache's header; paths already absolute
  std::string workerProgram;      ///< "" = the installed libexec/rutter/rutter-worker
};

/// What became of a candidate (DESIGN section 1).
enum class Status { kOk, kRejected, kCrashed, kHung, kInaccurate, kUnstable, kInterrupted };
const char* statusName(Status s);
/// UserError for an unknown word.
Status parseStatus(const std::string& word);

/// ratio = default's time / candidate's time: above 1 is faster. lo and hi are the interval's ends.
struct Ratio {
  double ratio = 0, lo = 0, hi = 0;
};

/// One finished candidate. Numbers that were not measured are empty.
struct CandidateInfo {
  int64_t iter = 0;
  int phase = 1;
  std::string route;
  Status status = Status::kOk;
  std::string error;                                    ///< "" if ok
  std::optional<std::map<std::string, double>> losses;  ///< output -> largest loss over all input sets
  std::optional<double> milliseconds;                   ///< median of the measured runs
  std::optional<Ratio> ranking;                         ///< within one process: it ranks, it is no claim
  std::optional<int64_t> sameAs;        ///< iter of an engine with the same decisions; -1 = the default's
  std::vector<std::string> lostWishes;  ///< assignments without effect, and why
};

struct Progress {
  int64_t done = 0;                ///< candidates finished
  std::optional<int64_t> planned;  ///< candidates of the current phase and before, if known
  std::string phase;               ///< "baseline", "kernels" (timed alone), "search", "rank", "confirm"
  double elapsedSeconds = 0;       ///< across resumes
  std::optional<double> etaSeconds;
  std::optional<CandidateInfo> best;  ///< leading candidate so far
};

struct TuneResult {
  enum class Outcome { kImproved, kNoImprovement, kFailed };
  Outcome outcome = Outcome::kFailed;
  std::string reason;              ///< one line when there is no improvement or all failed
  std::string error;               ///< what did not let the search go on, or not write all; what is here holds
  int64_t winnerIter = -1;         ///< -1 = the default route
  std::string route;               ///< "" = the default route
  std::optional<Ratio> confirmed;  ///< over fresh processes
  int processes = 0;               ///< fresh processes behind `confirmed`
  std::optional<double> defaultMs, bestMs;
  std::optional<std::map<std::string, double>> losses;  ///< of the winner
  /// Of the winner and of the default against the oracle (or the references given), largest over outputs and sets.
  std::optional<double> relativeError, defaultRelativeError;
  std::map<std::string, int64_t> counts;  ///< status -> candidates; also "same" (equal engines)
  int64_t candidates = 0, distinctEngines = 0;
  double elapsedSeconds = 0, busySeconds = 0;  ///< busy: building or measuring candidates
  std::string enginePath;                      ///< where the winner was saved; "" = nowhere
  std::string journalPath, cachePath;
  bool interrupted = false;
};

/// Called from the thread that called tune(); must not throw.
class TuneListener {
 public:
  virtual ~TuneListener() = default;
  virtual void onBegin(int64_t iter, const std::string& route) {}  ///< &&&& TASK_BEGIN
  virtual void onEnd(const CandidateInfo& c) {}                    ///< &&&& TASK_END or TASK_ABORT
  virtual void onProgress(const Progress& p) {}
  virtual void onMessage(int severity, const std::string& text) {}  ///< severity as base/log.h
};

/// A strategy in the calling process (kUser); called from the thread that called tune(), must not throw.
class HostStrategy {
 public:
  virtual ~HostStrategy() = default;
  virtual std::optional<std::string> ask() = 0;  ///< a route, or the end
  virtual void tell(const CandidateInfo& outcome) = 0;
};

/// Runs a search to its end. `stop` may be raised at any time (Ctrl-C): at 1 the best so far is confirmed briefly and
/// saved, at 2 the search ends at once with what is confirmed. UserError for wrong options, files or a model that does
/// not build; DeviceError if the worker program cannot run or the journal cannot be written.
TuneResult tune(const TuneOptions& options, TuneListener& listener, const std::atomic<int>* stop = nullptr,
                HostStrategy* strategy = nullptr);

/// What `--continue` goes on with: the command line of an existing record, and what its last session searched.
struct LastSearch {
  std::string search, expression;       ///< a name of searchName(), spec 1.1
  std::optional<double> budgetSeconds;  ///< <= 0: it had none; nothing: only the cache is left, which does not say
  std::string saveEngine;               ///< absolute: where the winner was to be saved at its begin; "" = nowhere
  std::vector<std::string> argv = {};   ///< of the search's begin, the program first
};
/// From the cache's journal; without one, from the cache. UserError if neither can be read.
LastSearch lastSearch(const std::string& cacheFile);
/// UserError if a program's own strategy searched last: nobody else can go on with it.
void refuseOwnStrategy(const LastSearch& last, const std::string& cacheFile);
/// With `resume` and nothing to search for, `o` gets the last search's expression, kind and budget (unless it has one
/// of its own). UserError if a program's own strategy searched last.
void takeOverLastSearch(TuneOptions& o);

/// What private folders of searches begin with: what a killed one left goes when the next is made.
inline constexpr char kFolderPrefix[] = "rutter-tune-";

/// Default cache file of the command line (spec section 2).
std::string defaultCacheFile(const std::string& saveEngine);

}  // namespace rutter::tuner
