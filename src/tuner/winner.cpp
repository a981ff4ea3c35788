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
  for (const ConfirmRecord& c : confirmed_)
    if (!c.faster && c.reason.empty()) refuted_.insert(c.route);
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
  attempt([&] { journal_.sync(); });
  const bool anyOk = known_.empty() || std::any_of(known_.begin(), known_.end(),
                                                   [](const auto& c) { return c.second.status == Status::kOk; });
  if (w.iter < 0 && isLeftAlone()) return;
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
  const std::optional<WinnerRecord>& w = config_.recordedOnly ? recorded_.kept : recorded_.winner;
  if (!w || w->iter < 0) return std::nullopt;
  const std::set<std::string> routes = routesOf(*w);
  for (const std::string& route : routes) {
    if (isRefuted(route)) return std::nullopt;
    if (const auto now = known_.find(route); now != known_.end() && now->second.status != Status::kOk)
      return std::nullopt;
  }
  for (const ConfirmRecord& c : confirmed_)
    if (c.faster && routes.count(c.route)) return std::nullopt;  // it is in the race itself
  return w;
}

// Its own, and the longer one by which it was measured.
std::set<std::string> Search::routesOf(const WinnerRecord& w) const {
  std::set<std::string> routes{w.route};
  for (const auto& [of, s] : recorded_.shortened)
    if (s.route == w.route)
      for (const auto& [route, iter] : recorded_.numbers)
        if (iter == of) routes.insert(route);
  return routes;
}

// The candidate by which the winner of the search that this one extends was measured, as long as it has no verdict in
// this one; "" if it is among the best anyway.
std::string Search::earlierFinalist(const std::vector<Ranked>& ranked) const {
  if (!recorded_.extended || recorded_.extended->iter < 0) return "";
  const std::set<std::string> routes = routesOf(*recorded_.extended);
  for (size_t i = 0; i < std::min(ranked.size(), size_t(kFinalists)); i++)
    if (routes.count(ranked[i].route)) return "";
  for (const ConfirmRecord& c : confirmed_)
    if (routes.count(c.route)) return "";
  for (const std::string& route : routes)
    if (const auto c = known_.find(route); c != known_.end() && c->second.status == Status::kOk && !c->second.sameAs &&
                                           !c->second.logRatios.empty() && !isRefuted(route))
      return route;
  return "";
}

bool Search::isRefuted(const std::string& route) const {
  return bad_.count(route) || refuted_.count(route);
}

// A cache without its journal names no winner, but what was saved is there: whoever stops before it is measured again
// loses nothing, and is told so.
bool Search::isLeftAlone() {
  if (!takenOver_ || recorded_.winner || config_.saveEngine.empty()) return false;
  if (stopLevel() == 0 && !outOfTime_ && !outOfTime(0)) return false;
  for (const auto& [route, c] : recorded_.candidates) {
    if (c.status != Status::kOk || c.sameAs == -1 || isRefuted(route) || !runner_.holds(config_.saveEngine, c))
      continue;
    leftAlone_ = true;
    listener_.onMessage(int(Severity::kWarning),
                        fmt::format("{} stays as it is: it is the engine of candidate {}, which the cache knows and "
                                    "which has not been measured again; --continue with more time does that",
                                    config_.saveEngine, c.iter));
    return true;
  }
  return false;
}

// Who stops at once keeps what is there.
void Search::nameEarlier() {
  const std::optional<WinnerRecord> earlier = earlierWinner();
  if (winner_ || !earlier) return;
  winner_ = earlier;
  if (!config_.saveEngine.empty() && !isSaved(earlier->engineHash))
    missingWinner_ = fmt::format("the winner's engine is not in {}; --continue writes it", config_.saveEngine);
}

// A continued search finds its winner where it left it.
bool Search::isSaved(const std::string& hash) const {
  return !hash.empty() && runner_.hashOf(config_.saveEngine) == hash;  // caches of others know no hash
}

std::string Search::ownPath(int64_t iter) const {
  return fmt::format("{}.iter{}", config_.saveEngine, iter);
}

// A candidate's engine beside the winner's, for --saveAllEngines. What is wrong with the disk, if that is full; else
// "".
std::string Search::saveOwn(const CandidateRecord& r, bool fresh) {
  if (!config_.saveAllEngines || r.status != Status::kOk || !ownSaved_.insert(r.iter).second) return "";
  const std::string path = ownPath(r.iter);
  const auto warn = [&](const std::string& text) { listener_.onMessage(int(Severity::kWarning), text); };
  try {
    if (fresh || !runner_.holds(path, r)) runner_.save(r.iter, r.route, path);
    unsaved_.erase(r.iter);
  } catch (const DeviceError& e) {  // no reason to lose the winner
    if (unsaved_.empty()) warn(fmt::format("{}; the search goes on without this engine", e.what()));
    unsaved_[r.iter] = e.what();
    if (dynamic_cast<const DiskFullError*>(&e)) return e.what();
  } catch (const InterruptedError&) {
    warn(fmt::format("stopped before {} was written; --continue writes it", path));
  } catch (const UserError& e) {  // built once more, as its engine is that of another route or of another session
    warn(fmt::format("{} is not written: {}", path, e.what()));
  }
  return "";
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
  std::string full;  // one is enough: each costs a build
  for (const auto& [route, c] : known_) {
    if (stopLevel() > 0) return;
    if (full.empty())
      full = saveOwn(c, false);
    else if (config_.saveAllEngines && c.status == Status::kOk && !ownSaved_.count(c.iter) &&
             !runner_.holds(ownPath(c.iter), c))
      unsaved_[c.iter] = full;
  }
}

}  // namespace rutter::tuner
