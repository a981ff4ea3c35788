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
    if (!c.faster && c.decides()) refuted_.insert(c.route);
  const WinnerRecord w = nameWinner();
  const bool changed = !winner_ || winner_->iter != w.iter || winner_->route != w.route;
  winner_ = w;
  append(toJson(w));
  if (!changed || config_.recordedOnly) return;
  attempt([&] { journal_.sync(); });
  const bool anyOk = known_.empty() || std::any_of(known_.begin(), known_.end(),
                                                   [](const auto& c) { return c.second.status == Status::kOk; });
  if (isLeftAlone(w)) return;
  leftAlone_ = false;
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

WinnerRecord Search::nameWinner() {
  const std::optional<ConfirmRecord> best = chooseWinner(confirmed_);
  WinnerRecord w;
  const auto keep = [&](const WinnerRecord& earlier) {
    w = earlier;
    append({{"type", "strategy"},
            {"name", strategy_->name()},
            {"event", "kept"},
            {"iter", w.iter},
            {"winner", toJson(w)}});
  };
  if (const auto earlier = earlierWinner(); earlier && (!best || best->lo < earlier->lo)) {
    if (!config_.recordedOnly && !keptSaid_)
      listener_.onMessage(
          int(Severity::kInfo),
          fmt::format("candidate {}, the winner so far, stays as it was confirmed: nothing was measured "
                      "that decides otherwise",
                      earlier->iter));
    keep(*earlier);
    return w;
  }
  if (!best) {
    w.engineHash = baseline_.engineHash;
    w.reason = "no improvement found";
    return w;
  }
  const CandidateRecord& c = shortest(best->route);
  w.iter = c.iter;
  w.route = c.route;
  w.engineHash = c.engineHash;
  // The record may have lost that it was shortened, or how.
  if (const auto& named = namedBefore(); c.route == best->route && named && named->iter >= 0 &&
                                         named->route != best->route &&
                                         recorded_.routesOf(named->route).count(best->route)) {
    const CandidateRecord* other = find(named->route);
    if (!other || other->status == Status::kOk) keep(*named);
  }
  w.takeNumbers(*best);
  return w;
}

const std::optional<WinnerRecord>& Search::namedBefore() const {
  return config_.recordedOnly ? recorded_.kept : recorded_.winner;
}

// What an earlier session confirmed and named stays until it is measured again and does not hold, or something better
// is found: lost lines, a budget that is used up and Ctrl-C say nothing against it.
std::optional<WinnerRecord> Search::earlierWinner() const {
  const std::optional<WinnerRecord>& w = namedBefore();
  if (!w || w->iter < 0) return std::nullopt;
  const std::set<std::string> routes = recorded_.routesOf(w->route);
  if (isOut(routes)) return std::nullopt;
  for (const ConfirmRecord& c : confirmed_)
    if (c.faster && routes.count(c.route)) return std::nullopt;  // it is in the race itself
  return w;
}

// The candidate that holds the winner's place and has no verdict in this session: the winner of the search that this
// one extends, or whose engine is there without a word in the record. "" = none.
std::string Search::incumbent() const {
  const std::optional<WinnerRecord>& w = recorded_.extended;
  const std::string named = !held_.empty() ? held_ : w && w->iter >= 0 ? w->route : "";
  if (named.empty()) return "";
  const std::set<std::string> routes = recorded_.routesOf(named);
  for (const ConfirmRecord& c : confirmed_)
    if (routes.count(c.route)) return "";
  const std::string route = confirmable(named);
  return isRefuted(route) ? "" : route;
}

// Of the routes to an engine, the one by which it was measured; "" if the record has lost that.
std::string Search::confirmable(const std::string& engine) const {
  for (const std::string& route : recorded_.routesOf(engine)) {
    const auto now = known_.find(route), before = recorded_.candidates.find(route);
    if (now == known_.end() && before == recorded_.candidates.end()) continue;
    const CandidateRecord& c = now == known_.end() ? before->second : now->second;
    if (c.status == Status::kOk && !c.sameAs && !c.logRatios.empty()) return route;
  }
  return "";
}

// Whether a search that this one extends has measured it and found that it fails or is no faster: an extension is about
// what is new.
bool Search::wasRefuted(const std::string& route) const {
  for (int epoch = 0; epoch < config_.epoch; epoch++) {
    std::vector<double> ratios;
    const std::string stage = confirmStage(epoch);
    const ConfirmRule rule = recorded_.ruleOf(route, stage, config_.minGain);
    const auto next = [&] { return recorded_.samples.find(Recorded::sampleKey(route, stage, int(ratios.size()))); };
    for (auto s = next(); s != recorded_.samples.end(); s = next()) {
      if (s->second.status != Status::kOk) return true;
      ratios.push_back(s->second.logRatio());
      const Verdict verdict = confirm(ratios, rule).verdict;
      if (verdict == Verdict::kNotFaster) return true;
      if (verdict == Verdict::kFaster) break;
    }
  }
  return false;
}

bool Search::isRefuted(const std::string& route) const {
  return bad_.count(route) || refuted_.count(route) || recorded_.before.failedRanking.count(route);
}

// Whether one of an engine's routes was measured, or failed, so that it cannot be the winner.
bool Search::isOut(const std::set<std::string>& routes) const {
  return std::any_of(routes.begin(), routes.end(), [&](const std::string& route) {
    const auto now = known_.find(route);
    return isRefuted(route) || recorded_.before.failed.count(route) ||
           (now != known_.end() && now->second.status != Status::kOk);
  });
}

// A cache without its journal names no winner, nor does a record that has lost the lines; but what was saved is there.
void Search::lookAtEngine() {
  if (config_.recordedOnly || config_.saveEngine.empty()) return;
  const std::string route = runner_.routeOf(config_.saveEngine);
  if (route.empty()) return;
  if (const auto& w = recorded_.winner; w && w->iter >= 0) {
    // What the record names replaces it, unless the record has lost what became of it.
    const std::set<std::string> routes = recorded_.routesOf(route);
    const bool judged = std::any_of(routes.begin(), routes.end(), [&](auto& r) { return recorded_.judged.count(r); });
    if (!config_.lostLines || judged || routes.count(w->route) || recorded_.routesOf(w->route).count(route)) return;
  }
  auto c = recorded_.candidates.find(route);
  const auto works = [&] { return c->second.status == Status::kOk && c->second.sameAs != -1; };
  if (c == recorded_.candidates.end() || (works() && confirmable(route).empty())) {
    if (!config_.lostLines) return;  // it is of another search, which this one replaces
    unknown_ = route;
    if (!measureLost(route)) return;
    unknown_.clear();
    c = recorded_.candidates.find(route);
    if (works()) held_ = route;  // be it by other decisions: what timed kernels said may be lost, too
    return;
  }
  if (works() && runner_.holds(config_.saveEngine, c->second)) held_ = route;
}

// A candidate that the record has lost, before all others; false if there is no time for it.
bool Search::measureLost(const std::string& route) {
  if (!endReason().empty()) return false;
  Ask ask;
  ask.route = route;
  CandidateRecord r;
  if (!attempt([&] { r = measure(ask, true); })) return false;
  record(r);
  if (r.status == Status::kInterrupted)
    recorded_.interrupted[route] = r.iter;
  else
    recorded_.candidates.insert_or_assign(route, r);
  return r.status != Status::kInterrupted;
}

// It is confirmed first; whoever stops before that is done loses nothing, and is told so.
bool Search::isLeftAlone(const WinnerRecord& w) {
  if (held_.empty() && unknown_.empty()) return false;
  if (w.iter >= 0 && isSaved(w.engineHash)) return false;
  for (const ConfirmRecord& c : confirmed_)
    if (w.iter >= 0 && c.faster && freshly_.count(c.route)) return false;  // not only what the record says of others
  const std::set<std::string> routes = recorded_.routesOf(held_);
  if (!held_.empty() && isOut(routes)) return false;
  for (const ConfirmRecord& c : confirmed_)
    if (c.faster && routes.count(c.route)) return false;  // its lower bound decides
  if (std::exchange(leftAlone_, true)) return true;
  const std::string what =
      held_.empty()
          ? fmt::format("route '{}', which the record does not know; --continue with more time measures it", unknown_)
          : fmt::format("candidate {}, which has not been confirmed again; --continue with more time does that",
                        recorded_.candidates.at(held_).iter);
  listener_.onMessage(int(Severity::kWarning),
                      fmt::format("{} stays as it is: it is the engine of {}", config_.saveEngine, what));
  return true;
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
  if (!isOwed(r)) return "";
  ownSaved_.insert(r.iter);
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
  int stopped = 0;
  for (const auto& [route, c] : known_) {
    if (stopLevel() == 0 && full.empty())
      full = saveOwn(c, false);
    else if (!isOwed(c) || runner_.holds(ownPath(c.iter), c))
      continue;
    else if (full.empty())
      stopped++;
    else
      unsaved_[c.iter] = full;
  }
  if (stopped > 0)
    listener_.onMessage(int(Severity::kWarning), fmt::format("not all engines that --saveAllEngines wants are "
                                                             "written ({} are missing): --continue writes them",
                                                             stopped));
}

// Nobody has looked after its engine yet.
bool Search::isOwed(const CandidateRecord& c) const {
  return config_.saveAllEngines && c.status == Status::kOk && !ownSaved_.count(c.iter);
}

}  // namespace rutter::tuner
