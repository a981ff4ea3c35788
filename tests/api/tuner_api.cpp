// Tuning through the public API, in real worker processes: a strategy of the program's own, expressions, edits, inputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "api/builder_fixture.h"
#include "onnx_writer.h"

namespace rutter::test {
namespace {

using testing::HasSubstr;

// Asks for a list of routes and keeps what it is told.
class Listed final : public IStrategy {
 public:
  explicit Listed(std::vector<std::string> routes) : routes_(std::move(routes)) {}
  char const* getName() const noexcept override { return "listed"; }
  char const* ask() noexcept override { return next_ < routes_.size() ? routes_[next_++].c_str() : nullptr; }
  void tell(TuningCandidate const& c) noexcept override {
    told.push_back({c.route, c.status, c.error, c.ratio});
    owed = int(next_) - int(told.size());
  }
  struct Told {
    std::string route;
    TuningStatus status;
    std::string error;
    double ratio;
  };
  std::vector<Told> told;
  int owed = 0;

 private:
  std::vector<std::string> routes_;
  size_t next_ = 0;
};

class Watcher final : public ITuningListener {
 public:
  void candidateFinished(int64_t, TuningCandidate const&) noexcept override { finished++; }
  bool progress(TuningProgress const& p) noexcept override {
    phases.insert(p.phase);
    return finished < stopAfter;
  }
  int finished = 0, stopAfter = 1000;
  std::set<std::string> phases;
};

class TunerApi : public BuilderFixture {
 protected:
  std::unique_ptr<ITuner> tuner_;
  // y = Relu(x) + 1 for x [N, 2, 2, 3]
  void SetUp() override {
    BuilderFixture::SetUp();
    onnxwriter::Model m;
    m.nodes = {onnxwriter::node("Relu", {"x"}, {"r"}, {}, "relu"),
               onnxwriter::node("Add", {"r", "one"}, {"y"}, {}, "add")};
    m.initialisers = {onnxwriter::floats("one", {1}, {1})};
    m.inputs = {onnxwriter::value("x", onnxwriter::kFloat, {"N", "2", "2", "3"})};
    m.outputs = {onnxwriter::value("y", onnxwriter::kFloat, {"N", "2", "2", "3"})};
    parse(m.bytes());
    tuner_.reset(createTuner(*builder_, *network_, *config_));
    ASSERT_TRUE(tuner_);
    tuner_->setErrorRecorder(&recorder_);
    tuner_->setBudget(120);
  }
  void narrow() { ASSERT_TRUE(network_->getInput(0)->setDimensions({4, {1, 2, 2, 3}})); }
};

TEST_F(TunerApi, AsksAndTellsAProgramsOwnStrategy) {
  narrow();
  Listed strategy({"", "-codegen:vector=128", " -codegen:vector=128 ", "-no:such=1", "-codegen:align_loops=16"});
  Watcher watcher;
  tuner_->setStrategy(&strategy);
  tuner_->setProgressListener(&watcher);
  std::unique_ptr<ITuningResult> r(tuner_->run());
  ASSERT_TRUE(r) << recorder_.take();
  ASSERT_EQ(strategy.told.size(), 5u);
  EXPECT_EQ(strategy.owed, 0);
  EXPECT_EQ(strategy.told[0].route, "");
  EXPECT_EQ(strategy.told[0].ratio, 1);  // the default's own engine
  EXPECT_EQ(strategy.told[1].status, TuningStatus::kOK);
  EXPECT_GT(strategy.told[1].ratio, 0);
  EXPECT_EQ(strategy.told[2].route, "-codegen:vector=128");
  EXPECT_EQ(strategy.told[2].ratio, strategy.told[1].ratio);  // known: not measured again
  EXPECT_EQ(strategy.told[3].status, TuningStatus::kREJECTED);
  EXPECT_THAT(strategy.told[3].error, HasSubstr("-no:such"));
  EXPECT_EQ(strategy.told[4].status, TuningStatus::kOK);
  EXPECT_EQ(watcher.finished, 4);
  EXPECT_TRUE(watcher.phases.count("baseline") && watcher.phases.count("search"));
  EXPECT_EQ(r->getNbCandidates(), 4);
  EXPECT_THAT(r->getJournal(), HasSubstr("\"searching_algorithm\":\"user\""));

  // The engine is one that runs here, by the route that the result names.
  ASSERT_TRUE(r->getEngine());
  const std::unique_ptr<IEngine> engine = engineOf(*r);
  ASSERT_TRUE(engine);
  EXPECT_STREQ(engine->getBuildRoute(), r->getBuildRoute());
}

TEST_F(TunerApi, AStrategyThatOnlyRepeatsItselfEnds) {
  class Same final : public IStrategy {
   public:
    char const* getName() const noexcept override { return "same"; }
    char const* ask() noexcept override { return asked++, "-codegen:vector=128"; }
    void tell(TuningCandidate const&) noexcept override {}
    int asked = 0;
  } strategy;
  narrow();
  tuner_->setBudget(0);
  tuner_->setStrategy(&strategy);
  std::unique_ptr<ITuningResult> r(tuner_->run());
  ASSERT_TRUE(r) << recorder_.take();
  EXPECT_EQ(r->getNbCandidates(), 1);
  EXPECT_GT(strategy.asked, 2);
}

// Renamed, narrowed, other outputs, other formats: what is tuned is the network as it is.
TEST_F(TunerApi, EditsAndInputsTravel) {
  narrow();
  ASSERT_TRUE(network_->getInput(0)->setName("image"));
  ASSERT_TRUE(network_->getInput(0)->setAllowedFormats(1u << int(TensorFormat::kHWC)));
  ITensor* relu = network_->getLayer(0)->getOutput(0);
  network_->unmarkOutput(*network_->getOutput(0));
  network_->markOutput(*relu);
  std::vector<float> logical, channelsLast;
  for (int i = 0; i < 12; i++) logical.push_back(float(i % 5) - 2);
  for (int p = 0; p < 6; p++)
    for (int c = 0; c < 2; c++) channelsLast.push_back(logical[size_t(c * 6 + p)]);
  std::vector<float> want = logical;
  for (float& v : want) v = std::max(v, 0.f);
  ASSERT_TRUE(tuner_->setInput(0, "image", channelsLast.data(), 48));
  ASSERT_TRUE(tuner_->setReferenceOutput(0, "r", want.data(), 48));
  ASSERT_TRUE(tuner_->setAccuracy("lInf", 1e-6));
  ASSERT_TRUE(tuner_->setExpression("fast", "-codegen:vector=[auto|128]"));
  std::unique_ptr<ITuningResult> r(tuner_->run());
  ASSERT_TRUE(r) << recorder_.take();
  EXPECT_EQ(r->getNbCandidates(), 2);
  ASSERT_TRUE(r->getEngine()) << r->getReason();
  const std::unique_ptr<IEngine> engine = engineOf(*r);
  ASSERT_TRUE(engine);
  EXPECT_EQ(engine->getTensorFormat("image"), TensorFormat::kHWC);
  EXPECT_EQ(engine->getTensorIOMode("r"), TensorIOMode::kOUTPUT);
  EXPECT_EQ(engine->getTensorIOMode("y"), TensorIOMode::kNONE);
}

TEST_F(TunerApi, ListenersCanEndASearch) {
  narrow();
  Listed strategy(
      {"-codegen:vector=128", "-codegen:align_loops=16", "-codegen:align_loops=32", "-codegen:align_function=16"});
  Watcher watcher;
  watcher.stopAfter = 1;
  tuner_->setStrategy(&strategy);
  tuner_->setProgressListener(&watcher);
  std::unique_ptr<ITuningResult> r(tuner_->run());
  ASSERT_TRUE(r) << recorder_.take();
  EXPECT_LT(r->getNbCandidates(), 4);
}

TEST_F(TunerApi, RecordsAreContinued) {
  narrow();
  const std::string cache = testing::TempDir() + "rutter_tuner_api_" + std::to_string(::getpid()) + ".jsonl";
  for (const char* ending : {"", ".journal"}) std::filesystem::remove(cache + ending);
  Listed first({"-codegen:vector=128"}), both({"-codegen:vector=128", "-codegen:align_loops=16"});
  ASSERT_TRUE(tuner_->setCacheFile(cache.c_str()));
  tuner_->setStrategy(&first);
  std::unique_ptr<ITuningResult> r(tuner_->run());
  ASSERT_TRUE(r) << recorder_.take();
  Watcher watcher;
  ASSERT_TRUE(tuner_->setCacheFile(cache.c_str(), true));
  tuner_->setStrategy(&both);
  tuner_->setProgressListener(&watcher);
  r.reset(tuner_->run());
  ASSERT_TRUE(r) << recorder_.take();
  EXPECT_EQ(r->getNbCandidates(), 2);
  EXPECT_EQ(watcher.finished, 1);  // the known one is not measured again
  EXPECT_EQ(both.told.at(0).ratio, first.told.at(0).ratio);
  for (const char* ending : {"", ".journal"}) std::filesystem::remove(cache + ending);
}

// What a killed program left goes with the next tuner; what other tuners of this program have stays.
TEST_F(TunerApi, FoldersOfKilledProgramsGo) {
  namespace fs = std::filesystem;
  char name[] = "/tmp/rutter-tuner-api-XXXXXX";
  const std::string dir = mkdtemp(name);
  const char* was = std::getenv("TMPDIR");
  const std::string before = was ? was : "";
  setenv("TMPDIR", dir.c_str(), 1);
  auto files = [&] {
    return std::count_if(fs::recursive_directory_iterator(dir), {},
                         [](auto& e) { return e.path().filename() == "tensor0.bin"; });
  };
  narrow();
  const float x[12] = {};
  const pid_t child = fork();
  if (child == 0) {
    if (tuner_->setInput(0, "x", x, sizeof x)) raise(SIGKILL);
    _exit(0);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status)) << "the child could not keep its input";
  EXPECT_EQ(files(), 1);
  ASSERT_TRUE(tuner_->setInput(0, "x", x, sizeof x));
  EXPECT_EQ(files(), 1);  // this one's
  std::unique_ptr<ITuner> other(createTuner(*builder_, *network_, *config_));
  ASSERT_TRUE(other->setInput(0, "x", x, sizeof x));
  EXPECT_EQ(files(), 2);
  tuner_.reset();
  EXPECT_EQ(files(), 1);
  other.reset();
  EXPECT_TRUE(fs::is_empty(dir));
  was ? setenv("TMPDIR", before.c_str(), 1) : unsetenv("TMPDIR");
  fs::remove_all(dir);
}

TEST_F(TunerApi, ErrorsAreReported) {
  EXPECT_EQ(tuner_->run(), nullptr);  // N has no extent
  EXPECT_THAT(recorder_.take(), HasSubstr("dynamic"));
  narrow();
  EXPECT_FALSE(tuner_->setExpression("fast", "-no:such=[1|2]"));
  EXPECT_THAT(recorder_.take(), HasSubstr("unknown_knob"));
  EXPECT_FALSE(tuner_->setExpression("best", "-codegen:vector=[128|256]"));
  EXPECT_FALSE(tuner_->setAccuracy("l0", 0));
  float x[3] = {};
  EXPECT_FALSE(tuner_->setInput(1, "x", x, 12));  // there is no set 0
  EXPECT_THAT(recorder_.take(), HasSubstr("without gaps"));
  ASSERT_TRUE(tuner_->setInput(0, "x", x, 12));
  EXPECT_EQ(tuner_->run(), nullptr);
  EXPECT_THAT(recorder_.take(), HasSubstr("12"));
  ASSERT_TRUE(config_->setBuildRoute("-codegen:vector=128"));
  EXPECT_EQ(tuner_->run(), nullptr);
  EXPECT_THAT(recorder_.take(), HasSubstr("build route"));
  EXPECT_EQ(rutterCreateTuner(builder_.get(), network_.get(), nullptr, RUTTER_API_VERSION), nullptr);
  EXPECT_EQ(rutterCreateTuner(builder_.get(), network_.get(), config_.get(), RUTTER_API_VERSION + 1), nullptr);
}

}  // namespace
}  // namespace rutter::test
