// Who holds the winner's place when a search is gone on with: a winner of the record, what was confirmed when its line
// is lost, or a candidate whose engine is simply there. None of them is given up without a measurement.
#include <gtest/gtest.h>

#include "base/error.h"
#include "tuner/session.h"

namespace rutter::tuner {
namespace {

using test::exampleWorld;
using test::kExample;
using test::Session;

const char kBest[] = "-fuse=on -tile=16 -unroll=1", kSecond[] = "-fuse=off -tile=32 -unroll=1";

Json sessionOf(int epoch, double t = 0) {
  return {{"type", "session"}, {"epoch", epoch}, {"t", t}};
}

struct Incumbent : testing::Test {
  Incumbent() {
    Session s(exampleWorld());
    s.config.saveEngine = "/e";
    s.config.budgetSeconds = 100;
    first = s.run(s.spec(SearchKind::kFast, kExample));
    whole = s.journal->records();
    saved = s.runner.saved;
  }
  // A session that goes on with `records`; a budget of 0.1 s is used up by the default alone.
  Session& session(std::vector<Json> records, int epoch, double budget, const Json& world = exampleWorld()) {
    sessions.push_back(std::make_unique<Session>(world));
    Session& s = *sessions.back();
    s.config.saveEngine = "/e";
    s.config.budgetSeconds = budget;
    s.config.epoch = epoch;
    s.journal = Journal::inMemory(std::move(records));
    s.runner.saved = saved;
    return s;
  }
  static std::vector<Json> without(std::vector<Json> records, std::initializer_list<const char*> types) {
    std::erase_if(records,
                  [&](const Json& j) { return std::find(types.begin(), types.end(), j["type"]) != types.end(); });
    return records;
  }
  static std::vector<Json> plus(std::vector<Json> records, std::initializer_list<Json> more) {
    records.insert(records.end(), more.begin(), more.end());
    return records;
  }
  static int samplesOf(const Session& s, const std::string& route, const char* stage) {
    int n = 0;
    for (const Json& j : s.journal->records())
      n += j["type"] == "samples" && j["build_route"] == route && j["stage"] == stage;
    return n;
  }
  TuneResult first;
  std::vector<Json> whole;
  std::map<std::string, std::pair<int64_t, std::string>> saved;
  std::vector<std::unique_ptr<Session>> sessions;
};

TEST_F(Incumbent, IsFoundInWhatWasConfirmedIfItsLineIsLost) {
  ASSERT_EQ(first.route, kBest);
  Session& s = session(plus(without(whole, {"winner"}), {sessionOf(1)}), 1, 0.1);
  const TuneResult r = s.run(s.spec(SearchKind::kFast, "-tile=[64|16|32]"));
  EXPECT_EQ(r.route, kBest);
  EXPECT_EQ(r.confirmed->lo, first.confirmed->lo);
  EXPECT_EQ(s.runner.saves, 0);

  // An extension refuted it and named another, whose line is lost: that one stays, not the older.
  ConfirmRecord gone{2, kBest, 7, 1, -0.2, -0.2, -0.2, false, ""},
      better{4, kSecond, 7, 1, 0.02, 0.015, 0.03, true, ""};
  saved["/e"] = {4, kSecond};
  Session& t = session(plus(whole, {sessionOf(1), toJson(gone), toJson(better), sessionOf(2)}), 2, 0.1);
  EXPECT_EQ(t.run(t.spec(SearchKind::kFast, "-tile=64")).route, kSecond);
  EXPECT_EQ(t.runner.saves, 0);
  // And one that was refuted just before a kill is no winner any more.
  Session& u = session(plus(whole, {sessionOf(1), toJson(gone), sessionOf(2)}), 2, 0.1);
  EXPECT_EQ(u.run(u.spec(SearchKind::kFast, "-tile=64")).outcome, TuneResult::Outcome::kNoImprovement);
}

// However often it is stopped: the second session finds a "winner" of the first, which named none.
TEST_F(Incumbent, StaysInItsFileWithoutAWordInTheRecord) {
  std::vector<Json> records = without(whole, {"winner", "confirm", "samples", "session", "strategy", "rank"});
  for (int n = 0; n < 3; n++) {
    SCOPED_TRACE(n);
    Session& s = session(plus(records, {sessionOf(0)}), 0, n == 1 ? -1 : 0.1);
    s.pacer.stop = n == 1 ? 1 : 0;
    s.config.maxCandidates = 0;
    const TuneResult r = s.run(s.spec(SearchKind::kFast, kExample));
    if (n == 1) {  // a stop leaves time for the best so far
      EXPECT_EQ(r.route, kBest);
    } else if (n == 0) {
      ASSERT_EQ(s.messages.size(), 1u);
      EXPECT_NE(s.messages[0].find("/e stays as it is: it is the engine of candidate 2, which has not been confirmed"),
                std::string::npos)
          << s.messages[0];
      EXPECT_EQ(r.enginePath, "");
    }
    EXPECT_EQ(s.runner.saves, 0);
    records = s.journal->records();
  }
  // Nor is an engine replaced by the default because the line of its candidate is lost, too.
  std::vector<Json> lost = without(whole, {"winner", "confirm", "samples", "strategy", "rank"});
  std::erase_if(lost, [](const Json& j) { return j["type"] == "candidate" && j["build_route"] == kBest; });
  // A whole record that does not know it is of another search.
  Session& t = session(plus(lost, {sessionOf(0)}), 0, 0.1);
  t.run(t.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(t.runner.saved["/e"].first, -1);
  Session& s = session(plus(lost, {sessionOf(0)}), 0, 0.1);
  s.config.lostLines = true;
  s.runner.clock.t = 0.2;  // the default is recorded, and takes no time
  s.run(s.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(s.runner.saves, 0);
  ASSERT_EQ(s.messages.size(), 1u);
  EXPECT_EQ(s.messages[0], "/e stays as it is: it is the engine of route '" + std::string(kBest) +
                               "', which the record does not know; --continue with more time measures it");
}

// With time left it is measured before all others, even if the strategy would not ask for it.
TEST_F(Incumbent, OfAnUnknownRouteIsMeasured) {
  std::vector<Json> lost = without(whole, {"winner", "confirm", "samples", "strategy", "rank"});
  std::erase_if(lost, [](const Json& j) { return j["type"] == "candidate" && j["build_route"] == kBest; });
  for (const char* expression : {kExample, "-unroll=[1|2]"})
    for (int epoch : {0, 1}) {
      SCOPED_TRACE(fmt::format("{} {}", expression, epoch));
      Session& s = session(plus(lost, {sessionOf(epoch)}), epoch, 100);
      s.config.lostLines = true;
      const TuneResult r = s.run(s.spec(SearchKind::kFast, expression));
      EXPECT_EQ(r.route, kBest);
      EXPECT_EQ(s.runner.saves, 0);
      EXPECT_GE(samplesOf(s, kBest, epoch ? "confirm@1" : "confirm"), kLooks[0]);
      EXPECT_TRUE(test::same(s.decisions(), s.replayed(s.spec(SearchKind::kFast, expression))));
    }
  // What does not hold here, or is of another model, goes.
  Json slow = exampleWorld();
  slow["layers"]["l"]["effects"]["-tile=16"] = 1.2;
  Session& s = session(plus(lost, {sessionOf(0)}), 0, 100, slow);
  s.config.lostLines = true;
  EXPECT_NE(s.run(s.spec(SearchKind::kFast, "-unroll=[1|2]")).route, kBest);
  EXPECT_EQ(s.runner.saves, 1);
  // One that cannot be measured now stays.
  Session& t = session(plus(lost, {sessionOf(0)}), 0, 100);
  t.config.lostLines = true;
  t.config.maxCandidates = 0;
  t.run(t.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(t.runner.saves, 0);
  ASSERT_EQ(t.messages.size(), 1u);
  EXPECT_NE(t.messages[0].find("/e stays as it is"), std::string::npos) << t.messages[0];
}

// What the record has lost it has not judged: an engine that was confirmed after the one that the record names stays,
// too, and so does one if no line of a candidate is left, or only one that says whose engine it shares.
TEST_F(Incumbent, IsNotGivenUpForWhatTheRecordStillNames) {
  ASSERT_EQ(first.route, kBest);
  const auto of = [](const Json& j, const char* route) { return j.value("build_route", "") == route; };
  std::vector<Json> all = whole, second = whole, same = without(whole, {"winner", "confirm", "samples", "rank"});
  std::erase_if(all, [](const Json& j) { return j["type"] != "header" && j["type"] != "baseline"; });
  std::erase_if(second, [&](const Json& j) { return of(j, kBest) && j["type"] != "samples"; });
  ASSERT_TRUE(std::any_of(second.begin(), second.end(), [](auto& j) { return j["type"] == "confirm" && j["faster"]; }));
  for (Json& j : same)
    if (j["type"] == "candidate" && of(j, kBest)) j["same_as"] = 77;
  for (const std::vector<Json>& lost : {all, second, same})
    for (int epoch : {0, 1}) {
      SCOPED_TRACE(fmt::format("{} records, epoch {}", lost.size(), epoch));
      const std::vector<Json> records = plus(lost, {sessionOf(epoch)});
      Session& s = session(records, epoch, 0.1);
      s.config.lostLines = true;
      s.runner.clock.t = 0.2;
      const TuneResult none = s.run(s.spec(SearchKind::kFast, "-unroll=[1|2]"));
      EXPECT_EQ(s.runner.saves, 0);
      EXPECT_EQ(none.enginePath, "");
      ASSERT_FALSE(s.messages.empty());
      EXPECT_NE(s.messages.back().find("/e stays as it is: it is the engine of "), std::string::npos)
          << s.messages.back();
      Session& t = session(records, epoch, 100);
      t.config.lostLines = true;
      EXPECT_EQ(t.run(t.spec(SearchKind::kFast, "-unroll=[1|2]")).route, kBest);
      EXPECT_EQ(t.runner.saves, 0);
      EXPECT_EQ(t.runner.saved["/e"].second, kBest);
    }
  // A whole record that names another says what the engine there is worth.
  Session& s = session(plus(second, {sessionOf(0)}), 0, 0.1);
  s.runner.clock.t = 0.2;
  EXPECT_EQ(s.run(s.spec(SearchKind::kFast, kExample)).route, kSecond);
  EXPECT_EQ(s.runner.saved["/e"].second, kSecond);
}

// Numbers of single processes put others before it: it is measured all the same, and first.
TEST_F(Incumbent, IsConfirmedFirstWhoeverRanksBetter) {
  std::vector<Json> taken = without(whole, {"winner", "confirm", "samples", "session", "strategy", "rank"});
  for (Json& j : taken)
    if (j["type"] == "candidate" && j["build_route"] != kBest && !j["same_as"].is_number())
      j["log_ratios"] = {0.5, 0.5, 0.5};
  Session& s = session(plus(taken, {sessionOf(0)}), 0, 100);
  const TuneResult r = s.run(s.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(r.route, kBest);
  EXPECT_GE(samplesOf(s, kBest, "confirm"), 5);
  EXPECT_TRUE(test::same(s.decisions(), s.replayed(s.spec(SearchKind::kFast, kExample))));

  // One that does not hold is given up.
  Json slow = exampleWorld();
  slow["layers"]["l"]["effects"] = {{"-tile=16", 1.2}, {"-fuse=off", 1.1}, {"-unroll=2", 1.04}, {"-tile=64", 1.02}};
  Session& t = session(plus(taken, {sessionOf(0)}), 0, 100, slow);
  EXPECT_EQ(t.run(t.spec(SearchKind::kFast, kExample)).outcome, TuneResult::Outcome::kNoImprovement);
  EXPECT_EQ(t.runner.saved["/e"].first, -1);
}

// The first that is confirmed has half of the error, the next a quarter, however little or much time a later session
// has: a verdict does not change without a measurement.
TEST_F(Incumbent, VerdictsKeepTheirShareOfTheError) {
  std::vector<Json> records = plus(without(whole, {"confirm", "winner"}), {sessionOf(0, 99.9)});
  Session& s = session(records, 0, 100);
  s.runner.clock.t = 99.9;
  EXPECT_EQ(s.run(s.spec(SearchKind::kFast, kExample)).route, kBest);
  const auto shares = [](const Session& of, const std::string& stage) {
    std::map<std::string, std::set<double>> out;
    std::vector<std::string> order;
    for (const Json& j : of.journal->records()) {
      if (j["type"] == "samples" && j["stage"] == stage &&
          std::find(order.begin(), order.end(), j["build_route"]) == order.end())
        order.push_back(j["build_route"]);
      if (j["type"] == "confirm" && j["processes"] > 0) out[j["build_route"]].insert(double(j["share"]));
    }
    EXPECT_EQ(out.size(), order.size());
    for (size_t i = 0; i < order.size(); i++) EXPECT_EQ(out[order[i]], std::set<double>{finalistShare(i)}) << order[i];
    return order;
  };
  EXPECT_EQ(shares(s, "confirm").size(), 2u);
  // A brief first session confirms one; the second finds a better one, which comes after it all the same.
  Session t(exampleWorld());
  t.config.budgetSeconds = 100;
  t.config.maxCandidates = 2;
  t.run(t.spec(SearchKind::kFull, "-fuse=off -tile=[32|16] -unroll=[2|1]"));
  t.config.maxCandidates = -1;
  t.journal->append(sessionOf(0));
  t.run(t.spec(SearchKind::kFull, "-fuse=off -tile=[32|16] -unroll=[2|1]"));
  const std::vector<std::string> order = shares(t, "confirm");
  ASSERT_GE(order.size(), 3u);
  EXPECT_EQ(order[0], "-fuse=off -tile=32 -unroll=1");
}

// What an earlier search has measured and found no faster takes no time of an extension.
TEST_F(Incumbent, TheRefutedAreNotMeasuredAgain) {
  Session s(exampleWorld());
  s.config.minGain = 0.06;  // -fuse=off gains 5 %
  s.config.budgetSeconds = 100;
  s.run(s.spec(SearchKind::kFast, kExample));
  ASSERT_GT(samplesOf(s, kSecond, "confirm"), 0);
  Session t(exampleWorld());
  t.config = s.config;
  t.config.epoch = 1;
  t.journal = Journal::inMemory(plus(s.journal->records(), {sessionOf(1)}));
  EXPECT_EQ(t.run(t.spec(SearchKind::kFull, "-unroll=2 -tile=[64|32]")).route, kBest);
  EXPECT_EQ(samplesOf(t, kSecond, "confirm@1"), 0);
  EXPECT_GT(samplesOf(t, kBest, "confirm@1"), 0);
}

// What failed in a fresh process is out, also where nobody looks at that process again: after a stop, with too few
// candidates for a ranking, in an extension.
TEST_F(Incumbent, WhatFailedIsNoFinalistLater) {
  const auto failing = [&](const char* stage, int index) {
    SampleRecord r;
    r.iter = 2, r.route = kBest, r.stage = stage, r.index = index;
    r.status = Status::kCrashed, r.error = "killed by signal 11";
    return toJson(r);
  };
  std::vector<Json> ranked = without(whole, {"winner", "confirm", "samples", "strategy", "rank"});
  saved.clear();
  for (const char* expression : {kExample, "-tile=[32|16]"})
    for (int stop : {0, 1}) {
      SCOPED_TRACE(fmt::format("{} {}", expression, stop));
      Session& s = session(plus(ranked, {failing("rank1", 0), sessionOf(0)}), 0, 100);
      s.pacer.stop = stop;
      EXPECT_NE(s.run(s.spec(SearchKind::kFast, expression)).route, kBest);
      EXPECT_EQ(samplesOf(s, kBest, "confirm"), 0);
      EXPECT_TRUE(test::same(s.decisions(), s.replayed(s.spec(SearchKind::kFast, expression))));
    }
  std::vector<Json> bad = without(whole, {"winner", "confirm"});
  for (Json& j : bad)
    if (j["type"] == "samples" && j["build_route"] == kBest && j["stage"] == "confirm" && j["index"] == 3)
      j = failing("confirm", 3);
  Session& t = session(plus(bad, {sessionOf(1)}), 1, 100);
  EXPECT_NE(t.run(t.spec(SearchKind::kFast, "-unroll=[1|2]")).route, kBest);
  EXPECT_EQ(samplesOf(t, kBest, "confirm@1"), 0);
}

// The record of how a winner's route was shortened has a hole: the winner keeps its name and its engine.
TEST_F(Incumbent, KeepsItsShorterRoute) {
  Json world = exampleWorld();
  world["knobs"]["-idle"] = "0|1|2";
  const char routes[] = "-idle=[1|2] -tile=[32|16] -fuse=on -unroll=[1|2]";
  Session s(world);
  s.config.shorten = true;
  s.config.saveEngine = "/e";
  const TuneResult want = s.run(s.spec(SearchKind::kFull, routes));
  ASSERT_EQ(want.route, "-tile=16");
  saved = s.runner.saved;
  const std::vector<Json> records = s.journal->records();
  int tried = 0;
  for (size_t i = 0; i < records.size(); i++) {
    const std::string type = records[i]["type"];
    const bool own = type == "candidate" && records[i]["build_route"] == want.route;
    if (type != "decided" && type != "shortened" && !own) continue;
    tried++;
    SCOPED_TRACE(records[i].dump());
    std::vector<Json> hole = records;
    hole.erase(hole.begin() + ptrdiff_t(i));
    Session& t = session(plus(hole, {sessionOf(0)}), 0, -1, world);
    const TuneResult r = t.run(t.spec(SearchKind::kFull, routes));
    EXPECT_EQ(r.route, want.route);
    EXPECT_EQ(r.winnerIter, want.winnerIter);
    EXPECT_EQ(t.runner.saves, 0);
  }
  EXPECT_GE(tried, 5);
}

// A sample that says ok and has no number is as good as none: its process runs again.
TEST_F(Incumbent, SamplesWithoutNumbersAreMeasuredAgain) {
  std::vector<Json> records = whole;
  for (Json& j : records)
    if (j["type"] == "samples" && j["stage"] == "confirm") j["log_ratios"] = Json::array();
  Session& s = session(plus(without(records, {"confirm", "winner"}), {sessionOf(0)}), 0, 100);
  EXPECT_EQ(s.run(s.spec(SearchKind::kFast, kExample)).route, kBest);
  EXPECT_GT(s.runner.samples, 0);
}

TEST_F(Incumbent, AStopSaysHowManyEnginesAreMissing) {
  Session s(exampleWorld());
  s.config.saveEngine = "/e";
  s.config.saveAllEngines = true;
  s.run(s.spec(SearchKind::kFast, kExample));
  s.runner.saved.erase("/e.iter1");
  s.runner.saved.erase("/e.iter3");
  s.pacer.stop = 1;
  s.run(s.spec(SearchKind::kFast, kExample));
  ASSERT_EQ(s.messages.size(), 1u);
  EXPECT_EQ(s.messages[0],
            "not all engines that --saveAllEngines wants are written (2 are missing): --continue writes them");
}

}  // namespace
}  // namespace rutter::tuner
