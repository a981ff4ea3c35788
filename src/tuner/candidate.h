#pragma once
// What happens in one candidate's process. No policy about processes here: a worker forks and calls these.
#include "tuner/backend.h"

namespace rutter::tuner {

/// How candidates are judged and measured; travels as JSON.
struct JudgeOptions {
  AccuracyOptions accuracy;
  bool guard = true;  ///< no threshold: against the oracle and the default
  int threads = 0;
  bool profileLayers = false;
  BlockRule block;
  RankRule rank;
};
Json toJson(const JudgeOptions& o);
JudgeOptions judgeFromJson(const Json& j);

/// Reference outputs and the default engine's own, one of each a set.
struct Reference {
  std::vector<Tensors> truth, standard;
  int attempt = 0;  ///< way of Backend::otherInputs
};

struct Accuracy {
  bool ok = true;
  std::map<std::string, double> losses;
  double relativeError = 0;
  std::string error;
  void add(const std::string& output, int set, const JudgeOptions& how, const ir::Tensor& y, const ir::Tensor* d,
           const ir::Tensor& o);
};

using Say = std::function<void(const char* step, const Json& body)>;  ///< "built", "loaded", "samples"

/// Oracle, default outputs, times, profile. Fills `reference`.
BaselineRecord runBaseline(Backend& backend, const JudgeOptions& how, const std::string& standardPath,
                           const std::string& oracleCache, Reference& reference, const Say& say);
/// Builds into the file `path`, loads beside the default, checks all sets, ranks.
CandidateRecord runCandidate(Backend& backend, const JudgeOptions& how, const Reference& reference,
                             const std::string& standardPath, const std::string& route, uint64_t luck,
                             const std::string& path, const Say& say);
/// Two engine files against each other in this (fresh) process. Outputs must stay the same from first to last run.
SampleRecord runSample(Backend& backend, const JudgeOptions& how, const std::string& standard,
                       const std::string& engine, const Tensors& inputs, bool swap, uint64_t luck, const Say& say);

}  // namespace rutter::tuner
