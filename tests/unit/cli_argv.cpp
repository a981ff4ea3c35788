#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/argv.h"

namespace rutter::cli {
namespace {

using testing::ElementsAre;
using tuner::LastSearch;
using Args = std::vector<std::string>;

Args continued(Args recorded, LastSearch last, const Args& now) {
  recorded.insert(recorded.begin(), "rutter");
  last.argv = std::move(recorded);
  return continuedArgs(last, now);
}

TEST(CliArgv, PathsBecomeAbsoluteWhetherTheyExistOrNot) {
  setenv("HOME", "/home/me", 1);
  EXPECT_THAT(absoluteArgs({"--onnx=m.onnx", "--saveEngine=../out/e", "--tuneBuildRoutes=-a=[1|2]", "--shapes=x:1x3",
                            "--verbose", "--tuningCacheFile=/tmp/c", "--tempdir=~/t", "--exportTimes=t.json"},
                           "/work/here"),
              ElementsAre("--onnx=/work/here/m.onnx", "--saveEngine=/work/out/e", "--tuneBuildRoutes=-a=[1|2]",
                          "--shapes=x:1x3", "--verbose", "--tuningCacheFile=/tmp/c", "--tempdir=/home/me/t",
                          "--exportTimes=/work/here/t.json"));
}

TEST(CliArgv, NamesWithColonsKeepThem) {
  // The last colon splits; a quoted name is how a file name with a colon is given. One parser reads both.
  EXPECT_THAT(absoluteArgs({"--loadInputs=in:0:a.bin,'x':b:c.bin"}, "/d"),
              ElementsAre("--loadInputs='in:0':/d/a.bin,'x':/d/b:c.bin"));
}

TEST(CliArgv, TheSameEngineAgainKeepsWhatShapesTheBuild) {
  const std::vector<std::string> args{"--onnx=my model.onnx",
                                      "--tune=60s",
                                      "--saveEngine=e",
                                      "--threads=2",
                                      "--seed=3",
                                      "--profile=0",
                                      "--minShapes=x:1x3",
                                      "--maxShapes='a:b':4x3",
                                      "--shapes=x:2x3",
                                      "--isa=avx2",
                                      "--inputIOFormats=hwc",
                                      "--loadInputs=x:x.bin",
                                      "--memPoolSize=ws:1G",
                                      "--duration=0",
                                      "--timingCacheFile=old",
                                      "--builderOptimizationLevel=4",
                                      "--profilingVerbosity=detailed"};
  EXPECT_THAT(sameEngineArgs(args, "-a=1 -b=2", "times"),
              ElementsAre("--onnx=my model.onnx", "--threads=2", "--profile=0", "--minShapes=x:1x3",
                          "--maxShapes='a:b':4x3", "--shapes=x:2x3", "--isa=avx2", "--inputIOFormats=hwc",
                          "--memPoolSize=ws:1G", "--builderOptimizationLevel=4", "--profilingVerbosity=detailed",
                          "--timingCacheFile=times", "--setBuildRoute=-a=1 -b=2"));
  // The default route has no --setBuildRoute, and --threads alone is about streams.
  EXPECT_THAT(sameEngineArgs({"--onnx=m", "--threads", "--tune"}, "", ""), ElementsAre("--onnx=m"));
}

TEST(CliArgv, ContinueTakesTheRecordedCommandLineAndTheLastSearch) {
  const Args recorded{"--onnx=/m", "--tuneBuildRouteFile=/f", "--tuningTimeOut=60", "--seed=3", "--verbose"};
  const LastSearch last{"fast", "-a=[1|2]", 60, ""};
  EXPECT_THAT(
      continued(recorded, last, {"--continue", "--tuningCacheFile=c"}),
      ElementsAre("--onnx=/m", "--seed=3", "--tuningSearch=fast", "--tuneBuildRoutes=-a=[1|2]", "--tuningTimeOut=60s"));
  EXPECT_THAT(continued(recorded, last, {"--continue", "--tuningCacheFile=c", "--tuningTimeOut=5", "--json"}),
              ElementsAre("--onnx=/m", "--seed=3", "--tuningSearch=fast", "--tuneBuildRoutes=-a=[1|2]",
                          "--tuningTimeOut=5", "--json"));
  // An expression of its own extends the search.
  EXPECT_THAT(continued(recorded, last, {"--continue", "--tuningCacheFile=c", "--tuneBuildRoutes=-b=[3|4]", "--force"}),
              ElementsAre("--onnx=/m", "--seed=3", "--tuningTimeOut=60s", "--tuneBuildRoutes=-b=[3|4]"));
  // An automatic search goes on as one.
  EXPECT_THAT(continued({"--onnx=/m", "--tune=60s"}, {"tune", "", 60, ""}, {"--continue", "--tuningCacheFile=c"}),
              ElementsAre("--onnx=/m", "--tune=60s"));
}

// What the record began with is not what was searched last.
TEST(CliArgv, ContinueAfterAnExtensionGoesOnWithTheExtension) {
  const Args bare{"--continue", "--tuningCacheFile=c"};
  EXPECT_THAT(continued({"--onnx=/m", "--tune=60s"}, {"mixed", "-b=[3|4]", 20.5, ""}, bare),
              ElementsAre("--onnx=/m", "--tuningSearch=mixed", "--tuneBuildRoutes=-b=[3|4]", "--tuningTimeOut=20.5s"));
  EXPECT_THAT(continued({"--onnx=/m", "--tuneBuildRoutes=-a=1", "--tuningSearch=full", "--tuningTimeOut=9"},
                        {"tune", "", 300, ""}, bare),
              ElementsAre("--onnx=/m", "--tune=300s"));
  // It had no budget: neither has what goes on.
  EXPECT_THAT(
      continued({"--onnx=/m", "--tuningTimeOut=9", "--tuneBuildRoutes=-a=1"}, {"fast", "-b=[3|4]", -1, ""}, bare),
      ElementsAre("--onnx=/m", "--tuningSearch=fast", "--tuneBuildRoutes=-b=[3|4]"));
  // With the cache alone the command line is all that is known of it.
  EXPECT_THAT(continued({"--onnx=/m", "--tune"}, {"tune", "", {}, ""}, bare), ElementsAre("--onnx=/m", "--tune"));
  EXPECT_THAT(continued({"--onnx=/m", "--tuningTimeOut=2m"}, {"fast", "-a=1", {}, ""}, bare),
              ElementsAre("--onnx=/m", "--tuningSearch=fast", "--tuneBuildRoutes=-a=1", "--tuningTimeOut=2m"));
}

TEST(CliArgv, ABudgetIsOneWhicheverFlagSaysIt) {
  const Args expression{"--onnx=/m", "--tuneBuildRoutes=-a=1", "--tuningTimeOut=60", "--tuningSearch=full"};
  const Args automatic{"--onnx=/m", "--tune=60s"};
  const LastSearch searched{"full", "-a=1", 60, ""}, tuned{"tune", "", 60, ""};
  EXPECT_THAT(continued(expression, searched, {"--continue", "--tune=5m"}), ElementsAre("--onnx=/m", "--tune=5m"));
  EXPECT_THAT(continued(automatic, tuned, {"--continue", "--tuningTimeOut=120"}),
              ElementsAre("--onnx=/m", "--tune=120"));
  EXPECT_THAT(continued(automatic, tuned, {"--continue", "--tuneBuildRoutes=-b=1"}),
              ElementsAre("--onnx=/m", "--tuningTimeOut=60s", "--tuneBuildRoutes=-b=1"));
  EXPECT_THAT(continued(automatic, tuned, {"--continue", "--tuneBuildRoutes=-b=1", "--tuningTimeOut=7"}),
              ElementsAre("--onnx=/m", "--tuningTimeOut=7", "--tuneBuildRoutes=-b=1"));
  EXPECT_THAT(continued(automatic, tuned, {"--continue", "--tuneBuildRoutes=-b=1", "--tune=7s"}),
              ElementsAre("--onnx=/m", "--tuneBuildRoutes=-b=1", "--tune=7s"));
  // Two budgets in one command line are two.
  EXPECT_THAT(continued(automatic, tuned, {"--continue", "--tune=5m", "--tuningTimeOut=7"}),
              ElementsAre("--onnx=/m", "--tune=5m", "--tuningTimeOut=7"));
}

TEST(CliArgv, ContinueSavesWhereTheSearchDid) {
  const LastSearch last{"tune", "", 60, "/m.engine"};
  EXPECT_THAT(continued({"--onnx=/m", "--tune=60s"}, last, {"--continue", "--tuneBuildRoutes=-b=1"}),
              ElementsAre("--onnx=/m", "--saveEngine=/m.engine", "--tuningTimeOut=60s", "--tuneBuildRoutes=-b=1"));
  EXPECT_THAT(continued({"--onnx=/m", "--saveEngine=/e", "--tune=60s"}, last, {"--continue"}),
              ElementsAre("--onnx=/m", "--saveEngine=/e", "--tune=60s"));
}

}  // namespace
}  // namespace rutter::cli
