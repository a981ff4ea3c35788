#pragma once
/// \file tuner.h
/// Tuning from a program: what `rutter --tune` does, with strategies of one's own.
///
/// The program only asks and listens: candidates are built, checked and measured in processes of their own
/// (libexec/rutter/rutter-worker), which may crash or hang without harm to it.
#include <rutter/builder.h>

namespace rutter {

/// What became of a candidate.
enum class TuningStatus : int32_t {
  kOK = 0,
  kREJECTED = 1,    ///< cannot be built
  kCRASHED = 2,     ///< while being built, loaded or run
  kHUNG = 3,        ///< gave no sign of life within its limits
  kINACCURATE = 4,  ///< its outputs are too far from the reference
  kUNSTABLE = 5,    ///< gives other bits from run to run
  kINTERRUPTED = 6,
};

/// One candidate that was tried. Strings are valid during the call that gets it.
struct TuningCandidate {
  char const* route = "";  ///< "" is the default route
  TuningStatus status = TuningStatus::kOK;
  char const* error = "";    ///< why it is not kOK; "" if it is
  double milliseconds = -1;  ///< median of its runs; -1 if it was not measured
  /// The default's time divided by this one's, with an interval, within one process: above 1 is faster. It ranks
  /// candidates and is no claim. 0 if it was not measured.
  double ratio = 0, ratioLow = 0, ratioHigh = 0;
};

/// Chooses routes. Implemented by the program; called from the thread that called ITuner::run, in turn: ask, tell, ask,
/// …
class IStrategy {
 public:
  virtual char const* getName() const noexcept = 0;
  /// The next route to try (knobs and values: IBuilderConfig::getAllBuildRoutes); "" is the default route; null: no
  /// more. Valid until the next call. A route that was tried before is not measured again.
  virtual char const* ask() noexcept = 0;
  /// The outcome of the route asked for last. Routes that decide alike are one engine, and get the same numbers.
  virtual void tell(TuningCandidate const& outcome) noexcept = 0;
  virtual ~IStrategy() = default;
};

/// How far a search is.
struct TuningProgress {
  char const* phase = "";  ///< "baseline", "kernels" (timed alone), "search", "rank", "confirm"
  int64_t done = 0;        ///< candidates finished
  double elapsedSeconds = 0;
  double bestRatio = 0;  ///< of the leading candidate, unconfirmed; 0: none yet
};

/// Watches a search. Implemented by the program; called from the thread that called ITuner::run.
class ITuningListener {
 public:
  virtual void candidateFinished(int64_t iteration, TuningCandidate const& candidate) noexcept = 0;
  /// \return false to end the search: the best so far is confirmed briefly.
  virtual bool progress(TuningProgress const& progress) noexcept = 0;
  virtual ~ITuningListener() = default;
};

/// What a search found. The caller deletes it.
class ITuningResult {
 public:
  /// Whether a route is faster than the default with confidence; if not, the default is the result.
  virtual bool isImproved() const noexcept = 0;
  virtual char const* getReason() const noexcept = 0;      ///< one line if nothing is better or all failed
  virtual char const* getBuildRoute() const noexcept = 0;  ///< "" is the default route
  /// The default's time divided by the winner's, over fresh processes; 1 if nothing is better.
  virtual double getRatio() const noexcept = 0;
  virtual double getRatioLow() const noexcept = 0;      ///< lower end of its 95 % interval
  virtual double getRatioHigh() const noexcept = 0;     ///< upper end
  virtual int32_t getNbProcesses() const noexcept = 0;  ///< fresh processes behind the ratio
  virtual int64_t getNbCandidates() const noexcept = 0;
  virtual IHostMemory const* getEngine()
      const noexcept = 0;                               ///< the winner's bytes, or the default's; null if all failed
  virtual char const* getJournal() const noexcept = 0;  ///< every record of the search, one JSON object a line
  virtual ~ITuningResult() = default;
};

/// A search for the fastest route of a network. Network, profiles, target, instruction set, flags, optimization level,
/// timing cache and limits are those of the builder, network and configuration that it was made of, as they are when
/// run() is called; all of them must outlive it.
class ITuner {
 public:
  /// Wall time of the search in seconds, all included; 0 or less: until the strategy is at its end. At first 60.
  virtual void setBudget(double seconds) noexcept = 0;
  virtual void setMaxCandidates(int64_t count) noexcept = 0;  ///< below 0: any number
  /// A strategy of the program's own, which must outlive run(); null: Rutter's own, as `rutter --tune`.
  virtual void setStrategy(IStrategy* strategy) noexcept = 0;
  /// "fast", "full" or "mixed" search of an expression like "-gemm:tile_m=[auto|8|12]", in place of a strategy.
  /// \return false if word or expression is wrong.
  virtual bool setExpression(char const* search, char const* expression) noexcept = 0;
  /// \param algorithm l0, l1, l2, lInf or cos. A candidate whose loss is at or above the threshold is inaccurate.
  /// Without this, candidates may be as far from Rutter's reference as the default engine, within a small factor.
  virtual bool setAccuracy(char const* algorithm, double threshold, double atol = 1e-5,
                           double rtol = 1e-5) noexcept = 0;
  /// One input of a set of inputs, copied; sets count from 0 without gaps. Inputs that are not given are made up.
  virtual bool setInput(int32_t set, char const* name, void const* data, std::size_t bytes) noexcept = 0;
  /// What an output of a set is compared with, copied; needs setAccuracy, and is given for all sets or for none.
  virtual bool setReferenceOutput(int32_t set, char const* name, void const* data, std::size_t bytes) noexcept = 0;
  /// Shape that an input is measured with; at first the first profile's optimum.
  virtual bool setInputShape(char const* name, Dims const& dims) noexcept = 0;
  virtual void setMinGain(
      double gain) noexcept = 0;  ///< what the interval's lower end must exceed, beyond 1. At first 0.01
  virtual void setProgressListener(ITuningListener* listener) noexcept = 0;
  /// Where the record of the search is kept, beside it its journal; null: in a folder that goes with this object.
  /// \param resume go on with what is there, or extend it by another strategy.
  virtual bool setCacheFile(char const* path, bool resume = false) noexcept = 0;
  /// Searches. \return null with the reason reported: wrong inputs, a default that does not run, no worker program.
  /// A disk that fills on the way ends the search, which is reported, too: the result is the best so far.
  virtual ITuningResult* run() noexcept = 0;
  /// From any thread: 1 ends the search in order, 2 at once; 0 takes it back.
  virtual void stop(int32_t level) noexcept = 0;
  virtual void setErrorRecorder(IErrorRecorder* recorder) noexcept = 0;
  virtual IErrorRecorder* getErrorRecorder() const noexcept = 0;
  virtual ~ITuner() = default;
};

}  // namespace rutter

extern "C" void* rutterCreateTuner(void* builder, void* network, void* config, int32_t apiVersion) noexcept;

namespace rutter {
/// Null on failure, with the reason reported to the builder's logger.
inline ITuner* createTuner(IBuilder& builder, INetworkDefinition& network, IBuilderConfig& config) noexcept {
  return static_cast<ITuner*>(rutterCreateTuner(&builder, &network, &config, RUTTER_API_VERSION));
}
}  // namespace rutter
