#pragma once
// The Runner of real searches: a worker that builds and ranks in forked children, fresh processes that confirm.
#include "tuner/backend.h"
#include "tuner/candidate.h"
#include "tuner/process.h"
#include "tuner/watch.h"

namespace rutter::tuner {

struct RunnerOptions {
  std::string program;  ///< to execute as worker and measuring process
  std::string folder;   ///< private, of this search
  std::string oracle;   ///< where oracle outputs are kept; "" = nowhere
  Json options;         ///< TuneOptions for Backend::prepare
  JudgeOptions judge;
  uint64_t seed = 1;
  double buildTimeOut = 0, runTimeOut = 0;
  double decideSeconds = 60;  ///< most for one decision
  double timeKernels = 0;     ///< seconds for timing kernels of the default engine's hottest layers, each alone
  std::function<void(const char*)> phase = [](const char*) {};  ///< told when the default engine's kernels are timed
  double winnerSeconds = 0;  ///< for shortening one winner's route, at least what it takes as a rule; 0 = no limit
  bool keepAll = false;
};

/// What is being done when it is asked whether to hurry.
enum class Work { kPrepare, kCandidate, kSample, kWinner, kSave };

class ProcessRunner : public Runner {
 public:
  /// `hurry`: asked often; true ends what runs. `listenTo`: descriptor whose readability makes it ask at once.
  ProcessRunner(RunnerOptions options, std::unique_ptr<Backend> checker, std::function<bool(Work)> hurry, int listenTo);
  ~ProcessRunner() override;

  /// Starts the worker if there is none; what Backend::describe says. UserError if the model does not build.
  const Json& about();

  std::shared_ptr<const knobs::Registry> registry() const { return checker_->registry(o_.options); }

  BaselineRecord baseline() override;
  Decision decide(const std::string& route, Purpose purpose) override;
  CandidateRecord candidate(int64_t iter, const std::string& route, double promise) override;
  CandidateRecord rebuild(int64_t iter, const std::string& route) override;
  SampleRecord sample(int64_t iter, const std::string& route, const std::string& stage, int index) override;
  std::string save(int64_t iter, const std::string& route, const std::string& path) override;
  std::string hashOf(const std::string& path) override;
  std::string routeOf(const std::string& path) override;
  bool holds(const std::string& path, const CandidateRecord& c) override;
  void keepOnly(const std::vector<int64_t>& iters) override;
  /// Limits of a candidate, from the default's times.
  Limits limits() const;

 private:
  struct Answer {
    Status status = Status::kOk;  // kCrashed, kHung or kInterrupted if there is no body
    std::string text;
    Json body;
  };
  Answer request(FrameType type, Json body, double seconds);
  Answer requestBuild(const Json& task, double seconds);
  CandidateRecord build(int64_t iter, const std::string& route, double promise);
  void begin(Work work);
  bool hurried() const;
  void measureBaseline();
  void needBaseline();
  void timeKernels();
  std::string enginePath(int64_t iter) const;
  std::optional<EngineOrigin> ownOrigin(const std::string& path);
  void needEngine(int64_t iter, const std::string& route);
  uint64_t luck(const std::string& what) const;

  RunnerOptions o_;
  std::unique_ptr<Backend> checker_;
  std::function<bool(Work)> hurry_;
  Work work_ = Work::kPrepare;
  int listenTo_;
  Process worker_;
  Json about_;
  bool haveBaseline_ = false;
  BaselineRecord baseline_;
  double prepareSeconds_ = 0, winnerSince_ = 0;
  int candidates_ = 0;
  int64_t firstSize_ = 0;
  std::vector<int64_t> losers_;
};

}  // namespace rutter::tuner
