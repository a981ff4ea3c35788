// Networks and parsers through the public API: names, formats, what is supported, messages, and no memory.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>
#include <new>

#include "api/builder_fixture.h"
#include "onnx_writer.h"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
namespace {
thread_local long g_until = -1;  // after this many allocations of the thread one fails; negative: none does
}
__attribute__((noinline)) void* operator new(std::size_t n) {
  const bool fails = g_until == 0;
  if (g_until >= 0) g_until--;
  if (void* p = fails ? nullptr : std::malloc(n ? n : 1)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* p) noexcept {
  std::free(p);
}
__attribute__((noinline)) void operator delete(void* p, std::size_t) noexcept {
  std::free(p);
}
#define RUTTER_TEST_NO_MEMORY
#endif

namespace rutter::test {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::StartsWith;

// y = Relu(x) + v for x [a_long_name_of_a_batch, 2, 2, 3] and v [3]; also u, of no known rank, to w.
class NetworkApi : public BuilderFixture {
 protected:
  std::string bytes_;
  void SetUp() override {
    BuilderFixture::SetUp();
    onnxwriter::Model m;
    m.nodes = {onnxwriter::node("Relu", {"x"}, {"r"}, {}, "relu"),
               onnxwriter::node("Add", {"r", "v"}, {"y"}, {}, "add")};
    m.inputs = {onnxwriter::value("x", onnxwriter::kFloat, {"a_long_name_of_a_batch", "2", "2", "3"}),
                onnxwriter::value("v", onnxwriter::kFloat, {"3"})};
    m.outputs = {onnxwriter::value("y", onnxwriter::kFloat, {"a_long_name_of_a_batch", "2", "2", "3"})};
    bytes_ = m.bytes();
    parse(bytes_);
    logger_.lines.clear();
  }
  IOptimizationProfile* profile(const char* x) {
    auto* p = builder_->createOptimizationProfile();
    for (auto s : {OptProfileSelector::kMIN, OptProfileSelector::kOPT, OptProfileSelector::kMAX})
      p->setDimensions(x, s, Dims{4, {1, 2, 2, 3}});
    return p;
  }
};

TEST_F(NetworkApi, NamesOfInputs) {
  ITensor* x = network_->getInput(0);
  for (const char* taken : {"v", "r", "y"}) {
    EXPECT_FALSE(x->setName(taken));
    EXPECT_EQ(recorder_.take(), fmt::format("3: the name '{}' is taken by another tensor of the network", taken));
  }
  EXPECT_FALSE(x->setName(""));
  EXPECT_THAT(recorder_.take(), HasSubstr("is empty"));
  EXPECT_FALSE(x->setName(nullptr));
  EXPECT_FALSE(network_->getLayer(0)->getOutput(0)->setName("inner"));
  EXPECT_THAT(recorder_.take(), HasSubstr("only inputs can be renamed"));
  EXPECT_STREQ(x->getName(), "x");
  EXPECT_TRUE(x->setName("x"));
  ASSERT_TRUE(x->setName("image"));
  EXPECT_TRUE(network_->getInput(1)->setName("x"));  // free again
  EXPECT_EQ(recorder_.take(), "");
  config_->addOptimizationProfile(profile("image"));
  std::unique_ptr<IEngine> engine(builder_->buildEngineWithConfig(*network_, *config_));
  ASSERT_TRUE(engine) << recorder_.take();
  EXPECT_EQ(engine->getTensorShape("image").nbDims, 4);
  EXPECT_EQ(engine->getTensorShape("x").nbDims, 1);
}

TEST_F(NetworkApi, FormatsThatATensorCannotHave) {
  const uint32_t linear = 1u << int(TensorFormat::kLINEAR), hwc = 1u << int(TensorFormat::kHWC);
  ITensor *x = network_->getInput(0), *v = network_->getInput(1);
  EXPECT_FALSE(v->setAllowedFormats(hwc));
  EXPECT_EQ(recorder_.take(),
            "3: tensor 'v' has 1 axes: kHWC needs a batch axis, channels and at least one spatial axis");
  EXPECT_EQ(v->getAllowedFormats(), linear);
  EXPECT_TRUE(v->setAllowedFormats(hwc | linear));
  EXPECT_FALSE(x->setAllowedFormats(1u << 30));
  EXPECT_TRUE(x->setAllowedFormats(hwc));
  EXPECT_EQ(x->getAllowedFormats(), hwc);
  onnxwriter::Model m;
  m.nodes = {onnxwriter::node("Relu", {"u"}, {"w"})};
  m.inputs = {onnxwriter::shapeless("u", onnxwriter::kFloat)};
  m.outputs = {onnxwriter::shapeless("w", onnxwriter::kFloat)};
  const std::string bytes = m.bytes();
  std::unique_ptr<onnx::IParser> parser(onnx::createParser(*network_, logger_));
  ASSERT_TRUE(parser->parse(bytes.data(), bytes.size()));
  recorder_.clear();
  EXPECT_FALSE(network_->getInput(0)->setAllowedFormats(hwc));
  EXPECT_THAT(recorder_.take(), HasSubstr("tensor 'u' has no shape in the model"));
}

TEST_F(NetworkApi, WhatIsSupported) {
  std::unique_ptr<IBuilderConfig> wrong(builder_->createBuilderConfig());
  wrong->addOptimizationProfile(profile("v"));  // four axes instead of one
  EXPECT_FALSE(builder_->isNetworkSupported(*network_, *wrong));
  EXPECT_NE(recorder_.take(), "");
  config_->addOptimizationProfile(profile("x"));
  EXPECT_TRUE(builder_->isNetworkSupported(*network_, *config_)) << recorder_.take();
  config_->setBuildRoute("-conv:tactic@nothing=auto");
  EXPECT_TRUE(builder_->isNetworkSupported(*network_, *config_)) << recorder_.take();
  config_->setFlag(BuilderFlag::kSTRICT_ROUTES);
  EXPECT_FALSE(builder_->isNetworkSupported(*network_, *config_));
  EXPECT_NE(recorder_.take(), "");
  config_->setBuildRoute("");
  network_->unmarkOutput(*network_->getOutput(0));
  EXPECT_FALSE(builder_->isNetworkSupported(*network_, *config_));
  EXPECT_EQ(recorder_.take(), "3: the network has no outputs: mark one");
  std::unique_ptr<INetworkDefinition> empty(builder_->createNetworkV2(0));
  EXPECT_FALSE(builder_->isNetworkSupported(*empty, *config_));
  EXPECT_THAT(recorder_.take(), HasSubstr("parse a model first"));
}

TEST_F(NetworkApi, VerbosityOfParsing) {
  const std::string path = testing::TempDir() + "/verbosity." + std::to_string(getpid());
  onnxwriter::Model m;
  std::ofstream(path, std::ios::binary) << bytes_;
  std::unique_ptr<onnx::IParser> parser(onnx::createParser(*network_, logger_));
  const auto lines = [&](int32_t verbosity) {
    logger_.lines.clear();
    EXPECT_TRUE(parser->parseFromFile(path.c_str(), verbosity));
    return logger_.lines;
  };
  EXPECT_TRUE(lines(2).empty());
  const auto info = lines(3);
  ASSERT_EQ(info.size(), 1u);
  EXPECT_EQ(info[0].first, ILogger::Severity::kINFO);
  EXPECT_THAT(info[0].second, AllOf(StartsWith("model '"), HasSubstr("2 nodes, 2 inputs, 1 outputs")));
  const auto all = lines(4);
  ASSERT_EQ(all.size(), 6u);
  EXPECT_THAT(all[1].second, StartsWith("input 'x': "));
  EXPECT_EQ(all[4].second, "node 'relu': Relu");
  unlink(path.c_str());
  logger_.lines.clear();
  EXPECT_FALSE(parser->parseFromFile(path.c_str(), 0));
  ASSERT_EQ(logger_.lines.size(), 1u);  // errors always
  EXPECT_EQ(logger_.lines[0].first, ILogger::Severity::kERROR);
}

TEST_F(NetworkApi, AStreamThatTakesLessIsAnError) {
  config_->addOptimizationProfile(profile("x"));
  struct Writer : IStreamWriter {
    int64_t calls = 0, bytes = 0, most = INT64_MAX;
    int64_t write(void const*, int64_t n) noexcept override {
      calls++;
      return bytes = std::min(n, most);
    }
  } all, some;
  some.most = 100;
  EXPECT_TRUE(builder_->buildSerializedNetworkToStream(*network_, *config_, all)) << recorder_.take();
  EXPECT_EQ(all.calls, 1);
  EXPECT_GT(all.bytes, 4096);
  EXPECT_FALSE(builder_->buildSerializedNetworkToStream(*network_, *config_, some));
  EXPECT_THAT(recorder_.take(), HasSubstr("the stream writer took 100 of"));
}

#ifdef RUTTER_TEST_NO_MEMORY
// The n-th allocation fails, for every n: the call then says no, and the process lives.
TEST_F(NetworkApi, WithoutMemory) {
  config_->addOptimizationProfile(profile("x"));
  auto* filled = profile("some_input_of_a_name_that_no_short_string_holds");
  const auto failures = [&](const std::function<bool()>& call) {
    int failed = 0;
    for (long n = 0; n < 10000; n++) {
      g_until = n;
      const bool ok = call();
      g_until = -1;
      if (ok) return failed;
      failed++;
    }
    return -1;
  };
  std::unique_ptr<onnx::IParser> parser(onnx::createParser(*network_, logger_));
  EXPECT_GT(failures([&] { return network_->getInput(0) && network_->getInput(1); }), 0);
  EXPECT_GT(failures([&] { return network_->getOutput(0) != nullptr; }), 0);
  EXPECT_GT(failures([&] { return network_->getLayer(0)->getOutput(0) != nullptr; }), 0);
  EXPECT_EQ(failures([&] { return network_->getLayer(0)->getInput(0) != nullptr; }), 0);  // made before
  EXPECT_GT(failures([&] { return network_->getInput(0)->getDimensions().nbDims == 4; }), 0);
  EXPECT_GT(failures([&] { return network_->getInput(0)->getDimensionName(0) != nullptr; }), 0);
  EXPECT_GT(failures([&] { return network_->getInput(0)->setName("another_name_that_no_short_string_holds"); }), 0);
  EXPECT_GT(failures([&] {
              return filled->getDimensions("some_input_of_a_name_that_no_short_string_holds", OptProfileSelector::kMIN)
                         .nbDims == 4;
            }),
            0);
  EXPECT_GE(failures([&] { return builder_->getMaxThreads() > 0; }), 0);
  EXPECT_GE(failures([&] { return parser->supportsOperator("Relu"); }), 0);
  EXPECT_EQ(network_->getInput(0)->getDimensions().d[0], -1);
}
#endif

}  // namespace
}  // namespace rutter::test
