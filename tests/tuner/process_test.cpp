// Searches in real processes, with planted faults. Kills: kill_test.cpp.
#include "tuner/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/file.h"
#include "tuner/cache.h"
#include "tuner/frames.h"
#include "tuner/journal.h"
#include "tuner/process_fixture.h"
#include "tuner/process_runner.h"
#include "tuner/search.h"
#include "tuner/tune.h"
#include "tuner/wire.h"

namespace rutter::tuner {
namespace {

using test::exampleWorld;
using test::kExample;
using test::ProcessTest;
namespace fs = std::filesystem;

TEST_F(ProcessTest, TunesAndSavesTheWinner) {
  struct Listener : TuneListener {
    int begun = 0, ended = 0, progress = 0;
    void onBegin(int64_t, const std::string&) override { begun++; }
    void onEnd(const CandidateInfo&) override { ended++; }
    void onProgress(const Progress&) override { progress++; }
  } listener;
  const TuneResult r = tune(options(exampleWorld()), listener);
  EXPECT_EQ(r.outcome, TuneResult::Outcome::kImproved);
  EXPECT_EQ(r.route, "-fuse=on -tile=16 -unroll=1");
  EXPECT_EQ(savedRoute(), r.route);
  EXPECT_NEAR(r.confirmed->ratio, 1 / 0.91, 0.01);
  EXPECT_EQ(listener.begun, 5);
  EXPECT_EQ(listener.ended, 5);
  EXPECT_GT(listener.progress, 5);
  const Cache c = parseCache(readWholeFile(dir_ + "/cache.jsonl"), "cache");
  EXPECT_EQ(c.candidates.size(), 5u);
  EXPECT_FALSE(syncCache(dir_ + "/cache.jsonl", readJournal(dir_ + "/cache.jsonl.journal")));
  EXPECT_EQ(lastSearch(dir_ + "/cache.jsonl").expression, kExample);
}

TEST_F(ProcessTest, TuneBeginsWithWhatTimingKernelsFound) {
  struct Listener : TuneListener {
    std::vector<std::string> phases;
    void onProgress(const Progress& p) override { phases.push_back(p.phase); }
  } listener;
  Json j = exampleWorld();
  j["timed_route"] = "-tile@l=16 -unroll@l=2";
  TuneOptions o = options(j, "", SearchKind::kTune);
  o.maxCandidates = 3;
  tune(o, listener);
  const Recorded r(readJournal(dir_ + "/cache.jsonl.journal"));
  EXPECT_EQ(r.baseline->timedRoute, "-tile@l=16 -unroll@l=2");
  for (const auto& [route, c] : r.candidates) {
    if (c.iter == 0) {
      EXPECT_EQ(route, "-tile@l=16 -unroll@l=2");
    }
  }
  EXPECT_EQ(std::count(listener.phases.begin(), listener.phases.end(), "kernels"), 1);
  o = options(j);  // an expression is searched as it is
  tune(o, silent_);
  EXPECT_EQ(Recorded(readJournal(dir_ + "/cache.jsonl.journal")).baseline->timedRoute, "");
}

// Whatever happens to the process that times kernels: the search does without what it would have said.
TEST_F(ProcessTest, TimingKernelsMayFail) {
  for (const char* how : {"crash", "error", "hang"}) {
    Json j = exampleWorld();
    j["timed_route"] = how;
    TuneOptions o = options(j, "", SearchKind::kTune);
    o.maxCandidates = 3;
    o.budgetSeconds = 20;
    tune(o, silent_);
    const Recorded r(readJournal(dir_ + "/cache.jsonl.journal"));
    EXPECT_EQ(r.baseline->timedRoute, "") << how;
    EXPECT_EQ(r.candidates.size(), 3u) << how;
  }
}

TEST_F(ProcessTest, ABytesModelTravels) {
  TuneOptions o = options(exampleWorld());
  o.model.bytes = exampleWorld().dump();
  EXPECT_EQ(tune(o, silent_).route, "-fuse=on -tile=16 -unroll=1");
}

// What noneLeft() looks for is there while a search runs.
TEST_F(ProcessTest, ProcessesOfASearchAreSeen) {
  struct Listener : TuneListener {
    std::function<size_t()> count;
    size_t most = 0;
    void onBegin(int64_t, const std::string&) override { most = std::max(most, count()); }
  } listener;
  listener.count = [&] { return processes().size(); };
  tune(options(exampleWorld()), listener);
  EXPECT_GE(listener.most, 2u);  // supervisor and worker
}

struct Fault {
  const char *kind, *status, *text;
};
class FaultTest : public ProcessTest, public testing::WithParamInterface<Fault> {};

// Each fault costs exactly one candidate; the search goes on and finds what is left.
TEST_P(FaultTest, CostsOneCandidate) {
  Json j = exampleWorld();
  j["faults"] = {{"-tile=16", GetParam().kind}};
  TuneOptions o = options(j);
  if (std::string(GetParam().kind).starts_with("hang")) o.buildTimeOut = o.runTimeOut = 1.5;
  if (std::string(GetParam().kind) == "leak") o.runTimeOut = 20;
  const TuneResult r = tune(o, silent_);
  EXPECT_EQ(r.route, "-fuse=off -tile=32 -unroll=1");
  const auto all = candidates();
  EXPECT_EQ(all.size(), 5u);
  for (const auto& [route, c] : all) {
    if (route.find("-tile=16") == std::string::npos) {
      EXPECT_EQ(c.status, Status::kOk) << route << c.error;
      continue;
    }
    EXPECT_STREQ(statusName(c.status), GetParam().status) << c.error;
    EXPECT_NE(c.error.find(GetParam().text), std::string::npos) << c.error;
  }
}
INSTANTIATE_TEST_SUITE_P(
    Faults, FaultTest,
    testing::Values(Fault{"crash_build", "crashed", "while building"}, Fault{"crash_load", "crashed", "while loading"},
                    Fault{"crash_11", "crashed", "while running"}, Fault{"abort", "crashed", "while running"},
                    Fault{"error", "crashed", "index out of range"}, Fault{"reject_build", "rejected", "arena"},
                    Fault{"rejected", "rejected", "ISA"}, Fault{"hang_build", "hung", "while building"},
                    Fault{"hang_load", "hung", "while loading"}, Fault{"hang_run", "hung", "while running"},
                    Fault{"wrong_set1", "inaccurate", "input set 1"}, Fault{"nan", "inaccurate", "NaN"},
                    Fault{"unwritten", "inaccurate", "output 'y'"}, Fault{"heap", "crashed", "while running"},
                    Fault{"overwrite", "crashed", "default's outputs changed"},
                    Fault{"leak", "crashed", "held more than"}, Fault{"leave", "crashed", "exited with status 0"},
                    Fault{"close", "crashed", ""}, Fault{"drift", "unstable", "other bits"},
                    Fault{"late_wrong", "inaccurate", "last run"}, Fault{"crash_decide", "crashed", "the worker died"}),
    [](const auto& info) { return std::string(info.param.kind); });

TEST_F(ProcessTest, ASlowStartIsNoHang) {
  Json j = exampleWorld();
  j["faults"] = {{"-tile=16", "slow_start"}};
  TuneOptions o = options(j, "-tile=[16|32]");
  o.buildTimeOut = 1;
  o.runTimeOut = 6;
  EXPECT_EQ(tune(o, silent_).route, "-tile=16");
}

// A candidate's own children, even those that ignore SIGTERM, hold the pipe and leave their process group, are gone.
TEST_F(ProcessTest, NoDescendantOutlives) {
  for (const char* fault : {"stubborn", "stubborn_daemon"}) {
    Json j = exampleWorld();
    j["faults"] = {{"-tile=16", fault}};
    const std::string pids = dir_ + "/pids";
    setenv("RUTTER_TEST_PIDS", pids.c_str(), 1);
    tune(options(j), silent_);
    std::ifstream in(pids);
    int pid = 0, seen = 0;
    while (in >> pid) {
      seen++;
      EXPECT_NE(::kill(pid, 0), 0) << fault << ": process " << pid << " is still there";
    }
    EXPECT_GE(seen, 1);
    fs::remove(pids);
  }
}

TEST_F(ProcessTest, StopEndsCleanlyWithTheBestSoFar) {
  Json j = exampleWorld();
  j["faults"] = {{"-fuse=off", "hang_run"}};
  TuneOptions o = options(j);
  o.runTimeOut = 30;
  struct Stopper : TuneListener {
    std::atomic<int> stop{0};
    void onBegin(int64_t iter, const std::string&) override {
      if (iter == 4) stop = 1;  // the last one, which hangs
    }
  } stopper;
  const TuneResult r = tune(o, stopper, &stopper.stop);
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(r.route, "-fuse=on -tile=16 -unroll=1");
  EXPECT_EQ(savedRoute(), r.route);
  EXPECT_LT(r.elapsedSeconds, 25);
}

TEST_F(ProcessTest, TheBudgetEndsARunningCandidate) {
  Json j = exampleWorld();
  j["faults"] = {{"-fuse=off", "hang_run"}};
  TuneOptions o = options(j);
  o.runTimeOut = 100;
  o.budgetSeconds = 6;
  const TuneResult r = tune(o, silent_);
  EXPECT_LT(r.elapsedSeconds, 9);
  EXPECT_EQ(r.counts.at("interrupted"), 1);
  EXPECT_FALSE(r.interrupted);
}

TEST_F(ProcessTest, ErrorsReachTheHostAsWhatTheyAre) {
  TuneOptions o = options(exampleWorld());
  o.model.path = dir_ + "/none.json";
  EXPECT_THROW(tune(o, silent_), UserError);
  o = options(exampleWorld());
  o.workerProgram = "/no/such/program";
  EXPECT_THROW(tune(o, silent_), DeviceError);
  o = options(exampleWorld());
  o.expression = "-none=[1|2]";
  EXPECT_THROW(tune(o, silent_), UserError);
  o = options(exampleWorld());
  o.saveEngine = "/no/such/folder/e";
  EXPECT_THROW(tune(o, silent_), UserError);
  Json j = exampleWorld();
  j["faults"] = {{"-tile=32", "crash_11"}};  // the default itself
  EXPECT_THROW(tune(options(j), silent_), UserError);
}

// The disk is not the route's fault: the search ends with that word, and nothing is held against the candidate.
TEST_F(ProcessTest, AFullDiskEndsTheSearchAndCostsNoCandidate) {
  Json j = exampleWorld();
  j["faults"] = {{"-tile=16", "disk_full"}};
  const TuneResult r = tune(options(j), silent_);
  EXPECT_NE(r.error.find("No space left on device"), std::string::npos) << r.error;
  EXPECT_NE(r.error.find("--continue goes on"), std::string::npos) << r.error;
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(savedRoute(), r.route);  // the best so far
  for (const auto& [route, c] : candidates()) EXPECT_EQ(c.status, Status::kOk) << route << c.error;
  // With room again it goes on where it was and finds what is there.
  TuneOptions o = options(exampleWorld());
  o.resume = o.force = true;  // the faults are part of this model
  EXPECT_EQ(tune(o, silent_).route, "-fuse=on -tile=16 -unroll=1");
}

TEST_F(ProcessTest, AFreshRunKeepsTheOldFiles) {
  tune(options(exampleWorld(), "-tile=[16|32]"), silent_);
  tune(options(exampleWorld(), "-tile=[16|32]"), silent_);
  EXPECT_TRUE(fs::exists(dir_ + "/cache.jsonl.1"));
  EXPECT_TRUE(fs::exists(dir_ + "/cache.jsonl.journal.1"));
}

TEST_F(ProcessTest, ContinueNamesWhatDiffers) {
  tune(options(exampleWorld(), "-tile=[16|32]"), silent_);
  Json j = exampleWorld();
  j["stack"] = "2";
  TuneOptions o = options(j, "-tile=[16|32]");
  o.resume = true;
  try {
    tune(o, silent_);
    FAIL() << "another model and stack must not be continued";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("model_hash"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("stack"), std::string::npos) << e.what();
  }
  o.force = true;
  EXPECT_EQ(tune(o, silent_).route, "-tile=16");
}

TEST_F(ProcessTest, AFinishedSweepContinuesToTheSameSummary) {
  TuneOptions o = options(exampleWorld(), kExample, SearchKind::kMixed);
  const TuneResult first = tune(o, silent_);
  fs::remove(o.saveEngine);
  o.resume = true;
  o.expression.clear();  // a bare --continue
  o.search = SearchKind::kFast;
  const size_t records = readJournal(dir_ + "/cache.jsonl.journal").size();
  const TuneResult again = tune(o, silent_);
  EXPECT_EQ(again.route, first.route);
  EXPECT_EQ(again.winnerIter, first.winnerIter);
  EXPECT_EQ(again.confirmed->lo, first.confirmed->lo);
  EXPECT_EQ(again.counts, first.counts);
  EXPECT_EQ(savedRoute(), first.route);                                       // rebuilt, it was gone
  EXPECT_LE(readJournal(dir_ + "/cache.jsonl.journal").size(), records + 2);  // session records, nothing measured
}

TEST_F(ProcessTest, ContinueWithAnExpressionExtends) {
  tune(options(exampleWorld()), silent_);
  TuneOptions o = options(exampleWorld(), "-fuse=[on|off] -tile=[32|16] -unroll=1", SearchKind::kFull);
  o.resume = true;
  const TuneResult r = tune(o, silent_);
  EXPECT_EQ(r.route, "-fuse=off -tile=16 -unroll=1");
  EXPECT_EQ(r.winnerIter, 5);
  EXPECT_EQ(candidates().size(), 6u);
  // and the extension itself continues to the same end
  o.expression.clear();
  o.search = SearchKind::kFast;
  const TuneResult again = tune(o, silent_);
  EXPECT_EQ(again.route, r.route);
  EXPECT_EQ(again.confirmed->lo, r.confirmed->lo);
}

// Its kind and its budget are the extension's own from the start, and the time of what came before is not.
TEST_F(ProcessTest, ABareContinueGoesOnWithTheExtension) {
  tune(options(exampleWorld(), "-tile=[16|32]"), silent_);
  const std::string journal = dir_ + "/cache.jsonl.journal";
  Journal::open(journal)->append({{"type", "note"}, {"t", 5000}});  // as if it had taken that long
  TuneOptions o = options(exampleWorld(), "", SearchKind::kTune);
  o.resume = true;
  o.budgetSeconds = 300;
  o.maxCandidates = 2;
  tune(o, silent_);
  const size_t known = candidates().size();
  o.search = SearchKind::kFast;
  o.budgetSeconds = -1;
  o.maxCandidates = 5;
  tune(o, silent_);
  std::vector<Json> sessions;
  for (const Json& j : readJournal(journal))
    if (j.value("type", "") == "session") sessions.push_back(j);
  ASSERT_EQ(sessions.size(), 3u);
  for (int s : {1, 2}) {
    EXPECT_EQ(sessions[size_t(s)]["epoch"], 1);
    EXPECT_EQ(sessions[size_t(s)]["searching_algorithm"], "tune");
    EXPECT_EQ(sessions[size_t(s)]["budget"], 300);
    EXPECT_LT(sessions[size_t(s)]["t"], 300);
  }
  // Candidates of --tune are judged layer by layer: that was known before the journal was opened.
  const auto all = candidates();
  EXPECT_GT(all.size(), known);
  int built = 0;
  for (const auto& [route, c] : all) {
    if (c.iter < int64_t(known) || c.sameAs) continue;
    built++;
    EXPECT_FALSE(c.layerMs.empty()) << route;
  }
  EXPECT_GT(built, 0);
}

TEST_F(ProcessTest, AllEnginesAreSavedUnderTheirOwnNumbers) {
  TuneOptions o = options(exampleWorld(), kExample, SearchKind::kMixed);
  o.saveAllEngines = true;
  tune(o, silent_);
  for (const auto& [route, c] : candidates())
    EXPECT_EQ(Json::parse(readWholeFile(fmt::format("{}.iter{}", o.saveEngine, c.iter))).at("route"), route);
}

// Processes that are killed once, while they run the default or a winner that worked: those are built again.
TEST_F(ProcessTest, WhatIsKilledOnceIsBuiltAgain) {
  Json j = exampleWorld();
  const std::string mark = dir_ + "/kill ";  // and a route
  j["killed_once"] = mark;
  const auto order = [&](const std::string& route) { std::ofstream(mark + route) << "x"; };
  TuneOptions o = options(j);
  order("");
  const TuneResult first = tune(o, silent_);
  EXPECT_FALSE(fs::exists(mark));
  EXPECT_EQ(savedRoute(), first.route);
  ASSERT_FALSE(first.route.empty());
  fs::remove(o.saveEngine);
  o.resume = true;
  order("");
  order(first.route);
  EXPECT_EQ(tune(o, silent_).route, first.route);
  EXPECT_FALSE(fs::exists(mark) || fs::exists(mark + first.route));
  EXPECT_EQ(savedRoute(), first.route);
}

// As a disk that fills: a file may not grow beyond a size.
TEST_F(ProcessTest, ARecordWithoutRoomEndsTheSearchWithTheBestSoFar) {
  const TuneOptions o = options(exampleWorld());
  const TuneResult all = tune(o, silent_);
  const auto lines = readWholeFile(dir_ + "/cache.jsonl.journal");
  // Room for everything up to the first candidate that is faster, and some for what comes after it.
  const size_t fast = lines.find("\n", lines.find(R"("build_route":"-fuse=on -tile=16)"));
  ASSERT_NE(fast, lines.npos);
  for (const std::string file : {"cache.jsonl", "cache.jsonl.journal"})
    for (const auto& e : fs::directory_iterator(dir_))
      if (e.path().filename().string().starts_with(file)) fs::remove(e.path());
  fs::remove(o.saveEngine);
  rlimit was{};
  ::getrlimit(RLIMIT_FSIZE, &was);
  const rlimit now{fast + 600, was.rlim_max};
  ::setrlimit(RLIMIT_FSIZE, &now);
  const TuneResult r = tune(o, silent_);
  ::setrlimit(RLIMIT_FSIZE, &was);
  EXPECT_NE(r.error.find("cannot write '" + o.cacheFile), std::string::npos) << r.error;
  EXPECT_EQ(r.outcome, TuneResult::Outcome::kImproved) << r.reason;
  EXPECT_TRUE(r.interrupted);
  EXPECT_EQ(savedRoute(), r.route);
  TuneOptions again = o;
  again.resume = true;
  const TuneResult end = tune(again, silent_);
  EXPECT_EQ(end.error, "");
  EXPECT_EQ(end.route, all.route);
  EXPECT_EQ(savedRoute(), all.route);
}

// The engines of candidates are an addition: the search and its winner do without.
TEST_F(ProcessTest, AnEngineOfACandidateThatCannotBeWrittenIsSaid) {
  TuneOptions o = options(exampleWorld());
  o.saveAllEngines = true;
  fs::create_directory(o.saveEngine + ".iter1");
  const TuneResult r = tune(o, silent_);
  EXPECT_EQ(r.route, "-fuse=on -tile=16 -unroll=1");
  EXPECT_EQ(savedRoute(), r.route);
  EXPECT_EQ(r.error, fmt::format("engines that --saveAllEngines wants are missing (1; cannot write '{}.iter1': Is a "
                                 "directory); --continue writes them",
                                 o.saveEngine));
  fs::remove(o.saveEngine + ".iter1");
  o.resume = true;
  EXPECT_EQ(tune(o, silent_).error, "");
  EXPECT_TRUE(fs::is_regular_file(o.saveEngine + ".iter1"));
}

// A number that was recorded and whose engine was not written yet may name the engine of another search.
TEST_F(ProcessTest, EnginesOfOtherSearchesAreReplaced) {
  TuneOptions o = options(exampleWorld());
  o.saveAllEngines = true;
  tune(o, silent_);
  int64_t own = -1;
  for (const auto& [route, c] : candidates())
    if (!c.sameAs) own = c.iter;
  const std::string path = fmt::format("{}.iter{}", o.saveEngine, own), want = readWholeFile(path);
  Json other = Json::parse(want);
  for (const char* key : {"route", "world"}) {
    other[key] = "-tile=8";
    replaceFile(path, other.dump());
    o.resume = true;
    tune(o, silent_);
    EXPECT_EQ(readWholeFile(path), want) << key;
    other = Json::parse(want);
  }
}

// Workers are replaced now and then: that the time is up while one prepares costs its candidate, not the search.
TEST_F(ProcessTest, AnInterruptedPreparationIsAnInterruptedCandidate) {
  RunnerOptions o;
  const TuneOptions t = options(exampleWorld());
  o.program = t.workerProgram;
  o.folder = dir_ + "/tmp";
  o.options = toJson(t);
  bool hurry = true;
  ProcessRunner runner(std::move(o), nullptr, [&](Work) { return hurry; }, -1);
  EXPECT_EQ(runner.decide("-tile=16", Purpose::kCandidate).status, Status::kInterrupted);
  EXPECT_EQ(runner.candidate(1, "-tile=16", kNoPromise).status, Status::kInterrupted);
  hurry = false;
  EXPECT_EQ(runner.baseline().status, Status::kOk);
  EXPECT_EQ(runner.decide("-tile=16", Purpose::kCandidate).status, Status::kOk);
  for (const auto& e : fs::directory_iterator(dir_ + "/tmp")) fs::remove_all(e.path());
}

// A search that goes on with what another session recorded has not built its default yet when its winner is shortened:
// the first Ctrl-C ends the candidates, not that.
TEST_F(ProcessTest, AWinnerIsBuiltAfterTheFirstStop) {
  auto make = [&](std::function<bool(Work)> hurry) {
    RunnerOptions o;
    const TuneOptions t = options(exampleWorld());
    o.program = t.workerProgram;
    o.folder = dir_ + "/tmp";
    o.options = toJson(t);
    return std::make_unique<ProcessRunner>(std::move(o), nullptr, hurry, -1);
  };
  auto stopped = make([](Work w) { return w == Work::kPrepare || w == Work::kCandidate; });
  EXPECT_EQ(stopped->candidate(1, "-tile=64", kNoPromise).status, Status::kInterrupted);
  EXPECT_EQ(stopped->decide("-tile=16", Purpose::kWinner).status, Status::kOk);
  EXPECT_EQ(stopped->rebuild(2, "-tile=16").status, Status::kOk);
  EXPECT_EQ(stopped->sample(2, "-tile=16", "confirm", 0).status, Status::kOk);
  stopped.reset();

  // A winner's time begins when the default is there.
  fs::remove(dir_ + "/tmp/default.engine");
  auto late = make([&](Work w) { return w == Work::kWinner && !fs::exists(dir_ + "/tmp/default.engine"); });
  EXPECT_EQ(late->rebuild(2, "-tile=16").status, Status::kOk);
  late.reset();

  auto hurried = make([](Work) { return true; });
  EXPECT_EQ(hurried->rebuild(3, "-tile=16").status, Status::kInterrupted);
  EXPECT_EQ(hurried->sample(3, "-tile=16", "confirm", 0).status, Status::kInterrupted);
  EXPECT_THROW(hurried->save(3, "-tile=16", dir_ + "/e"), InterruptedError);
  for (const auto& e : fs::directory_iterator(dir_ + "/tmp")) fs::remove_all(e.path());
}

// More candidates than one worker serves.
TEST_F(ProcessTest, WorkersAreReplaced) {
  Json j = exampleWorld();
  std::string expression, values = "0";
  for (int v = 1; v < 215; v++) {
    values += "|" + std::to_string(v);
    j["layers"]["l"]["effects"]["-many=" + std::to_string(v)] = v == 210 ? 0.8 : 1.3;
  }
  j["knobs"]["-many"] = values;
  j["prepared"] = dir_ + "/prepared";  // a line for each worker
  EXPECT_EQ(tune(options(j, "-many=[" + values + "]"), silent_).route, "-many=210");
  const std::string lines = readWholeFile(dir_ + "/prepared");
  EXPECT_EQ(std::count(lines.begin(), lines.end(), '\n'), 2);
}

TEST_F(ProcessTest, ContinueFromTheCacheAlone) {
  TuneOptions o = options(exampleWorld());
  const TuneResult first = tune(o, silent_);
  fs::remove(dir_ + "/cache.jsonl.journal");
  o.resume = true;
  const TuneResult again = tune(o, silent_);
  EXPECT_EQ(again.route, first.route);
  EXPECT_GE(again.processes, 5);  // confirmed again
}

// The cache alone, and the very line is damaged whose engine is there: it is measured, unless it is another model's.
TEST_F(ProcessTest, ContinueFromACacheWithoutTheLineOfTheEngine) {
  Json world = exampleWorld();
  const std::string mark = dir_ + "/kill ";  // and a route
  world["killed_once"] = mark;
  TuneOptions o = options(world);
  const TuneResult first = tune(o, silent_);
  const std::string engine = readWholeFile(o.saveEngine), cache = readWholeFile(o.cacheFile);
  o.resume = true;
  o.expression = "-unroll=[1|2]";  // which asks for another route
  for (const bool own : {true, false}) {
    SCOPED_TRACE(own);
    fs::remove(dir_ + "/cache.jsonl.journal");
    std::string damaged = cache;
    const size_t at = damaged.find("\"" + first.route + "\"");
    ASSERT_NE(at, std::string::npos);
    damaged[at + 1] = '#';
    replaceFile(o.cacheFile, damaged);
    Json there = Json::parse(engine);
    if (!own) there["model"] = "another";
    replaceFile(o.saveEngine, there.dump());
    // If it is not measured and nothing is confirmed, one's own stays, and a kill does not make that forgotten.
    if (own) {
      o.maxCandidates = 0;
      o.minGain = 5;
      tune(o, silent_);
      EXPECT_EQ(savedRoute(), first.route);
      std::string text;
      for (const Json& j : readJournal(dir_ + "/cache.jsonl.journal"))
        if (j["type"] != "session") text += journalLine(j);
      replaceFile(dir_ + "/cache.jsonl.journal", text);
      tune(o, silent_);
      EXPECT_EQ(savedRoute(), first.route);
      o.maxCandidates = -1;
      o.minGain = 0.01;
    }
    std::ofstream(mark + first.route) << "x";  // an accident in the middle of it
    const TuneResult r = tune(o, silent_);
    EXPECT_EQ(candidates().count(first.route), own ? 1u : 0u);
    EXPECT_EQ(r.route == first.route, own) << r.route;
    EXPECT_EQ(savedRoute(), r.route);
  }
}

// Ctrl-C before anything is prepared: what is recorded has a winner, which is named and saved.
TEST_F(ProcessTest, AnEarlyStopOfAContinuedSearchNamesItsWinner) {
  TuneOptions o = options(exampleWorld());
  const TuneResult first = tune(o, silent_);
  fs::remove(o.saveEngine);
  o.resume = true;
  struct : TuneListener {
    std::string said;
    void onMessage(int, const std::string& text) override { said += text + "\n"; }
  } listener;
  const std::atomic<int> stop{1};
  const TuneResult r = tune(o, listener, &stop);
  EXPECT_EQ(r.route, first.route);
  EXPECT_EQ(savedRoute(), first.route);
  EXPECT_NE(listener.said.find("stopping: the best that is recorded is confirmed"), std::string::npos) << listener.said;
}

}  // namespace
}  // namespace rutter::tuner
