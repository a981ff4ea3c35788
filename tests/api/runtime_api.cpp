// The runtime half of the public API, on engines made of hand-written plans.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>

#include "api/recorders.h"
#include "base/file.h"
#include "base/fingerprint.h"
#include "runtime_plans.h"

extern "C" bool rutterHeadersCompile(rutter::ILogger& logger);

namespace rutter {
namespace {

using runtime::testing_::PlanBuilder;
using runtime::testing_::SumTwice;
using testing::HasSubstr;
using testing::StartsWith;

std::vector<int64_t> vec(const Dims& d) {
  return {d.d, d.d + std::max(d.nbDims, 0)};
}
using Shape = std::vector<int64_t>;

class RuntimeApi : public testing::Test {
 protected:
  void SetUp() override {
    runtime.reset(createInferRuntime(logger));
    ASSERT_TRUE(runtime);
    runtime->setErrorRecorder(&recorder);
    ASSERT_TRUE(runtime->setMaxThreads(2));
  }
  void open(const std::string& bytes) {
    context.reset();
    engine.reset(runtime->deserializeCudaEngine(bytes.data(), bytes.size()));
    ASSERT_TRUE(engine) << recorder.take();
    context.reset(engine->createExecutionContext());
    ASSERT_TRUE(context) << recorder.take();
  }
  void shapes(int64_t b) {
    ASSERT_TRUE(context->setInputShape("x", {2, {b, 5}}));
    ASSERT_TRUE(context->setInputShape("y", {2, {b, 5}}));
    x.assign(size_t(b * 5), 1.f);
    y.assign(size_t(b * 5), 2.f);
    z.assign(size_t(b * 5), -1.f);
    ASSERT_TRUE(context->setInputTensorAddress("x", x.data()));
    ASSERT_TRUE(context->setTensorAddress("y", y.data()));
    ASSERT_TRUE(context->setOutputTensorAddress("z", z.data()));
  }
  test::Logger logger;
  test::Recorder recorder;
  std::unique_ptr<IRuntime> runtime;
  std::unique_ptr<ICudaEngine> engine;
  std::unique_ptr<IExecutionContext> context;
  std::vector<float> x, y, z;
};

TEST_F(RuntimeApi, DescribesTheEngine) {
  SumTwice p;
  p.plan.model_name = "sum";
  p.plan.route = "-gemm:tile_m=6";
  open(p.write());
  ASSERT_EQ(engine->getNbIOTensors(), 3);
  EXPECT_STREQ(engine->getIOTensorName(0), "x");
  EXPECT_STREQ(engine->getIOTensorName(2), "z");
  EXPECT_EQ(engine->getIOTensorName(3), nullptr);
  EXPECT_EQ(engine->getTensorIOMode("x"), TensorIOMode::kINPUT);
  EXPECT_EQ(engine->getTensorIOMode("z"), TensorIOMode::kOUTPUT);
  EXPECT_EQ(engine->getTensorIOMode("nope"), TensorIOMode::kNONE);
  EXPECT_EQ(engine->getTensorDataType("x"), DataType::kFLOAT);
  EXPECT_EQ(engine->getTensorFormat("x"), TensorFormat::kLINEAR);
  EXPECT_STREQ(engine->getTensorFormatDesc("x"), "row-major");
  EXPECT_EQ(vec(engine->getTensorShape("z")), (Shape{-1, 5}));
  EXPECT_EQ(engine->getTensorShape("nope").nbDims, -1);
  EXPECT_EQ(vec(engine->getProfileShape("x", 0, OptProfileSelector::kMAX)), (Shape{8, 5}));
  EXPECT_EQ(vec(engine->getProfileShape("x", 0, OptProfileSelector::kOPT)), (Shape{4, 5}));
  EXPECT_EQ(engine->getProfileShape("x", 1, OptProfileSelector::kMIN).nbDims, -1);
  EXPECT_EQ(engine->getProfileShape("z", 0, OptProfileSelector::kMIN).nbDims, -1);
  EXPECT_EQ(engine->getNbOptimizationProfiles(), 1);
  EXPECT_EQ(engine->getNbLayers(), 2);
  EXPECT_STREQ(engine->getName(), "sum");
  EXPECT_STREQ(engine->getBuildRoute(), "-gemm:tile_m=6");
  EXPECT_STREQ(engine->getTuningFingerprint(), "");
  EXPECT_EQ(engine->getEngineStat(EngineStat::kTOTAL_WEIGHTS_SIZE), 0);
  EXPECT_EQ(engine->getDeviceMemorySizeV2(), 256 + 2 * 64);
  EXPECT_EQ(engine->getDeviceMemorySizeForProfileV2(0), engine->getDeviceMemorySizeV2());
  EXPECT_EQ(engine->getDeviceMemorySizeForProfileV2(1), -1);
  std::unique_ptr<IHostMemory> bytes(engine->serialize());
  EXPECT_EQ((std::string(static_cast<char*>(bytes->data()), bytes->size())), p.write());
}
TEST_F(RuntimeApi, WarnsOfAnEngineTunedElsewhere) {
  auto warnings = [&] {
    int n = 0;
    for (auto& l : logger.lines)
      n += l.first == ILogger::Severity::kWARNING && l.second.find("cores: 999 there") != std::string::npos;
    return n;
  };
  SumTwice p;
  Fingerprint f = Fingerprint::ofMachine();
  p.parts.fingerprint = f.text();
  open(p.write());
  EXPECT_EQ(f.text(), engine->getTuningFingerprint());
  EXPECT_TRUE(logger.lines.empty());
  f.facts["cores"] = "999";
  p.parts.fingerprint = f.text();
  open(p.write());
  EXPECT_EQ(warnings(), 1);
}
TEST_F(RuntimeApi, RunsInAllThreeWays) {
  open(SumTwice().write());
  shapes(3);
  ASSERT_TRUE(context->enqueueV3(nullptr)) << recorder.take();
  EXPECT_EQ(z, std::vector<float>(15, 6.f));
  shapes(8);
  void* bindings[] = {x.data(), y.data(), z.data()};
  ASSERT_TRUE(context->executeV2(bindings));
  EXPECT_EQ(z, std::vector<float>(40, 6.f));
  std::unique_ptr<IQueue> queue(runtime->createQueue());
  std::fill(z.begin(), z.end(), 0.f);
  ASSERT_TRUE(context->enqueueV3(queue.get()));
  ASSERT_TRUE(queue->synchronize());
  EXPECT_EQ(z, std::vector<float>(40, 6.f));
  EXPECT_EQ(context->getTensorAddress("z"), z.data());
  EXPECT_EQ(context->getOutputTensorAddress("x"), nullptr);
}
TEST_F(RuntimeApi, AQueueReportsAFailureOnce) {
  open(SumTwice().write());
  std::unique_ptr<IQueue> queue(runtime->createQueue());
  ASSERT_TRUE(context->enqueueV3(queue.get()));  // no shapes yet
  EXPECT_FALSE(queue->synchronize());
  EXPECT_THAT(recorder.take(), HasSubstr("shape of input 'x' is not set"));
  EXPECT_TRUE(queue->synchronize());
}
TEST_F(RuntimeApi, ShapesBecomeKnown) {
  open(SumTwice().write());
  EXPECT_FALSE(context->allInputDimensionsSpecified());
  char const* names[2] = {};
  EXPECT_EQ(context->inferShapes(1, names), 2);
  EXPECT_STREQ(names[0], "x");
  EXPECT_EQ(names[1], nullptr);
  EXPECT_EQ(vec(context->getTensorShape("z")), (Shape{-1, 5}));
  ASSERT_TRUE(context->setInputShape("x", {2, {3, 5}}));
  EXPECT_EQ(vec(context->getTensorShape("x")), (Shape{3, 5}));
  ASSERT_TRUE(context->setInputShape("y", {2, {4, 5}}));
  EXPECT_TRUE(context->allInputDimensionsSpecified());
  EXPECT_EQ(context->inferShapes(0, nullptr), -1);
  EXPECT_THAT(recorder.take(), StartsWith("3: input 'y': axis 0 is 4, but must be 3"));
  EXPECT_EQ(vec(context->getTensorShape("z")), (Shape{-1, 5}));
  ASSERT_TRUE(context->setInputShape("y", {2, {3, 5}}));
  EXPECT_EQ(context->inferShapes(0, nullptr), 0);
  EXPECT_EQ(vec(context->getTensorShape("z")), (Shape{3, 5}));
  EXPECT_EQ(vec(context->getTensorStrides("z")), (Shape{5, 1}));
  EXPECT_EQ(context->getMaxOutputSize("z"), 8 * 5 * 4);
  EXPECT_EQ(context->getMaxOutputSize("x"), -1);
  ASSERT_TRUE(context->setOptimizationProfileAsync(0, nullptr));
  EXPECT_FALSE(context->allInputDimensionsSpecified());
}
TEST_F(RuntimeApi, ErrorsHaveCodesAndOneClearLine) {
  open(SumTwice().write());
  EXPECT_FALSE(context->setInputShape("w", {2, {1, 5}}));
  EXPECT_EQ(recorder.take(), "3: the engine has no input 'w'; it has: x, y");
  EXPECT_FALSE(context->setInputShape("z", {2, {1, 5}}));
  EXPECT_EQ(recorder.take(), "3: the engine has no input 'z'; it has: x, y");
  EXPECT_FALSE(context->setInputShape("x", {2, {9, 5}}));
  EXPECT_EQ(recorder.take(), "3: input 'x': axis 0 is 9, outside the range 1 to 8 of profile 0");
  EXPECT_FALSE(context->setInputShape("x", {-1, {}}));
  EXPECT_FALSE(context->setInputShape(nullptr, {0, {}}));
  EXPECT_FALSE(context->setTensorAddress(nullptr, nullptr));
  EXPECT_FALSE(context->executeV2(nullptr));
  EXPECT_FALSE(context->setOptimizationProfileAsync(3, nullptr));
  EXPECT_EQ(recorder.take(), "3: profile 3 does not exist: the engine has 1");
  shapes(1);
  ASSERT_TRUE(context->setTensorAddress("z", nullptr));
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_EQ(recorder.take(), "3: no address is set for output 'z'");
  int event;
  EXPECT_FALSE(context->setInputConsumedEvent(&event));
  EXPECT_THAT(recorder.take(), StartsWith("10: "));
  EXPECT_FALSE(runtime->setMaxThreads(0));
  EXPECT_EQ(runtime->getMaxThreads(), 2);
  // The logger got every one of them, too.
  EXPECT_TRUE(std::any_of(logger.lines.begin(), logger.lines.end(), [](auto& l) {
    return l.first == ILogger::Severity::kERROR && l.second == "no address is set for output 'z'";
  }));
}
TEST_F(RuntimeApi, BadEnginesAreNull) {
  std::string good = SumTwice().write();
  for (std::string bad : {std::string(), std::string("junk"), good.substr(0, good.size() - 1)}) {
    EXPECT_EQ(runtime->deserializeEngine(bad.data(), bad.size()), nullptr);
    EXPECT_THAT(recorder.take(), StartsWith("3: "));
  }
  EXPECT_EQ(runtime->deserializeEngine(nullptr, 10), nullptr);
  EXPECT_EQ(runtime->deserializeFile("/no/such.engine"), nullptr);
  EXPECT_EQ(recorder.take(), "3: cannot open engine '/no/such.engine': No such file or directory");
  EXPECT_EQ(rutterEngineFormatVersion(good.data(), good.size()), 1);
  EXPECT_EQ(rutterEngineFormatVersion("junk", 4), -1);
}
TEST_F(RuntimeApi, FilesAndStreams) {
  std::string bytes = SumTwice().write(), path = testing::TempDir() + "/api." + std::to_string(getpid());
  writeFileAtomically(path, bytes);
  std::unique_ptr<IEngine> mapped(runtime->deserializeFile(path.c_str()));
  unlink(path.c_str());
  ASSERT_TRUE(mapped) << recorder.take();
  struct Reader : IStreamReaderV2 {
    std::string_view left;
    int64_t read(void* to, int64_t n, IQueue*) noexcept override {
      n = std::min<int64_t>({n, int64_t(left.size()), 1000});
      std::memcpy(to, left.data(), size_t(n));
      left.remove_prefix(size_t(n));
      return n;
    }
    bool seek(int64_t, SeekPosition) noexcept override { return false; }
  } reader;
  reader.left = bytes;
  std::unique_ptr<IEngine> streamed(runtime->deserializeCudaEngine(reader));
  ASSERT_TRUE(streamed) << recorder.take();
  EXPECT_EQ(streamed->getNbLayers(), mapped->getNbLayers());
}
TEST_F(RuntimeApi, ProfilersHearEveryLayer) {
  struct Profiler : IProfiler {
    std::vector<std::string> names;
    void reportLayerTime(char const* name, float ms) noexcept override { names.push_back(ms > 0 ? name : "no time"); }
  } profiler;
  open(SumTwice().write());
  shapes(8);
  EXPECT_FALSE(context->reportToProfiler());
  context->setProfiler(&profiler);
  ASSERT_TRUE(context->enqueueV3(nullptr));
  EXPECT_EQ(profiler.names, (std::vector<std::string>{"sum", "double"}));
  context->setEnqueueEmitsProfile(false);
  ASSERT_TRUE(context->enqueueV3(nullptr));
  EXPECT_EQ(profiler.names.size(), 2u);
  EXPECT_TRUE(context->reportToProfiler());
  EXPECT_EQ(profiler.names.size(), 4u);
}
TEST_F(RuntimeApi, OutputAllocatorsAreAsked) {
  struct Allocator : IOutputAllocator {
    std::vector<char> memory;
    Dims shape;
    bool refuse = false;
    void* reallocateOutputAsync(char const*, void*, uint64_t size, uint64_t, IQueue*) noexcept override {
      memory.resize(size);
      return refuse ? nullptr : memory.data();
    }
    void notifyShape(char const*, Dims const& d) noexcept override { shape = d; }
  } allocator;
  open(SumTwice().write());
  shapes(2);
  context->setTensorAddress("z", nullptr);
  ASSERT_TRUE(context->setOutputAllocator("z", &allocator));
  EXPECT_FALSE(context->setOutputAllocator("x", &allocator));
  ASSERT_TRUE(context->enqueueV3(nullptr)) << recorder.take();
  EXPECT_EQ(vec(allocator.shape), (Shape{2, 5}));
  EXPECT_EQ(allocator.memory.size(), 40u);
  float first;
  std::memcpy(&first, allocator.memory.data(), 4);
  EXPECT_EQ(first, 6.f);
  allocator.refuse = true;
  EXPECT_FALSE(context->enqueueV3(nullptr));
  EXPECT_THAT(recorder.take(), StartsWith("5: "));
}
TEST_F(RuntimeApi, MemoryOfTheProgram) {
  open(SumTwice().write());
  std::unique_ptr<IRuntimeConfig> config(engine->createRuntimeConfig());
  config->setExecutionContextAllocationStrategy(ExecutionContextAllocationStrategy::kUSER_MANAGED);
  context.reset(engine->createExecutionContext(config.get()));
  EXPECT_EQ(context->updateDeviceMemorySizeForShapes(), 0u);
  shapes(1);
  size_t need = context->updateDeviceMemorySizeForShapes();
  EXPECT_GT(need, 0u);
  EXPECT_LE(need, size_t(engine->getDeviceMemorySizeV2()));
  EXPECT_FALSE(context->enqueueV3(nullptr));
  std::unique_ptr<void, void (*)(void*)> memory(std::aligned_alloc(64, (need + 63) / 64 * 64), std::free);
  context->setDeviceMemoryV2(memory.get(), int64_t(need));
  ASSERT_TRUE(context->enqueueV3(nullptr)) << recorder.take();
  EXPECT_EQ(z[0], 6.f);
}
TEST_F(RuntimeApi, TheInspectorTellsInJson) {
  SumTwice p;
  p.plan.layers[0]->tactic = "gemm_tile";
  p.plan.layers[0]->origins = {"Add_0"};
  p.plan.layers[0]->flops = p.rows;
  p.plan.layers[1]->type = "";  // names only
  open(p.write());
  std::unique_ptr<IEngineInspector> inspector(engine->createEngineInspector());
  auto j = nlohmann::json::parse(inspector->getEngineInformation(LayerInformationFormat::kJSON));
  EXPECT_EQ(j["Layers"][0]["Name"], "sum");
  EXPECT_EQ(j["Layers"][0]["Tactic"], "gemm_tile");
  EXPECT_EQ(j["Layers"][0]["Origins"][0], "Add_0");
  EXPECT_EQ(j["Layers"][0]["Kernels"][0], "add_rows");
  EXPECT_EQ(j["Layers"][0]["Flops"], 4);
  EXPECT_EQ(j["Layers"][0]["Bytes"], nullptr);
  EXPECT_EQ(j["Layers"][0]["Reference"], false);
  EXPECT_EQ(j["Layers"][1], "double");
  EXPECT_EQ(j["Bindings"], (std::vector<std::string>{"x", "y", "z"}));
  EXPECT_EQ(j["I/O Tensors"][0]["ProfileInfo"][0]["MaxShape"], (Shape{8, 5}));
  EXPECT_EQ(j["Engine"]["FormatVersion"], 1);
  shapes(7);
  ASSERT_TRUE(inspector->setExecutionContext(context.get()));
  EXPECT_EQ(nlohmann::json::parse(inspector->getLayerInformation(0, LayerInformationFormat::kJSON))["Flops"], 7);
  EXPECT_STREQ(inspector->getLayerInformation(0, LayerInformationFormat::kONELINE), "sum [Test] gemm_tile");
  EXPECT_EQ(inspector->getLayerInformation(2, LayerInformationFormat::kJSON), nullptr);
  EXPECT_THAT(recorder.take(), HasSubstr("layer 2 does not exist"));
}
TEST_F(RuntimeApi, RecordersAreCountedAndInherited) {
  open(SumTwice().write());
  EXPECT_EQ(engine->getErrorRecorder(), &recorder);
  EXPECT_EQ(context->getErrorRecorder(), &recorder);
  EXPECT_EQ(recorder.references, 3);
  context.reset();
  engine.reset();
  runtime.reset();
  EXPECT_EQ(recorder.references, 0);
}
TEST_F(RuntimeApi, ContextsRunAtOnce) {
  open(SumTwice().write());
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 3; t++)
    threads.emplace_back([&, t] {
      std::unique_ptr<IExecutionContext> c(engine->createExecutionContext());
      std::vector<float> a(40, float(t)), out(40);
      for (int i = 0; i < 50; i++) {
        int64_t b = 1 + (t + i) % 8;
        bool ok = c->setInputShape("x", {2, {b, 5}}) && c->setInputShape("y", {2, {b, 5}});
        void* bindings[] = {a.data(), a.data(), out.data()};
        ok = ok && c->executeV2(bindings) && out[size_t(b * 5 - 1)] == float(4 * t);
        wrong += !ok;
      }
    });
  for (auto& t : threads) t.join();
  EXPECT_EQ(wrong, 0) << recorder.take();
}
TEST(RuntimeFactory, RefusesOtherVersionsAndNoLogger) {
  test::Logger logger;
  EXPECT_EQ(rutterCreateInferRuntime(&logger, RUTTER_API_VERSION + 1), nullptr);
  ASSERT_FALSE(logger.lines.empty());
  EXPECT_THAT(logger.lines[0].second,
              HasSubstr("version " + std::to_string(RUTTER_API_VERSION + 1) + " of Rutter's headers"));
  EXPECT_EQ(rutterCreateInferRuntime(nullptr, RUTTER_API_VERSION), nullptr);
  EXPECT_TRUE(rutterHeadersCompile(logger));
  EXPECT_THAT(rutterRuntimeVersion(), testing::MatchesRegex("[0-9]+\\.[0-9]+\\.[0-9]+"));
}

}  // namespace
}  // namespace rutter
