// What a search names and saves: its winner, and for --saveAllEngines every candidate's engine.
#include <algorithm>
#include <filesystem>

#include "base/log.h"
#include "tuner/search.h"

namespace rutter::tuner {
void Search::publish(std::vector<ConfirmRecord> confirmed) {
  // What was confirmed before stays in the race, even if others ranked better since.
  for (const ConfirmRecord& old : confirmed_) {
    const bool again = std::any_of(confirmed.begin(), confirmed.end(), [&](auto& c) { return c.route == old.route; });
    if (!again && !bad_.count(old.route)) confirmed.push_back(old);
  }
  confirmed_ = std::move(confirmed);
  std::optional<ConfirmRecord> best = chooseWinner(confirmed_);
  const std::optional<WinnerRecord> earlier = earlierWinner();
  WinnerRecord w;
  if (earlier && (!best || best->lo < earlier->lo)) {
    w = *earlier;
    append({{"type", "strategy"},
            {"name", strategy_->name()},
            {"event", "kept"},
            {"iter", w.iter},
            {"winner", toJson(w)}});
  } else if (best) {
    const CandidateRecord& c = shortest(best->route);
    w.iter = c.iter;
    w.route = c.route;
    w.center = best->center;
    w.lo = best->lo;
    w.hi = best->hi;
    w.processes = best->processes;
    w.engineHash = c.engineHash;
  } else {
    w.engineHash = baseline_.engineHash;
    w.reason = "no improvement found";
  }
  const bool changed = !winner_ || winner_->iter != w.iter || winner_->route != w.route;
  winner_ = w;
  append(toJson(w));
  if (!changed || config_.recordedOnly) return;
  try {
    journal_.sync();
  } catch (const DeviceError& e) {
    fail(e);
  }
  const bool anyOk = known_.empty() || std::any_of(known_.begin(), known_.end(),
                                                   [](const auto& c) { return c.second.status == Status::kOk; });
  if (config_.saveEngine.empty() || !(w.iter >= 0 || (anyOk && baseline_.status == Status::kOk))) return;
  if (!isSaved(w.engineHash)) try {
      runner_.save(w.iter, w.route, config_.saveEngine);
    } catch (const InterruptedError&) {
      throw UserError("stopped before the winner had been built again; the search is recorded: --continue writes {}",
                      config_.saveEngine);
    } catch (const DiskFullError& e) {
      throw DiskFullError("{}; the search is recorded: --continue writes the engine", e.what());
    }
}

// What an earlier session confirmed and named stays until it is measured again and does not hold, or something better
// is found: lost lines, a budget that is used up and Ctrl-C say nothing against it.
std::optional<WinnerRecord> Search::earlierWinner() const {
  std::optional<WinnerRecord> w = config_.recordedOnly ? recorded_.kept : recorded_.winner;
  if (!w && takenOver_ && !config_.saveEngine.empty()) w = savedByAnother();
  if (!w || w->iter < 0) return std::nullopt;
  int64_t measured = w->iter;  // under the number of the longer route
  for (const auto& [of, s] : recorded_.shortened)
    if (s.iter == w->iter) measured = of;
  for (const ConfirmRecord& c : confirmed_)
    if (c.iter == measured && (c.faster || c.reason.empty() || bad_.count(c.route))) return std::nullopt;
  const auto now = known_.find(w->route);
  return now == known_.end() || now->second.status == Status::kOk ? w : std::nullopt;
}

// A cache without its journal names no winner: the engine that was saved, with what the cache says of it.
std::optional<WinnerRecord> Search::savedByAnother() const {
  for (const auto& [route, c] : recorded_.candidates)
    if (c.status == Status::kOk && !c.logRatios.empty() && runner_.holds(config_.saveEngine, c)) {
      const auto [lo, hi] = std::minmax_element(c.logRatios.begin(), c.logRatios.end());
      return WinnerRecord{c.iter, route, runner_.hashOf(config_.saveEngine), "", median(c.logRatios), *lo, *hi, 0};
    }
  return std::nullopt;
}

// A continued search finds its winner where it left it.
bool Search::isSaved(const std::string& hash) const {
  return !hash.empty() && runner_.hashOf(config_.saveEngine) == hash;  // caches of others know no hash
}

// A candidate's engine beside the winner's, for --saveAllEngines.
void Search::saveOwn(const CandidateRecord& r) {
  if (!config_.saveAllEngines || r.status != Status::kOk || !ownSaved_.insert(r.iter).second) return;
  const std::string path = fmt::format("{}.iter{}", config_.saveEngine, r.iter);
  const auto warn = [&](const std::string& text) { listener_.onMessage(int(Severity::kWarning), text); };
  try {
    if (!runner_.holds(path, r)) runner_.save(r.iter, r.route, path);
    unsaved_.erase(r.iter);
  } catch (const DeviceError& e) {  // no reason to lose the winner
    if (unsaved_.empty()) warn(fmt::format("{}; the search goes on without this engine", e.what()));
    unsaved_[r.iter] = e.what();
  } catch (const InterruptedError&) {
    warn(fmt::format("stopped before {} was written; --continue writes it", path));
  } catch (const UserError& e) {  // built once more, as its engine is that of another route or of another session
    warn(fmt::format("{} is not written: {}", path, e.what()));
  }
}

// A new search replaces only those whose numbers it uses.
void Search::sayForeignEngines() {
  if (!config_.saveAllEngines || recorded_.nextIter > 0) return;
  const std::filesystem::path own(config_.saveEngine);
  const std::string begin = own.filename().string() + ".iter";
  std::error_code error;
  int there = 0;
  for (const auto& e : std::filesystem::directory_iterator(own.has_parent_path() ? own.parent_path() : ".", error)) {
    const std::string name = e.path().filename().string();
    there += name.starts_with(begin) && name.size() > begin.size() &&
             name.find_first_not_of("0123456789", begin.size()) == name.npos;
  }
  if (there > 0)
    listener_.onMessage(
        int(Severity::kWarning),
        fmt::format("{}.iter<N> of an earlier search are there ({}): this one replaces those of its own "
                    "candidates, the others stay",
                    config_.saveEngine, there));
}

// Those of earlier sessions that were killed or stopped before they had written them, and those that the disk refused:
// there may be room now.
void Search::saveMissing() {
  if (config_.recordedOnly) return;
  for (const auto& [iter, why] : unsaved_) ownSaved_.erase(iter);
  for (const auto& [route, c] : known_)
    if (stopLevel() == 0) saveOwn(c);
}

}  // namespace rutter::tuner
