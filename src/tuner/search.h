#pragma once
// The search: asks a strategy, has routes built and measured, ranks, confirms, names a winner, and records every step.
// All policy is here, as pure functions of recorded numbers; processes and clocks are behind Runner and Pacer.
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tuner/journal.h"
#include "tuner/strategy.h"

namespace rutter::tuner {

/// The time is up, or someone asked to stop, while an engine was built that cannot be done without.
class InterruptedError : public UserError {
 public:
  explicit InterruptedError(const char* engine) : UserError("interrupted while {} was being built", engine) {}
};

/// What a route decides, without emitting anything.
struct Decision {
  Status status = Status::kOk;  ///< kRejected, kCrashed or kHung if the decision itself failed
  std::string error, hash;
  std::vector<std::string> knobsRead;
  std::vector<std::string> lostWishes;  ///< assignments without effect, and why
  double seconds = 0;                   ///< of deciding alone
};

/// What a decision is asked for: the time for candidates ends earlier than that for the winner.
enum class Purpose { kCandidate, kWinner };

/// Builds and measures. An implementation may be real (processes), synthetic, or a recording.
class Runner {
 public:
  virtual ~Runner() = default;
  virtual BaselineRecord baseline() = 0;
  virtual Decision decide(const std::string& route, Purpose purpose) = 0;
  /// Builds, checks and ranks in one process. Fills everything but iter, phase, host and time. kInterrupted if stopped
  /// by the user or the time budget.
  /// What promises less than `promise` (RankRule) need not be ranked any further.
  virtual CandidateRecord candidate(int64_t iter, const std::string& route, double promise) = 0;
  /// Builds and checks what is known to be fast, by another route; its ranking counts for nothing.
  virtual CandidateRecord rebuild(int64_t iter, const std::string& route) = 0;
  /// One fresh process. `index` odd swaps the order.
  virtual SampleRecord sample(int64_t iter, const std::string& route, const std::string& stage, int index) = 0;
  /// Writes the engine of `route` (of the default if iter is -1) to `path`, checked and renamed into place. Returns
  /// its hash. UserError or DeviceError if that fails, InterruptedError if somebody does not want to wait for it.
  virtual std::string save(int64_t iter, const std::string& route, const std::string& path) = 0;
  /// The `engineHash` that an engine file has; "" if it is no whole engine.
  virtual std::string hashOf(const std::string& path) = 0;
  /// The route that an engine file was built by; "" for the default's, or if it is no whole engine of this model.
  virtual std::string routeOf(const std::string& path) = 0;
  /// Whether the file is this candidate's engine. One whose engine is that of another route has no hash of its own.
  virtual bool holds(const std::string& path, const CandidateRecord& c) = 0;
  /// Engines of other candidates will not be asked for soon and may be dropped.
  virtual void keepOnly(const std::vector<int64_t>& iters) {}
};

/// What worked before, or nothing goes on without: if its process dies that is most likely an accident, and it is asked
/// for once more.
template <typename F>
auto onceMore(F&& ask) {
  auto answer = ask();
  if (answer.status == Status::kCrashed) answer = ask();
  return answer;
}

/// Time and the user's wish to stop.
class Pacer {
 public:
  virtual ~Pacer() = default;
  virtual double elapsed() = 0;  ///< seconds of this search so far, all sessions together
  virtual int stopLevel() = 0;   ///< 0 go on, 1 finish briefly, 2 end at once
};

struct SearchConfig {
  double budgetSeconds = -1;
  int64_t maxCandidates = -1;
  double minGain = 0.01;
  bool recordedOnly = false;           ///< replay: nothing is measured; phases end where they ended
  bool dedupe = true;                  ///< tests of A/A turn it off
  bool shorten = false;                ///< drop what decides nothing from a winner's route
  bool requireAccurateDefault = true;  ///< an inaccurate default ends the search (no threshold of the user's own)
  bool lostLines = false;              ///< the record that is gone on with is not whole, or once was not
  int epoch = 0;                       ///< how often the search was extended: confirmations are made anew
  std::string saveEngine;
  bool saveAllEngines = false;
  std::string cacheFile;  ///< "" = no view is written
};

/// How a search phase ended.
struct SearchEnd {
  int64_t asked = 0;
  bool done = false;  ///< the strategy had nothing left
};

/// Who was confirmed after a search phase.
struct Finalists {
  size_t count = 0;
  std::string again;   ///< route of an earlier winner that came first among them, "" = none
  bool brief = false;  ///< the search was stopped: nothing was ranked again
};

/// A journal's records, by what a search would ask for.
class Recorded {
 public:
  Recorded() = default;
  explicit Recorded(const std::vector<Json>& records);
  std::optional<BaselineRecord> baseline;
  std::map<std::string, CandidateRecord> candidates;  ///< by route; the last record, interrupted ones left out
  std::map<std::string, int64_t> interrupted;         ///< route -> iter, to be used again
  std::map<std::string, int64_t> numbers;             ///< route -> iter, of whatever record names both
  std::map<std::string, DecidedRecord> decided;       ///< by route
  std::map<int64_t, ShortenedRecord> shortened;       ///< by the candidate's iter; the last one
  std::map<std::string, SampleRecord> samples;        ///< by sampleKey
  /// What the last session found when it began; a replay of it knows no more.
  struct Before {
    std::set<std::string> candidates;               ///< routes
    std::set<std::string> failed, failedRanking;    ///< routes of which a fresh process failed, and one that ranks
    std::map<std::string, std::vector<int>> early;  ///< by stage and route: looks made as the time was up
  } before;
  std::map<std::string, std::map<std::string, double>> shares;  ///< stage that confirms -> route -> of the error
  std::set<std::string> judged;                                 ///< routes that some record confirms or refutes
  std::optional<WinnerRecord> winner;                           ///< the last one, or what was confirmed after it
  std::optional<WinnerRecord> kept;                             ///< an earlier session's, in the last session
  std::optional<WinnerRecord> extended;                         ///< of the search that the last one extends
  std::optional<Finalists> race;                                ///< the last ones of the search, over its sessions
  std::map<int64_t, Finalists> races;                           ///< by how many candidates had been asked for
  std::vector<SearchEnd> searchEnds;                            ///< of each search phase
  int64_t nextIter = 0;
  /// That of an engine, and the longer one by which it was measured.
  std::set<std::string> routesOf(const std::string& route) const;
  static std::string sampleKey(const std::string& route, const std::string& stage, int index);
  void take(SampleRecord r);
  /// Of the error, for a route that was or is to be measured in a stage that confirms.
  double shareOf(const std::string& route, const std::string& stage) const;
  /// By which it is confirmed.
  ConfirmRule ruleOf(const std::string& route, const std::string& stage, double minGain) const;

 private:
  void takeVerdict(const ConfirmRecord& c);
};

// ---- policy ----

/// True for records that follow from others (strategy, rank, confirm, winner).
bool isDecision(const Json& record);
/// True for decisions that follow from the clock and are inputs of a replay.
bool isTimed(const Json& record);

struct Ranked {
  int64_t iter = 0;
  std::string route;
  double score = 0;  ///< log ratio
};
/// Candidates that may win, best first: ok, with an engine of their own, faster than the default by their score.
/// Score: the median over all fresh processes that measured it so far, the ranking process included.
std::vector<Ranked> rankCandidates(const std::map<std::string, CandidateRecord>& candidates,
                                   const std::map<std::string, std::vector<double>>& processes);
/// Successive halving: how many go on, and in how many fresh processes each is measured, stage by stage.
struct Stage {
  const char* name;
  int keep, processes;
};
inline constexpr Stage kStages[] = {{"rank1", 6, 1}, {"rank2", 3, 2}};
inline constexpr int kFinalists = 2;
/// Of the budget: when candidates are no longer waited for (what is kept back for confirming is not theirs), when
/// samples are not, and what the decisions of one winner's parts may take.
inline constexpr double kCandidateShare = 0.9, kSampleShare = 1.05, kShortenShare = 0.02;
/// Rounds of a process that confirms, given the seconds of one run: over processes their number counts, so that a slow
/// engine is measured well enough in two rounds.
constexpr int sampleRounds(double runSeconds) {
  return runSeconds > 0.02 ? 2 : 3;
}
/// Seconds to keep back for ranking and confirming, given how long a fresh process takes: for the first look of each
/// finalist at most 45 % of the budget, for more of them 25 %.
double reserveSeconds(size_t contenders, double processSeconds, double budgetSeconds);
/// `route` without the assignments that change nothing, as `same` says of what is left: nothing more can be left out of
/// the result alone. Halves are tried before single assignments, as `same` costs a decision.
std::string shortened(const std::string& route, const std::function<bool(const std::string&)>& same);
/// Highest lower bound among those that are faster; none: no improvement.
std::optional<ConfirmRecord> chooseWinner(const std::vector<ConfirmRecord>& confirmed);

/// Runs one search. Whatever `journal` already holds is taken over; new records are appended to it.
class Search {
 public:
  Search(SearchConfig config, Runner& runner, Pacer& pacer, Journal& journal, TuneListener& listener);
  /// `makeStrategy` is called once the default has been built and measured.
  TuneResult run(const std::function<std::unique_ptr<Strategy>(const BaselineRecord&)>& makeStrategy);

 private:
  void append(const Json& record);
  /// Runs `f`; a DeviceError in it ends the search as a stop does, with the best so far. False then.
  template <typename F>
  bool attempt(F&& f) {
    try {
      f();
      return true;
    } catch (const DeviceError& e) {
      fail(e);
      return false;
    }
  }
  void fail(const DeviceError& e);
  int stopLevel();
  void writeCache();
  void takeBaseline();
  bool searchPhase();  // false: the strategy is at its end
  bool isRecorded(const Ask& ask) const;
  std::string endReason();
  void oneCandidate(const Ask& ask);
  CandidateRecord measure(const Ask& ask, bool worked = false);  // worked: an engine of it is there
  void record(CandidateRecord& r);
  void finish(CandidateRecord r, bool fresh);
  std::vector<ConfirmRecord> finals();
  std::optional<SampleRecord> sample(const Ranked& c, const std::string& stage, int index);
  ConfirmRecord confirmOne(const Ranked& c);
  void tell(const Tell& t);
  void noteEvents();
  void publish(std::vector<ConfirmRecord> confirmed);
  WinnerRecord nameWinner();
  const std::optional<WinnerRecord>& namedBefore() const;
  std::optional<WinnerRecord> earlierWinner() const;
  bool isOwed(const CandidateRecord& c) const;
  bool isRefuted(const std::string& route) const;
  bool isOut(const std::set<std::string>& routes) const;
  bool isLeftAlone(const WinnerRecord& w);
  void nameEarlier();
  const CandidateRecord& shortest(const std::string& best);
  const CandidateRecord& shortestOf(const std::string& best);
  std::optional<std::string> decisionOf(const std::string& route, const CandidateRecord& winner, double& spent);
  void buildShortened(const std::string& route, const CandidateRecord& winner);
  std::string ownPath(int64_t iter) const;
  std::string saveOwn(const CandidateRecord& r, bool fresh);
  void saveMissing();
  bool wasBuilt(const CandidateRecord& winner, const std::string& route);  // or failed to build
  CandidateRecord* find(const std::string& route);
  int64_t numberOf(const std::string& route);
  static std::string confirmStage(int epoch);
  void sayForeignEngines();
  bool usedUp() const;
  void sayUsedUp();
  bool isSaved(const std::string& hash) const;
  std::string whyNone() const;
  TuneResult summary();
  void progress(const char* phase);
  double processSeconds() const;
  double sampleSeconds() const;
  Finalists recordedRace() const;
  std::vector<Ranked> chooseFinalists(std::vector<Ranked> ranked, bool brief);
  std::string incumbent() const;
  void lookAtEngine();
  bool measureLost(const std::string& route);
  std::string confirmable(const std::string& route) const;
  bool wasRefuted(const std::string& route) const;
  bool outOfTime(double reserve) const;
  double phaseReserve(size_t contenders) const;

  SearchConfig config_;
  Runner& runner_;
  Pacer& pacer_;
  Journal& journal_;
  TuneListener& listener_;
  Recorded recorded_;
  std::unique_ptr<Strategy> strategy_;
  BaselineRecord baseline_;
  std::map<std::string, CandidateRecord> known_;          // every candidate of the search, by route
  std::map<std::string, std::vector<double>> processes_;  // route -> log ratios of fresh ranking processes
  std::map<std::string, std::string> byDecision_;         // decision -> route
  std::set<std::string> written_;                         // decisions that the journal holds, as text
  std::set<int64_t> ownSaved_;                            // candidates whose engines were looked after
  std::map<int64_t, std::string> unsaved_;                // of those, which the disk refused, and why
  std::set<std::string> bad_;                             // finalists that failed in a fresh process
  std::set<std::string> freshly_;                         // routes that this session measured to confirm them
  std::set<std::string> refuted_;                         // what was measured in full and is not faster
  std::vector<ConfirmRecord> confirmed_;
  std::optional<WinnerRecord> winner_;
  std::map<std::string, std::string> last_;  // the record's last winner and finalists, as text
  std::optional<Ask> pending_;
  std::string failure_;        // why the search ends before its time
  bool recordFailed_ = false;  // nothing more can be recorded
  bool keptSaid_ = false;      // in this session
  bool leftAlone_ = false;     // the engine that is there, of a candidate that is not measured again
  std::string missingWinner_;  // why the winner's engine is not where it should be
  std::string held_;           // route of the candidate whose engine lies where no winner of the record is
  std::string unknown_;        // or the route of the engine there, if no candidate has it
  int64_t asked_ = 0;
  double busy_ = 0;
  double before_ = 0;                          // seconds that earlier sessions used
  bool measured_ = false, outOfTime_ = false;  // in this session; how its last search phase ended
};

/// Re-runs the decisions of a finished journal on its own numbers. Returns the records that a search on those numbers
/// would write (strategy, rank, confirm, winner), to be compared with the journal's.
/// UserError if a number is missing.
std::vector<Json> replay(const std::vector<Json>& journal, SearchConfig config,
                         const std::function<std::unique_ptr<Strategy>(const BaselineRecord&)>& makeStrategy);

}  // namespace rutter::tuner
