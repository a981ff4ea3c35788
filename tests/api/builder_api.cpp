// What a builder's configuration, profiles, tensors and parser take, and what they refuse in so many words.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <limits>
#include <memory>
#include <utility>

#include "api/builder_fixture.h"
#include "onnx_writer.h"

namespace rutter::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class BuilderApi : public BuilderFixture {};

TEST_F(BuilderApi, FlagsThatCannotBeHonouredAreRefused) {
  const auto bit = [](BuilderFlag f) { return 1u << int(f); };
  EXPECT_EQ(config_->getFlags(), bit(BuilderFlag::kTF32));
  for (BuilderFlag f : {BuilderFlag::kGPU_FALLBACK, BuilderFlag::kREFIT, BuilderFlag::kSPARSE_WEIGHTS,
                        BuilderFlag::kVERSION_COMPATIBLE, BuilderFlag::kSTRIP_PLAN, BuilderFlag::kEDITABLE_TIMING_CACHE,
                        BuilderFlag(31), BuilderFlag(32), BuilderFlag(-1)}) {
    config_->setFlag(f);
    EXPECT_THAT(recorder_.take(), StartsWith("10: ")) << int(f);
    EXPECT_FALSE(config_->getFlag(f)) << int(f);
    config_->clearFlag(f);
  }
  EXPECT_EQ(config_->getFlags(), bit(BuilderFlag::kTF32));
  config_->clearFlag(BuilderFlag::kTF32);
  EXPECT_EQ(config_->getFlags(), 0u);
  config_->setFlag(BuilderFlag::kSTRICT_NANS);
  EXPECT_TRUE(config_->getFlag(BuilderFlag::kSTRICT_NANS));
  EXPECT_EQ(recorder_.take(), "");
  config_->setFlags(bit(BuilderFlag::kDEBUG) | bit(BuilderFlag::kREFIT) | bit(BuilderFlag::kTF32));
  EXPECT_THAT(recorder_.take(), StartsWith("10: kREFIT"));
  EXPECT_EQ(config_->getFlags(), bit(BuilderFlag::kDEBUG) | bit(BuilderFlag::kTF32));
  config_->setFlags(0);
  config_->reset();
  EXPECT_EQ(config_->getFlags(), bit(BuilderFlag::kTF32));
}

TEST_F(BuilderApi, MemoryPools) {
  config_->setMemoryPoolLimit(MemoryPoolType::kWORKSPACE, 1000);
  config_->setMemoryPoolLimit(MemoryPoolType::kTACTIC_SHARED_MEMORY, 5);
  EXPECT_THAT(recorder_.take(), StartsWith("10: kTACTIC_SHARED_MEMORY"));
  EXPECT_EQ(config_->getMemoryPoolLimit(MemoryPoolType::kTACTIC_SHARED_MEMORY), 0u);
  EXPECT_EQ(config_->getMemoryPoolLimit(MemoryPoolType::kWORKSPACE), 1000u);
}

TEST_F(BuilderApi, ProfilesHaveNeitherShapeValuesNorExtraMemory) {
  auto* p = builder_->createOptimizationProfile();
  const int64_t values[2] = {1, 2};
  EXPECT_FALSE(p->setShapeValuesV2("shape", OptProfileSelector::kMIN, values, 2));
  EXPECT_THAT(recorder_.take(), StartsWith("10: shape values for 'shape'"));
  EXPECT_FALSE(p->setShapeValuesV2(nullptr, OptProfileSelector::kMIN, nullptr, 0));
  recorder_.clear();
  EXPECT_EQ(p->getNbShapeValues("shape"), -1);
  EXPECT_EQ(p->getShapeValuesV2("shape", OptProfileSelector::kMIN), nullptr);
  EXPECT_TRUE(p->setExtraMemoryTarget(1));
  EXPECT_EQ(recorder_.take(), "");
  EXPECT_FALSE(p->setExtraMemoryTarget(0.5f));
  EXPECT_THAT(recorder_.take(), StartsWith("10: extra memory target 0.5"));
  for (float wrong : {-0.5f, 1.5f, std::numeric_limits<float>::quiet_NaN()}) {
    EXPECT_FALSE(p->setExtraMemoryTarget(wrong));
    EXPECT_THAT(recorder_.take(), StartsWith("3: "));
  }
  EXPECT_EQ(p->getExtraMemoryTarget(), 1);
  EXPECT_TRUE(p->isValid());
}

// a = Relu(x), b = Relu(y) for x [n, 4] and y [m, 4].
class DimensionNames : public BuilderApi {
 protected:
  void SetUp() override {
    BuilderApi::SetUp();
    onnxwriter::Model m;
    m.nodes = {onnxwriter::node("Relu", {"x"}, {"a"}), onnxwriter::node("Relu", {"y"}, {"b"})};
    m.inputs = {onnxwriter::value("x", onnxwriter::kFloat, {"n", "4"}),
                onnxwriter::value("y", onnxwriter::kFloat, {"m", "4"})};
    m.outputs = {onnxwriter::value("a", onnxwriter::kFloat, {"n", "4"}),
                 onnxwriter::value("b", onnxwriter::kFloat, {"m", "4"})};
    parse(m.bytes());
    auto* p = builder_->createOptimizationProfile();
    for (const char* name : {"x", "y"})
      for (auto s : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
        p->setDimensions(name, s, Dims{2, {s == OptProfileSelector::kMAX ? 8 : 1, 4}});
    config_->addOptimizationProfile(p);
  }
  // What so many rows of x and of y give: "" if they run and both outputs are right.
  std::string rowsOf(IEngine& engine, int64_t rowsX, int64_t rowsY) {
    std::unique_ptr<IExecutionContext> context(engine.createExecutionContext());
    context->setErrorRecorder(&recorder_);
    context->setInputShape("x", Dims{2, {rowsX, 4}});
    context->setInputShape("y", Dims{2, {rowsY, 4}});
    if (context->inferShapes(0, nullptr) != 0) return recorder_.take();
    std::vector<float> x, y, a(size_t(rowsX) * 4, -1), b(size_t(rowsY) * 4, -1);
    for (size_t i = 0; i < a.size(); i++) x.push_back(float(i % 3) - 1);
    for (size_t i = 0; i < b.size(); i++) y.push_back(float(i % 5) - 2);
    for (auto [name, data] : {std::pair{"x", &x}, {"y", &y}, {"a", &a}, {"b", &b}})
      context->setTensorAddress(name, data->data());
    if (!context->enqueueV3(nullptr)) return recorder_.take();
    for (auto [in, out] : {std::pair{&x, &a}, {&y, &b}})
      for (size_t i = 0; i < in->size(); i++)
        if ((*out)[i] != std::max((*in)[i], 0.f)) return "element " + std::to_string(i) + " is wrong";
    return "";
  }
  std::string twoAndThree() {
    std::unique_ptr<IEngine> engine(builder_->buildEngineWithConfig(*network_, *config_));
    return engine ? rowsOf(*engine, 2, 3) : "no engine: " + recorder_.take();
  }
};

TEST_F(DimensionNames, AreEqualAtRunTime) {
  ITensor *x = network_->getInput(0), *y = network_->getInput(1);
  EXPECT_STREQ(x->getDimensionName(0), "n");
  EXPECT_EQ(twoAndThree(), "");
  ASSERT_TRUE(y->setDimensionName(0, "n"));
  EXPECT_STREQ(y->getDimensionName(0), "n");
  EXPECT_THAT(twoAndThree(), HasSubstr("input 'y': axis 0 is 3, but must be 2"));
  ASSERT_TRUE(y->setDimensionName(0, nullptr));
  EXPECT_STREQ(y->getDimensionName(0), "y_0");
  EXPECT_EQ(twoAndThree(), "");
  ASSERT_TRUE(x->setDimensionName(0, "y_0"));
  ASSERT_TRUE(y->setDimensionName(0, ""));  // and another name than x's now
  EXPECT_STREQ(y->getDimensionName(0), "y_0.1");
  EXPECT_EQ(twoAndThree(), "");
}

TEST_F(DimensionNames, ThatCannotBe) {
  ITensor* x = network_->getInput(0);
  EXPECT_FALSE(x->setDimensionName(1, "four"));
  EXPECT_EQ(recorder_.take(), "3: axis 1 of input 'x' is 4: only dynamic extents have names");
  for (int32_t axis : {-1, 2}) {
    EXPECT_FALSE(x->setDimensionName(axis, "n"));
    EXPECT_THAT(recorder_.take(), HasSubstr("has no axis"));
  }
  for (const char* name : {"2n", "a*b", "a b", "n,m", "n\n"}) {
    EXPECT_FALSE(x->setDimensionName(0, name));
    EXPECT_THAT(recorder_.take(), HasSubstr("cannot name axis 0 of input 'x'"));
  }
  EXPECT_FALSE(network_->getOutput(0)->setDimensionName(0, "n"));
  EXPECT_THAT(recorder_.take(), HasSubstr("is no input"));
  EXPECT_STREQ(x->getDimensionName(0), "n");
}

// Candidates are built elsewhere, from the model as it was read: the names travel there, and into the engine.
TEST_F(DimensionNames, AreTuned) {
  ASSERT_TRUE(network_->getInput(1)->setDimensionName(0, "n"));
  std::unique_ptr<ITuner> tuner(createTuner(*builder_, *network_, *config_));
  tuner->setErrorRecorder(&recorder_);
  tuner->setBudget(120);
  ASSERT_TRUE(tuner->setExpression("fast", "-codegen:vector=[auto|128] -codegen:align_loops=[64|16]"));
  const std::string cache = testing::TempDir() + "rutter_dimension_names_" + std::to_string(::getpid()) + ".jsonl";
  ASSERT_TRUE(tuner->setCacheFile(cache.c_str()));
  std::unique_ptr<ITuningResult> r(tuner->run());
  ASSERT_TRUE(r) << recorder_.take();
  EXPECT_EQ(r->getNbCandidates(), 3);
  ASSERT_TRUE(r->getEngine()) << r->getReason();
  const std::unique_ptr<IEngine> engine = engineOf(*r);
  ASSERT_TRUE(engine);
  EXPECT_EQ(rowsOf(*engine, 2, 2), "");
  EXPECT_EQ(rowsOf(*engine, 7, 7), "");
  EXPECT_THAT(rowsOf(*engine, 2, 3), HasSubstr("input 'y': axis 0 is 3, but must be 2"));

  // Free again, it is another network: what was measured says nothing about it.
  ASSERT_TRUE(network_->getInput(1)->setDimensionName(0, nullptr));
  ASSERT_TRUE(tuner->setCacheFile(cache.c_str(), true));
  EXPECT_EQ(tuner->run(), nullptr);
  EXPECT_THAT(recorder_.take(), HasSubstr("model_hash"));
  for (const char* ending : {"", ".journal"}) std::filesystem::remove(cache + ending);
}

class ParserApi : public BuilderApi {
 protected:
  std::unique_ptr<onnx::IParser> parser_;
  void SetUp() override {
    BuilderApi::SetUp();
    network_->setErrorRecorder(&recorder_);
    parser_.reset(onnx::createParser(*network_, logger_));
  }
  bool supports(const onnxwriter::Model& m) {
    const std::string bytes = m.bytes();
    return parser_->supportsModelV2(bytes.data(), bytes.size());
  }
  std::vector<int64_t> nodes(int64_t subgraph) {
    int64_t n = -1;
    const int64_t* first = parser_->getSubgraphNodes(subgraph, n);
    return first ? std::vector<int64_t>(first, first + n) : std::vector<int64_t>{};
  }
};

TEST_F(ParserApi, Flags) {
  using onnx::OnnxParserFlag;
  EXPECT_TRUE(parser_->setFlag(OnnxParserFlag::kNATIVE_INSTANCENORM));
  EXPECT_TRUE(parser_->getFlag(OnnxParserFlag::kNATIVE_INSTANCENORM));
  EXPECT_TRUE(parser_->clearFlag(OnnxParserFlag::kENABLE_PLUGIN_OVERRIDE));
  EXPECT_EQ(recorder_.take(), "");
  EXPECT_FALSE(parser_->clearFlag(OnnxParserFlag::kNATIVE_INSTANCENORM));
  EXPECT_THAT(recorder_.take(), StartsWith("10: kNATIVE_INSTANCENORM"));
  for (auto f : {OnnxParserFlag::kENABLE_UINT8_AND_ASYMMETRIC_QUANTIZATION_DLA, OnnxParserFlag::kREPORT_CAPABILITY_DLA,
                 OnnxParserFlag::kENABLE_PLUGIN_OVERRIDE, OnnxParserFlag::kADJUST_FOR_DLA}) {
    EXPECT_FALSE(parser_->setFlag(f));
    EXPECT_THAT(recorder_.take(), StartsWith("10: "));
    EXPECT_FALSE(parser_->getFlag(f));
  }
}

TEST_F(ParserApi, ErrorsNameTheirPlace) {
  EXPECT_FALSE(parser_->parse("x", 1));
  EXPECT_FALSE(parser_->parseFromFile("/nonexistent.onnx", 0));
  ASSERT_EQ(parser_->getNbErrors(), 2);
  for (int32_t i = 0; i < 2; i++) EXPECT_STREQ(parser_->getError(i)->file(), "src/api/parser.cpp");
  EXPECT_STREQ(parser_->getError(0)->func(), "parse");
  EXPECT_STREQ(parser_->getError(1)->func(), "parseFromFile");
  EXPECT_GT(parser_->getError(0)->line(), 0);
  EXPECT_NE(parser_->getError(0)->line(), parser_->getError(1)->line());
}

// x - Relu - Odd - Relu - f(Odd) - y, stored backwards; the last but one Relu's neighbour is a good function.
TEST_F(ParserApi, SubgraphsBySupport) {
  using onnxwriter::node;
  EXPECT_EQ(parser_->getNbSubgraphs(), 0);
  onnxwriter::Model m;
  m.nodes = {node("Bad", {"d"}, {"y"}, {}, "", "local"), node("Good", {"c"}, {"d"}, {}, "", "local"),
             node("Relu", {"b"}, {"c"}), node("Odd", {"a"}, {"b"}), node("Relu", {"x"}, {"a"})};
  m.functions = {onnxwriter::function("Good", {"i"}, {"o"}, {node("Relu", {"i"}, {"o"})}),
                 onnxwriter::function("Bad", {"i"}, {"o"}, {node("Odd", {"i"}, {"o"})})};
  m.opsets["local"] = 1;
  m.inputs = {onnxwriter::value("x", onnxwriter::kFloat, {"2"})};
  m.outputs = {onnxwriter::value("y", onnxwriter::kFloat, {"2"})};
  EXPECT_FALSE(supports(m));
  ASSERT_EQ(parser_->getNbSubgraphs(), 4);
  const std::vector<std::vector<int64_t>> wanted = {{4}, {3}, {2, 1}, {0}};
  recorder_.clear();
  for (int64_t i = 0; i < 4; i++) {
    EXPECT_EQ(parser_->isSubgraphSupported(i), i % 2 == 0) << i;
    EXPECT_EQ(nodes(i), wanted[size_t(i)]) << i;
  }
  EXPECT_EQ(recorder_.take(), "");
  for (int64_t none : {-1, 4}) {
    EXPECT_FALSE(parser_->isSubgraphSupported(none));
    EXPECT_THAT(recorder_.take(), HasSubstr("there is no subgraph"));
    EXPECT_TRUE(nodes(none).empty());
    EXPECT_THAT(recorder_.take(), HasSubstr("there is no subgraph"));
  }
  EXPECT_TRUE(supports(onnxwriter::reluModel()));
  ASSERT_EQ(parser_->getNbSubgraphs(), 1);
  EXPECT_TRUE(parser_->isSubgraphSupported(0));
  EXPECT_EQ(nodes(0), std::vector<int64_t>{0});
  EXPECT_FALSE(parser_->supportsModelV2("x", 1));
  EXPECT_EQ(parser_->getNbSubgraphs(), 0);
}

}  // namespace
}  // namespace rutter::test
