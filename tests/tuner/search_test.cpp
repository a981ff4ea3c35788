#include "tuner/search.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "base/log.h"
#include "tuner/decisions.h"
#include "tuner/session.h"

namespace rutter::tuner {
namespace {

using test::decisionsOf;
using test::exampleWorld;
using test::kExample;
using test::same;
using test::Session;
using test::SimPacer;
using test::SimRunner;
using test::World;

std::vector<std::string> routes(const std::vector<CandidateRecord>& c) {
  std::vector<std::string> out;
  for (const auto& r : c) out.push_back(r.route);
  return out;
}

TEST(Search, FastVisitsItsRoutesInOrderAndConfirmsTheBest) {
  Session s(exampleWorld());
  s.config.saveEngine = "/e";
  const TuneResult r = s.run(s.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(routes(s.candidates()),
            (std::vector<std::string>{"-fuse=on -tile=32 -unroll=1", "-fuse=on -tile=32 -unroll=2",
                                      "-fuse=on -tile=16 -unroll=1", "-fuse=on -tile=64 -unroll=1",
                                      "-fuse=off -tile=32 -unroll=1"}));
  EXPECT_EQ(s.candidates()[0].sameAs, -1);  // the baseline of the expression is the default's engine: not built again
  EXPECT_EQ(s.runner.built, 4);
  EXPECT_EQ(r.outcome, TuneResult::Outcome::kImproved);
  EXPECT_EQ(r.winnerIter, 2);
  ASSERT_TRUE(r.confirmed);
  EXPECT_NEAR(r.confirmed->ratio, 1 / 0.91, 0.01);
  EXPECT_GT(r.confirmed->lo, 1.01);
  EXPECT_GE(r.processes, 5);
  EXPECT_EQ(s.runner.saved["/e"].second, "-fuse=on -tile=16 -unroll=1");
  EXPECT_EQ(r.counts.at("ok"), 5);
  EXPECT_EQ(r.counts.at("same"), 1);
}

TEST(Search, MixedVariesThePositiveKnobsTogetherAndTakesOverKnownRoutes) {
  Session s(exampleWorld());
  const TuneResult r = s.run(s.spec(SearchKind::kMixed, kExample));
  const auto c = s.candidates();
  ASSERT_EQ(c.size(), 7u);  // the worked example of spec section 3
  EXPECT_EQ(c[5].route, "-fuse=off -tile=16 -unroll=1");
  EXPECT_EQ(c[5].iter, 5);
  EXPECT_EQ(c[5].phase, 2);
  EXPECT_EQ(c[6].route, "-fuse=off -tile=64 -unroll=1");
  EXPECT_EQ(c[6].iter, 6);
  EXPECT_EQ(r.winnerIter, 5);
}

TEST(Search, InaccurateOrUnmeasurableVariationsAreNotPositive) {
  Json j = exampleWorld();
  j["faults"] = {{"-fuse=off", "inaccurate"}};
  Session s(j);
  s.run(s.spec(SearchKind::kMixed, kExample));
  EXPECT_EQ(s.candidates().size(), 5u);  // one positive knob: no second phase
  j = exampleWorld();
  j["layers"]["l"]["effects"]["-fuse=off"] = 1.0;
  j["layers"]["l"]["effects"]["-tile=64"] = 0.95;  // two values of one knob do not start it either
  Session t(j);
  t.run(t.spec(SearchKind::kMixed, kExample));
  EXPECT_EQ(t.candidates().size(), 5u);
}

TEST(Search, FullHasEveryCombination) {
  Session s(exampleWorld());
  const TuneResult r = s.run(s.spec(SearchKind::kFull, kExample));
  EXPECT_EQ(s.candidates().size(), 12u);
  EXPECT_EQ(r.route, "-fuse=off -tile=16 -unroll=1");
}

TEST(Search, NothingFasterKeepsTheDefault) {
  Json j = exampleWorld();
  for (auto& [k, v] : j["layers"]["l"]["effects"].items()) v = 1.05;
  Session s(j);
  s.config.saveEngine = "/e";
  const TuneResult r = s.run(s.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(r.outcome, TuneResult::Outcome::kNoImprovement);
  EXPECT_EQ(r.reason, "no candidate was confirmed as faster");
  EXPECT_EQ(s.runner.saved["/e"].first, -1);
  EXPECT_FALSE(r.confirmed);
}

TEST(Search, AGainBelowTheMarginIsNotClaimed) {
  Json j = exampleWorld();
  j["process_sigma"] = 0;
  j["layers"]["l"]["effects"] = {{"-tile=16", 0.96}};
  Session s(j);
  s.config.minGain = 0.05;
  const TuneResult r = s.run(s.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(r.outcome, TuneResult::Outcome::kNoImprovement);
  EXPECT_NE(r.reason.find("candidate 2, the best, is 1.0"), std::string::npos) << r.reason;
  EXPECT_NE(r.reason.find("does not clear 5 %"), std::string::npos) << r.reason;
  EXPECT_EQ(r.reason.find("disturbed"), std::string::npos) << r.reason;
  Session d(j);
  d.config.minGain = 0.05;
  d.runner.defaultMs = {10, 10, 16};
  const TuneResult disturbed = d.run(d.spec(SearchKind::kFast, kExample));
  EXPECT_NE(disturbed.reason.find("took 10 to 16 ms there: the machine is disturbed"), std::string::npos)
      << disturbed.reason;
  Session t(j);
  t.config.minGain = 0.03;
  EXPECT_EQ(t.run(t.spec(SearchKind::kFast, kExample)).outcome, TuneResult::Outcome::kImproved);
}

TEST(Search, FaultsCostOneCandidateEach) {
  Json j = exampleWorld();
  j["faults"] = {{"-tile=16", "crash"}, {"-tile=64", "hang"}, {"-unroll=2", "rejected"}};
  Session s(j);
  const TuneResult r = s.run(s.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(r.counts.at("crashed"), 1);
  EXPECT_EQ(r.counts.at("hung"), 1);
  EXPECT_EQ(r.counts.at("rejected"), 1);
  EXPECT_EQ(r.route, "-fuse=off -tile=32 -unroll=1");
}

TEST(Search, AFinalistThatFailsInAFreshProcessIsOut) {
  Json j = exampleWorld();
  j["faults"] = {{"-tile=16", "crash_confirm"}};
  Session s(j);
  const TuneResult r = s.run(s.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(r.route, "-fuse=off -tile=32 -unroll=1");
}

TEST(Search, EverythingTurnedDownIsAFailureWithItsReasons) {
  Json j = exampleWorld();
  j["faults"] = {{"-unroll=2", "crash"}};
  Session s(j);
  s.config.saveEngine = "/e";
  const TuneResult r = s.run(s.spec(SearchKind::kFast, "-unroll=2"));
  // fast's only route is the fixed value, which crashes
  EXPECT_EQ(r.outcome, TuneResult::Outcome::kFailed);
  EXPECT_NE(r.reason.find("1 crashed"), std::string::npos);
  EXPECT_TRUE(s.runner.saved.empty());
}

TEST(Search, InaccurateDefaultIsSaid) {
  Json j = exampleWorld();
  j["faults"] = {{"-fuse=on", "inaccurate"}};
  Session s(j);
  EXPECT_THROW(s.run(s.spec(SearchKind::kFast, kExample)), UserError);
  Session t(j);
  t.config.requireAccurateDefault = false;  // the user gave a threshold
  t.run(t.spec(SearchKind::kMixed, kExample));
  for (const Json& d : t.decisions())
    if (d.value("event", "") == "phase2") {
      EXPECT_NE(d["text"].get<std::string>().find("baseline failed"), std::string::npos);
    }
  EXPECT_EQ(t.candidates().size(), 5u);
}

TEST(Search, EqualEnginesAreMeasuredOnce) {
  Json j = exampleWorld();
  j["layers"]["l"]["effects"] = {{"-tile=16", 0.9}};
  Session s(j);
  s.run(s.spec(SearchKind::kFull, kExample));
  EXPECT_EQ(s.candidates().size(), 12u);
  EXPECT_EQ(s.runner.built, 1);  // all others decide as the default or as the first with -tile=16
  for (const auto& c : s.candidates()) EXPECT_EQ(c.sameAs.has_value(), c.iter != 0) << c.route;
  EXPECT_EQ(s.candidates()[1].sameAs, 0);
  EXPECT_EQ(s.candidates()[1].logRatios, s.candidates()[0].logRatios);
}

TEST(Search, BudgetHoldsAndIsUsed) {
  Json j = exampleWorld();
  std::string expression;
  for (int k = 0; k < 12; k++) {
    const std::string name = "-k" + std::to_string(k);
    j["knobs"][name] = "0|1|2|3";
    for (int v = 1; v < 4; v++)
      j["layers"]["l"]["effects"][name + "=" + std::to_string(v)] = 1.0 - 0.002 * ((k * 7 + v * 3) % 9);
    expression += (k ? " " : "") + name + "=[0|1|2|3]";
  }
  Session s(j);
  s.config.budgetSeconds = 60;
  const TuneResult r = s.run(s.spec(SearchKind::kFull, expression));
  EXPECT_LE(r.elapsedSeconds, 66);
  EXPECT_GE(r.elapsedSeconds, 54);
  EXPECT_GE(r.busySeconds, 0.6 * 60);
  EXPECT_EQ(r.outcome, TuneResult::Outcome::kImproved);
  EXPECT_GE(r.processes, 5);
}

// The budget is a total: a session that finds it used up says so, and costs nothing itself.
TEST(Search, AUsedUpBudgetIsSaidAndNotUsedFurther) {
  Json j = exampleWorld();
  std::string expression;
  for (int k = 0; k < 8; k++) {
    const std::string name = "-k" + std::to_string(k);
    j["knobs"][name] = "0|1|2|3";
    for (int v = 1; v < 4; v++)
      j["layers"]["l"]["effects"][name + "=" + std::to_string(v)] = 1.0 - 0.002 * ((k * 7 + v * 3) % 9);
    expression += (k ? " " : "") + name + "=[0|1|2|3]";
  }
  struct Listener : TuneListener {
    std::string warnings;
    void onMessage(int severity, const std::string& text) override {
      if (severity == int(Severity::kWarning)) warnings += text + "\n";
    }
  };
  auto session = [&](std::vector<Json> records, double used, double budget, Listener& listener, size_t& written) {
    Session s(j);
    s.config.budgetSeconds = budget;
    records.push_back({{"type", "session"}, {"t", used}});
    s.journal = Journal::inMemory(std::move(records));
    s.runner.clock.t = used;
    const size_t before = s.journal->records().size();
    const TuneResult r =
        Search(s.config, s.runner, s.pacer, *s.journal, listener).run(s.spec(SearchKind::kFull, expression));
    written = s.journal->records().size() - before;
    return std::pair(r, s.journal->records());
  };
  size_t written = 0;
  Listener first, second, third;
  const auto [a, records] = session({{{"type", "header"}}}, 0, 10, first, written);
  EXPECT_EQ(first.warnings, "") << "a first session has just used its budget: nothing to complain about";
  const auto [b, again] = session(records, a.elapsedSeconds, 10, second, written);
  EXPECT_EQ(second.warnings,
            "the budget of 10s is used up: it is a total over all sessions; give --tuningTimeOut=40s, say, for 30 s "
            "more\n");
  EXPECT_EQ(b.elapsedSeconds, a.elapsedSeconds) << "a session that measured nothing counts no time";
  EXPECT_NEAR(b.busySeconds, a.busySeconds, 1e-6) << "fresh processes of the first session count as busy in the second";
  EXPECT_EQ(b.winnerIter, a.winnerIter);
  EXPECT_EQ(written, 0u) << "nothing was decided anew, so the journal's clock does not move";
  const auto [c, more] = session(records, a.elapsedSeconds, 40, third, written);
  EXPECT_EQ(third.warnings, "") << "with the larger budget that the warning asks for there is something to do";
  EXPECT_GT(c.candidates, a.candidates);
}

// Whoever is short of time claims no more than its processes bear, of its share of the error.
TEST(Search, TimeThatIsUpClaimsWhatItsProcessesBear) {
  struct TimeIsUp : SimRunner {
    using SimRunner::SimRunner;
    SampleRecord sample(int64_t iter, const std::string& route, const std::string& stage, int index) override {
      SampleRecord s = SimRunner::sample(iter, route, stage, index);
      if (index == 3) s.logRatios = {0};  // one that does not agree: neither 7 nor 11 of them decide
      if (samples == last) clock.advance(1e6);
      return s;
    }
    int last = 0;
  };
  auto outcome = [](const char* expression, int last) {
    const World world(exampleWorld());
    TimeIsUp runner(world);
    runner.last = last;
    SimPacer pacer(runner.clock);
    SearchConfig config;
    config.budgetSeconds = 1000;
    auto journal = Journal::inMemory({{{"type", "header"}}, {{"type", "session"}}});
    TuneListener silent;
    const TuneResult r = Search(config, runner, pacer, *journal, silent).run([&](const BaselineRecord&) {
      return makeSpecStrategy(SearchKind::kFast, knobs::Expression::parse(expression, *world.registry));
    });
    EXPECT_EQ(runner.samples, last) << "the time was not up there";
    for (const Json& j : journal->records())
      if (j["type"] == "confirm" && j["processes"] == last) {
        EXPECT_EQ(j["reason"], "time");
      }
    return r.outcome;
  };
  using Outcome = TuneResult::Outcome;
  const char one[] = "-tile=[32|16]";
  EXPECT_EQ(outcome(one, 6), Outcome::kNoImprovement);
  EXPECT_EQ(outcome(one, 10), Outcome::kNoImprovement);
  EXPECT_EQ(outcome(one, 12), Outcome::kImproved);
}

TEST(Search, MaxCandidates) {
  Session s(exampleWorld());
  s.config.maxCandidates = 3;
  EXPECT_EQ(s.run(s.spec(SearchKind::kFull, kExample)).candidates, 3);
}

TEST(Search, StopConfirmsTheBestSoFarBriefly) {
  Session s(exampleWorld());
  s.runner.stopInside = 4;
  struct Stopper : TuneListener {
    SimPacer* pacer;
    void onBegin(int64_t iter, const std::string&) override {
      if (iter == 4) pacer->stop = 1;
    }
  } stopper;
  stopper.pacer = &s.pacer;
  const TuneResult r =
      Search(s.config, s.runner, s.pacer, *s.journal, stopper).run(s.spec(SearchKind::kFast, kExample));
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(r.counts.at("interrupted"), 1);
  EXPECT_EQ(r.winnerIter, 2);
  EXPECT_EQ(r.processes, kLooks[0]);
}

TEST(Search, ARecordedJournalReplaysToTheSameDecisions) {
  for (SearchKind kind : {SearchKind::kFast, SearchKind::kFull, SearchKind::kMixed}) {
    Session s(exampleWorld());
    s.run(s.spec(kind, kExample));
    const std::vector<Json> again = s.replayed(s.spec(kind, kExample));
    EXPECT_TRUE(same(again, s.decisions())) << searchName(kind);
    EXPECT_FALSE(again.empty());
  }
  // and under a budget that ended several phases
  Session s(exampleWorld());
  s.config.budgetSeconds = 8;
  s.run(s.spec(SearchKind::kFull, kExample));
  EXPECT_TRUE(same(s.replayed(s.spec(SearchKind::kFull, kExample)), s.decisions()));
  // a changed number changes the decision: the replay does look
  std::vector<Json> other = s.journal->records();
  for (Json& j : other)
    if (j["type"] == "samples") j["log_ratios"] = {-0.5, -0.5, -0.5};
  EXPECT_NE(decisionsOf(replay(other, s.config, s.spec(SearchKind::kFull, kExample))), s.decisions());
}

// Cut after any record and continued, a search ends as the straight run, and measures nothing twice.
TEST(Search, ContinuingFromAnyRecordEndsAsTheStraightRun) {
  Session straight(exampleWorld());
  const TuneResult want = straight.run(straight.spec(SearchKind::kMixed, kExample));
  const auto& records = straight.journal->records();
  for (size_t cut = 2; cut <= records.size(); cut++) {
    Session s(exampleWorld());
    std::vector<Json> kept(records.begin(), records.begin() + long(cut));
    int builds = 0;
    for (const Json& j : kept) builds += j["type"] == "candidate" && j["same_as"].is_null();
    kept.push_back({{"type", "session"}});
    s.journal = Journal::inMemory(kept);
    const TuneResult got = s.run(s.spec(SearchKind::kMixed, kExample));
    EXPECT_EQ(got.route, want.route) << cut;
    EXPECT_EQ(got.winnerIter, want.winnerIter) << cut;
    EXPECT_EQ(got.confirmed->lo, want.confirmed->lo) << cut;
    EXPECT_EQ(got.counts, want.counts) << cut;
    EXPECT_EQ(s.runner.built, straight.runner.built - builds) << cut;
    EXPECT_TRUE(same(s.decisions(), straight.decisions())) << cut;
  }
}

TEST(Search, ExtendingTakesOverKnownRoutes) {
  Session s(exampleWorld());
  s.run(s.spec(SearchKind::kFast, kExample));
  Session t(exampleWorld());
  std::vector<Json> records = s.journal->records();
  records.push_back({{"type", "session"}});
  t.journal = Journal::inMemory(records);
  t.config.epoch = 1;
  const TuneResult r = t.run(t.spec(SearchKind::kFull, "-fuse=[on|off] -tile=[32|16] -unroll=1"));
  // Four routes, three of them known; the new one goes on numbering.
  EXPECT_EQ(t.runner.built, 1);
  EXPECT_EQ(r.route, "-fuse=off -tile=16 -unroll=1");
  EXPECT_EQ(r.winnerIter, 5);
  EXPECT_EQ(r.candidates, 6);
}

// A session that only goes on with an extension counts what that extension did before, and nothing of the first search.
TEST(Search, TheTimeOfAnExtensionIsItsOwnOverItsSessions) {
  Session s(exampleWorld());
  s.run(s.spec(SearchKind::kFast, kExample));
  const char more[] = "-fuse=[on|off] -tile=[32|16] -unroll=[1|2]";
  auto extend = [&](std::vector<Json> records) {
    auto t = std::make_unique<Session>(exampleWorld());
    records.push_back({{"type", "session"}, {"epoch", 1}});
    t->journal = Journal::inMemory(std::move(records));
    t->config.epoch = 1;
    return std::pair(t->run(t->spec(SearchKind::kFull, more)), t->journal->records());
  };
  const auto [first, records] = extend(s.journal->records());
  const auto [second, again] = extend(records);
  EXPECT_GT(first.busySeconds, 0);
  EXPECT_NEAR(second.busySeconds, first.busySeconds, 1e-6);
}

// A/A: the default's own engine, forced past same_as, must not win. Placement luck is generous here.
TEST(Search, TheDefaultAgainstItselfWinsAtMostOnceInForty) {
  int wins = 0;
  for (uint64_t seed = 1; seed <= 40; seed++) {
    Json j = {{"knobs", {{"-dead", "0|1|2|3|4|5|6|7|8"}}},
              {"layers", {{"l", {{"ms", 5}}}}},
              {"process_sigma", 0.02},
              {"run_sigma", 0.01},
              {"seed", seed}};
    Session s(j);
    s.config.dedupe = false;
    wins += s.run(s.spec(SearchKind::kFast, "-dead=[0|1|2|3|4|5|6|7|8]")).outcome == TuneResult::Outcome::kImproved;
  }
  EXPECT_LE(wins, 1);
}

// Ten layers, a heuristic that is deliberately wrong for half of them, in ways that only scoped routes and
// combinations mend.
TEST(Search, TuneRecoversAPlantedBadDefault) {
  Json j = {{"knobs",
             {{"-tile", "auto|8|16|32|64"},
              {"-order", "auto|mnk|nmk|knm"},
              {"-pack", "auto|on|off"},
              {"-fuse", "auto|on|off"},
              {"-unroll", "auto|1|2|4|8"},
              {"-noise1", "auto|1|2"},
              {"-noise2", "auto|1|2"}}},
            {"layers", Json::object()},
            {"process_sigma", 0.005},
            {"run_sigma", 0.005},
            {"build_s", 0.05}};
  for (int l = 0; l < 10; l++) {
    Json effects = {{"-tile=8", 1.3},     {"-tile=16", 1.1},   {"-tile=32", 1.02},  {"-tile=64", 1.1},
                    {"-order=mnk", 1.05}, {"-order=nmk", 1.1}, {"-order=knm", 1.4}, {"-pack=on", 1.0},
                    {"-pack=off", 1.2},   {"-unroll=1", 1.2},  {"-unroll=2", 1.1},  {"-unroll=4", 1.01},
                    {"-unroll=8", 1.05}};
    if (l < 5) effects["-tile=32"] = 0.5;  // right tile for these: twice as fast
    if (l < 3) effects["-order=nmk"] = 0.8;
    if (l >= 7) effects["-tile=64"] = 0.7;  // others want another one
    j["layers"]["layer" + std::to_string(l)] = {{"ms", 2.0 - 0.1 * l}, {"effects", effects}};
  }
  Session s(j);
  s.config.budgetSeconds = 120;
  const TuneResult r = s.run(s.tune());
  double best = 0, standard = 0;
  for (int l = 0; l < 10; l++) {
    const double ms = 2.0 - 0.1 * l;
    standard += ms;
    best += ms * (l < 5 ? 0.5 : 1) * (l < 3 ? 0.8 : 1) * (l >= 7 ? 0.7 : 1);
  }
  ASSERT_EQ(r.outcome, TuneResult::Outcome::kImproved);
  const double got = s.world.ms(r.route);
  EXPECT_GE((standard - got) / (standard - best), 0.8) << r.route;
  EXPECT_LE(r.elapsedSeconds, 132);
  EXPECT_GE(r.distinctEngines, 50);
  // The friendly form's journal replays and continues as well.
  EXPECT_TRUE(same(s.replayed(s.tune()), s.decisions()));
}

TEST(Policy, WinnerIsTheHighestLowerBound) {
  const ConfirmRecord a{1, "a", 7, 2, 0.10, 0.02, 0.2, true, ""}, b{2, "b", 7, 2, 0.08, 0.05, 0.1, true, ""},
      c{3, "c", 7, 2, 0.3, 0.2, 0.4, false, "time"};
  EXPECT_EQ(chooseWinner({a, b, c})->iter, 2);
  EXPECT_EQ(chooseWinner({c}), std::nullopt);
}

TEST(Policy, ReserveIsBounded) {
  EXPECT_NEAR(reserveSeconds(1, 1, -1), 7.3, 1e-9);
  EXPECT_NEAR(reserveSeconds(2, 1, -1), 7 + 11 + 0.3, 1e-9);  // the second has less of the error
  EXPECT_NEAR(reserveSeconds(100, 1, -1), 6 + 6 + 18 + 0.3, 1e-9);
  EXPECT_NEAR(reserveSeconds(100, 1, 1000), 6 + 6 + 48 + 0.3, 1e-9);  // time for more looks
  EXPECT_NEAR(reserveSeconds(100, 1, 100), 30.3, 1e-9);
  EXPECT_NEAR(reserveSeconds(100, 1, 20), 9, 1e-9);
}

}  // namespace
}  // namespace rutter::tuner
