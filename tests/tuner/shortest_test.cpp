// The winner of --tune is named and saved by a route without assignments that decide nothing.
#include <gtest/gtest.h>

#include "tuner/process_fixture.h"
#include "tuner/session.h"

namespace rutter::tuner {
namespace {

using test::exampleWorld;
using test::same;
using test::Session;

const char kRoutes[] = "-idle=[1|2] -tile=[32|16] -fuse=on -unroll=[1|2]";
const char kLong[] = "-idle=1 -tile=16 -fuse=on -unroll=1";

struct IdleSession : Session {
  explicit IdleSession(const std::string& routes = kRoutes) : Session(world()), make(spec(SearchKind::kFull, routes)) {
    config.shorten = true;
    config.saveEngine = "/e";
  }
  static Json world() {
    Json j = exampleWorld();
    j["knobs"]["-idle"] = "0|1|2";
    return j;
  }
  TuneResult run() { return Session::run(make); }
  int count(const char* type) const {
    int n = 0;
    for (const Json& j : journal->records()) n += j["type"] == type;
    return n;
  }
  std::function<std::unique_ptr<Strategy>(const BaselineRecord&)> make;
};

// A value that decides nothing has no place in the route that people are told to use.
TEST(Shortest, AWinnerIsNamedByTheShortestRouteThatDecidesTheSame) {
  Json j = exampleWorld();
  j["knobs"]["-idle"] = "0|1|2";
  const std::string routes = "-idle=[1|2] -tile=[32|16] -fuse=on -unroll=[1|2]";
  Session s(j);
  s.config.shorten = true;
  s.config.saveEngine = "/e";
  const TuneResult r = s.run(s.spec(SearchKind::kFull, routes));
  EXPECT_EQ(r.outcome, TuneResult::Outcome::kImproved);
  EXPECT_EQ(r.route, "-tile=16");
  ASSERT_TRUE(r.losses);
  EXPECT_EQ(s.runner.saved["/e"].second, "-tile=16");
  EXPECT_EQ(s.candidates().back().route, "-tile=16");
  EXPECT_EQ(s.candidates().back().iter, r.winnerIter);
  EXPECT_EQ(s.candidates().back().sameAs, 2);
  EXPECT_EQ(r.distinctEngines, 3);

  // Decided again on the same numbers, and continued: the same end, nothing built again.
  EXPECT_TRUE(same(s.replayed(s.spec(SearchKind::kFull, routes)), s.decisions()));
  const int built = s.runner.built;
  const size_t records = s.journal->records().size();
  const TuneResult again = s.run(s.spec(SearchKind::kFull, routes));
  EXPECT_EQ(again.route, "-tile=16");
  EXPECT_EQ(again.winnerIter, r.winnerIter);
  EXPECT_EQ(s.runner.built, built);
  EXPECT_EQ(s.journal->records().size(), records);

  // What other searches were told to try stays as it was said.
  Session t(j);
  EXPECT_EQ(t.run(t.spec(SearchKind::kFull, routes)).route, "-idle=1 -tile=16 -fuse=on -unroll=1");
}

// The time for candidates is over before the one for winners.
TEST(Shortest, ALateWinnerIsShortenedToo) {
  IdleSession s;
  s.runner.candidatesUntil = 0;
  s.run();  // nothing but the default: what it costs
  const double begin = s.runner.clock.t;
  IdleSession t;
  t.run();
  const double all = t.runner.clock.t;
  IdleSession late;
  late.runner.candidatesUntil = begin + 0.8 * (all - begin);  // all are built and being confirmed
  const TuneResult r = late.run();
  EXPECT_GT(late.runner.clock.t, late.runner.candidatesUntil);
  EXPECT_EQ(r.route, "-tile=16");
}

// However often it is stopped while it is looking, the end is the straight run's.
TEST(Shortest, AStoppedLookIsGoneOnWith) {
  IdleSession straight;
  const TuneResult want = straight.run();
  const int decided = straight.count("decided");
  ASSERT_GE(decided, 3);
  for (int n = 0; n <= decided; n++) {
    SCOPED_TRACE(n);
    IdleSession s;
    s.runner.winnerDecisions = n;
    s.runner.rebuilds = n == decided ? 0 : -1;
    const TuneResult first = s.run();
    EXPECT_EQ(first.route, kLong);
    EXPECT_EQ(s.runner.saved["/e"].second, kLong);
    EXPECT_EQ(s.count("decided"), n);
    s.runner.winnerDecisions = s.runner.rebuilds = -1;
    const int built = s.runner.built;
    const TuneResult r = s.run();
    EXPECT_EQ(r.route, want.route);
    EXPECT_EQ(r.winnerIter, want.winnerIter);
    EXPECT_EQ(r.confirmed->lo, want.confirmed->lo);
    EXPECT_EQ(s.runner.saved["/e"].second, want.route);
    EXPECT_EQ(s.runner.built, built + 1);
    EXPECT_EQ(s.count("decided"), decided);
    EXPECT_EQ(s.replayed(s.make).back(), s.decisions().back());
  }
}

// A search that ends in the middle of it names what it has.
TEST(Shortest, AStoppedSearchKeepsItsWinner) {
  IdleSession s;
  s.runner.onWinnerDecision = [&](int n) { s.pacer.stop = n == 1 ? 1 : s.pacer.stop; };
  const TuneResult r = s.run();
  EXPECT_EQ(r.route, kLong);
  EXPECT_EQ(s.count("decided"), 2);
  EXPECT_EQ(s.count("shortened"), 0);
  s.pacer.stop = 0;
  EXPECT_EQ(s.run().route, "-tile=16");
}

TEST(Shortest, ItHasAShareOfTheBudget) {
  IdleSession s;
  s.config.budgetSeconds = 50;  // 1 s of it, and a decision takes 0.4
  s.runner.winnerDecisionSeconds = 0.4;
  const TuneResult r = s.run();
  EXPECT_EQ(s.count("decided"), 3);
  EXPECT_EQ(r.outcome, TuneResult::Outcome::kImproved);
  const auto records = s.journal->records().size();
  EXPECT_EQ(s.run().route, r.route);
  EXPECT_EQ(s.journal->records().size(), records);
  EXPECT_TRUE(same(s.replayed(s.make), s.decisions()));
  s.config.budgetSeconds = 500;
  EXPECT_EQ(s.run().route, "-tile=16");
}

// An expression that goes on with such a search finds its winner as it was named.
TEST(Shortest, AnExtensionKeepsTheShortRoute) {
  IdleSession s;
  const TuneResult before = s.run();
  s.journal->append({{"type", "session"}, {"epoch", 1}, {"t", 0}});
  s.config.epoch = 1;
  s.config.shorten = false;
  s.runner.saves = 0;
  const TuneResult r = s.Session::run(s.spec(SearchKind::kFast, "-unroll=[1|2] -tile=64"));
  EXPECT_EQ(r.route, before.route);
  EXPECT_EQ(r.winnerIter, before.winnerIter);
  EXPECT_EQ(s.runner.saves, 0);
}

// The short route was tried, after the long one: it is built, and counts once.
TEST(Shortest, ARouteThatIsKnownIsBuilt) {
  struct Two : Strategy {
    int n = 0;
    const char* name() const override { return "two"; }
    std::optional<Ask> ask() override {
      return n < 2 ? std::optional<Ask>(Ask{n++ == 0 ? "-idle=1 -tile=16" : "-tile=16"}) : std::nullopt;
    }
    void tell(const Tell&) override {}
  };
  IdleSession s;
  s.make = [](const BaselineRecord&) { return std::make_unique<Two>(); };
  const TuneResult r = s.run();
  EXPECT_EQ(r.route, "-tile=16");
  EXPECT_EQ(r.winnerIter, 1);
  EXPECT_EQ(s.runner.saved["/e"].first, 1);
  EXPECT_EQ(s.candidates().size(), 2u);
  EXPECT_TRUE(same(s.replayed(s.make), s.decisions()));
  const auto records = s.journal->records().size();
  EXPECT_EQ(s.run().route, r.route);
  EXPECT_EQ(s.journal->records().size(), records);
}

TEST(Shortest, AFailedBuildLeavesTheLongRoute) {
  IdleSession s;
  s.runner.failingRebuilds = 2;  // once may be an accident
  const TuneResult r = s.run();
  EXPECT_EQ(r.route, kLong);
  EXPECT_EQ(s.runner.saved["/e"].second, kLong);
  const int built = s.runner.built;
  EXPECT_EQ(s.run().route, kLong);
  EXPECT_EQ(s.runner.built, built) << "it is not tried for ever";
  const Recorded recorded(s.journal->records());
  EXPECT_EQ(recorded.nextIter, recorded.shortened.begin()->second.iter + 1) << "its number is taken";
}

TEST(Shortest, ABuildThatIsKilledOnceIsMadeAgain) {
  IdleSession s;
  s.runner.failingRebuilds = 1;
  EXPECT_EQ(s.run().route, "-tile=16");
}

// Parts that cannot be decided are not the same: an answer like others, asked for once.
TEST(Shortest, APartThatCrashesIsAnswered) {
  IdleSession s;
  s.runner.winnerCrashes = 1;
  const TuneResult r = s.run();
  EXPECT_EQ(r.route, "-tile=16");
  const int decided = s.count("decided");
  EXPECT_EQ(s.run().route, r.route);
  EXPECT_EQ(s.count("decided"), decided);
}

// The winner is confirmed: it is saved even if there is no room for looking.
TEST(Shortest, ADiskThatIsFullLosesNoWinner) {
  for (const bool building : {false, true}) {
    IdleSession s;
    s.runner.fullDisk = building ? 2 : 1;
    EXPECT_EQ(s.run().route, kLong);
    EXPECT_EQ(s.runner.saved["/e"].second, kLong);
    ASSERT_EQ(s.messages.size(), 1u);
    EXPECT_NE(s.messages[0].find("candidate 2 keeps its route"), std::string::npos) << s.messages[0];
    EXPECT_NE(s.messages[0].find("no room"), std::string::npos) << s.messages[0];
    s.runner.fullDisk = 0;
    EXPECT_EQ(s.run().route, "-tile=16");
  }
}

// A line of the journal that is damaged is left out: what it said is made again.
TEST(Shortest, ALostCandidateIsBuiltAgain) {
  for (const char* type : {"candidate", "shortened", "decided"}) {
    IdleSession s;
    const TuneResult want = s.run();
    std::vector<Json> records = s.journal->records();
    const auto lost = std::find_if(records.rbegin(), records.rend(), [&](const Json& j) { return j["type"] == type; });
    records.erase(std::next(lost).base());
    s.journal = Journal::inMemory(records);
    const TuneResult r = s.run();
    EXPECT_EQ(r.route, want.route) << type;
    EXPECT_EQ(r.winnerIter, want.winnerIter) << type;
    EXPECT_EQ(s.runner.saved["/e"].second, want.route) << type;
  }
}

// One answer changed: the look goes on from there.
TEST(Shortest, RecordedAnswersDecide) {
  IdleSession s;
  s.run();
  std::vector<Json> records = s.journal->records();
  for (Json& j : records)
    if (j["type"] == "decided" && j["build_route"] == "-tile=16") j["decision"] = "other";
  ASSERT_NE(records, s.journal->records());
  s.journal = Journal::inMemory(records);
  EXPECT_EQ(s.run().route, "-idle=1 -tile=16");
  EXPECT_EQ(s.runner.saved["/e"].second, "-idle=1 -tile=16");
}

TEST(Policy, ShortenedKeepsWhatDecides) {
  auto about = [](const std::set<std::string>& needed) {
    return [needed](const std::string& r) {
      for (const std::string& n : needed)
        if ((" " + r + " ").find(" " + n + " ") == std::string::npos) return false;
      return true;
    };
  };
  EXPECT_EQ(shortened("-a=1 -b=2 -c@x=3 -d=4 -e=5", about({"-b=2", "-e=5"})), "-b=2 -e=5");
  EXPECT_EQ(shortened("-a=1 -b=2", about({"-a=1", "-b=2"})), "-a=1 -b=2");
  EXPECT_EQ(shortened("-a=1 -b=2 -c=3", about({})), "-c=3");  // never the default route: that was another engine
  // Of -b and -c either is needed, and after -c has gone -a is not: nothing of the result can be left out.
  const auto either = [](const std::string& r) {
    const bool a = r.find("-a") != r.npos, b = r.find("-b") != r.npos, c = r.find("-c") != r.npos;
    return b ? (a || !c) : c && a;
  };
  EXPECT_EQ(shortened("-a=1 -b=2 -c=3", either), "-b=2");
}

}  // namespace
}  // namespace rutter::tuner
