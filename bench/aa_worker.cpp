// rutter-worker with one difference: a route that decides as the default does is built and measured all the same. So
// every candidate of bench/aa.py is the default's own engine, and no search may name one of them the winner.
#include "tuner/compiler_backend.h"
#include "tuner/worker.h"

namespace rutter::tuner {
namespace {
class NoDedupe : public Backend {
 public:
  void prepare(const Json& options) override { real_->prepare(options); }
  void buildDefault() override { real_->buildDefault(); }
  bool decidesByTime() const override { return real_->decidesByTime(); }
  void admitTimes(const std::string& blob) override { real_->admitTimes(blob); }
  std::string measureTimes(const std::string& route) override { return real_->measureTimes(route); }
  bool otherInputs(int attempt) override { return real_->otherInputs(attempt); }
  Json describe() const override {
    Json j = real_->describe();
    j["test_no_dedupe"] = true;
    return j;
  }
  const std::vector<Tensors>& inputs() const override { return real_->inputs(); }
  const std::vector<Tensors>& references() const override { return real_->references(); }
  Decision decide(const std::string& route) override { return real_->decide(route); }
  void writeDefault(const std::string& path) override { real_->writeDefault(path); }
  void admitKernels(const std::string& blob) override { real_->admitKernels(blob); }
  Tensors oracle(int set) override { return real_->oracle(set); }
  Built build(const std::string& route, const std::string& path) override { return real_->build(route, path); }
  void forgetDecision() override { real_->forgetDecision(); }
  std::string wholeEngine(const std::string& path) override { return real_->wholeEngine(path); }
  std::string hashOf(const std::string& path) override { return real_->hashOf(path); }
  std::string newKernels() override { return real_->newKernels(); }
  std::unique_ptr<LoadedEngine> load(const std::string& path, int threads, uint64_t luck) override {
    return real_->load(path, threads, luck);
  }
  EngineOrigin originOf(const std::string& path) override { return real_->originOf(path); }
  Clock& clock() override { return real_->clock(); }
  std::shared_ptr<const knobs::Registry> registry(const Json& options) override { return real_->registry(options); }

 private:
  std::unique_ptr<Backend> real_ = makeCompilerBackend();
};
}  // namespace
}  // namespace rutter::tuner

int main(int argc, char** argv) {
  using namespace rutter::tuner;
  return workerMain(argc, argv, [] { return std::make_unique<NoDedupe>(); });
}
