// What a search names and saves, and what it keeps of what earlier sessions named and saved.
#include <gtest/gtest.h>

#include "base/error.h"
#include "tuner/session.h"

namespace rutter::tuner {
namespace {

using test::exampleWorld;
using test::kExample;
using test::Session;

// A cache that was taken over without its journal knows no hashes: an engine that is gone has none either, and what it
// has measured counts as engines.
TEST(Search, AWinnerWithoutAHashIsWritten) {
  Session s(exampleWorld());
  s.config.saveEngine = "/e";
  const TuneResult want = s.run(s.spec(SearchKind::kFast, kExample));
  std::vector<Json> records = s.journal->records();
  std::erase_if(records, [](const Json& j) { return j["type"] == "winner"; });
  for (Json& j : records)
    if (j["type"] == "candidate") j.erase("engine_hash"), j.erase("decision");
  s.journal = Journal::inMemory(records);
  s.runner.saved.clear();
  const TuneResult r = s.run(s.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(r.route, want.route);
  EXPECT_EQ(r.distinctEngines, want.distinctEngines);
  EXPECT_EQ(s.runner.saved["/e"].second, want.route);
}

// Nobody waits for the engines of candidates after a second stop; the search ends as it would.
TEST(Search, AnEngineThatIsNotWrittenInTimeIsSaid) {
  Session s(exampleWorld());
  s.config.saveEngine = "/e";
  s.config.saveAllEngines = true;
  s.runner.interruptedSaves = true;
  EXPECT_EQ(s.run(s.spec(SearchKind::kFast, kExample)).outcome, TuneResult::Outcome::kImproved);
  EXPECT_EQ(s.runner.saved.size(), 1u);
  ASSERT_FALSE(s.messages.empty());
  EXPECT_EQ(s.messages[0], "stopped before /e.iter0 was written; --continue writes it");
  s.runner.interruptedSaves = false;
  s.run(s.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(s.runner.saved.size(), 6u);  // the winner, and five candidates
}

// Engines that an earlier session owes are written when a search is gone on with: when it is extended and when its time
// is used up, too, and over those that other searches have left under these names. One that cannot be built any more
// ends nothing.
TEST(Search, EnginesThatAreMissingAreWritten) {
  Session s(exampleWorld());
  s.config.saveEngine = "/e";
  s.config.saveAllEngines = true;
  s.config.budgetSeconds = 100;
  const TuneResult first = s.run(s.spec(SearchKind::kFast, kExample));
  const auto all = s.runner.saved;
  ASSERT_EQ(all.size(), 6u);
  s.runner.saves = 0;
  s.run(s.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(s.runner.saves, 0);

  s.runner.saved.erase("/e.iter1");
  s.runner.saved["/e.iter3"] = {3, "-tile=8"};
  s.config.budgetSeconds = 1e-3;
  s.run(s.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(s.runner.saved, all);

  s.runner.saved.erase("/e.iter2");
  s.config.budgetSeconds = 100;
  s.config.epoch = 1;
  s.journal->append({{"type", "session"}, {"epoch", 1}, {"t", 0}});
  s.run(s.spec(SearchKind::kFast, "-tile=16"));
  EXPECT_TRUE(s.runner.saved.count("/e.iter2"));

  // A full disk costs one build at the end, not one for each engine that is missing.
  s.runner.saved = {{"/e", all.at("/e")}, {"/e.iter0", all.at("/e.iter0")}};
  s.runner.saves = 0;
  s.runner.fullDisk = 3;
  const TuneResult full = s.run(s.spec(SearchKind::kFast, "-tile=16"));
  EXPECT_EQ(s.runner.saves, 1);
  EXPECT_EQ(full.error, "engines that --saveAllEngines wants are missing (5; no room); --continue writes them");
  EXPECT_EQ(full.route, first.route);
  s.runner.fullDisk = 0;
  s.messages.clear();

  Json later = exampleWorld();
  later["faults"] = {{"-tile=64", "gone"}};
  Session t(later, s.config);
  t.journal = Journal::inMemory(s.journal->records());
  EXPECT_EQ(t.run(t.spec(SearchKind::kFast, "-tile=16")).route, first.route);
  EXPECT_FALSE(t.runner.saved.count("/e.iter3"));
  EXPECT_TRUE(t.runner.saved.count("/e.iter4"));
  ASSERT_EQ(t.messages.size(), 1u);
  EXPECT_NE(t.messages[0].find(" is not written: route '-fuse=on -tile=64 -unroll=1' was ok"), std::string::npos)
      << t.messages[0];
}

// A winner that was confirmed and saved is given up only for what is measured: an extension that has no time or is
// stopped says nothing against it, nor do lines of the record that are lost.
TEST(Search, AWinnerStaysUntilItIsMeasuredAgain) {
  Session s(exampleWorld());
  s.config.saveEngine = "/e";
  s.config.budgetSeconds = 100;
  const TuneResult want = s.run(s.spec(SearchKind::kFast, kExample));
  ASSERT_EQ(want.outcome, TuneResult::Outcome::kImproved);
  const std::vector<Json> whole = s.journal->records();
  const auto again = [&](Session& t, std::vector<Json> records, const char* expression) {
    t.journal = Journal::inMemory(std::move(records));
    t.config.saveEngine = "/e";
    t.runner.saved = s.runner.saved;
    const TuneResult r = t.run(t.spec(SearchKind::kFast, expression));
    EXPECT_EQ(r.outcome, TuneResult::Outcome::kImproved) << r.reason;
    EXPECT_EQ(r.route, want.route);
    EXPECT_EQ(r.confirmed->lo, want.confirmed->lo);
    EXPECT_EQ(t.runner.saves, 0) << "the engine is there";
    EXPECT_EQ(r.enginePath, "/e");
    std::string replayed;
    for (const Json& j : t.replayed(t.spec(SearchKind::kFast, expression)))
      if (j["type"] == "winner") replayed = j["build_route"];
    EXPECT_EQ(replayed, want.route);
  };
  std::vector<Json> extended = whole;
  extended.push_back({{"type", "session"}, {"epoch", 1}, {"t", 0}});
  for (const int stop : {0, 1}) {
    SCOPED_TRACE(stop);
    Session t(exampleWorld());
    t.config.epoch = 1;
    t.config.budgetSeconds = 0.1;
    t.pacer.stop = stop;
    again(t, extended, "-tile=[64|16|32]");
  }
  for (size_t lost = 1; lost + 1 < whole.size(); lost++) {
    SCOPED_TRACE(whole[lost].dump().substr(0, 100));
    if (whole[lost]["type"] == "winner") continue;
    std::vector<Json> records = whole;
    records.erase(records.begin() + ptrdiff_t(lost));
    records.push_back({{"type", "session"}, {"t", 200}});
    Session t(exampleWorld());
    t.config.budgetSeconds = 100;
    t.runner.clock.t = 200;
    again(t, records, kExample);
  }
  // More time, and a stop before anything is measured again; recorded samples are used, however few a stop asks for.
  for (const int stop : {0, 1}) {
    std::vector<Json> records = whole;
    records.push_back({{"type", "session"}, {"t", 100}});
    Session t(exampleWorld());
    t.config.budgetSeconds = 1000;
    t.config.maxCandidates = stop ? -1 : 2;
    t.pacer.stop = stop;
    again(t, records, "-fuse=[on|off] -tile=[32|16|64] -unroll=[1|2]");
  }
  // A cache without its journal names no winner, but the engine that was saved is not given up for a want of time.
  std::vector<Json> taken;
  for (const Json& j : whole)
    if (j["type"] == "header" || j["type"] == "baseline" || j["type"] == "candidate") taken.push_back(j);
  taken.push_back({{"type", "session"}});
  Session c(exampleWorld());
  c.config.saveEngine = "/e";
  c.config.budgetSeconds = 0.1;
  c.journal = Journal::inMemory(taken);
  c.runner.saved = s.runner.saved;
  const TuneResult stays = c.run(c.spec(SearchKind::kFast, kExample));
  EXPECT_EQ(stays.outcome, TuneResult::Outcome::kNoImprovement);
  EXPECT_EQ(stays.enginePath, "");
  EXPECT_EQ(c.runner.saves, 0);
  ASSERT_EQ(c.messages.size(), 1u);
  EXPECT_NE(c.messages[0].find("/e stays as it is: it is the engine of candidate 2"), std::string::npos)
      << c.messages[0];

  // Stopped at once: nothing is named, nothing touched.
  Session t(exampleWorld());
  t.config.epoch = 1;
  t.config.saveEngine = "/e";
  t.pacer.stop = 2;
  t.runner.saved = s.runner.saved;
  t.journal = Journal::inMemory(extended);
  const TuneResult r = t.run(t.spec(SearchKind::kFast, "-tile=64"));
  EXPECT_EQ(r.route, want.route);
  EXPECT_EQ(t.runner.saves, 0);

  // Nor is "no improvement" said where the engine is gone.
  t.runner.saved.clear();
  t.journal = Journal::inMemory(extended);
  const TuneResult gone = t.run(t.spec(SearchKind::kFast, "-tile=64"));
  EXPECT_EQ(gone.route, want.route);
  EXPECT_EQ(gone.enginePath, "");
  EXPECT_EQ(gone.error, "the winner's engine is not in /e; --continue writes it");

  // One that crashes in a fresh process is not kept.
  std::vector<Json> crashed = extended;
  crashed.push_back({{"type", "samples"},
                     {"iter", want.winnerIter},
                     {"build_route", want.route},
                     {"stage", "confirm@1"},
                     {"index", 0},
                     {"status", "crashed"}});
  Session d(exampleWorld());
  d.config = s.config;
  d.config.epoch = 1;
  d.journal = Journal::inMemory(crashed);
  EXPECT_NE(d.run(d.spec(SearchKind::kFast, "-tile=64")).route, want.route);

  // It is measured again beside what an extension adds, and first, however many of those rank better.
  Json better = exampleWorld();
  better["layers"]["l"]["effects"]["-unroll=2"] = 0.98;
  Session b(better);
  b.config = s.config;
  b.config.epoch = 1;
  b.journal = Journal::inMemory(extended);
  const auto more = b.spec(SearchKind::kFull, "-fuse=off -tile=16 -unroll=[1|2]");
  const TuneResult extension = b.run(more);
  std::vector<std::string> order;
  for (const Json& j : b.journal->records())
    if (j["type"] == "confirm" && j["processes"] > 0) order.push_back(j["build_route"]);
  ASSERT_GE(order.size(), 2u);
  EXPECT_EQ(order[order.size() - 2], want.route);
  EXPECT_EQ(extension.route, "-fuse=off -tile=16 -unroll=2");
  std::vector<Json> last = b.decisions();
  last.erase(last.begin(), last.end() - ptrdiff_t(b.replayed(more).size()));
  EXPECT_TRUE(test::same(last, b.replayed(more)));

  // What is measured again and does not hold goes.
  Json slow = exampleWorld();
  slow["layers"]["l"]["effects"] = Json::object();
  Session u(slow);
  u.config = s.config;
  u.config.epoch = 1;
  u.journal = Journal::inMemory(extended);
  EXPECT_EQ(u.run(u.spec(SearchKind::kFast, "-unroll=[1|2]")).outcome, TuneResult::Outcome::kNoImprovement);
}

}  // namespace
}  // namespace rutter::tuner
