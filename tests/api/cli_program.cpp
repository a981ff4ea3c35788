// The command line as a program: exit codes, streams, closing lines and files, on a small network.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sched.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "cli_fixture.h"

namespace rutter {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using onnxwriter::node;
using onnxwriter::value;
using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

TEST_F(CliProgram, BuildsSavesRunsAndReports) {
  auto r = run({"--onnx=m.onnx", "--saveEngine=m.engine", "--loadInputs=x:x.bin", "--duration=0", "--warmUp=0",
                "--exportTimes=t.json", "--exportOutput=o.json", "--exportProfile=p.json", "--exportLayerInfo=l.json",
                "--profilingVerbosity=detailed"});
  ASSERT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_THAT(r.out, StartsWith("&&&& RUNNING rutter [Rutter v"));
  EXPECT_THAT(last(r.out), StartsWith("&&&& PASSED rutter [Rutter v"));
  for (auto s : {"=== Model Options ===", "Engine built in ",
                 "=== Performance summary ===", "Throughput: ", "Compute Time: min = "})
    EXPECT_THAT(r.out, HasSubstr(s));
  EXPECT_EQ(json::parse(slurp(dir_ + "/t.json")).size(), 10u);
  auto o = json::parse(slurp(dir_ + "/o.json"));
  EXPECT_EQ(o[0]["name"], "y");
  EXPECT_EQ(o[0]["dimensions"], "2x3");
  EXPECT_EQ(o[0]["values"], (std::vector<double>{0, 2, 0, 4, 5, 0}));
  auto p = json::parse(slurp(dir_ + "/p.json"));
  EXPECT_GE(p[0]["count"], 10);
  EXPECT_TRUE(p[1].contains("medianMs"));
  auto l = json::parse(slurp(dir_ + "/l.json"));
  EXPECT_EQ(l["Bindings"], (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(l["I/O Tensors"][0]["IOMode"], "Input");
  EXPECT_TRUE(l["Layers"][0].contains("Tactic"));

  // The saved engine runs as well, and says what it was built with.
  auto e = run({"--loadEngine=m.engine", "--duration=0", "--warmUp=0", "--json"});
  ASSERT_EQ(e.code, 0) << e.err;
  EXPECT_EQ(json::parse(e.out)["shapes"]["x"], (std::vector<int>{2, 3}));
  EXPECT_THAT(e.err, HasSubstr("Engine loaded in "));
  EXPECT_EQ(run({"--loadEngine=m.engine", "--timeDeserialize"}).code, 0);
  EXPECT_THAT(run({"--loadEngine=m.engine", "--getPlanVersionOnly"}).out, HasSubstr("format version"));
}

TEST_F(CliProgram, LayerNamesOnlyIsTheDefault) {
  ASSERT_EQ(run({"--onnx=m.onnx", "--skipInference", "--exportLayerInfo=l.json"}).code, 0);
  EXPECT_TRUE(json::parse(slurp(dir_ + "/l.json"))["Layers"][0].is_string());
}

TEST_F(CliProgram, AccuracyDecidesTheExitCode) {
  const std::vector<std::string> base{"--onnx=m.onnx", "--duration=0", "--warmUp=0", "--loadInputs=x:x.bin",
                                      "--accuracyThreshold=0.1"};
  auto with = [&](std::string refs) {
    auto a = base;
    a.push_back(std::move(refs));
    return run(a);
  };
  EXPECT_EQ(with("--loadRefOutputs=y:y.bin").code, 0);
  auto bad = with("--loadRefOutputs=y:bad.bin");
  EXPECT_EQ(bad.code, 1);
  EXPECT_THAT(bad.err, HasSubstr("output y is inaccurate"));
  EXPECT_THAT(last(bad.out), StartsWith("&&&& FAILED"));
  EXPECT_EQ(with("--loadRefOutputs=z:y.bin").code, 1);
  std::ofstream(dir_ + "/y.bin", std::ios::app) << "1234";
  EXPECT_THAT(with("--loadRefOutputs=y:y.bin").err, HasSubstr("28 bytes"));
}

TEST_F(CliProgram, HelpAndVersionPrintNothingElse) {
  for (const auto& args : std::vector<std::vector<std::string>>{{}, {"--help"}, {"-h", "--nonsense"}}) {
    auto r = run(args);
    EXPECT_EQ(r.code, 0);
    EXPECT_THAT(r.out, HasSubstr("=== Tuning Options ==="));
    EXPECT_THAT(r.out, Not(HasSubstr("&&&&")));
  }
  EXPECT_THAT(run({"--version"}).out, StartsWith("rutter "));
  auto knobs = run({"--helpBuildRoute", "--onnx=absent"});
  EXPECT_EQ(knobs.code, 0);
  EXPECT_GT(json::parse(knobs.out)["tuner_options"].size(), 3u);
  EXPECT_EQ(json::parse(run({"--helpBuildRoute=gemm:tile_m"}).out)["tuner_options"].size(), 1u);
  auto none = run({"--helpBuildRoute=gemm:tile_k_m"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("nearest: -gemm:tile_"));
}

TEST_F(CliProgram, DryRunListsRoutesInOrder) {
  auto r = run({"--onnx=m.onnx", "--dryRun", "--tuneBuildRoutes=-gemm:tile_m=[auto|8] -gemm:tile_n=[16|32]"});
  ASSERT_EQ(r.code, 0) << r.err;
  EXPECT_THAT(r.out, HasSubstr("4 build routes would be tried:"));
  EXPECT_THAT(r.out, HasSubstr("[0]:-gemm:tile_m=auto -gemm:tile_n=auto\n"));
  EXPECT_THAT(r.out, HasSubstr("[3]:-gemm:tile_m=8 -gemm:tile_n=auto\n"));
  EXPECT_FALSE(fs::exists(dir_ + "/best_config.json"));
  auto j =
      run({"--onnx=m.onnx", "--dryRun", "--json", "--tuningSearch=full", "--tuneBuildRoutes=-gemm:tile_m=[auto|8]"});
  EXPECT_EQ(j.out, "{\"index\":0,\"route\":\"-gemm:tile_m=auto\"}\n{\"index\":1,\"route\":\"-gemm:tile_m=8\"}\n");
  std::string many;
  for (auto k : {"-gemm:tile_m", "-gemm:tile_n", "-gemm:tile_m@a", "-gemm:tile_n@a", "-gemm:tile_m@b", "-gemm:tile_n@b",
                 "-gemm:tile_m@c"})
    many += std::string(" ") + k + "=[auto|8|16|24" +
            (std::string(k).find("tile_m") != std::string::npos ? "|4|6|12|14]" : "|32|48|64]");
  auto m = run({"--onnx=m.onnx", "--dryRun", "--tuningSearch=full", "--tuneBuildRoutes=" + many});
  EXPECT_EQ(m.code, 1);
  EXPECT_THAT(m.err, HasSubstr("give --yes"));
  EXPECT_EQ(run({"--onnx=absent.onnx", "--dryRun", "--tuneBuildRoutes=-gemm:tile_m=[auto|8]"}).code, 1);
}

TEST_F(CliProgram, StringsAreNoInputsOfAnEngine) {
  onnxwriter::Model m;
  m.nodes = {node("Identity", {"x"}, {"y"})};
  m.inputs = {value("x", 8, {"2"})};
  m.outputs = {value("y", 8, {"2"})};
  write("strings.onnx", m);
  auto r = run({"--onnx=strings.onnx"});
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.err, HasSubstr("'x' holds strings: inputs and outputs of an engine are numbers or booleans"));
}

TEST_F(CliProgram, AnEmptyTimingCacheIsANewOne) {
  std::ofstream(dir_ + "/times").close();
  auto r = run({"--onnx=m.onnx", "--builderOptimizationLevel=4", "--timingCacheFile=times", "--skipInference"});
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_GT(std::filesystem::file_size(dir_ + "/times"), 0u);
}

TEST_F(CliProgram, DryRunSaysHowManyEnginesThereAre) {
  // A network without a matrix product has one engine whatever the tiles.
  auto r = run({"--onnx=m.onnx", "--dryRun", "--tuneBuildRoutes=-gemm:tile_m=[auto|8|12]"});
  EXPECT_THAT(r.err, HasSubstr("1 of 3 routes are distinct engines"));
  EXPECT_THAT(r.err, Not(HasSubstr("counted by")));
  auto timed =
      run({"--onnx=m.onnx", "--dryRun", "--builderOptimizationLevel=5", "--tuneBuildRoutes=-gemm:tile_m=[auto|8|12]"});
  EXPECT_THAT(timed.err, HasSubstr("counted by what heuristics decide"));
}

TEST_F(CliProgram, ASearchIsRecordedSavedAndContinued) {
  auto r = run({"--onnx=m.onnx", "--tuneBuildRoutes=-codegen:vector=[auto|128]", "--saveEngine=m.engine",
                "--tuningTimeOut=60", "--seed=7"});
  ASSERT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_THAT(r.out, HasSubstr("&&&& TASK_BEGIN [iter=0] BuildRoute = '-codegen:vector=auto'\n"));
  EXPECT_THAT(r.out, HasSubstr("&&&& TASK_END [iter=1] BuildRoute = '-codegen:vector=128'\n"));
  EXPECT_THAT(r.out, HasSubstr("2 / 2 candidates succeeded"));
  EXPECT_THAT(last(r.out), StartsWith("&&&& PASSED"));
  std::ifstream cache(dir_ + "/m.engine.tune.jsonl");
  std::string header, first;
  ASSERT_TRUE(std::getline(cache, header) && std::getline(cache, first));
  EXPECT_EQ(json::parse(header)["tuning_expr"], "-codegen:vector=[auto|128]");
  EXPECT_EQ(json::parse(header)["files"]["onnx"], fs::path(dir_ + "/m.onnx").lexically_normal().string());
  EXPECT_EQ(json::parse(first)["build_route"], "-codegen:vector=auto");
  EXPECT_EQ(run({"--loadEngine=m.engine", "--duration=0", "--warmUp=0"}).code, 0);

  // A finished search resumes to the same result and measures nothing again; an expression of its own extends it.
  auto again = run({"--continue", "--tuningCacheFile=m.engine.tune.jsonl"});
  EXPECT_EQ(again.code, 0) << again.out << again.err;
  EXPECT_THAT(again.out, Not(HasSubstr("TASK_BEGIN")));
  EXPECT_THAT(again.out, HasSubstr("2 / 2 candidates succeeded"));
  auto more = run({"--continue", "--tuningCacheFile=m.engine.tune.jsonl",
                   "--tuneBuildRoutes=-codegen:vector=[auto|128|256]", "--json"});
  EXPECT_EQ(more.code, 0) << more.out << more.err;
  EXPECT_THAT(more.err, HasSubstr("[iter=2] BuildRoute = '-codegen:vector=256'"));
  EXPECT_THAT(more.err, Not(HasSubstr("[iter=1]")));
  EXPECT_EQ(json::parse(more.out)["candidates"], 3);
}

// A bare --continue goes on with what was searched last, in its budget; a budget is one, whichever flag says it.
TEST_F(CliProgram, ContinueGoesOnWithTheLastSearch) {
  const std::string record = "--tuningCacheFile=c";
  auto sessions = [&] {
    std::vector<json> out;
    std::ifstream in(dir_ + "/c.journal");
    for (std::string line; std::getline(in, line);)
      if (auto j = json::parse(line); j["type"] == "session") out.push_back(j);
    return out;
  };
  auto r = run({"--onnx=m.onnx", "--tune=20s", record, "--maxCandidates=2", "--exportLayerInfo=l.json", "--duration=0",
                "--warmUp=0"});
  ASSERT_EQ(r.code, 0) << r.out << r.err;
  EXPECT_THAT(r.out, HasSubstr("Relative error: default "));
  EXPECT_THAT(slurp(dir_ + "/l.json"), HasSubstr("Layers"));
  fs::remove(dir_ + "/m.engine");
  fs::remove(dir_ + "/l.json");

  // An extension: the budget was --tune's. The engine goes where it went, and reports are made.
  auto extended = run({"--continue", record, "--tuneBuildRoutes=-codegen:vector=[auto|128]"});
  ASSERT_EQ(extended.code, 0) << extended.out << extended.err;
  EXPECT_TRUE(fs::exists(dir_ + "/m.engine"));
  EXPECT_THAT(slurp(dir_ + "/l.json"), HasSubstr("Layers"));
  ASSERT_EQ(sessions().size(), 2u);
  EXPECT_EQ(sessions()[1]["epoch"], 1);
  EXPECT_EQ(sessions()[1]["budget"], 20);
  EXPECT_EQ(sessions()[1]["t"], 0);

  auto bare = run({"--continue", record});
  ASSERT_EQ(bare.code, 0) << bare.out << bare.err;
  EXPECT_THAT(bare.out, Not(HasSubstr("TASK_BEGIN")));
  ASSERT_EQ(sessions().size(), 3u);
  for (auto key : {"epoch", "searching_algorithm", "tuning_expr", "budget"})
    EXPECT_EQ(sessions()[2][key], sessions()[1][key]) << key;

  for (auto flag : {"--tune=50s", "--tuningTimeOut=40"}) {
    auto next = run({"--continue", record, flag});
    ASSERT_EQ(next.code, 0) << next.out << next.err;
    EXPECT_EQ(sessions().back()["searching_algorithm"], "tune") << flag;
  }
  EXPECT_EQ(sessions()[3]["budget"], 50);
  EXPECT_EQ(sessions()[3]["epoch"], 2);
  EXPECT_EQ(sessions()[4]["budget"], 40);
  EXPECT_EQ(sessions()[4]["epoch"], 2);
}

TEST_F(CliProgram, ContinueSaysWhatTheSearchWasWarnedOf) {
  ASSERT_EQ(
      run({"--onnx=m.onnx", "--tuneBuildRoutes=-codegen:vector=[auto|128]", "--tuningCacheFile=c", "--iterations=5"})
          .code,
      0);
  auto r = run({"--continue", "--tuningCacheFile=c"});
  EXPECT_THAT(r.err, HasSubstr("--iterations has no effect"));
  EXPECT_THAT(r.err, HasSubstr("the winner will not be saved"));
}

TEST_F(CliProgram, AnEngineTunedForOtherShapesThreadsOrAnotherMachineWarns) {
  auto m = onnxwriter::reluModel();
  m.inputs = {onnxwriter::value("x", onnxwriter::kFloat, {"n", "3"})};
  m.outputs = {onnxwriter::value("y", onnxwriter::kFloat, {"n", "3"})};
  std::ofstream(dir_ + "/d.onnx", std::ios::binary) << m.bytes();
  ASSERT_EQ(run({"--onnx=d.onnx", "--minShapes=x:1x3", "--optShapes=x:4x3", "--maxShapes=x:8x3",
                 "--tuneBuildRoutes=-codegen:vector=[auto]", "--saveEngine=d.engine"})
                .code,
            0);
  const std::vector<std::string> base{"--loadEngine=d.engine", "--duration=0", "--warmUp=0"};
  auto with = [&](const std::string& flag) {
    auto a = base;
    a.push_back(flag);
    return run(a);
  };
  EXPECT_THAT(run(base).err, Not(HasSubstr("was tuned")));
  EXPECT_THAT(with("--shapes=x:2x3").err, HasSubstr("tuned for other shapes (shape of x: 4x3 there, 2x3 here)"));
  EXPECT_THAT(with("--shapes=x:2x3").err,
              HasSubstr("--minShapes=x:1x3 --optShapes=x:2x3 --maxShapes=x:8x3 --threads="));
  EXPECT_EQ(with("--shapes=x:9x3").code, 1);
  EXPECT_THAT(with("--threads=77").err, HasSubstr("tuned for another number of threads (threads: "));
  EXPECT_THAT(with("--threads=77").err, HasSubstr("--optShapes=x:4x3 --maxShapes=x:8x3 --threads=77 --tune"));
  // A static model takes no shapes.
  ASSERT_EQ(run({"--onnx=m.onnx", "--tuneBuildRoutes=-codegen:vector=[auto]", "--saveEngine=s.engine"}).code, 0);
  EXPECT_THAT(run({"--loadEngine=s.engine", "--duration=0", "--warmUp=0", "--threads=77"}).err,
              HasSubstr("rutter --onnx=<its model> --threads=77 --tune\n"));
  cpu_set_t mine;
  ASSERT_EQ(::sched_getaffinity(0, sizeof mine, &mine), 0);
  if (CPU_COUNT(&mine) < 2) GTEST_SKIP() << "one core: nothing to take away";
  int core = 0;
  while (!CPU_ISSET(core, &mine)) core++;
  EXPECT_THAT(with("--cpuMask=" + std::to_string(core)).err, HasSubstr("cores: "));
}

// Tuned for shapes of the second profile, which are not its opt either; the command that is printed says the same.
TEST_F(CliProgram, TunesForAnyShapesOfAnyProfile) {
  auto m = onnxwriter::reluModel();
  m.inputs = {onnxwriter::value("x,1", onnxwriter::kFloat, {"n", "3"})};
  m.outputs = {onnxwriter::value("y", onnxwriter::kFloat, {"n", "3"})};
  m.nodes = {onnxwriter::node("Relu", {"x,1"}, {"y"}, {}, "relu")};
  std::ofstream(dir_ + "/d.onnx", std::ios::binary) << m.bytes();
  const std::vector<std::string> profiles{
      "--profile=0", "--minShapes='x,1':1x3", "--optShapes='x,1':4x3",  "--maxShapes='x,1':8x3",
      "--profile=1", "--minShapes='x,1':9x3", "--optShapes='x,1':12x3", "--maxShapes='x,1':16x3"};
  std::vector<std::string> tune = profiles, load{"--loadEngine=d.engine", "--duration=0", "--warmUp=0"};
  tune.insert(tune.end(), {"--onnx=d.onnx", "--tuneBuildRoutes=-codegen:vector=[auto|128]", "--saveEngine=d.engine",
                           "--useProfile=1", "--shapes='x,1':10x3"});
  auto r = run(tune);
  ASSERT_EQ(r.code, 0) << r.err;
  load.insert(load.end(), {"--useProfile=1", "--shapes='x,1':10x3"});
  EXPECT_THAT(run(load).err, Not(HasSubstr("was tuned")));
  load.back() = "--shapes='x,1':11x3";
  EXPECT_THAT(run(load).err, HasSubstr("(shape of x,1: 10x3 there, 11x3 here)"));
}

TEST_F(CliProgram, LevelFourTimesOnceAndBuildsTheSameAgain) {
  const std::vector<std::string> base{"--onnx=m.onnx", "--skipInference", "--timingCacheFile=t.cache", "--avgTiming=2"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return run(more);
  };
  auto first = with({"--builderOptimizationLevel=4", "--saveEngine=a"});
  ASSERT_EQ(first.code, 0) << first.err;
  EXPECT_THAT(first.out, testing::Not(HasSubstr("0 kernels timed")));
  const auto times = slurp(dir_ + "/t.cache");
  ASSERT_FALSE(times.empty());
  auto second = with({"--builderOptimizationLevel=4", "--saveEngine=b", "--errorOnTimingCacheMiss"});
  ASSERT_EQ(second.code, 0) << second.err;
  EXPECT_THAT(second.out, HasSubstr("0 kernels timed"));
  EXPECT_EQ(slurp(dir_ + "/a"), slurp(dir_ + "/b"));
  EXPECT_EQ(slurp(dir_ + "/t.cache"), times);
  EXPECT_THAT(slurp(dir_ + "/a"), HasSubstr("\"timing_cache\""));
  // Below level 4 the file is not even looked at, and that is said.
  std::ofstream(dir_ + "/t.cache") << "no cache";
  auto third = with({"--saveEngine=c"});
  ASSERT_EQ(third.code, 0) << third.err;
  for (auto flag : {"--timingCacheFile", "--avgTiming"})
    EXPECT_THAT(third.err, HasSubstr(std::string(flag) + " has no effect below --builderOptimizationLevel=4"));
  EXPECT_EQ(slurp(dir_ + "/t.cache"), "no cache");
  EXPECT_THAT(slurp(dir_ + "/c"), testing::Not(HasSubstr("\"timing_cache\"")));
}

TEST_F(CliProgram, SearchesMakeUpInputsOnWhichOutputsAreFinite) {
  auto tune = [&](const std::string& name, onnxwriter::Strings nodes) {
    onnxwriter::Model m;
    m.nodes = std::move(nodes);
    m.inputs = {onnxwriter::value("x", onnxwriter::kFloat, {"2", "8"})};
    m.outputs = {onnxwriter::value("y", onnxwriter::kFloat, {"2", "8"})};
    std::ofstream(dir_ + "/" + name, std::ios::binary) << m.bytes();
    return run({"--onnx=" + name, "--tuneBuildRoutes=-codegen:vector=[auto|128]", "--saveEngine=" + name + ".engine"});
  };
  using onnxwriter::node;
  auto usual = tune("relu.onnx", {node("Relu", {"x"}, {"y"}, {}, "n")});
  EXPECT_EQ(usual.code, 0) << usual.err;
  EXPECT_THAT(usual.out, Not(HasSubstr("not finite")));
  auto log = tune("log.onnx", {node("Log", {"x"}, {"y"}, {}, "n")});
  EXPECT_EQ(log.code, 0) << log.err;
  EXPECT_THAT(log.out, HasSubstr("positive numbers are used instead"));
  EXPECT_THAT(log.out, HasSubstr("2 / 2 candidates succeeded"));
  // Half of what is given may lie where the network is not defined: then what is given is all there is.
  std::ofstream(dir_ + "/near1.bin", std::ios::binary)
      .write(reinterpret_cast<const char*>(std::vector<float>(16, 1.05f).data()), 64);
  onnxwriter::Model root;
  root.nodes = {node("Sub", {"x", "one"}, {"d"}, {}, "s"), node("Sqrt", {"d"}, {"y"}, {}, "r")};
  root.initialisers = {onnxwriter::floats("one", {1}, {1})};
  root.inputs = {onnxwriter::value("x", onnxwriter::kFloat, {"2", "8"})};
  root.outputs = {onnxwriter::value("y", onnxwriter::kFloat, {"2", "8"})};
  write("root.onnx", root);
  auto given = run({"--onnx=root.onnx", "--tuneBuildRoutes=-codegen:vector=[auto|128]", "--saveEngine=root.engine",
                    "--loadInputs=x:near1.bin"});
  EXPECT_EQ(given.code, 0) << given.err;
  EXPECT_THAT(given.out, HasSubstr("the one given is used alone"));
  EXPECT_THAT(given.out, HasSubstr("2 / 2 candidates succeeded"));
  auto never = tune("never.onnx", {node("Sub", {"x", "x"}, {"z"}, {}, "s"), node("Div", {"x", "z"}, {"y"}, {}, "d")});
  EXPECT_EQ(never.code, 1);
  EXPECT_THAT(never.err, HasSubstr("output 'y' is not finite on any made-up inputs"));
  EXPECT_THAT(never.err, HasSubstr("--loadInputs"));
}

// What a plain build is told reaches a search, its candidates and its winner.
TEST_F(CliProgram, FormatsAndVerbosityReachTheSearch) {
  onnxwriter::Model m;
  m.nodes = {onnxwriter::node("Relu", {"x"}, {"y"}, {}, "relu")};
  m.inputs = {onnxwriter::value("x", onnxwriter::kFloat, {"1", "2", "2", "3"})};
  m.outputs = {onnxwriter::value("y", onnxwriter::kFloat, {"1", "2", "2", "3"})};
  std::ofstream(dir_ + "/i.onnx", std::ios::binary) << m.bytes();
  std::vector<float> logical, channelsLast;
  for (int i = 0; i < 12; i++) logical.push_back(float(i + 1));
  for (int p = 0; p < 6; p++)
    for (int c = 0; c < 2; c++) channelsLast.push_back(logical[size_t(c * 6 + p)]);
  auto write = [&](const char* name, const std::vector<float>& v) {
    std::ofstream(dir_ + name, std::ios::binary).write(reinterpret_cast<const char*>(v.data()), 48);
  };
  write("/hwc.bin", channelsLast);
  write("/chw.bin", logical);
  const std::vector<std::string> base{"--onnx=i.onnx",
                                      "--tuneBuildRoutes=-codegen:vector=[auto|128]",
                                      "--saveEngine=i.engine",
                                      "--inputIOFormats=hwc",
                                      "--accuracyThreshold=1e-6",
                                      "--loadInputs=x:hwc.bin",
                                      "--duration=0",
                                      "--warmUp=0"};
  auto tune = [&](std::vector<std::string> more) {
    more.insert(more.begin(), base.begin(), base.end());
    return run(more);
  };
  auto r = tune(
      {"--loadRefOutputs=y:chw.bin", "--profilingVerbosity=none", "--exportLayerInfo=l.json", "--exportOutput=o.json"});
  ASSERT_EQ(r.code, 0) << r.err << r.out;
  EXPECT_THAT(r.out, HasSubstr("2 / 2 candidates succeeded"));
  auto o = json::parse(slurp(dir_ + "/o.json"));  // of the winner, which was given the file as it is
  EXPECT_EQ(o[0]["values"], logical);
  auto l = json::parse(slurp(dir_ + "/l.json"));
  EXPECT_THAT(l.dump(), Not(HasSubstr("relu")));
  // The other way round the reference does not fit: the format was not just ignored.
  EXPECT_EQ(tune({"--loadRefOutputs=y:hwc.bin"}).code, 1);
  EXPECT_EQ(tune({"--loadRefOutputs=y:hwc.bin", "--outputIOFormats=hwc", "--profilingVerbosity=detailed",
                  "--exportLayerInfo=d.json"})
                .code,
            0);
  EXPECT_THAT(slurp(dir_ + "/d.json"), HasSubstr("\"Tactic\""));
  EXPECT_THAT(tune({"--outputIOFormats=fp16:chw"}).err, HasSubstr("types come from the model"));
}

TEST_F(CliProgram, SearchesAtLevelFourKeepTheirTimes) {
  auto tune = [&](std::vector<std::string> more) {
    std::vector<std::string> args{"--onnx=m.onnx",
                                  "--tuneBuildRoutes=-pointwise:task_bytes=[auto|4096] -codegen:align_loops=[64|16]",
                                  "--saveEngine=w", "--builderOptimizationLevel=4", "--avgTiming=2"};
    args.insert(args.end(), more.begin(), more.end());
    return run(args);
  };
  auto r = tune({});
  ASSERT_EQ(r.code, 0) << r.err << r.out;
  EXPECT_THAT(r.out, HasSubstr("3 / 3 candidates succeeded"));
  ASSERT_FALSE(slurp(dir_ + "/w.tune.jsonl.timing").empty());
  EXPECT_THAT(slurp(dir_ + "/w"), HasSubstr("\"optimization_level\""));
  // A build by hand with these times is the search's engine, but for the machine that a tuned engine names.
  auto again = run({"--onnx=m.onnx", "--skipInference", "--builderOptimizationLevel=4", "--errorOnTimingCacheMiss",
                    "--timingCacheFile=w.tune.jsonl.timing", "--setBuildRoute=-codegen:align_loops=16"});
  EXPECT_EQ(again.code, 0) << again.err;
  // What is missing rejects the candidates that need it.
  auto missing = tune({"--timingCacheFile=none", "--errorOnTimingCacheMiss"});
  EXPECT_EQ(missing.code, 1);
  EXPECT_THAT(missing.err, HasSubstr("timing cache lacks"));
  EXPECT_THAT(tune({"--noBuilderCache"}).err, HasSubstr("cannot stand beside a search"));
}

TEST_F(CliProgram, FilesOfTensorsAreCheckedBeforeTheBuild) {
  onnxwriter::Model open;
  open.nodes = {onnxwriter::node("Concat", {"x", "x"}, {"y"}, {onnxwriter::attr("axis", int64_t(0))})};
  open.inputs = {onnxwriter::value("x", onnxwriter::kFloat, {"n", "3"})};
  open.outputs = {onnxwriter::value("y", onnxwriter::kFloat, {"m", "3"})};
  write("open.onnx", open);
  std::ofstream(dir_ + "/twice.bin") << slurp(dir_ + "/x.bin") << slurp(dir_ + "/x.bin");
  const std::string fixed = "--onnx=m.onnx", in = "--loadInputs=x:x.bin", limit = "--accuracyThreshold=1";
  const std::string dynamic = "--onnx=open.onnx", shape = "--shapes=x:2x3";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{fixed, "--loadInputs=q:x.bin"}, "'q' is no input of the model; nearest: x"},
      {{fixed, "--loadInputs=x:absent.bin"}, "absent.bin"},
      {{fixed, "--loadInputs=x:twice.bin"}, "it holds 48 bytes"},
      {{fixed, in, limit, "--loadRefOutputs=z:y.bin"}, "'z' is no output of the model"},
      {{fixed, in, limit, "--loadRefOutputs=y:twice.bin"}, "it holds 48 bytes"},
      {{fixed, limit, "--refPair=0", in, "--loadRefOutputs=y:y.bin", "--refPair=1", in, "--loadRefOutputs=y:no.bin"},
       "no.bin"},
      {{dynamic, shape, "--loadInputs=x:twice.bin"}, "float32 of shape 2x3 take 24"},
      {{dynamic, shape, in, limit, "--loadRefOutputs=y:y.bin"}, "float32 of shape 4x3 take 48"},
  };
  for (auto [args, text] : cases) {
    args.push_back("--saveEngine=e.engine");
    const auto r = run(args);
    EXPECT_EQ(r.code, 1) << testing::PrintToString(args);
    EXPECT_THAT(r.err, HasSubstr(text)) << testing::PrintToString(args);
    EXPECT_THAT(r.out, Not(HasSubstr("Engine built"))) << testing::PrintToString(args);
    EXPECT_FALSE(std::filesystem::exists(dir_ + "/e.engine")) << testing::PrintToString(args);
  }
  const auto right = run({dynamic, shape, in, limit, "--loadRefOutputs=y:twice.bin", "--duration=0", "--warmUp=0"});
  EXPECT_EQ(right.code, 0) << right.err;
  EXPECT_EQ(run({fixed, "--loadInputs=x:absent.bin", "--skipInference"}).code, 0);  // nothing reads it
}

TEST_F(CliProgram, ErrorsAreOneLineAndExitOne) {
  std::ofstream(dir_ + "/empty.onnx");
  std::ofstream(dir_ + "/noise.onnx") << "this is no model";
  const std::vector<std::pair<std::vector<std::string>, std::string>> cases{
      {{"--onnx=absent.onnx"}, "absent.onnx"},
      {{"--onnx=empty.onnx"}, "empty.onnx"},
      {{"--onnx=noise.onnx"}, "noise.onnx"},
      {{"--onnx=."}, "folder"},
      {{"--loadEngine=m.onnx"}, "m.onnx: not a Rutter engine"},
      {{"--onnx=m.onnx", "--saveEngine=no/such/folder/e"}, "no/such/folder"},
      {{"--onnx=m.onnx", "--exportTimes=no/such/t.json"}, "no/such"},
      {{"--onnx=m.onnx", "--setBuildRoute=-gemm:tile_m=9"}, "nearest: 8"},
      {{"--onnx=m.onnx", "--setBuildRoute=-gemm:tile_q=9"}, "unknown_knob"},
      {{"--onnx=m.onnx", "--setBuildRoute="}, "--setBuildRoute= is empty"},
      {{"--onnx=m.onnx", "--shapes=x:2x3"}, "the model is static"},
      {{"--onnx=m.onnx", "--shapes=q:2x3"}, "nearest: x"},
      {{"--onnx=m.onnx", "--loadInputs=q:x.bin"}, "'q' is no input"},
      {{"--onnx=m.onnx", "--loadInputs=x:absent.bin"}, "absent.bin"},
      {{"--onnx=m.onnx", "--inputIOFormats=hwc"}, "hwc needs 3"},
      {{"--onnx=m.onnx", "--inputIOFormats=fp16:chw"}, "types come from the model"},
      {{"--onnx=m.onnx", "--memPoolSize=workspace:0", "--strictRoutes", "--setBuildRoute=-gemm:tile_m@nobody=8"},
       "nobody"},
      {{"--onnx=m.onnx", "--builderOptimizationLevel=4", "--timingCacheFile=m.onnx"}, "no timing cache"},
      {{"--onnx=m.onnx", "--builderOptimizationLevel=4", "--timingCacheFile=no/such/t"}, "no/such"},
      {{"--onnx=m.onnx", "--builderOptimizationLevel=5", "--errorOnTimingCacheMiss"}, "needs --timingCacheFile"},
      {{"--onnx=m.onnx", "--builderOptimizationLevel=5", "--errorOnTimingCacheMiss", "--timingCacheFile=new"},
       "timing cache lacks"},
      {{"--onnx=m.onnx", "--noBuilderCache", "--timingCacheFile=new"}, "exclude each other"},
      {{"--onnx=m.onnx", "--useProfile=3"}, "--useProfile=3"},
      {{"--onnx=m.onnx", "--warmUp=1s", "--duration=0", "--iterations=1", "--cpuMask=1000"}, "--cpuMask"},
      {{"--continue", "--tuningCacheFile=absent"}, "absent"},
      {{"--onnx=m.onnx", "--tuneBuildRoutes=-gemm:tile_m=[8|9]"}, "invalid_value"},
      {{"--onnx=m.onnx", "--tuneBuildRouteFile=absent.txt"}, "absent.txt"},
  };
  for (const auto& [args, text] : cases) {
    auto r = run(args);
    EXPECT_EQ(r.code, 1) << testing::PrintToString(args);
    EXPECT_THAT(r.err, HasSubstr(text)) << testing::PrintToString(args);
    size_t errors = 0;
    for (size_t at = r.err.find("[E] "); at != r.err.npos; at = r.err.find("[E] ", at + 1)) errors++;
    EXPECT_EQ(errors, 1u) << r.err;
    EXPECT_THAT(last(r.out), StartsWith("&&&& FAILED")) << testing::PrintToString(args);
    // With --json a program can read the error.
    auto j = args;
    j.push_back("--json");
    auto doc = json::parse(run(j).out, nullptr, false);
    ASSERT_FALSE(doc.is_discarded()) << testing::PrintToString(args);
    EXPECT_FALSE(doc["error"]["message"].get<std::string>().empty());
  }
  auto kind = json::parse(run({"--onnx=m.onnx", "--json", "--setBuildRoute=-gemm:tile_m=8 -gemm:tile_q=9"}).out);
  EXPECT_EQ(kind["error"]["kind"], "unknown_knob");
  EXPECT_EQ(kind["error"]["column"], 16);
}

}  // namespace
}  // namespace rutter
