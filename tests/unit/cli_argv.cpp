#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/argv.h"

namespace rutter::cli {
namespace {

using testing::ElementsAre;

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

TEST(CliArgv, ContinueTakesTheRecordedCommandLine) {
  const std::vector<std::string> recorded{"--onnx=/m", "--tuneBuildRouteFile=/f", "--tuningTimeOut=60", "--seed=3",
                                          "--verbose"};
  EXPECT_THAT(continuedArgs(recorded, "-a=[1|2]", {"--continue", "--tuningCacheFile=c"}),
              ElementsAre("--onnx=/m", "--tuningTimeOut=60", "--seed=3", "--tuneBuildRoutes=-a=[1|2]"));
  EXPECT_THAT(continuedArgs(recorded, "-a=[1|2]", {"--continue", "--tuningCacheFile=c", "--tuningTimeOut=5", "--json"}),
              ElementsAre("--onnx=/m", "--seed=3", "--tuneBuildRoutes=-a=[1|2]", "--tuningTimeOut=5", "--json"));
  // An expression of its own extends the search.
  EXPECT_THAT(continuedArgs(recorded, "-a=[1|2]",
                            {"--continue", "--tuningCacheFile=c", "--tuneBuildRoutes=-b=[3|4]", "--force"}),
              ElementsAre("--onnx=/m", "--tuningTimeOut=60", "--seed=3", "--tuneBuildRoutes=-b=[3|4]"));
  // An automatic search goes on as one.
  EXPECT_THAT(continuedArgs({"--onnx=/m", "--tune=60s"}, "", {"--continue", "--tuningCacheFile=c"}),
              ElementsAre("--onnx=/m", "--tune=60s"));
}

}  // namespace
}  // namespace rutter::cli
