#pragma once
// A builder with an empty network and a recorder of its errors: what tests of the public interface begin with.
#include <gtest/gtest.h>

#include <memory>
#include <string>

#include "api/recorders.h"

namespace rutter::test {

class BuilderFixture : public testing::Test {
 protected:
  Logger logger_;
  Recorder recorder_;
  std::unique_ptr<IBuilder> builder_{createInferBuilder(logger_)};
  std::unique_ptr<IBuilderConfig> config_;
  std::unique_ptr<INetworkDefinition> network_;
  void SetUp() override {
    ASSERT_TRUE(builder_);
    builder_->setErrorRecorder(&recorder_);
    network_.reset(builder_->createNetworkV2(0));
    config_.reset(builder_->createBuilderConfig());
  }
  std::unique_ptr<IRuntime> runtime_;
  /// The winner of a search, loaded.
  std::unique_ptr<IEngine> engineOf(const ITuningResult& r) {
    runtime_.reset(createInferRuntime(logger_));
    return std::unique_ptr<IEngine>(runtime_->deserializeEngine(r.getEngine()->data(), r.getEngine()->size()));
  }
  /// The bytes of a model, into network_.
  void parse(const std::string& bytes) {
    std::unique_ptr<onnx::IParser> parser(onnx::createParser(*network_, logger_));
    ASSERT_TRUE(parser->parse(bytes.data(), bytes.size())) << recorder_.take();
  }
};

}  // namespace rutter::test
