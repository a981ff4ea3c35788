#include "tuner/search.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/hash.h"
#include "base/log.h"
#include "tuner/cache.h"
#include "tuner/make_inputs.h"

namespace rutter::tuner {
namespace {

// What a decision record says, without the moment at which it was made.
std::string contentOf(Json j) {
  j.erase("t");
  return j.dump();
}

// Records of which only the last one counts; "" for others.
std::string lastKind(const Json& j) {
  if (j.value("type", "") == "winner") return "winner";
  return j.value("event", "") == "finalists" ? "finalists" : "";
}

}  // namespace

Search::Search(SearchConfig config, Runner& runner, Pacer& pacer, Journal& journal, TuneListener& listener)
    : config_(std::move(config)),
      runner_(runner),
      pacer_(pacer),
      journal_(journal),
      listener_(listener),
      recorded_(journal.records()) {
  int epoch = 0;
  for (const Json& j : journal.records()) {
    if (isDecision(j)) written_.insert(contentOf(j));
    const std::string type = j.value("type", "");
    if (const std::string kind = lastKind(j); !kind.empty()) last_[kind] = contentOf(j);
    if (type == "session") {
      before_ = j.value("t", 0.0);
      epoch = j.value("epoch", 0);
    }
    // What earlier sessions of this very search spent was time well spent. Their fresh processes are not asked for
    // again; nor are an extension's candidates, as all that is recorded is known to it from the start.
    if (epoch == config_.epoch &&
        (type == "samples" || type == "decided" || type == "shortened" || (type == "candidate" && epoch > 0)))
      busy_ += j.value("busy_s", 0.0);
  }
}

void Search::append(const Json& record) {
  // A decision made again on the same numbers is the same decision: continuing a search does not repeat it.
  if (isDecision(record)) {
    const std::string content = contentOf(record);
    // Of these the last one counts: it is written again if another came between.
    if (const std::string kind = lastKind(record); !kind.empty() && std::exchange(last_[kind], content) != content)
      written_.erase(content);
    // An input of replays, which know a session's own only.
    if (record.value("event", "") == "kept" && !std::exchange(keptSaid_, true)) written_.erase(content);
    if (!written_.insert(content).second) return;
  }
  if (recordFailed_) return;  // what is there stays whole: the next session goes on from it
  Json stamped = record;
  // What only looks at the record takes none of the search's time.
  stamped["t"] = std::round((measured_ || before_ == 0 ? pacer_.elapsed() : before_) * 1000) / 1000;
  recordFailed_ = !attempt([&] { journal_.append(stamped); });
}

// The disk or the machine does not let the search go on: it ends as one that is stopped, with the best so far.
void Search::fail(const DeviceError& e) {
  if (!failure_.empty()) return;
  failure_ = e.what();
  listener_.onMessage(int(Severity::kWarning), fmt::format("{}; the search ends with the best so far", failure_));
}

int Search::stopLevel() {
  return std::max(pacer_.stopLevel(), failure_.empty() ? 0 : 1);
}

// The record as people read it; it is written from the journal.
void Search::writeCache() {
  if (config_.cacheFile.empty() || recordFailed_) return;
  attempt([&] { syncCache(config_.cacheFile, journal_.records()); });
}

void Search::takeBaseline() {
  progress("baseline");
  if (recorded_.baseline && recorded_.baseline->status == Status::kOk) {
    baseline_ = *recorded_.baseline;
  } else {
    baseline_ = runner_.baseline();
    if (baseline_.status != Status::kInterrupted) append(toJson(baseline_));
  }
  if (const int draw = baseline_.inputs % kDraws; draw > 0)
    listener_.onMessage(int(Severity::kInfo),
                        fmt::format("{} as inputs give outputs that are not finite: {} are used instead; real ones, by "
                                    "--loadInputs, would be better",
                                    drawText(Draw(0)), drawText(Draw(draw))));
  if (baseline_.inputs >= kDraws)
    listener_.onMessage(int(Severity::kInfo),
                        "a second set of inputs, varied from the one given, gives outputs that are not finite or none: "
                        "the one given is used alone");
  switch (baseline_.status) {
    case Status::kOk:
      break;
    case Status::kInterrupted:
      break;
    case Status::kInaccurate:
      if (config_.requireAccurateDefault)
        throw UserError(
            "the default engine's outputs are not close enough to the oracle's ({}), so no candidate can be "
            "judged; give --loadInputs, --loadRefOutputs and --accuracyThreshold",
            baseline_.error);
      listener_.onMessage(
          int(Severity::kWarning),
          fmt::format("the default engine itself does not meet the threshold ({}): the reference or the "
                      "threshold is wrong",
                      baseline_.error));
      break;
    default:
      throw UserError("the default route {}: {}; there is nothing to compare candidates with",
                      baseline_.status == Status::kHung ? "hangs" : "does not run", baseline_.error);
  }
}

double Search::processSeconds() const {
  std::vector<double> seconds;
  for (const auto& [route, c] : known_)
    if (c.status == Status::kOk && !c.sameAs) seconds.push_back(std::max(0.0, c.busySeconds - c.buildMs / 1000));
  return seconds.empty() ? baseline_.runSeconds : median(std::move(seconds));
}

// A later phase only has to pay for one more finalist: the others have been measured.
double Search::phaseReserve(size_t contenders) const {
  const double process = sampleSeconds();
  if (!confirmed_.empty()) return process * firstClaim(recorded_.shareOf("", confirmStage(config_.epoch)));
  return reserveSeconds(std::max<size_t>(contenders, 1), process, config_.budgetSeconds);
}

// Of one process that confirms: fewer rounds than one that ranks.
double Search::sampleSeconds() const {
  std::vector<double> seconds;
  for (const auto& [key, s] : recorded_.samples)
    if (s.busySeconds > 0) seconds.push_back(s.busySeconds);
  if (!seconds.empty()) return median(std::move(seconds));
  // Candidates whose ranking ended early say little: a process that confirms runs all of its rounds.
  const double run = baseline_.ms.value_or(0) / 1000;
  return std::max(0.6 * processSeconds(), 0.1 + 4 * sampleRounds(run) * std::max(3 * run, 0.01 + run));
}

bool Search::outOfTime(double reserve) const {
  return config_.budgetSeconds > 0 && pacer_.elapsed() + reserve >= config_.budgetSeconds;
}

void Search::progress(const char* phase) {
  Progress p;
  p.done = int64_t(known_.size());
  if (strategy_)
    if (auto n = strategy_->planned(); n && *n < (uint64_t(1) << 62)) {
      p.planned = int64_t(*n);
      p.done = asked_;  // what an earlier expression tried is not in the plan
    }
  p.phase = phase;
  p.elapsedSeconds = pacer_.elapsed();
  if (config_.budgetSeconds > 0) p.etaSeconds = std::max(0.0, config_.budgetSeconds - p.elapsedSeconds);
  if (p.planned && p.done > 0) {
    const double left = double(std::max<int64_t>(0, *p.planned - p.done)) * busy_ / double(p.done) +
                        reserveSeconds(size_t(kFinalists), processSeconds(), config_.budgetSeconds);
    p.etaSeconds = std::min(left, p.etaSeconds.value_or(left));
  }
  if (auto ranked = rankCandidates(known_, processes_); !ranked.empty()) p.best = infoOf(known_.at(ranked[0].route));
  listener_.onProgress(p);
}

void Search::record(CandidateRecord& r) {
  measured_ = true;
  r.host = hostName();
  r.time = timeStamp();
  append(toJson(r));
  if (!config_.cacheFile.empty() && !recordFailed_)
    attempt([&] { appendToFile(config_.cacheFile, cacheLine(r, nullptr)); });
  saveOwn(r, true);
  listener_.onEnd(infoOf(r));
}

void Search::finish(CandidateRecord r, bool fresh) {
  if (fresh) record(r);
  busy_ += r.busySeconds;
  if (r.status == Status::kInterrupted) {
    recorded_.interrupted[r.route] = r.iter;
    return;
  }
  if (!r.decision.empty() && !r.sameAs) byDecision_.try_emplace(r.decision, r.route);
  Tell t{r.status, r.logRatios, r.layerMs, r.defaultLayerMs, r.error, r.ms};
  known_[r.route] = std::move(r);
  tell(t);
}

void Search::tell(const Tell& t) {
  strategy_->tell(t);
  noteEvents();
}

void Search::noteEvents() {
  for (Json& e : strategy_->takeEvents()) {
    listener_.onMessage(int(Severity::kInfo), e.value("text", ""));
    Json record = {{"type", "strategy"}, {"name", strategy_->name()}};
    record.update(e);
    append(record);
  }
}

// A new number, unless the route had one that is not in use: interrupted, or its record is lost.
int64_t Search::numberOf(const std::string& route) {
  const auto it = recorded_.numbers.find(route);
  return it == recorded_.numbers.end() ? recorded_.nextIter : it->second;
}

void Search::oneCandidate(const Ask& ask) {
  if (auto it = known_.find(ask.route); it != known_.end()) {
    const CandidateRecord& c = it->second;
    tell({c.status, c.logRatios, c.layerMs, c.defaultLayerMs, c.error, c.ms});
    return;
  }
  if (auto it = recorded_.candidates.find(ask.route); it != recorded_.candidates.end())
    return finish(it->second, false);
  finish(measure(ask), true);
}

CandidateRecord Search::measure(const Ask& ask, bool worked) {
  CandidateRecord r;
  r.iter = numberOf(ask.route);
  recorded_.nextIter = std::max(recorded_.nextIter, r.iter + 1);
  listener_.onBegin(r.iter, ask.route);
  const double begin = pacer_.elapsed();
  Decision d = runner_.decide(ask.route, Purpose::kCandidate);
  if (d.status != Status::kOk) {
    r.status = d.status;
    r.error = d.error;
    r.busySeconds = pacer_.elapsed() - begin;
  } else if (config_.dedupe && d.hash == baseline_.decision) {
    r.status = baseline_.status;
    r.error = baseline_.error;
    r.sameAs = -1;
    r.ms = baseline_.ms;
    r.losses = baseline_.losses;
    r.relativeError = baseline_.relativeError;
    r.engineHash = baseline_.engineHash;
    if (r.status == Status::kOk) r.logRatios = {0};
  } else if (auto same = byDecision_.find(d.hash); config_.dedupe && same != byDecision_.end()) {
    r = sameEngine(known_.at(same->second), r.iter, ask.route);
  } else {
    const int64_t iter = r.iter;
    const auto build = [&] { return runner_.candidate(iter, ask.route, ask.promise); };
    r = worked ? onceMore(build) : build();
    r.iter = iter;
    r.busySeconds = pacer_.elapsed() - begin;
  }
  r.route = ask.route;
  r.phase = ask.phase;
  r.decision = d.hash;
  r.knobsRead = d.knobsRead;
  r.lostWishes = d.lostWishes;
  return r;
}

bool Search::isRecorded(const Ask& ask) const {
  return recorded_.candidates.count(ask.route) || known_.count(ask.route);
}

// Why the search phase ends before the strategy does; "" = go on.
std::string Search::endReason() {
  if (stopLevel() > 0) return "stopped";
  if (config_.maxCandidates >= 0 && asked_ >= config_.maxCandidates) return "maxCandidates";
  if (outOfTime(phaseReserve(rankCandidates(known_, processes_).size()))) return "time";
  return "";
}

bool Search::searchPhase() {
  std::string reason = "done";
  size_t phase = 0;
  const std::vector<SearchEnd>& ends = recorded_.searchEnds;
  if (config_.recordedOnly)
    while (phase < ends.size() && ends[phase].asked <= asked_ && asked_ > 0) phase++;
  while (true) {
    // One that was done is asked once more, as it was: it may have something to say.
    if (config_.recordedOnly && phase < ends.size() && asked_ >= ends[phase].asked && !ends[phase].done) break;
    // An ask that finds no time stays pending: the strategy is owed a tell for each.
    if (!pending_) pending_ = strategy_->ask();
    if (!pending_) {
      noteEvents();  // why it is at its end: no tell follows that would bring it
      break;
    }
    const bool recorded = isRecorded(*pending_);
    if (config_.recordedOnly && !recorded) break;
    // What is recorded costs no time: it is taken over even if none is left.
    if (std::string end = config_.recordedOnly ? "" : endReason();
        !end.empty() && (!recorded || end == "maxCandidates")) {
      reason = end;
      break;
    }
    const Ask ask = *pending_;
    asked_++;
    attempt([&] { oneCandidate(ask); });
    if (!known_.count(ask.route)) {
      reason = stopLevel() > 0 ? "stopped" : "time";
      asked_--;
      break;
    }
    pending_.reset();
    if (!recorded) progress("search");
  }
  outOfTime_ = reason == "time";
  append({{"type", "strategy"},
          {"name", strategy_->name()},
          {"event", "search_end"},
          {"reason", reason},
          {"asked", asked_}});
  return pending_.has_value() && reason != "maxCandidates";
}

std::optional<SampleRecord> Search::sample(const Ranked& c, const std::string& stage, int index) {
  const auto it = recorded_.samples.find(Recorded::sampleKey(c.route, stage, index));
  if (it != recorded_.samples.end()) return it->second;
  if (config_.recordedOnly || stopLevel() > 1 || outOfTime(0)) return std::nullopt;
  const double begin = pacer_.elapsed();
  SampleRecord r;
  if (!attempt([&] { r = runner_.sample(c.iter, c.route, stage, index); })) return std::nullopt;
  if (r.status == Status::kInterrupted) return std::nullopt;
  r.iter = c.iter;
  r.route = c.route;
  r.stage = stage;
  r.index = index;
  if (r.confirms()) r.share = recorded_.shareOf(r.route, stage);
  r.busySeconds = pacer_.elapsed() - begin;
  busy_ += r.busySeconds;
  measured_ = true;
  if (stage == confirmStage(config_.epoch)) freshly_.insert(r.route);
  append(toJson(r));
  recorded_.take(r);
  return r;
}

std::string Search::confirmStage(int epoch) {
  return epoch ? fmt::format("confirm@{}", epoch) : "confirm";
}

ConfirmRecord Search::confirmOne(const Ranked& c) {
  const std::string stage = confirmStage(config_.epoch);
  ConfirmRecord r;
  r.iter = c.iter;
  r.route = c.route;
  std::vector<double> ratios;
  const ConfirmRule rule = recorded_.ruleOf(c.route, stage, config_.minGain);
  while (true) {
    const Confirmation now = confirm(ratios, rule);
    r.processes = int(ratios.size());
    r.share = ratios.empty() ? 0 : rule.share;
    r.center = now.center;
    r.lo = now.interval.lo;
    r.hi = now.interval.hi;
    if (now.verdict != Verdict::kMore) {
      r.faster = now.verdict == Verdict::kFaster;
      return r;
    }
    // What is recorded costs no time.
    const bool recorded = recorded_.samples.count(Recorded::sampleKey(c.route, stage, int(ratios.size()))) > 0;
    const bool enough = !config_.recordedOnly && !recorded && stopLevel() == 1 && int(ratios.size()) >= kLooks[0];
    std::optional<SampleRecord> s;
    if (!enough) s = sample(c, stage, int(ratios.size()));
    if (!s) {
      // Out of time: the next look is made now, at no more than its share of the error.
      r.reason = stopLevel() > 0 ? "stopped" : "time";
      r.faster = now.clear;
      append({{"type", "strategy"},
              {"name", strategy_->name()},
              {"event", "look"},
              {"build_route", c.route},
              {"stage", stage},
              {"processes", r.processes}});
      return r;
    }
    if (s->status != Status::kOk || s->logRatios.empty()) {
      bad_.insert(c.route);
      r.reason = fmt::format("{} in a fresh process: {}", statusName(s->status), s->error);
      return r;
    }
    ratios.push_back(s->logRatio());
    progress("confirm");
  }
}

// In a replay. An earlier session's, if the last one did not change it.
Finalists Search::recordedRace() const {
  const auto now = recorded_.races.find(asked_);
  return now != recorded_.races.end() ? now->second : recorded_.race.value_or(Finalists{size_t(kFinalists)});
}

// The best of those that were ranked, as many as there is time to confirm, at least one; first what holds the place of
// the winner. Recorded, since it depends on the clock.
std::vector<Ranked> Search::chooseFinalists(std::vector<Ranked> ranked, bool brief) {
  Finalists f{size_t(kFinalists), "", brief};
  if (config_.recordedOnly) {
    f = recordedRace();
  } else {
    f.again = brief && held_.empty() ? "" : incumbent();
  }
  const bool best = !ranked.empty() && ranked.front().route == f.again;
  if (const CandidateRecord* c = f.again.empty() ? nullptr : find(f.again)) {
    std::erase_if(ranked, [&](const Ranked& r) { return r.route == f.again; });
    ranked.insert(ranked.begin(), {c->iter, c->route, median(c->logRatios)});
  }
  if (!config_.recordedOnly) {
    f.count = std::min(brief ? size_t(1) : size_t(kFinalists), ranked.size());
    // Better one that is measured well than two that are not.
    while (f.count > 1 && outOfTime(double(f.count) * kLooks[2] * sampleSeconds())) f.count--;
    // What was confirmed beside others is named beside them, even if the clock leaves fewer: their samples are there.
    if (!brief && recorded_.race) f.count = std::min(std::max(f.count, recorded_.race->count), ranked.size());
    // A named winner holds as it was confirmed: what is new has the time there is.
    if (f.count == 1 && ranked.size() > 1 && !f.again.empty() && !best && held_.empty()) {
      ranked.erase(ranked.begin());
      f.again.clear();
    }
    Json record = {{"type", "strategy"},
                   {"name", strategy_->name()},
                   {"event", "finalists"},
                   {"asked", asked_},
                   {"count", f.count}};
    if (!f.again.empty()) record["again"] = f.again;
    if (brief) record["brief"] = true;
    append(record);
    recorded_.race = recorded_.races[asked_] = f;
  }
  ranked.resize(std::min(ranked.size(), f.count));
  return ranked;
}

std::vector<ConfirmRecord> Search::finals() {
  auto contenders = [&] {
    std::vector<Ranked> ranked = rankCandidates(known_, processes_);
    std::erase_if(ranked, [&](const Ranked& r) { return bad_.count(r.route) > 0 || wasRefuted(r.route); });
    return ranked;
  };
  std::vector<Ranked> ranked = contenders();
  const bool brief = config_.recordedOnly ? recordedRace().brief : stopLevel() > 0;
  for (const Stage& stage : kStages) {
    if (brief || int(ranked.size()) <= kFinalists) break;
    ranked.resize(std::min(ranked.size(), size_t(stage.keep)));
    std::vector<int64_t> keep;
    for (const Ranked& c : ranked) keep.push_back(c.iter);
    runner_.keepOnly(keep);
    std::set<std::string> in;
    for (const Ranked& c : ranked) {
      in.insert(c.route);
      std::vector<double>& scores = processes_[c.route];
      scores.clear();
      for (const Stage& s : kStages) {  // what earlier stages measured counts on
        for (int i = 0; i < s.processes; i++) {
          const bool now = &s == &stage;
          if (!now && !recorded_.samples.count(Recorded::sampleKey(c.route, s.name, i))) continue;
          std::optional<SampleRecord> r = sample(c, s.name, i);
          if (!r) continue;
          if (r->status != Status::kOk || r->logRatios.empty())
            bad_.insert(c.route);
          else
            scores.push_back(r->logRatio());
        }
        if (&s == &stage) break;
      }
      progress("rank");
    }
    ranked = contenders();
    std::erase_if(ranked, [&](const Ranked& r) { return !in.count(r.route); });
    Json order = Json::array();
    for (const Ranked& c : ranked) order.push_back({{"iter", c.iter}, {"score", c.score}});
    append({{"type", "rank"}, {"stage", stage.name}, {"order", order}});
  }
  // Nobody has looked at these processes again, if nothing was ranked.
  const Recorded::Before& before = recorded_.before;
  std::erase_if(ranked, [&](const Ranked& r) {
    return before.failedRanking.count(r.route) || (brief && before.failed.count(r.route));
  });
  ranked = chooseFinalists(std::move(ranked), brief);
  std::vector<ConfirmRecord> out;
  for (const Ranked& c : ranked) {
    ConfirmRecord r = confirmOne(c);
    append(toJson(r));
    out.push_back(std::move(r));
  }
  return out;
}

TuneResult Search::run(const std::function<std::unique_ptr<Strategy>(const BaselineRecord&)>& makeStrategy) {
  writeCache();
  takeBaseline();
  if (baseline_.status == Status::kInterrupted) {
    nameEarlier();
    return summary();
  }
  sayForeignEngines();
  strategy_ = makeStrategy(baseline_);
  noteEvents();
  lookAtEngine();
  // Routes of an earlier expression stay in the race when a search is extended.
  if (config_.epoch > 0)
    for (const std::string& route : recorded_.before.candidates) {
      const CandidateRecord& c = recorded_.candidates.at(route);
      if (!c.decision.empty() && !c.sameAs) byDecision_.try_emplace(c.decision, c.route);
      known_[route] = c;
    }
  while (true) {
    const int64_t before = asked_;
    const bool more = searchPhase();
    if (before > 0 && asked_ == before) break;  // nothing new to rank
    try {
      if (stopLevel() < 2) publish(finals());
    } catch (const DeviceError& e) {
      if (failure_.empty()) throw;
      throw DeviceError("{}; and the best so far could not be saved: {}", failure_, e.what());
    }
    // Ranking and confirming may have cost less than was kept back: the rest is searched, too.
    if (config_.recordedOnly) {
      if (recorded_.searchEnds.empty() || asked_ >= recorded_.searchEnds.back().asked) break;
      continue;
    }
    if (!more || config_.budgetSeconds <= 0 || stopLevel() > 0) break;
    if (outOfTime(std::max(0.06 * config_.budgetSeconds, 3 * processSeconds()))) break;
  }
  saveMissing();
  sayUsedUp();
  if (const double left = config_.budgetSeconds - pacer_.elapsed();
      outOfTime_ && !known_.empty() && stopLevel() == 0 && left > 0.1 * config_.budgetSeconds)
    listener_.onMessage(int(Severity::kInfo),
                        fmt::format("{:.1f} s are left: too few for one more candidate and its confirmation", left));
  writeCache();
  nameEarlier();
  return summary();
}

}  // namespace rutter::tuner
