// What a search says at its end: the result, why there is none, what became of the budget.
#include <cmath>
#include <tuple>

#include "base/log.h"
#include "tuner/search.h"

namespace rutter::tuner {
namespace {

// Largest over smallest time of the default in fresh processes that is still a quiet machine.
constexpr double kDisturbed = 1.5;

}  // namespace

// A continued search that had no time left for anything; what it cost does not count.
bool Search::usedUp() const {
  return config_.budgetSeconds > 0 && before_ > 0 && outOfTime_ && !measured_;
}
void Search::sayUsedUp() {
  if (!usedUp()) return;
  const double more = 3 * config_.budgetSeconds;
  listener_.onMessage(
      int(Severity::kWarning),
      fmt::format("the budget of {:g}s is used up: it is a total over all sessions; give --{}={:g}s, "
                  "say, for {:g} s more",
                  config_.budgetSeconds, strategy_->name() == std::string_view("tune") ? "tune" : "tuningTimeOut",
                  config_.budgetSeconds + more, more));
}

// What the best candidate lacked, for people who saw it lead.
std::string Search::whyNone() const {
  if (known_.empty() && outOfTime_)
    return fmt::format(
        "{:g} s are too few to try a candidate: the default engine and what is kept back for confirming "
        "take them",
        config_.budgetSeconds);
  auto order = [&](const ConfirmRecord& c) { return std::tuple(!bad_.count(c.route), c.processes > 0, c.center); };
  const auto best =
      std::max_element(confirmed_.begin(), confirmed_.end(), [&](auto& a, auto& b) { return order(a) < order(b); });
  if (best == confirmed_.end()) {
    const bool others = std::any_of(known_.begin(), known_.end(), [](const auto& c) {
      return c.second.status == Status::kOk && c.second.sameAs != -1;
    });
    return others || known_.empty() ? "no candidate was confirmed as faster"
                                    : "no candidate that works makes another engine than the default";
  }
  if (bad_.count(best->route)) return fmt::format("candidate {}, the best, {}", best->iter, best->reason);
  if (best->processes == 0) return "no candidate was confirmed as faster";
  std::string out = fmt::format("candidate {}, the best, is {:.3f}x in {} fresh processes", best->iter,
                                std::exp(best->center), best->processes);
  if (std::isfinite(best->lo) && std::isfinite(best->hi) && best->lo < best->hi)
    out += fmt::format(", {:.3f} to {:.3f}", std::exp(best->lo), std::exp(best->hi));
  if (best->lo > std::log1p(config_.minGain))
    out += ", which are too few to be sure";
  else
    out += fmt::format(", which does not clear {:g} %", 100 * config_.minGain);
  if (best->reason == "time") out += "; there was no time for more";
  if (best->reason == "stopped") out += "; it was stopped there";
  double least = INFINITY, most = 0;
  for (const auto& [key, s] : recorded_.samples)
    if (s.route == best->route && s.stage == confirmStage(config_.epoch) && s.defaultMs > 0)
      least = std::min(least, s.defaultMs), most = std::max(most, s.defaultMs);
  if (most > kDisturbed * least)
    out += fmt::format(
        "; the default engine alone took {:.3g} to {:.3g} ms there: the machine is disturbed, stop other programs, or "
        "tune for fewer --threads",
        least, most);
  return out;
}

TuneResult Search::summary() {
  TuneResult r;
  for (const auto& [route, c] : known_) {
    r.counts[statusName(c.status)]++;
    if (c.sameAs)
      r.counts["same"]++;
    else if (c.status == Status::kOk || (!c.decision.empty() && c.status != Status::kRejected))  // caches: no decision
      r.distinctEngines++;
  }
  for (const auto& [route, iter] : recorded_.interrupted)
    if (!known_.count(route)) r.counts[statusName(Status::kInterrupted)]++;
  r.candidates = int64_t(known_.size());
  r.defaultMs = baseline_.ms;
  r.elapsedSeconds = usedUp() ? before_ : pacer_.elapsed();
  r.busySeconds = busy_;
  r.interrupted = stopLevel() > 0;
  r.journalPath = journal_.path();
  r.cachePath = config_.cacheFile;
  r.losses = baseline_.losses;
  r.relativeError = r.defaultRelativeError = baseline_.relativeError;
  const bool any = r.counts["ok"] > 0;
  if (winner_ && winner_->iter >= 0) {
    r.outcome = TuneResult::Outcome::kImproved;
    r.winnerIter = winner_->iter;
    r.route = winner_->route;
    r.confirmed = Ratio{std::exp(winner_->center), std::exp(winner_->lo), std::exp(winner_->hi)};
    r.processes = winner_->processes;
    const auto known = known_.find(winner_->route);  // its record may be lost
    r.losses = known == known_.end() ? std::nullopt : known->second.losses;
    r.relativeError = known == known_.end() ? std::nullopt : known->second.relativeError;
    if (r.defaultMs) r.bestMs = *r.defaultMs / r.confirmed->ratio;
  } else if (any || known_.empty()) {
    r.outcome = baseline_.status == Status::kOk ? TuneResult::Outcome::kNoImprovement : TuneResult::Outcome::kFailed;
    r.reason = baseline_.status == Status::kOk ? whyNone() : "the default engine failed: " + baseline_.error;
    r.bestMs = r.defaultMs;
  } else {
    r.outcome = TuneResult::Outcome::kFailed;
    std::string classes;
    for (const auto& [name, n] : r.counts)
      if (name != "same" && n > 0) classes += fmt::format("{}{} {}", classes.empty() ? "" : ", ", n, name);
    r.reason = "every candidate was turned down: " + classes;
  }
  std::erase_if(r.counts, [](const auto& c) { return c.second == 0; });
  r.error = failure_.empty() ? "" : failure_ + "; with that mended, --continue goes on";
  if (r.error.empty()) r.error = missingWinner_;
  if (!unsaved_.empty())
    r.error += fmt::format("{}engines that --saveAllEngines wants are missing ({}; {}); --continue writes them",
                           r.error.empty() ? "" : "; ", unsaved_.size(), unsaved_.begin()->second);
  if (winner_ && !config_.saveEngine.empty() && missingWinner_.empty() && !leftAlone_ &&
      r.outcome != TuneResult::Outcome::kFailed)
    r.enginePath = config_.saveEngine;
  return r;
}

}  // namespace rutter::tuner
