#pragma once
// A search on a simulated clock.
#include "base/log.h"
#include "tuner/decisions.h"
#include "tuner/world.h"

namespace rutter::tuner::test {

/// One search over a world; the parts stay visible.
struct Session {
  explicit Session(const Json& j, SearchConfig c = {}) : world(j), runner(world), pacer(runner.clock), config(c) {
    journal = Journal::inMemory({{{"type", "header"}}, {{"type", "session"}}});
  }
  std::function<std::unique_ptr<Strategy>(const BaselineRecord&)> spec(SearchKind kind, const std::string& e) {
    return [this, kind, e](const BaselineRecord&) {
      return makeSpecStrategy(kind, knobs::Expression::parse(e, *world.registry));
    };
  }
  std::function<std::unique_ptr<Strategy>(const BaselineRecord&)> tune() {
    return [this](const BaselineRecord& b) {
      return makeTuneStrategy({world.registry.get(), b.layers, b.knobsRead, b.timedRoute, false});
    };
  }
  TuneResult run(const std::function<std::unique_ptr<Strategy>(const BaselineRecord&)>& make) {
    struct Listener : TuneListener {
      std::vector<std::string>& out;
      explicit Listener(std::vector<std::string>& o) : out(o) {}
      void onMessage(int severity, const std::string& text) override {
        if (severity <= int(Severity::kWarning)) out.push_back(text);
      }
    } listener(messages);
    return Search(config, runner, pacer, *journal, listener).run(make);
  }
  std::vector<CandidateRecord> candidates() const {
    std::vector<CandidateRecord> out;
    for (const Json& j : journal->records())
      if (j["type"] == "candidate") out.push_back(candidateFromJson(j));
    return out;
  }
  std::vector<Json> decisions() const { return decisionsOf(journal->records()); }
  std::vector<Json> replayed(const std::function<std::unique_ptr<Strategy>(const BaselineRecord&)>& make) const {
    return decisionsOf(replay(journal->records(), config, make));
  }
  World world;
  SimRunner runner;
  SimPacer pacer;
  SearchConfig config;
  std::unique_ptr<Journal> journal;
  std::vector<std::string> messages;  // warnings and errors
};

}  // namespace rutter::tuner::test
