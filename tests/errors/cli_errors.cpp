// Every command line that is rejected: what is wrong, and that the line says so.
#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/options.h"

namespace rutter::cli {
namespace {

struct Case {
  std::vector<std::string> args;
  const char* mentions;
};
void PrintTo(const Case& c, std::ostream* os) {
  *os << shellJoin(c.args);
}

class CliErrors : public testing::TestWithParam<Case> {};

TEST_P(CliErrors, OneClearLine) {
  const auto& c = GetParam();
  try {
    makeOptions(CommandLine::parse(c.args));
    FAIL() << "accepted";
  } catch (const UserError& e) {
    std::string what = e.what();
    EXPECT_NE(what.find(c.mentions), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Shape, CliErrors,
                         testing::Values(Case{{"--onnx=m", "--shapes=1x3"}, "is not name:1x3x224x224"},
                                         Case{{"--onnx=m", "--shapes=x:1x"}, "is not a dimension"},
                                         Case{{"--onnx=m", "--shapes=x:1x-1"}, "'-1' in 'x:1x-1' is not a dimension"},
                                         Case{{"--onnx=m", "--shapes=x:1y3"}, "'1y3'"},
                                         Case{{"--onnx=m", "--shapes=x:99999999999999999999"}, "is not a dimension"},
                                         Case{{"--onnx=m", "--shapes=x:1,,y:2"}, "an item between commas is empty"},
                                         Case{{"--onnx=m", "--shapes=:1"}, "no name before the colon"},
                                         Case{{"--onnx=m", "--shapes=x:1,x:2"}, "'x' is given twice"},
                                         Case{{"--onnx=m", "--shapes='x:1"}, "a single quote is not closed"},
                                         Case{{"--onnx=m", "--shapes='x'1"}, "is not name:1x3x224x224"},
                                         Case{{"--onnx=m", "--shapes=*a*:1"}, "more than one *"},
                                         Case{{"--onnx=m", "--shapes=x:1x1x1x1x1x1x1x1x1"}, "at most 8"}));

INSTANTIATE_TEST_SUITE_P(
    Value, CliErrors,
    testing::Values(
        Case{{"--onnx=m", "--iterations=10x"}, "'10x' is not an integer"},
        Case{{"--onnx=m", "--iterations=0"}, "must be an integer from 1"},
        Case{{"--onnx=m", "--iterations=99999999999"}, "to 2147483647"},
        Case{{"--onnx=m", "--iterations=99999999999999999999"}, "to 2147483647"},
        Case{{"--onnx=m", "--iterations="}, "--iterations needs a value"},
        Case{{"--onnx=m", "--iterations"}, "--iterations needs a value"},
        Case{{"--onnx=m", "--builderOptimizationLevel=6"}, "from 0 to 5"},
        Case{{"--onnx=m", "--maxTactics=0"}, "1 or more"}, Case{{"--onnx=m", "--warmUp=-5"}, "must not be below 0"},
        Case{{"--onnx=m", "--warmUp=5d"}, "'d' is no unit of time"},
        Case{{"--onnx=m", "--warmUp=nan"}, "is not a time"},
        Case{{"--onnx=m", "--duration=-2"}, "or -1 (until interrupted)"},
        Case{{"--onnx=m", "--percentile=90,101"}, "'101' is no percentile"},
        Case{{"--onnx=m", "--percentile=90,"}, "an item between commas is empty"},
        Case{{"--onnx=m", "--memPoolSize=workspace"}, "is not pool:size"},
        Case{{"--onnx=m", "--memPoolSize=workspace:1T"}, "'T' is no unit of size"},
        Case{{"--onnx=m", "--memPoolSize=work:1"}, "there is no pool 'work'"},
        Case{{"--onnx=m", "--memPoolSize=workspace:-1"}, "is not a size"},
        Case{{"--onnx=m", "--loadInputs=x"}, "is not name:file"},
        Case{{"--onnx=m", "--loadInputs=x:"}, "names no file"},
        Case{{"--onnx=m", "--accuracyAlgorithm=linf"}, "must be l0, l1, l2, lInf or cos"},
        Case{{"--onnx=m", "--accuracyThreshold=-1"}, "must not be below 0"},
        Case{{"--onnx=m", "--accuracyThreshold=inf"}, "is not a number"},
        Case{{"--onnx=m", "--atol=-1"}, "must not be below 0"}, Case{{"--onnx=m", "--rtol=1e"}, "is not a number"},
        Case{{"--onnx=m", "--verbose=1"}, "takes no value but true or false"},
        Case{{"--onnx=m", "--threads=0"}, "from 1 to 4096"}, Case{{"--onnx=m", "--cpuMask=3-1"}, "--cpuMask=3-1"},
        Case{{"--onnx=m", "--cpuMask=0x0"}, "names no core"}, Case{{"--onnx=m", "--cpuMask=xyz"}, "hexadecimal mask"},
        Case{{"--onnx=m", "--inputIOFormats=chw32"}, "not supported yet"},
        Case{{"--onnx=m", "--inputIOFormats=chv"}, "is no layout"},
        Case{{"--onnx=m", "--inputIOFormats=f32:chw"}, "'f32' is no type"},
        Case{{"--onnx=m", "--tune=0s"}, "must be above 0"}, Case{{"--onnx=m", "--tune=soon"}, "is not a time"},
        Case{{"--onnx=m", "--tune="}, "has no value"},
        Case{{"--onnx=m", "--tuneBuildRoutes=-a=1", "--buildTimeOut=0"}, "must be above 0"},
        Case{{"--onnx=m", "--device=1"}, "the CPU is device 0"}, Case{{"--onnx=m", "--target=cuda"}, "no CUDA target"},
        Case{{"--onnx=m", "--isa=sse"}, "generic, avx2 or avx512"}));

INSTANTIATE_TEST_SUITE_P(
    Flag, CliErrors,
    testing::Values(
        Case{{}, "there is no model"}, Case{{"--onx=m"}, "nearest: --onnx"}, Case{{"-onnx=m"}, "nearest: --onnx"},
        Case{{"--ONNX=m"}, "nearest: --onnx"}, Case{{"m.onnx"}, "--onnx=m.onnx"},
        Case{{"--onnx", "m.onnx"}, "--onnx needs a value"}, Case{{"--onnx=a", "--onnx=b"}, "--onnx is given twice"},
        Case{{"--onnx=m", "--verbose", "--verbose"}, "given twice"},
        Case{{"--onnx=m", "--fp16"}, "is not supported yet"}, Case{{"--onnx=m", "--refit"}, "is not supported yet"},
        Case{{"--onnx=m", "--report=r"}, "is not supported yet"}, Case{{"--onnx=m", "--safe"}, "is not possible"},
        Case{{"--onnx=m", "--plugins=p.so"}, "is not possible"},
        Case{{"--onnx=m", "--runtimePlatform=WindowsAMD64"}, "the platform that built them"}));

INSTANTIATE_TEST_SUITE_P(
    Conflict, CliErrors,
    testing::Values(
        Case{{"--onnx=m", "--saveEngine=a", "--loadEngine=b"}, "--saveEngine and --loadEngine exclude"},
        Case{{"--onnx=m", "--loadEngine=b"}, "--onnx and --loadEngine exclude"},
        Case{{"--loadEngine=b", "--setBuildRoute=-a=1"}, "--loadEngine and --setBuildRoute exclude"},
        Case{{"--onnx=m", "--tuneBuildRoutes=-a=1", "--tuneBuildRouteFile=f"}, "both give the expression"},
        Case{{"--onnx=m", "--tuneBuildRoutes=-a=1", "--setBuildRoute=-a=1"}, "exclude each other"},
        Case{{"--onnx=m", "--tuneBuildRouteFile=f", "--setBuildRoute=-a=1"}, "exclude each other"},
        Case{{"--onnx=m", "--tune", "--setBuildRoute=-a=1"}, "exclude each other"},
        Case{{"--onnx=m", "--tune=5s", "--tuningTimeOut=5"}, "both give the budget"},
        Case{{"--onnx=m", "--tune", "--dryRun"}, "exclude each other"},
        Case{{"--onnx=m", "--dryRun"}, "--dryRun needs"},
        Case{{"--continue", "--tuningCacheFile=c", "--dryRun"}, "--dryRun and --continue exclude"},
        Case{{"--continue", "--tuningCacheFile=c", "--helpBuildRoute"}, "--helpBuildRoute and --continue exclude"},
        Case{{"--continue"}, "--continue needs --tuningCacheFile"},
        Case{{"--continue", "--tuningCacheFile=c", "--onnx=m"}, "--continue cannot stand beside --onnx"},
        Case{{"--continue", "--tuningCacheFile=c", "--seed=2"}, "--continue cannot stand beside --seed"},
        Case{{"--onnx=m", "--force"}, "--force needs --continue"},
        Case{{"--loadEngine=e", "--tune"}, "cannot stand beside --loadEngine"},
        Case{{"--onnx=m", "--tune", "--skipInference"}, "cannot stand beside --skipInference"},
        Case{{"--onnx=m", "--tune", "--timeDeserialize"}, "cannot stand beside --timeDeserialize"},
        Case{{"--onnx=m", "--tune", "--timeRefit"}, "is not supported yet"},
        Case{{"--onnx=m", "--tune", "--duration=-1"}, "--duration=-1"},
        Case{{"--onnx=m", "--tuneBuildRoutes=-a=1", "--saveAllEngines"}, "needs --saveEngine"},
        Case{{"--onnx=m", "--tuneBuildRoutes=-a=1", "--tuningSearch=random"}, "there are fast, full and mixed"},
        Case{
            {"--onnx=m", "--tuneBuildRoutes=-a=1", "--loadInputs=x:a", "--loadRefOutputs=y:b", "--accuracyThreshold=1"},
            "needs --saveEngine"},
        Case{{"--onnx=m", "--loadRefOutputs=y:b", "--accuracyThreshold=1"}, "needs --loadInputs"},
        Case{{"--onnx=m", "--loadInputs=x:a", "--loadRefOutputs=y:b"}, "needs --accuracyThreshold"},
        Case{{"--onnx=m", "--loadInputs=x:a", "--loadRefOutputs=y:b", "--accuracyThreshold=1", "--skipInference"},
             "exclude each other"},
        Case{{"--onnx=m", "--accuracyAlgorithm=l1", "--atol=1"}, "belongs to --accuracyAlgorithm=l0"},
        Case{{"--onnx=m", "--accuracyAlgorithm=cos", "--rtol=1"}, "belongs to --accuracyAlgorithm=l0"},
        Case{{"--onnx=m", "--getPlanVersionOnly"}, "needs --loadEngine"},
        Case{{"--onnx=m", "--streams=1", "--infStreams=1"}, "give one of them"},
        Case{{"--loadEngine=e", "--timeDeserialize", "--skipInference"}, "exclude each other"}));

const std::string kI = "--loadInputs=x:a", kO = "--loadRefOutputs=y:b", kT = "--accuracyThreshold=1";
INSTANTIATE_TEST_SUITE_P(
    GroupOrder, CliErrors,
    testing::Values(
        Case{{"--onnx=m", kT, "--refPair=0", kI, kO}, "at least two pairs"},
        Case{{"--onnx=m", kT, "--refPair=0", kI, kO, "--refPair=2", kI, kO}, "there is no --refPair=1"},
        Case{{"--onnx=m", kT, "--refPair=0", kI, kO, "--refPair=0", kI, kO}, "--refPair=0 is given twice"},
        Case{{"--onnx=m", kT, "--refPair=0", kI, "--verbose", kO}, "right after it"},
        Case{{"--onnx=m", kT, "--refPair=0", kI, kI, kO}, "given twice in one pair"},
        Case{{"--onnx=m", kT, kI, kO, "--refPair=0", kI, kO, "--refPair=1", kI, kO}, "outside a pair"},
        Case{{"--onnx=m", kT, kI, kI, kO}, "--loadInputs is given twice"},
        Case{{"--onnx=m", kT, "--refPair=-1", kI, kO}, "must be an integer from 0"},
        Case{{"--onnx=m", "--profile=0", "--minShapes=x:1", "--profile=2", "--minShapes=x:1"},
             "there is no --profile=1"},
        Case{{"--onnx=m", "--profile=0", "--profile=1", "--minShapes=x:1"}, "--profile=0 has no shape flags"},
        Case{{"--onnx=m", "--profile=0", "--minShapes=x:1", "--profile=0", "--minShapes=x:1"},
             "--profile=0 is given twice"},
        Case{{"--onnx=m", "--profile=0", "--minShapes=x:1", "--verbose", "--maxShapes=x:1"},
             "does not stand directly after"},
        Case{{"--onnx=m", "--minShapes=x:1", "--profile=0", "--maxShapes=x:1"}, "before the first --profile"},
        Case{{"--onnx=m", "--minShapes=x:1", "--minShapes=x:1"}, "--minShapes is given twice"},
        Case{{"--onnx=m", "--minShapes=x:4", "--optShapes=x:2", "--maxShapes=x:8"}, "not in ascending order"},
        Case{{"--onnx=m", "--minShapes=x:1x1", "--optShapes=x:2", "--maxShapes=x:8"}, "not in ascending order"}));

}  // namespace
}  // namespace rutter::cli
