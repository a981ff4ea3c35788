#pragma once
// The typed records of a journal. A search is a pure function of them: replay and --continue feed them back.
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "tuner/statistics.h"
#include "tuner/tune.h"

namespace rutter::tuner {

using Json = nlohmann::ordered_json;

/// Time of one layer of the default engine, for choosing hot knobs.
struct LayerTime {
  std::string name;
  std::vector<std::string> origins;  ///< names of its ONNX nodes: what a scope matches
  std::vector<std::string> knobsRead;
  double ms = 0;
};

/// The default engine: built and measured before anything else.
struct BaselineRecord {
  Status status = Status::kOk;
  std::string error;
  std::string decision, engineHash;
  std::optional<double> ms;
  std::optional<std::map<std::string, double>> losses;
  std::optional<double> relativeError;  ///< largest over outputs and sets, against the oracle
  double buildMs = 0, runSeconds = 0;   ///< runSeconds: load, check and measure
  std::vector<std::string> knobsRead;   ///< by decisions about the whole model and by layers
  std::vector<LayerTime> layers;
  /// What timing the kernels of the hottest layers, each alone, would choose: values scoped to layers. "": nothing
  /// else.
  std::string timedRoute;
  std::string machine;  ///< hash of the machine profile that heuristics read
  int inputs = 0;       ///< how inputs were made up: a way of Backend::otherInputs
};

struct CandidateRecord {
  int64_t iter = 0;
  int phase = 1;
  std::string route;
  Status status = Status::kOk;
  std::string error;
  std::optional<std::map<std::string, double>> losses;  ///< infinite losses are null in JSON
  std::optional<double> relativeError;
  std::optional<double> ms;
  std::vector<double> logRatios;  ///< rounds of the ranking process; of the profiles alone if those promised too little
  std::string decision, engineHash;
  std::optional<int64_t> sameAs;  ///< -1: the default's engine
  std::vector<std::string> knobsRead;
  std::vector<std::string> lostWishes;  ///< assignments without effect, and why
  double buildMs = 0, busySeconds = 0;
  int64_t peakBytes = 0;
  /// By name of a layer's first origin, of the candidate and of the default beside it in the same process; only where a
  /// strategy wants them.
  std::map<std::string, double> layerMs, defaultLayerMs;
  std::map<std::string, double> stepMs;  ///< "decide", "emit", "link", "assemble", "write", "load", "check", …
  std::string host, time;
};

/// One fresh process that measured a candidate against the default. stage: "rank1", "rank2", … or "confirm".
struct SampleRecord {
  int64_t iter = 0;
  std::string route, stage;
  int index = 0;  ///< odd: the order of loading and of the blocks is swapped
  Status status = Status::kOk;
  std::string error;
  std::vector<double> logRatios;  ///< of its rounds
  double defaultMs = 0, ms = 0, busySeconds = 0;
  double share = 0;  ///< of the error, if it confirms: the candidate's for good, whatever else the record loses
  double logRatio() const { return median(logRatios); }
  bool confirms() const { return !stage.starts_with("rank"); }
};

struct ConfirmRecord {
  int64_t iter = 0;
  std::string route;
  int processes = 0;
  double share = 0;                   ///< of the error that the search may make; 0 if nothing was measured
  double center = 0, lo = 0, hi = 0;  ///< log ratios
  bool faster = false;
  std::string reason;  ///< "" if decided by the interval: "time", "stopped", "crashed in a fresh process", …
  /// Not only that there was no time to measure it.
  bool decides() const { return faster || (reason != "time" && reason != "stopped"); }
};

struct WinnerRecord {
  int64_t iter = -1;  ///< -1: the default
  std::string route, engineHash, reason;
  double center = 0, lo = 0, hi = 0;  ///< log ratios
  int processes = 0;
  void takeNumbers(const ConfirmRecord& c) { center = c.center, lo = c.lo, hi = c.hi, processes = c.processes; }
};

/// What a part of a winner's route decides.
struct DecidedRecord {
  int64_t of = 0;               ///< iter of the winner
  std::string route, decision;  ///< decision is empty if it failed
  double busySeconds = 0;
};

/// The engine of candidate `of` built by the shortest route that decides the same.
struct ShortenedRecord {
  int64_t of = 0, iter = 0;
  std::string route;
  Status status = Status::kOk;  ///< of the build: else the winner keeps its own route
  std::string error, engineHash;
  double busySeconds = 0;
};

/// Another route to the engine of `of`: with its numbers, but for what building and measuring it cost.
CandidateRecord sameEngine(const CandidateRecord& of, int64_t iter, const std::string& route);

Json toJson(const BaselineRecord& r);
Json toJson(const CandidateRecord& r);
Json toJson(const SampleRecord& r);
Json toJson(const ConfirmRecord& r);
Json toJson(const WinnerRecord& r);
Json toJson(const DecidedRecord& r);
Json toJson(const ShortenedRecord& r);
/// These accept missing keys (their fields keep their defaults); UserError for a key of another type.
BaselineRecord baselineFromJson(const Json& j);
CandidateRecord candidateFromJson(const Json& j);
SampleRecord sampleFromJson(const Json& j);
ConfirmRecord confirmFromJson(const Json& j);
WinnerRecord winnerFromJson(const Json& j);
DecidedRecord decidedFromJson(const Json& j);
ShortenedRecord shortenedFromJson(const Json& j);

/// null for infinite and NaN.
Json lossesToJson(const std::optional<std::map<std::string, double>>& losses);
std::optional<std::map<std::string, double>> lossesFromJson(const Json& j);
/// exp of a log ratio and its interval within one process (order statistics of the rounds).
std::optional<Ratio> rankingOf(const std::vector<double>& logRatios);
CandidateInfo infoOf(const CandidateRecord& r);
std::string hostName();
std::string timeStamp();  ///< UTC, ISO 8601

}  // namespace rutter::tuner
