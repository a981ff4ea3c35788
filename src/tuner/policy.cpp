// The search's policy: pure functions of recorded numbers.
#include <algorithm>
#include <cmath>

#include "tuner/search.h"

namespace rutter::tuner {

std::string Recorded::sampleKey(const std::string& route, const std::string& stage, int index) {
  return fmt::format("{}\n{}\n{}", stage, index, route);
}

bool isDecision(const Json& j) {
  const std::string type = j.value("type", "");
  return type == "strategy" || type == "rank" || type == "confirm" || type == "winner";
}

bool isTimed(const Json& j) {
  const std::string event = j.value("event", "");
  return event == "search_end" || event == "finalists" || event == "kept" || event == "look";
}

// Records that name a candidate's route and number.
static bool isOfCandidate(const std::string& type) {
  return type == "candidate" || type == "samples" || type == "confirm" || type == "winner" || type == "shortened";
}

Recorded::Recorded(const std::vector<Json>& records) {
  int epoch = 0;
  Before now;
  for (const Json& j : records) {
    const std::string type = j.value("type", ""), event = j.value("event", "");
    if (type == "session") {
      searchEnds.clear(), kept.reset();  // what an earlier session stopped at does not bind this one
      before = now;
      if (const int e = j.value("epoch", 0); e != std::exchange(epoch, e))
        extended = winner, race.reset(), races.clear();
    }
    if (type == "baseline") baseline = baselineFromJson(j);
    if (type == "candidate") {
      CandidateRecord r = candidateFromJson(j);
      nextIter = std::max(nextIter, r.iter + 1);
      if (r.status == Status::kInterrupted) {
        interrupted[r.route] = r.iter;
      } else {
        now.candidates.insert(r.route);
        candidates[r.route] = std::move(r);
      }
    }
    if (type == "samples") {
      SampleRecord r = sampleFromJson(j);
      if (r.status != Status::kInterrupted && r.status != Status::kOk) {
        now.failed.insert(r.route);
        if (!r.confirms()) now.failedRanking.insert(r.route);
      }
      if (r.status != Status::kInterrupted) take(std::move(r));
    }
    if (type == "decided") {
      DecidedRecord r = decidedFromJson(j);
      decided[r.route] = std::move(r);
    }
    if (type == "shortened") {
      ShortenedRecord r = shortenedFromJson(j);
      if (r.status != Status::kInterrupted) shortened[r.of] = std::move(r);
    }
    // The candidate that a record is about may be lost: its number is taken all the same, and its own.
    if (const auto route = j.find("build_route"); isOfCandidate(type) && route != j.end() && route->is_string())
      if (const int64_t iter = j.value("iter", int64_t(-1)); iter >= 0) {
        nextIter = std::max(nextIter, iter + 1);
        numbers[*route] = iter;
      }
    if (type == "winner") winner = winnerFromJson(j);
    if (type == "confirm") {
      const ConfirmRecord c = confirmFromJson(j);
      if (c.decides()) judged.insert(c.route);
      takeVerdict(c);
    }
    if (type != "strategy") continue;
    if (event == "kept" && j.contains("winner")) kept = winnerFromJson(j["winner"]);
    if (event == "finalists") {
      race = {j.value("count", size_t(1)), j.value("again", ""), j.value("brief", false)};
      races[j.value("asked", int64_t(0))] = *race;
    }
    if (event == "look")
      now.early[sampleKey(j.value("build_route", ""), j.value("stage", ""), 0)].push_back(j.value("processes", 0));
    if (event == "search_end") searchEnds.push_back({j.value("asked", int64_t(0)), j.value("reason", "") == "done"});
  }
}

void Recorded::take(SampleRecord r) {
  if (r.status == Status::kOk && r.logRatios.empty()) return;  // says nothing
  if (r.confirms() && r.status == Status::kOk)
    shares[r.stage].try_emplace(r.route, r.share > 0 ? r.share : shareOf(r.route, r.stage));
  samples[sampleKey(r.route, r.stage, r.index)] = std::move(r);
}

double Recorded::shareOf(const std::string& route, const std::string& stage) const {
  const auto of = shares.find(stage);
  if (of == shares.end()) return finalistShare(0);
  if (const auto own = of->second.find(route); own != of->second.end()) return own->second;
  double least = 1;  // what is left after it is as much
  for (const auto& [other, share] : of->second) least = std::min(least, share);
  return least / 2;
}

ConfirmRule Recorded::ruleOf(const std::string& route, const std::string& stage, double minGain) const {
  ConfirmRule rule{minGain, shareOf(route, stage)};
  if (const auto looks = before.early.find(sampleKey(route, stage, 0)); looks != before.early.end())
    for (const int processes : looks->second) rule.lookedEarly(processes);
  return rule;
}

// The line that names a winner may be lost; what was confirmed before it says the same.
void Recorded::takeVerdict(const ConfirmRecord& c) {
  const bool same = winner && winner->iter >= 0 && routesOf(winner->route).count(c.route) > 0;
  if (same && !c.faster && c.decides()) winner.reset();
  if (!c.faster || (!same && winner && winner->iter >= 0 && winner->lo >= c.lo)) return;
  WinnerRecord w;
  if (same) {
    w = *winner;
  } else {
    w.iter = c.iter;
    w.route = c.route;
    if (const auto known = candidates.find(c.route); known != candidates.end()) w.engineHash = known->second.engineHash;
    if (const auto s = shortened.find(c.iter); s != shortened.end() && s->second.status == Status::kOk) {
      w.iter = s->second.iter;
      w.route = s->second.route;
      w.engineHash = s->second.engineHash;
    }
  }
  w.takeNumbers(c);
  winner = std::move(w);
}

std::set<std::string> Recorded::routesOf(const std::string& route) const {
  std::set<int64_t> of;
  for (const auto& [iter, s] : shortened)
    if (s.route == route) of.insert(iter);
  if (const auto c = candidates.find(route); c != candidates.end() && c->second.sameAs) of.insert(*c->second.sameAs);
  std::set<std::string> routes{route};
  for (const auto& [other, iter] : numbers)
    if (of.count(iter)) routes.insert(other);
  return routes;
}

std::vector<Ranked> rankCandidates(const std::map<std::string, CandidateRecord>& candidates,
                                   const std::map<std::string, std::vector<double>>& processes) {
  std::vector<Ranked> ranked;
  for (const auto& [route, c] : candidates) {
    if (c.status != Status::kOk || c.sameAs || c.logRatios.empty()) continue;
    std::vector<double> scores{median(c.logRatios)};
    if (auto it = processes.find(route); it != processes.end())
      scores.insert(scores.end(), it->second.begin(), it->second.end());
    const double score = median(scores);
    if (score > 0) ranked.push_back({c.iter, route, score});
  }
  std::sort(ranked.begin(), ranked.end(), [](const Ranked& a, const Ranked& b) {
    return a.score != b.score ? a.score > b.score : a.iter < b.iter;  // ties: the earlier one
  });
  return ranked;
}

double reserveSeconds(size_t contenders, double processSeconds, double budgetSeconds) {
  size_t processes = 0, left = contenders;
  for (const Stage& s : kStages) {
    if (left <= size_t(kFinalists)) break;
    left = std::min(left, size_t(s.keep));
    processes += left * size_t(s.processes);
  }
  left = std::min(left, size_t(kFinalists));
  size_t first = 0;
  for (size_t i = 0; i < left; i++) first += size_t(firstClaim(finalistShare(i)));
  auto want = [&](size_t looks) { return double(processes + looks) * processSeconds + 0.3; };  // 0.3: writing
  if (budgetSeconds <= 0) return want(first);
  return std::max(std::min(want(first), 0.45 * budgetSeconds),
                  std::min(want(left * size_t(kLooks[3])), 0.25 * budgetSeconds));
}

std::optional<ConfirmRecord> chooseWinner(const std::vector<ConfirmRecord>& confirmed) {
  std::optional<ConfirmRecord> best;
  for (const ConfirmRecord& c : confirmed)
    if (c.faster && (!best || c.lo > best->lo || (c.lo == best->lo && c.iter < best->iter))) best = c;
  return best;
}

}  // namespace rutter::tuner
