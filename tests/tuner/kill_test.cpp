// kill -9 of supervisor, worker or a measuring process at every point that a search passes: before and after each
// journal write, fork and rename, and around each answer.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "tuner/cache.h"
#include "tuner/process_fixture.h"

namespace rutter::tuner {
namespace {

namespace fs = std::filesystem;
using test::exampleWorld;
using test::kExample;

// Short, and with all that a search writes: two positive knobs make a second phase, three contenders are ranked twice.
const char kShort[] = "-idle=1 -fuse=[on|off] -tile=[32|16]";
const char kBest[] = "-idle=1 -fuse=off -tile=16";
const char kBestNamed[] = "-fuse=off -tile=16", kSecondNamed[] = "-tile=16";  // without what decides nothing

class KillingTest : public test::ProcessTest {
 protected:
  TuneOptions shortSearch() {
    Json world = exampleWorld();
    world["knobs"]["-idle"] = "0|1";
    world["shorten"] = true;
    return options(world, kShort, SearchKind::kMixed);
  }
  std::string journal() const { return dir_ + "/cache.jsonl.journal"; }
  // The n-th passing of a point is the last one. False: there is no n-th.
  template <typename F>
  bool killedAt(const char* role, const char* point, int n, F&& search) {
    for (const char* f : {"/cache.jsonl", "/cache.jsonl.journal", "/best.engine", "/killed", "/killed.passed"})
      fs::remove(dir_ + f);
    fs::remove_all(dir_ + "/cache");  // the oracle's answers are written anew
    setenv("RUTTER_TEST_KILL", fmt::format("{} {} {} {}/killed", role, point, n, dir_).c_str(), 1);
    search();
    unsetenv("RUTTER_TEST_KILL");
    return fs::exists(dir_ + "/killed");
  }
};

TEST_F(KillingTest, TheShortSearchWritesEveryKindOfRecord) {
  EXPECT_EQ(tune(shortSearch(), silent_).route, kBestNamed);
  std::set<std::string> kinds;
  for (const Json& j : readJournal(journal()))
    kinds.insert(j["type"].get<std::string>() + " " + j.value("event", j.value("stage", "")));
  EXPECT_EQ(kinds, (std::set<std::string>{"header ", "session ", "baseline ", "candidate ", "strategy phase2",
                                          "strategy search_end", "strategy finalists", "samples rank1", "samples rank2",
                                          "samples confirm", "rank rank1", "rank rank2", "confirm ", "decided ",
                                          "shortened ", "strategy shorter", "winner "}));
}

constexpr int kToTheEnd = 1000;
struct KillPoint {
  const char *role, *point;
  int first, last;  // of its passings
};
class KillTest : public KillingTest, public testing::WithParamInterface<KillPoint> {};

// Killed at a point, then continued: the end is that of the straight run, and nothing is left.
TEST_P(KillTest, ContinuesAsTheStraightRun) {
  const TuneResult want = tune(shortSearch(), silent_);
  const auto wanted = candidates();
  const size_t written = readJournal(journal()).size();
  const KillPoint& k = GetParam();
  int n = k.first;
  for (; n <= k.last; n++) {
    SCOPED_TRACE(fmt::format("{} {} {}", k.role, k.point, n));
    bool died = false;
    TuneResult got;
    const bool killed = killedAt(k.role, k.point, n, [&] {
      try {
        got = tune(shortSearch(), silent_);
      } catch (const DeviceError&) {
        died = true;
      } catch (const UserError&) {  // what measures the default was killed
        died = true;
      }
    });
    if (!killed) break;
    if (died) {
      TuneOptions o = shortSearch();
      o.resume = fs::exists(journal());
      got = tune(o, silent_);
    }
    EXPECT_EQ(got.route, want.route);
    EXPECT_EQ(got.winnerIter, want.winnerIter);
    EXPECT_EQ(got.confirmed->lo, want.confirmed->lo);
    EXPECT_EQ(savedRoute(), want.route);
    const auto all = candidates();
    EXPECT_EQ(all.size(), wanted.size());
    for (const auto& [route, c] : wanted) {
      ASSERT_TRUE(all.count(route)) << route;
      EXPECT_EQ(all.at(route).iter, c.iter);
      EXPECT_EQ(all.at(route).logRatios, c.logRatios) << all.at(route).error;
    }
    EXPECT_FALSE(syncCache(dir_ + "/cache.jsonl", readJournal(journal())));
    EXPECT_TRUE(noneLeft());
    for (const auto& e : fs::recursive_directory_iterator(dir_))
      EXPECT_EQ(e.path().filename().string().find(".tmp"), std::string::npos) << e.path();
  }
  EXPECT_GT(n, k.first) << "the point was never passed";
  if (k.last == kToTheEnd && std::string(k.point).starts_with("journal")) {
    EXPECT_EQ(size_t(n - 1), written) << "each record is such a point";
  }
}
// In parts, so that they run beside each other.
INSTANTIATE_TEST_SUITE_P(
    Kills, KillTest,
    testing::Values(
        KillPoint{"supervisor", "journal.before", 1, 14}, KillPoint{"supervisor", "journal.before", 15, 28},
        KillPoint{"supervisor", "journal.before", 29, kToTheEnd}, KillPoint{"supervisor", "journal.after", 1, 14},
        KillPoint{"supervisor", "journal.after", 15, 28}, KillPoint{"supervisor", "journal.after", 29, kToTheEnd},
        KillPoint{"supervisor", "fork.before", 1, 12}, KillPoint{"supervisor", "fork.before", 13, kToTheEnd},
        KillPoint{"supervisor", "fork.after", 1, 12}, KillPoint{"supervisor", "fork.after", 13, kToTheEnd},
        KillPoint{"supervisor", "rename.before", 1, kToTheEnd}, KillPoint{"supervisor", "rename.after", 1, kToTheEnd},
        KillPoint{"worker", "fork.before", 1, kToTheEnd}, KillPoint{"worker", "fork.after", 1, kToTheEnd},
        KillPoint{"worker", "rename.before", 1, kToTheEnd}, KillPoint{"worker", "rename.after", 1, kToTheEnd},
        KillPoint{"measure", "answer.after", 1, kToTheEnd}),
    [](const auto& info) {
      std::string name = fmt::format("{}_{}_from_{}", info.param.role, info.param.point, info.param.first);
      std::replace(name.begin(), name.end(), '.', '_');
      return name;
    });

// A killed candidate costs itself alone. The first child is the default's own.
TEST_F(KillingTest, AKilledChildCostsOneCandidate) {
  auto search = [&] { tune(options(exampleWorld(), kExample, SearchKind::kMixed), silent_); };
  search();
  const auto wanted = candidates();
  int n = 2;
  for (; killedAt("worker", "child", n, search); n++) {
    SCOPED_TRACE(n);
    int crashed = 0;
    const auto all = candidates();
    for (const auto& [route, c] : all) {
      crashed += c.status == Status::kCrashed;
      if (c.status == Status::kCrashed) {
        EXPECT_NE(c.error.find("killed"), std::string::npos) << c.error;
      }
      if (c.status == Status::kOk && wanted.count(route)) {
        EXPECT_EQ(c.logRatios.size(), wanted.at(route).logRatios.size());
      }
    }
    EXPECT_EQ(crashed, 1);
    EXPECT_GE(all.size(), 4u) << "the search did not go on";
    EXPECT_TRUE(noneLeft());
  }
  int built = 0;
  for (const auto& [route, c] : wanted) built += !c.sameAs;
  EXPECT_EQ(n - 2, built) << "each built candidate is a child";
}

// A contender whose fresh process dies, whichever it is, is out of the race, and the best of the others wins.
class MeasurementTest : public KillingTest, public testing::WithParamInterface<const char*> {};
TEST_P(MeasurementTest, AKilledOneCostsOneContender) {
  TuneResult got;
  int n = 1, costly = 0;
  for (; killedAt("measure", GetParam(), n, [&] { got = tune(shortSearch(), silent_); }); n++) {
    SCOPED_TRACE(n);
    std::vector<std::string> lost;
    for (const Json& j : readJournal(journal()))
      if (j["type"] == "samples" && j["status"] != "ok") lost.push_back(j["build_route"]);
    ASSERT_EQ(lost.size(), 1u);
    costly += lost[0] == kBest;
    EXPECT_EQ(got.route, lost[0] == kBest ? kSecondNamed : kBestNamed);
    EXPECT_EQ(savedRoute(), got.route);
    EXPECT_GE(got.processes, 6);
    EXPECT_TRUE(noneLeft());
  }
  EXPECT_GE(costly, 7) << "every process of the first finalist";
  EXPECT_GT(n - 1, costly) << "and those of the others";
}
INSTANTIATE_TEST_SUITE_P(Kills, MeasurementTest, testing::Values("child", "answer.before"), [](const auto& info) {
  return std::string(info.param) == "child" ? "at_its_beginning" : "before_its_answer";
});

}  // namespace
}  // namespace rutter::tuner
