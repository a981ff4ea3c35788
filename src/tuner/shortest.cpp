// A winner's route without what decides nothing: what people are told to use holds no assignment without effect.
#include <sstream>

#include "base/error.h"
#include "base/log.h"
#include "tuner/search.h"

namespace rutter::tuner {
std::string shortened(const std::string& route, const std::function<bool(const std::string&)>& same) {
  std::vector<std::string> all;
  for (std::istringstream in(route); in;)
    if (std::string a; in >> a) all.push_back(std::move(a));
  auto join = [](const std::vector<std::string>& v) { return fmt::format("{}", fmt::join(v, " ")); };
  for (size_t size = (all.size() + 1) / 2; size > 0;) {
    const size_t before = all.size();
    for (size_t at = 0; at < all.size();) {
      std::vector<std::string> less = all;
      less.erase(less.begin() + ptrdiff_t(at), less.begin() + ptrdiff_t(std::min(at + size, less.size())));
      if (!less.empty() && same(join(less)))
        all = std::move(less);
      else
        at += size;
    }
    // What was needed beside an assignment that is gone may not be needed without it.
    if (size == 1 && all.size() == before) break;
    size = (size + 1) / 2;
  }
  return join(all);
}

// What `route` decides, for the sake of `winner`; nothing if that is not to be asked now.
std::optional<std::string> Search::decisionOf(const std::string& route, const CandidateRecord& winner, double& spent) {
  if (auto it = recorded_.decided.find(route); it != recorded_.decided.end()) return it->second.decision;
  if (!config_.shorten || config_.recordedOnly || stopLevel() > 0) return std::nullopt;
  const Decision d = runner_.decide(route, Purpose::kWinner);
  if (d.status == Status::kInterrupted) return std::nullopt;
  measured_ = true;
  DecidedRecord r{winner.iter, route, d.status == Status::kOk ? d.hash : "", d.seconds};
  append(toJson(r));
  spent += r.busySeconds;
  busy_ += r.busySeconds;
  return (recorded_.decided[route] = std::move(r)).decision;
}

// Built, since an engine file holds its route; if now is not the time for it, --continue does it.
void Search::buildShortened(const std::string& route, const CandidateRecord& winner) {
  if (!config_.shorten || config_.recordedOnly || stopLevel() > 0) return;
  const CandidateRecord* known = find(route);
  const int64_t iter = known ? known->iter : numberOf(route);
  const double begin = pacer_.elapsed();
  // It decides what a candidate decided that works.
  const CandidateRecord b = onceMore([&] { return runner_.rebuild(iter, route); });
  if (b.status == Status::kInterrupted) return;
  measured_ = true;
  recorded_.nextIter = std::max(recorded_.nextIter, iter + 1);  // its file may have been written
  if (b.status != Status::kOk) {
    listener_.onMessage(int(Severity::kWarning),
                        fmt::format("candidate {} decides the same by fewer assignments, '{}', but the build of those "
                                    "is {}: the longer route stays",
                                    winner.iter, route, statusName(b.status)));
  } else if (!known) {
    CandidateRecord r = sameEngine(winner, iter, route);
    r.engineHash = b.engineHash;
    listener_.onBegin(r.iter, route);
    record(r);
    known_[route] = std::move(r);
  }
  ShortenedRecord s{winner.iter, iter, route, b.status, b.error, b.engineHash, pacer_.elapsed() - begin};
  append(toJson(s));
  busy_ += s.busySeconds;
  recorded_.shortened[winner.iter] = std::move(s);
}

// The candidate that decides the same by fewer assignments. The winner was confirmed under its own route: that stays if
// the machine or the disk fails here, or the default is not built again.
const CandidateRecord& Search::shortest(const std::string& best) {
  std::string why;
  try {
    return shortestOf(best);
  } catch (const DeviceError& e) {
    why = e.what();
  } catch (const UserError& e) {
    why = e.what();
  }
  const CandidateRecord& c = known_.at(best);
  listener_.onMessage(int(Severity::kWarning),
                      fmt::format("candidate {} keeps its route, which may be longer than it need be: {}; --continue "
                                  "looks again",
                                  c.iter, why));
  return c;
}

const CandidateRecord& Search::shortestOf(const std::string& best) {
  const CandidateRecord& c = known_.at(best);
  if (!config_.dedupe) return c;
  double spent = 0;
  for (const auto& [route, d] : recorded_.decided)
    if (d.of == c.iter) spent += d.busySeconds;
  const double share = config_.budgetSeconds > 0 ? kShortenShare * config_.budgetSeconds : 1e9;
  std::optional<std::string> wanted = c.decision;
  if (c.decision.empty()) wanted = decisionOf(c.route, c, spent);  // taken over from a cache
  if (!wanted || wanted->empty()) return c;
  bool all = true;  // that was to be asked has been answered
  const auto look = [&](bool ask) {
    return shortened(c.route, [&](const std::string& less) {
      if (!recorded_.decided.count(less) && (!ask || !all || spent >= share)) return false;
      const std::optional<std::string> decision = decisionOf(less, c, spent);
      all &= decision.has_value();
      return decision == wanted;
    });
  };
  const std::string route = look(true);
  if (all && route != c.route && !wasBuilt(c, route)) buildShortened(route, c);
  // Else what an earlier session found: its answers are there, and bear it out.
  const std::string name = all && wasBuilt(c, route) ? route : look(false);
  if (!wasBuilt(c, name)) return c;
  const ShortenedRecord& s = recorded_.shortened.at(c.iter);
  CandidateRecord* named = find(s.route);
  if (s.status != Status::kOk || named->status != Status::kOk) return c;
  named->engineHash = s.engineHash;
  append({{"type", "strategy"},
          {"name", strategy_->name()},
          {"event", "shorter"},
          {"iter", s.iter},
          {"of", s.of},
          {"text",
           fmt::format("candidate {} without the assignments that decide nothing is candidate {}", s.of, s.iter)}});
  return *named;
}

// A candidate of this search or of the record, which is taken over; none if there is none.
CandidateRecord* Search::find(const std::string& route) {
  if (auto it = recorded_.candidates.find(route); it != recorded_.candidates.end())
    return &known_.try_emplace(route, it->second).first->second;
  const auto it = known_.find(route);
  return it == known_.end() ? nullptr : &it->second;
}

bool Search::wasBuilt(const CandidateRecord& winner, const std::string& route) {
  const auto it = recorded_.shortened.find(winner.iter);
  if (it == recorded_.shortened.end() || it->second.route != route) return false;
  return it->second.status != Status::kOk || find(route);
}

}  // namespace rutter::tuner
