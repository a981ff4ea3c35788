#pragma once
// Searches in real processes: a folder of their own, options for the synthetic worker, and who is left afterwards.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "base/file.h"
#include "tuner/journal.h"
#include "tuner/search.h"
#include "tuner/tune.h"
#include "tuner/world.h"

namespace rutter::tuner::test {

class ProcessTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/rutter-process-test-XXXXXX";
    dir_ = mkdtemp(name);
    std::filesystem::create_directory(dir_ + "/tmp");
    setenv("XDG_CACHE_HOME", (dir_ + "/cache").c_str(), 1);
    unsetenv("RUTTER_TEST_KILL");
  }
  void TearDown() override {
    unsetenv("RUTTER_TEST_KILL");
    EXPECT_TRUE(noneLeft());
    EXPECT_TRUE(std::filesystem::is_empty(dir_ + "/tmp")) << "a private folder was left behind";
    std::filesystem::remove_all(dir_);
  }
  TuneOptions options(const Json& world, const std::string& expression = kExample,
                      SearchKind kind = SearchKind::kFast) {
    std::ofstream(dir_ + "/world.json") << world.dump();
    TuneOptions o;
    o.model.path = dir_ + "/world.json";
    o.search = kind;
    o.expression = expression;
    o.cacheFile = dir_ + "/cache.jsonl";
    o.saveEngine = dir_ + "/best.engine";
    o.tempDir = dir_ + "/tmp";
    o.workerProgram = RUTTER_BINARY_DIR "/bin/test-tuner-worker";
    o.buildTimeOut = 3;
    o.runTimeOut = 3;
    o.argv = {"rutter", "--onnx=" + o.model.path};
    return o;
  }
  // Processes of this very test: they have its folder in their environment.
  std::vector<int> processes() const {
    std::vector<int> out;
    for (const auto& e : std::filesystem::directory_iterator("/proc")) {
      const int pid = atoi(e.path().filename().c_str());
      if (pid <= 0 || pid == getpid()) continue;
      std::ifstream in(e.path() / "environ", std::ios::binary);
      const std::string all((std::istreambuf_iterator<char>(in)), {});
      if (all.find(dir_ + "/cache") != std::string::npos) out.push_back(pid);
    }
    return out;
  }
  // Who has just been killed may take a moment to go.
  testing::AssertionResult noneLeft() const {
    std::vector<int> left = processes();
    for (int i = 0; i < 500 && !left.empty(); i++, left = processes()) usleep(10'000);
    if (left.empty()) return testing::AssertionSuccess();
    return testing::AssertionFailure() << left.size() << " processes are left, the first is " << left[0];
  }
  std::map<std::string, CandidateRecord> candidates() {
    return Recorded(readJournal(dir_ + "/cache.jsonl.journal")).candidates;
  }
  std::string savedRoute() { return Json::parse(readWholeFile(dir_ + "/best.engine")).at("route"); }
  std::string dir_;
  TuneListener silent_;
};

}  // namespace rutter::tuner::test
