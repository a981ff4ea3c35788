// Levels 4 and 5 through the public API: caches as bytes, combined, refused, and the same engines from the same cache.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>

#include "api/builder_fixture.h"
#include "compiler/compile.h"
#include "compiler/timing_cache.h"
#include "net.h"
#include "onnx_writer.h"

namespace rutter::test {
namespace {

using testing::HasSubstr;

class BuilderTiming : public BuilderFixture {
 protected:
  void SetUp() override {
    BuilderFixture::SetUp();
    parse(onnxwriter::reluModel().bytes());
  }
  std::unique_ptr<IBuilderConfig> config(int level) {
    std::unique_ptr<IBuilderConfig> c(builder_->createBuilderConfig());
    c->setBuilderOptimizationLevel(level);
    c->setAvgTimingIterations(2);
    return c;
  }
  static std::string bytesOf(IHostMemory* memory) {
    std::unique_ptr<IHostMemory> m(memory);
    return m ? std::string(static_cast<const char*>(m->data()), m->size()) : "";
  }
};

TEST_F(BuilderTiming, SettersKeepWithinTheirBounds) {
  auto c = config(3);
  EXPECT_EQ(c->getBuilderOptimizationLevel(), 3);
  c->setBuilderOptimizationLevel(9);
  EXPECT_EQ(c->getBuilderOptimizationLevel(), 5);
  c->setBuilderOptimizationLevel(-1);
  EXPECT_EQ(c->getBuilderOptimizationLevel(), 0);
  c->setMaxNbTactics(3);
  EXPECT_EQ(c->getMaxNbTactics(), 3);
  c->reset();
  EXPECT_EQ(c->getBuilderOptimizationLevel(), 3);
  EXPECT_EQ(c->getAvgTimingIterations(), 8);
  EXPECT_EQ(c->getMaxNbTactics(), -1);
  EXPECT_EQ(c->getTimingCache(), nullptr);
}

TEST_F(BuilderTiming, SameCacheSameEngine) {
  auto a = config(4);
  std::unique_ptr<ITimingCache> cache(a->createTimingCache(nullptr, 0));
  ASSERT_TRUE(cache);
  const std::string before = cache->getHash();
  ASSERT_TRUE(a->setTimingCache(*cache, false));
  EXPECT_EQ(a->getTimingCache(), cache.get());
  const std::string first = bytesOf(builder_->buildSerializedNetwork(*network_, *a));
  ASSERT_FALSE(first.empty()) << recorder_.take();
  EXPECT_NE(cache->getHash(), before);
  EXPECT_THAT(first, HasSubstr(cache->getHash()));  // in the manifest

  // From the bytes, in another builder, where a miss would fail the build.
  const std::string times = bytesOf(cache->serialize());
  std::unique_ptr<IBuilder> other(createInferBuilder(logger_));
  std::unique_ptr<IBuilderConfig> b(other->createBuilderConfig());
  b->setBuilderOptimizationLevel(4);
  b->setFlag(BuilderFlag::kERROR_ON_TIMING_CACHE_MISS);
  std::unique_ptr<ITimingCache> copy(b->createTimingCache(times.data(), times.size()));
  ASSERT_TRUE(copy);
  EXPECT_STREQ(copy->getHash(), cache->getHash());
  ASSERT_TRUE(b->setTimingCache(*copy, false));
  EXPECT_EQ(bytesOf(other->buildSerializedNetwork(*network_, *b)), first);

  EXPECT_TRUE(copy->reset());
  EXPECT_EQ(copy->getHash(), before);
  EXPECT_EQ(bytesOf(other->buildSerializedNetwork(*network_, *b)), "");  // now everything is missing
  EXPECT_TRUE(copy->combine(*cache, false));
  EXPECT_EQ(bytesOf(other->buildSerializedNetwork(*network_, *b)), first);
}

TEST_F(BuilderTiming, ADisabledCacheLearnsNothing) {
  auto c = config(4);
  std::unique_ptr<ITimingCache> cache(c->createTimingCache(nullptr, 0));
  const std::string before = cache->getHash();
  ASSERT_TRUE(c->setTimingCache(*cache, false));
  c->setFlag(BuilderFlag::kDISABLE_TIMING_CACHE);
  EXPECT_NE(bytesOf(builder_->buildSerializedNetwork(*network_, *c)), "");
  EXPECT_EQ(cache->getHash(), before);
  c->setFlag(BuilderFlag::kERROR_ON_TIMING_CACHE_MISS);
  EXPECT_EQ(bytesOf(builder_->buildSerializedNetwork(*network_, *c)), "");
  EXPECT_THAT(recorder_.take(), HasSubstr("every time would be missing"));
}

TEST_F(BuilderTiming, OtherBytesAreRefused) {
  auto c = config(4);
  EXPECT_EQ(c->createTimingCache("engine", 6), nullptr);
  std::unique_ptr<ITimingCache> cache(c->createTimingCache(nullptr, 0));
  std::string bytes = bytesOf(cache->serialize());
  bytes.pop_back();
  EXPECT_EQ(c->createTimingCache(bytes.data(), bytes.size()), nullptr);
  EXPECT_THAT(logger_.lines.back().second, HasSubstr("timing cache"));
}

// A kernel that was compiled to be timed was compiled.
TEST(BuildCounts, KernelsOfTimingAreCounted) {
  Net n;
  n.output(n.op("MatMul", {n.op("Relu", {n.input("x", {8, 32})}), n.random({32, 16})}));
  frontend::Model m;
  m.graph = n.graph->clone();
  compiler::BuildOptions o;
  o.profiles = {{{"x", {{8, 32}, {8, 32}, {8, 32}}}}};
  o.optimizationLevel = 4;
  o.maxTactics = 2;
  o.avgTiming = 1;
  o.timings = std::make_shared<compiler::TimingCache>();
  compiler::KernelCache cache;
  const compiler::BuildResult first = compiler::buildEngine(m, o, cache);
  EXPECT_GT(first.kernels, 0);
  EXPECT_EQ(first.kernelsCompiled, first.kernels);
  EXPECT_EQ(compiler::buildEngine(m, o, cache).kernelsCompiled, 0);
}

}  // namespace
}  // namespace rutter::test
