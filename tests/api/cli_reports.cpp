// What the program prints and says when something is odd: reports, errors, signals, the line that builds again.
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "cli_fixture.h"
#include "runtime/engine_file.h"

namespace rutter {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using onnxwriter::kFloat;
using onnxwriter::node;
using onnxwriter::value;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

onnxwriter::Model manyAxes(size_t rank) {
  onnxwriter::Model m;
  m.nodes = {node("Relu", {"wide"}, {"y"})};
  m.inputs = {value("wide", kFloat, onnxwriter::Strings(rank, "1"))};
  m.outputs = {value("y", kFloat, onnxwriter::Strings(rank, "1"))};
  return m;
}

TEST_F(CliProgram, DumpLayerInfoListsTheLayers) {
  for (const char* flag : {"--skipInference", "--duration=0"}) {
    auto r = run({"--onnx=m.onnx", "--dumpLayerInfo", "--profilingVerbosity=detailed", "--warmUp=0", flag});
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_THAT(r.out, HasSubstr("Layer Information:\n"));
    EXPECT_THAT(r.out, HasSubstr("\"Tactic\"")) << "--dumpLayerInfo printed its heading but no layer";
  }
}

// Neither alphabetical nor reversed, so that no sorting gives this order by chance.
TEST_F(CliProgram, TensorsAreListedInTheModelsOrder) {
  onnxwriter::Model m;
  m.nodes = {node("Relu", {"n"}, {"mm"}), node("Neg", {"z"}, {"zz"}), node("Abs", {"b"}, {"aa"})};
  for (auto name : {"n", "z", "b"}) m.inputs.push_back(value(name, kFloat, {"d", "2"}));
  for (auto name : {"mm", "zz", "aa"}) m.outputs.push_back(value(name, kFloat, {"d", "2"}));
  write("three.onnx", m);
  const std::vector<std::string> base{"--onnx=three.onnx",
                                      "--minShapes=n:1x2,z:1x2,b:1x2",
                                      "--optShapes=n:1x2,z:1x2,b:1x2",
                                      "--maxShapes=n:2x2,z:2x2,b:2x2",
                                      "--duration=0",
                                      "--warmUp=0",
                                      "--dumpOutput",
                                      "--exportOutput=o.json",
                                      "--dumpOptimizationProfile"};
  auto r = run(base);
  ASSERT_EQ(r.code, 0) << r.err;
  auto inOrder = [](const std::string& text, const std::vector<std::string>& words) {
    size_t at = 0;
    for (const auto& w : words) {
      at = text.find(w, at);
      if (at == text.npos) return testing::AssertionFailure() << "'" << w << "' is missing or too early in\n" << text;
    }
    return testing::AssertionSuccess();
  };
  EXPECT_TRUE(inOrder(r.out.substr(r.out.find("Output Tensors:")), {"mm: (", "zz: (", "aa: ("}));
  EXPECT_TRUE(inOrder(r.out, {"Profile 0: n: ", "Profile 0: z: ", "Profile 0: b: "}));
  std::string names;
  for (const auto& o : json::parse(slurp(dir_ + "/o.json"))) names += o["name"].get<std::string>() + " ";
  EXPECT_EQ(names, "mm zz aa ") << "--exportOutput lists the outputs in another order than the model";
  auto j = base;
  j.push_back("--json");
  EXPECT_TRUE(inOrder(run(j).out, {"\"n\"", "\"z\"", "\"b\""}));
}

TEST_F(CliProgram, InputsWithoutAShapeOrWithTooManyAxesAreNamed) {
  onnxwriter::Model m = onnxwriter::reluModel();
  m.inputs = {onnxwriter::shapeless("x", kFloat)};
  m.outputs = {onnxwriter::shapeless("y", kFloat)};
  write("open.onnx", m);
  auto none = run({"--onnx=open.onnx", "--skipInference"});
  EXPECT_EQ(none.code, 1);
  EXPECT_THAT(none.err, HasSubstr("input 'x' has no shape in the model"));
  EXPECT_THAT(none.err, HasSubstr("--shapes=x:1x3x224x224"));
  // The advice helps.
  auto given =
      run({"--onnx=open.onnx", "--shapes=x:2x3", "--loadInputs=x:x.bin", "--dumpOutput", "--duration=0", "--warmUp=0"});
  EXPECT_EQ(given.code, 0) << given.err;
  EXPECT_THAT(given.out, HasSubstr("y: (2x3) 0 2 0 4 5 0"));
  EXPECT_THAT(run({"--check=open.onnx"}).out, HasSubstr("input x: float32, no shape"));
  write("wide.onnx", manyAxes(9));
  for (const char* flag : {"--onnx=wide.onnx", "--check=wide.onnx"}) {
    auto wide = run({flag});
    EXPECT_EQ(wide.code, 1);
    EXPECT_THAT(wide.err, HasSubstr("input 'wide' has rank 9, which is not supported: at most 8 axes are"));
  }
  write("eight.onnx", manyAxes(8));
  EXPECT_EQ(run({"--onnx=eight.onnx", "--duration=0", "--warmUp=0"}).code, 0);
}

TEST_F(CliProgram, UnsupportedOperatorsAreNamedAllTogether) {
  onnxwriter::Model m = onnxwriter::reluModel();
  m.nodes = {node("Frobnicate", {"x"}, {"a"}, {}, "first"), node("Relu", {"a"}, {"b"}),
             node("Twiddle", {"b"}, {"y"}, {}, "second")};
  write("odd.onnx", m);
  const std::string want = "odd.onnx: 2 nodes use unsupported operators: Frobnicate (first); Twiddle (second)";
  for (const char* flag : {"--onnx=odd.onnx", "--check=odd.onnx"}) {
    auto r = run({flag});
    EXPECT_EQ(r.code, 1);
    EXPECT_THAT(r.err, HasSubstr(want)) << flag;
  }
}

TEST_F(CliProgram, OutputsDeclaredAsAnotherTypeAreRefused) {
  onnxwriter::Model m = onnxwriter::reluModel();
  m.outputs = {value("y", 7 /* int64 */, {"2", "3"})};
  write("liar.onnx", m);
  auto r = run({"--onnx=liar.onnx", "--skipInference"});
  EXPECT_EQ(r.code, 1);
  EXPECT_THAT(r.err, HasSubstr("output 'y' is declared int64 but is float32"));
}

TEST_F(CliProgram, AReportThatCannotBePrintedIsAnError) {
  if (::access("/dev/full", W_OK) != 0) GTEST_SKIP() << "there is no /dev/full here";
  const std::vector<std::vector<std::string>> cases{
      {"--onnx=m.onnx", "--duration=0", "--warmUp=0", "--json"},
      {"--onnx=m.onnx", "--duration=0", "--warmUp=0"},
      {"--onnx=m.onnx", "--dryRun", "--tuneBuildRoutes=-gemm:tile_m=[auto|8]"},
      {"--helpBuildRoute"},
      {"--help"},
      {"--version"}};
  for (const auto& args : cases) {
    auto r = runInto(args, "/dev/full");
    EXPECT_EQ(r.code, 1) << testing::PrintToString(args) << " succeeded although nothing of it could be printed";
    EXPECT_THAT(r.err, HasSubstr("standard output could not be written: No space left on device"));
    EXPECT_EQ(run(args).code, 0) << testing::PrintToString(args);
  }
}

TEST_F(CliProgram, ATemporaryFolderThatIsNoneIsSaidWithItsFlag) {
  std::ofstream(dir_ + "/file") << "no folder";
  const std::vector<std::vector<std::string>> modes{{"--onnx=m.onnx", "--skipInference"},
                                                    {"--check=m.onnx"},
                                                    {"--onnx=m.onnx", "--dryRun", "--tuneBuildRoutes=-gemm:tile_m=[8]"},
                                                    {"--onnx=m.onnx", "--tune=5s", "--saveEngine=e"}};
  for (auto args : modes) {
    args.push_back("--tempdir=/nope");
    auto r = run(args);
    EXPECT_EQ(r.code, 1) << testing::PrintToString(args);
    EXPECT_THAT(r.err, HasSubstr("--tempdir=/nope: No such file or directory")) << testing::PrintToString(args);
    args.back() = "--tempdir=file";
    EXPECT_THAT(run(args).err, HasSubstr("--tempdir=file: it is no folder"));
    args.back() = "--tempdir=.";
    if (args.size() < 4) {
      EXPECT_EQ(run(args).code, 0) << testing::PrintToString(args);
    }
  }
}

TEST_F(CliProgram, TooLittleMemoryForTheCompilerIsNoMissingLibrary) {
  auto r = shell("ulimit -v 100000; rutter --onnx=m.onnx --skipInference");
  if (r.code == 0) GTEST_SKIP() << "100 MB of address space are enough for the compiler here";
  if (r.err.find("the CPU compiler") == r.err.npos) GTEST_SKIP() << "something else failed first: " << r.err;
  EXPECT_THAT(r.err, HasSubstr("although it is there"));
  EXPECT_THAT(r.err, HasSubstr("librutter_cpu.so"));
  EXPECT_THAT(r.err, HasSubstr("ulimit -v"));
  EXPECT_THAT(r.err, Not(HasSubstr("install LLVM")));
}

TEST_F(CliProgram, RequestsToEndEndASearchAsCtrlCDoes) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    const std::string name = "s" + std::to_string(signal), engine = dir_ + "/" + name;
    fs::remove(dir_ + "/stdout");  // of the search before
    const pid_t pid =
        start({RUTTER_BINARY_DIR "/bin/rutter", "--onnx=m.onnx", "--tuningSearch=full", "--saveEngine=" + name,
               "--tuneBuildRoutes=-codegen:vector=[auto|128|256] -codegen:align_loops=[16|32|64] "
               "-pointwise:task_bytes=[auto|4096|16384|65536|262144]"},
              dir_ + "/stdout");
    for (int i = 0; i < 3000 && slurp(dir_ + "/stdout").find("TASK_END") == std::string::npos; i++) ::usleep(10'000);
    const bool searching = slurp(dir_ + "/stdout").find("TASK_END") != std::string::npos;
    ::kill(pid, signal);
    auto r = finish(pid);
    ASSERT_TRUE(searching) << "no candidate was measured within 30 s\n" << r.out << r.err;
    EXPECT_EQ(r.code, 0) << "signal " << signal << " ended the search badly\n" << r.out << r.err;
    EXPECT_THAT(r.out, HasSubstr("Interrupted: this is the best so far"));
    EXPECT_THAT(last(r.out), StartsWith("&&&& PASSED"));
    ASSERT_TRUE(fs::exists(engine)) << "signal " << signal << ": the best so far was not saved";
    EXPECT_GT(fs::file_size(engine + ".tune.jsonl"), 0u);
  }
}

// "The same engine again: rutter …" is a line for the shell.
TEST_F(CliProgram, ThePrintedLineBuildsTheSameEngine) {
  onnxwriter::Model m;
  m.nodes = {node("Relu", {"in put"}, {"y"}, {}, "relu"), node("Sin", {"y"}, {"z"}, {}, "sin")};
  m.inputs = {value("in put", kFloat, {"n", "2", "4", "d"})};
  m.outputs = {value("z", kFloat, {"n", "2", "4", "d"})};
  write("two words.onnx", m);
  auto tuned = run({"--onnx=two words.onnx", "--minShapes=in put:1x2x4x4", "--optShapes=in put:2x2x4x8",
                    "--maxShapes=in put:4x2x4x16", "--isa=generic", "--threads=1", "--inputIOFormats=hwc",
                    "--profilingVerbosity=detailed", "--minGain=0", "--saveEngine=first", "--seed=3",
                    "--tuneBuildRoutes=-codegen:vector=[auto|128] -pointwise:task_bytes=[auto|4096]"});
  ASSERT_EQ(tuned.code, 0) << tuned.out << tuned.err;
  const std::string mark = "The same engine again: ";
  const auto at = tuned.out.find(mark);
  ASSERT_NE(at, std::string::npos) << tuned.out;
  const auto line = tuned.out.substr(at + mark.size(), tuned.out.find('\n', at) - at - mark.size());
  auto again = shell(line + " --saveEngine=again --duration=0 --warmUp=0");
  ASSERT_EQ(again.code, 0) << line << "\n" << again.err;
  EXPECT_THAT(last(again.out), StartsWith("&&&& PASSED"));
  const auto a = slurp(dir_ + "/first"), b = slurp(dir_ + "/again");
  const auto first = runtime::readEngine(a), second = runtime::readEngine(b);
  EXPECT_EQ(first.manifest.decisionHash, second.manifest.decisionHash) << line;
  EXPECT_EQ(first.manifest.route, second.manifest.route) << line;
  EXPECT_TRUE(first.plan == second.plan) << "another plan from: " << line;
  EXPECT_TRUE(first.code == second.code) << "other machine code from: " << line;
  EXPECT_TRUE(first.weights == second.weights) << "other weights from: " << line;
}

}  // namespace
}  // namespace rutter
