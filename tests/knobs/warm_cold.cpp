// What a kernel cache holds never changes an engine: after any history a build equals that of an empty cache, also of
// one in a process of its own, where everything has other addresses.
#include <fcntl.h>
#include <fmt/format.h>
#include <rutter/rutter.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <set>

#include "api/recorders.h"
#include "base/file.h"
#include "knobs/random_net.h"
#include "knobs/random_route.h"
#include "knobs/witness.h"
#include "onnx_writer.h"

namespace rutter::test {

TEST(KernelCache, WarmEqualsCold) {
  const unsigned seed = 20240611;
  std::mt19937 rng(seed);
  std::vector<Net> nets(4);
  for (size_t i = 0; i < nets.size(); i++) randomNet(nets[i], unsigned(100 + i), 7);
  compiler::KernelCache warm;
  int hits = 0;
  for (int k = 0; k < 200; k++) {
    const ir::Graph& g = *nets[rng() % nets.size()].graph;
    const std::string isa = rng() % 2 ? "generic" : "";
    const std::string route = randomRoute(rng, 6);
    SCOPED_TRACE(fmt::format("seed {} round {} isa '{}' route '{}'", seed, k, isa, route));
    compiler::KernelCache cold;
    Built a = build(g, route, isa, warm), b = build(g, route, isa, cold);
    EXPECT_EQ(b.result.kernelsCompiled, b.result.kernels);
    hits += a.result.kernels - a.result.kernelsCompiled;
    ASSERT_TRUE(a.engine->bytes() == b.engine->bytes());
    EXPECT_EQ(a.result.decisionHash, b.result.decisionHash);
  }
  EXPECT_GT(hits, 200) << "the warm cache was hardly used: nothing is shown";
}

namespace {
std::string weights(const std::string& name, const onnxwriter::Ints& dims, unsigned seed) {
  int64_t n = 1;
  for (int64_t d : dims) n *= d;
  std::vector<float> v;
  for (std::mt19937 rng(seed); n > 0; n--) v.push_back(float(rng() % 2001) / 1000 - 1);
  return onnxwriter::floats(name, dims, v);
}
// Convolutions, a residual, a pooling, a product and a softmax.
onnxwriter::Model smallNetwork() {
  using onnxwriter::attr;
  using onnxwriter::node;
  onnxwriter::Model m;
  const std::string pads = attr("pads", onnxwriter::Ints{1, 1, 1, 1});
  m.nodes = {node("Conv", {"x", "w0", "b0"}, {"c0"}, {pads}, "conv0"),
             node("Relu", {"c0"}, {"r0"}, {}, "relu0"),
             node("Conv", {"r0", "w1"}, {"c1"}, {pads}, "conv1"),
             node("Add", {"c1", "r0"}, {"a"}, {}, "add"),
             node("Conv", {"a", "w2"}, {"c2"}, {pads, attr("group", int64_t(8))}, "depthwise"),
             node("Sigmoid", {"c2"}, {"s"}, {}, "sigmoid"),
             node("GlobalAveragePool", {"s"}, {"g"}, {}, "pool"),
             node("Flatten", {"g"}, {"f"}, {}, "flatten"),
             node("Gemm", {"f", "w3", "b3"}, {"d"}, {}, "gemm"),
             node("Softmax", {"d"}, {"y"}, {}, "softmax")};
  m.initialisers = {weights("w0", {8, 3, 3, 3}, 1), weights("b0", {8}, 2),     weights("w1", {8, 8, 3, 3}, 3),
                    weights("w2", {8, 1, 3, 3}, 4), weights("w3", {8, 19}, 5), weights("b3", {19}, 6)};
  m.inputs = {onnxwriter::value("x", onnxwriter::kFloat, {"1", "3", "14", "14"})};
  m.outputs = {onnxwriter::value("y", onnxwriter::kFloat, {"1", "19"})};
  return m;
}
// Exit status of a process; its output goes to `log`.
int runProgram(std::vector<std::string> args, const std::string& log) {
  const pid_t pid = fork();
  if (pid == 0) {
    std::vector<char*> argv;
    for (auto& a : args) argv.push_back(a.data());
    argv.push_back(nullptr);
    const int fd = open(log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    dup2(fd, 1);
    dup2(fd, 2);
    execv(argv[0], argv.data());
    _exit(127);
  }
  int status = -1;
  waitpid(pid, &status, 0);
  return status;
}
}  // namespace

TEST(KernelCache, WarmEqualsColdInAnotherProcess) {
  std::string dir = testing::TempDir() + "rutter-cold-XXXXXX";
  ASSERT_NE(mkdtemp(dir.data()), nullptr);
  const std::string model = dir + "/m.onnx", file = dir + "/cold.engine", log = dir + "/log";
  writeFileAtomically(model, smallNetwork().bytes());
  Logger logger;
  Recorder recorder;
  std::unique_ptr<IBuilder> builder(createInferBuilder(logger));  // keeps its kernels
  builder->setErrorRecorder(&recorder);
  std::unique_ptr<INetworkDefinition> network(builder->createNetworkV2(0));
  std::unique_ptr<onnx::IParser> parser(onnx::createParser(*network, logger));
  ASSERT_TRUE(parser->parseFromFile(model.c_str(), 1)) << recorder.take();
  std::unique_ptr<IBuilderConfig> config(builder->createBuilderConfig());
  std::mt19937 rng(20240612);
  std::set<std::string> engines;
  for (int k = 0; k < 60; k++) {
    const std::string route = k ? randomRoute(rng, 8) : "";
    SCOPED_TRACE(fmt::format("round {} route '{}'", k, route));
    ASSERT_TRUE(config->setBuildRoute(route.c_str())) << recorder.take();
    std::unique_ptr<IHostMemory> bytes(builder->buildSerializedNetwork(*network, *config));
    ASSERT_TRUE(bytes) << recorder.take();
    std::vector<std::string> args{RUTTER_BINARY_DIR "/bin/rutter", "--onnx=" + model, "--saveEngine=" + file,
                                  "--skipInference"};
    if (!route.empty()) args.push_back("--setBuildRoute=" + route);
    ASSERT_EQ(runProgram(args, log), 0) << readWholeFile(log);
    const std::string warm(static_cast<const char*>(bytes->data()), bytes->size());
    ASSERT_TRUE(readWholeFile(file) == warm) << "of " << warm.size() << " bytes";
    engines.insert(warm);
  }
  EXPECT_GT(engines.size(), 40u) << "the routes hardly differ: nothing is shown";
  std::filesystem::remove_all(dir);
}

}  // namespace rutter::test
