#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "cli/options.h"

namespace rutter::cli {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using Args = std::vector<std::string>;

Options parse(const Args& args) {
  return makeOptions(CommandLine::parse(args));
}

TEST(CliOptions, Defaults) {
  auto o = parse({"--onnx=m.onnx"});
  EXPECT_EQ(o.model.onnx, "m.onnx");
  EXPECT_EQ(o.build.optimizationLevel, 3);
  EXPECT_EQ(o.build.avgTiming, 8);
  EXPECT_EQ(o.inference.iterations, 10);
  EXPECT_EQ(o.inference.warmUpMs, 200);
  EXPECT_EQ(o.inference.durationSeconds, 3);
  EXPECT_EQ(o.reporting.percentiles, (std::vector<double>{90, 95, 99}));
  EXPECT_FALSE(o.tuning.active());
  EXPECT_THAT(o.warnings, IsEmpty());
}

TEST(CliOptions, ValuesReachTheirPlaces) {
  auto o = parse({"--onnx=m.onnx", "--shapes=x:1x3", "--iterations=5", "--warmUp=0", "--duration=250ms", "--idleTime=1",
                  "--infStreams=2", "--threads=4", "--memPoolSize=workspace:64", "--builderOptimizationLevel=5",
                  "--setBuildRoute=-gemm:tile_m=8", "--percentile=50", "--avgRuns=1", "--exportTimes=t.json",
                  "--isa=avx2", "--cpuMask=0-2,5", "--profilingVerbosity=detailed", "--inputIOFormats=fp32:CHW"});
  EXPECT_EQ(o.inference.shapes, (std::vector<NamedShape>{{"x", {1, 3}}}));
  EXPECT_EQ(o.inference.iterations, 5);
  EXPECT_EQ(o.inference.warmUpMs, 0);
  EXPECT_DOUBLE_EQ(o.inference.durationSeconds, 0.25);
  EXPECT_DOUBLE_EQ(o.inference.idleMs, 1);
  EXPECT_EQ(o.inference.streams, 2);
  EXPECT_EQ(o.inference.cpuThreads, 4);
  EXPECT_FALSE(o.inference.threadPerStream);
  EXPECT_THAT(o.inference.cpus, ElementsAre(0, 1, 2, 5));
  EXPECT_EQ(o.build.workspaceBytes, 64u << 20);
  EXPECT_EQ(o.build.route, "-gemm:tile_m=8");
  EXPECT_EQ(o.build.isa, "avx2");
  EXPECT_THAT(o.build.inputFormats, ElementsAre("fp32:chw"));
  EXPECT_EQ(o.reporting.exportTimes, "t.json");
  EXPECT_TRUE(parse({"--onnx=m", "--threads"}).inference.threadPerStream);
  EXPECT_THAT(parse({"--onnx=m", "--cpuMask=0x11"}).inference.cpus, ElementsAre(0, 4));
}

TEST(CliOptions, BooleansTakeTrueAndFalse) {
  EXPECT_TRUE(parse({"--onnx=m", "--verbose"}).reporting.verbose);
  EXPECT_TRUE(parse({"--onnx=m", "--verbose=true"}).reporting.verbose);
  EXPECT_FALSE(parse({"--onnx=m", "--verbose=false"}).reporting.verbose);
  // A flag that is switched off excludes nothing, and asks for nothing.
  EXPECT_NO_THROW(parse({"--onnx=m", "--tune", "--skipInference=false", "--safe=false", "--fp16=false"}));
}

TEST(CliOptions, LooseShapesMakeOneProfile) {
  auto o = parse({"--onnx=m", "--minShapes=x:1x2,n:", "--optShapes=x:4x2,n:", "--maxShapes=x:8x2,n:"});
  ASSERT_EQ(o.build.profiles.size(), 1u);
  EXPECT_EQ(o.build.profiles[0].max, (std::vector<NamedShape>{{"x", {8, 2}}, {"n", {}}}));
  EXPECT_THAT(o.warnings, IsEmpty());
}

TEST(CliOptions, MissingShapesComeFromTheirNeighboursWithAWarning) {
  // min from opt, else max; opt from max, else min; max from opt, else min.
  auto o = parse({"--onnx=m", "--optShapes=x:4", "--maxShapes=x:8,y:5"});
  ASSERT_EQ(o.build.profiles.size(), 1u);
  EXPECT_EQ(o.build.profiles[0].min, (std::vector<NamedShape>{{"x", {4}}, {"y", {5}}}));
  EXPECT_EQ(o.build.profiles[0].opt, (std::vector<NamedShape>{{"x", {4}}, {"y", {5}}}));
  EXPECT_THAT(o.warnings, Contains(HasSubstr("no --minShapes for 'x'; it is taken from --optShapes")));
  EXPECT_EQ(o.warnings.size(), 3u);
  auto m = parse({"--onnx=m", "--minShapes=x:2"}).build.profiles[0];
  EXPECT_EQ(m.opt[0].dims, (std::vector<int64_t>{2}));
  EXPECT_EQ(m.max[0].dims, (std::vector<int64_t>{2}));
  auto b = parse({"--onnx=m", "--minShapes=x:2", "--maxShapes=x:9"}).build.profiles[0];
  EXPECT_EQ(b.opt[0].dims, (std::vector<int64_t>{9}));
}

TEST(CliOptions, ProfileGroups) {
  auto o = parse({"--profile=1", "--minShapes=x:1", "--maxShapes=x:2", "--optShapes=x:2", "--onnx=m", "--profile=0",
                  "--optShapes=x:7", "--minShapes=x:7", "--maxShapes=x:7"});
  ASSERT_EQ(o.build.profiles.size(), 2u);
  EXPECT_EQ(o.build.profiles[0].opt[0].dims, (std::vector<int64_t>{7}));
  EXPECT_EQ(o.build.profiles[1].opt[0].dims, (std::vector<int64_t>{2}));
}

TEST(CliOptions, RefPairsInEitherOrder) {
  auto o = parse({"--onnx=m", "--accuracyThreshold=0.1", "--refPair=1", "--loadRefOutputs=y:o1", "--loadInputs=x:i1",
                  "--refPair=0", "--loadInputs=x:i0", "--loadRefOutputs=y:o0"});
  ASSERT_EQ(o.inference.pairs.size(), 2u);
  EXPECT_EQ(o.inference.pairs[0].inputs[0].file, "i0");
  EXPECT_EQ(o.inference.pairs[1].refOutputs[0].file, "o1");
}

TEST(CliOptions, IgnoredFlagsWarnAndSayWhy) {
  auto o = parse({"--onnx=m", "--useCudaGraph", "--noTF32", "--streams=2", "--profilingVerbosity=verbose",
                  "--memPoolSize=dlaSRAM:1"});
  EXPECT_EQ(o.warnings.size(), 4u);
  EXPECT_THAT(o.warnings, Contains(HasSubstr("--useCudaGraph is ignored")));
  EXPECT_THAT(o.warnings, Contains(HasSubstr("--infStreams")));
  EXPECT_EQ(o.inference.streams, 2);
  EXPECT_EQ(o.build.profilingVerbosity, "detailed");
}

// Nothing is dropped in silence: what a search has no use for is said, unless its winner is to be run.
TEST(CliOptions, FlagsOfMeasuringBesideASearch) {
  const std::vector<std::string> tune{"--onnx=m", "--tune=5s", "--saveEngine=e"};
  auto with = [&](std::vector<std::string> more) {
    more.insert(more.begin(), tune.begin(), tune.end());
    return parse(more).warnings;
  };
  EXPECT_THAT(with({}), IsEmpty());
  for (const char* flag : {"--iterations=5", "--warmUp=0", "--duration=1", "--infStreams=2", "--percentile=50"}) {
    const std::string name = std::string(flag).substr(0, std::string(flag).find('='));
    EXPECT_THAT(with({flag}), ElementsAre(HasSubstr(name + " has no effect"))) << flag;
    EXPECT_THAT(with({flag, "--exportTimes=t.json"}), IsEmpty()) << flag;
    EXPECT_THAT(parse({"--onnx=m", flag}).warnings, IsEmpty()) << flag;
  }
  for (const char* flag : {"--avgTiming=2", "--maxTactics=2", "--timingCacheFile=t", "--noBuilderCache"}) {
    EXPECT_THAT(parse({"--onnx=m", flag}).warnings, ElementsAre(HasSubstr("below --builderOptimizationLevel=4")))
        << flag;
    EXPECT_THAT(parse({"--onnx=m", flag, "--builderOptimizationLevel=4"}).warnings, IsEmpty()) << flag;
  }
}

TEST(CliOptions, TuningFlags) {
  auto o = parse({"--onnx=m", "--tuneBuildRoutes=-a=[1|2]", "--tuningSearch=mixed", "--tuningTimeOut=60",
                  "--saveEngine=e", "--saveAllEngines", "--minGain=2.5", "--maxCandidates=9", "--buildTimeOut=5"});
  EXPECT_TRUE(o.tuning.active());
  EXPECT_EQ(o.tuning.search, "mixed");
  EXPECT_EQ(o.tuning.timeOutSeconds, 60);
  EXPECT_EQ(o.tuning.minGainPercent, 2.5);
  EXPECT_EQ(o.tuning.maxCandidates, 9);
  EXPECT_THAT(o.warnings, IsEmpty());
  EXPECT_EQ(parse({"--onnx=m", "--tune=10m"}).tuning.tuneSeconds, 600);
  EXPECT_EQ(parse({"--onnx=m", "--tune"}).tuning.tuneSeconds, 60);
  // Without --saveEngine a warning; a dry run saves nothing anyway.
  EXPECT_THAT(parse({"--onnx=m", "--tuneBuildRoutes=-a=1"}).warnings, Contains(HasSubstr("will not be saved")));
  EXPECT_THAT(parse({"--onnx=m", "--tuneBuildRoutes=-a=1", "--dryRun"}).warnings, IsEmpty());
  EXPECT_THAT(parse({"--onnx=m", "--seed=3", "--minGain=1"}).warnings,
              ElementsAre(HasSubstr("--minGain has no effect")));
}

TEST(CliOptions, FlagsWithoutEffectAreSaid) {
  const std::string none = " has no effect";
  EXPECT_THAT(parse({"--onnx=m", "--tune", "--tuningSearch=full"}).warnings,
              ElementsAre(HasSubstr("--tuningSearch" + none)));
  EXPECT_THAT(parse({"--onnx=m", "--tune", "--tuneBuildRoutes=-a=1", "--tuningSearch=full"}).warnings, IsEmpty());
  EXPECT_THAT(parse({"--onnx=m", "--noCompilationCache"}).warnings,
              ElementsAre(HasSubstr("--noCompilationCache" + none)));
  EXPECT_THAT(parse({"--onnx=m", "--noCompilationCache=false"}).warnings, IsEmpty());
  EXPECT_THAT(parse({"--onnx=m", "--tune", "--noCompilationCache"}).warnings, IsEmpty());
  EXPECT_THAT(parse({"--onnx=m", "--yes"}).warnings, ElementsAre(HasSubstr("--yes" + none)));
  EXPECT_THAT(parse({"--loadEngine=e", "--isa=avx2", "--builderOptimizationLevel=3"}).warnings,
              ElementsAre(HasSubstr("--isa" + none), HasSubstr("--builderOptimizationLevel" + none)));
  EXPECT_THAT(
      parse({"--onnx=m", "--skipInference", "--exportTimes=t", "--dumpProfile", "--exportLayerInfo=l"}).warnings,
      ElementsAre(HasSubstr("--exportTimes" + none), HasSubstr("--dumpProfile" + none)));
  EXPECT_THAT(parse({"--loadEngine=e", "--shapes=x:1x2"}).warnings, IsEmpty());
  EXPECT_THAT(parse({"--onnx=m", "--decomposableAttentions=a,b"}).warnings,
              ElementsAre(HasSubstr("--decomposableAttentions")));
  EXPECT_THAT(parse({"--onnx=m", "--tuneBuildRoutes=-a=1", "--dryRun", "--yes"}).warnings, IsEmpty());
  for (const char* flag : {"--accuracyAlgorithm=l1", "--accuracyThreshold=0.1", "--atol=1", "--rtol=1"}) {
    const std::string name = std::string(flag).substr(0, std::string(flag).find('='));
    EXPECT_THAT(parse({"--onnx=m", flag}).warnings, ElementsAre(HasSubstr(name + none)));
    EXPECT_THAT(parse({"--loadEngine=e", "--loadInputs=x:a", flag}).warnings, ElementsAre(HasSubstr(name + none)));
    EXPECT_THAT(parse({"--onnx=m", "--tune", flag}).warnings, IsEmpty()) << flag;
    if (name != "--accuracyThreshold") {
      EXPECT_THAT(
          parse({"--onnx=m", "--loadInputs=x:a", "--loadRefOutputs=y:b", "--accuracyThreshold=1", flag}).warnings,
          IsEmpty())
          << flag;
    }
  }
}

TEST(CliOptions, ContinueAllowsItsFew) {
  auto o = parse({"--continue", "--tuningCacheFile=c", "--tuneBuildRoutes=-a=1", "--tuningTimeOut=5", "--force",
                  "--json", "--verbose"});
  EXPECT_TRUE(o.tuning.resume);
  EXPECT_TRUE(o.tuning.force);
}

TEST(CliHelp, NamesEveryFlagThatExists) {
  auto text = helpText();
  for (const auto& f : flagTable()) {
    bool shown = f.status != Status::Later && f.status != Status::Error;
    bool found = false;
    auto name = fmt::format("--{}", f.name);
    for (auto at = text.find(name); at != text.npos; at = text.find(name, at + 1))
      found = found || !std::isalnum(static_cast<unsigned char>(text[at + name.size()]));
    EXPECT_EQ(found, shown) << f.name;
  }
  EXPECT_THAT(text, HasSubstr("=== Tuning Options ==="));
}

TEST(CliHelp, FlagTableIsConsistent) {
  for (const auto& f : flagTable()) {
    EXPECT_EQ(&info(f.flag), &f);
    EXPECT_EQ(f.kind == Kind::Switch, f.argument.empty()) << f.name;
    if (f.status == Status::Warn || f.status == Status::Later || f.status == Status::Error) {
      EXPECT_FALSE(f.note.empty()) << f.name;
    }
    if (f.kind == Kind::Int || f.kind == Kind::Real) {
      EXPECT_NE(f.argument.find(".."), f.argument.npos) << f.name;
    }
  }
}

TEST(CliHelp, HelpWinsOverAll) {
  EXPECT_TRUE(CommandLine::mentions({"--nonsense", "--help"}, "--help"));
  EXPECT_FALSE(CommandLine::mentions({"--onnx=--help"}, "--help"));
}

TEST(CliEcho, GroupsInOrder) {
  auto lines =
      echoOptions(parse({"--onnx=m.onnx", "--minShapes=x:1", "--optShapes=x:2", "--maxShapes=x:3", "--shapes=x:2"}));
  std::vector<std::string> groups;
  for (const auto& l : lines)
    if (l.starts_with("===")) groups.push_back(l);
  EXPECT_THAT(groups, ElementsAre("=== Model Options ===", "=== Build Options ===", "=== System Options ===",
                                  "=== Inference Options ===", "=== Reporting Options ==="));
  EXPECT_THAT(lines, Contains("Model: m.onnx"));
  EXPECT_THAT(lines, Contains("Input build shape (profile 0): x=1+2+3"));
  EXPECT_THAT(lines, Contains("Duration: 3s (+ 200ms warm up)"));
  // With --loadEngine the build group is empty.
  auto loaded = echoOptions(parse({"--loadEngine=e"}));
  auto at = std::find(loaded.begin(), loaded.end(), "=== Build Options ===");
  EXPECT_EQ(*(at + 1), "=== System Options ===");
}

}  // namespace
}  // namespace rutter::cli
