// A recorded journal, decided again.
#include "tuner/search.h"

namespace rutter::tuner {
namespace {

class NoRunner : public Runner {
 public:
  BaselineRecord baseline() override { throw UserError("the journal holds no baseline: nothing to replay"); }
  Decision decide(const std::string& route, Purpose) override { throw missing(route); }
  CandidateRecord candidate(int64_t, const std::string& route, double) override { throw missing(route); }
  CandidateRecord rebuild(int64_t, const std::string& route) override { throw missing(route); }
  SampleRecord sample(int64_t, const std::string& route, const std::string&, int) override { throw missing(route); }
  std::string save(int64_t, const std::string& route, const std::string&) override { throw missing(route); }
  std::string hashOf(const std::string&) override { return ""; }
  std::string routeOf(const std::string&) override { return ""; }
  bool holds(const std::string&, const CandidateRecord&) override { return false; }

 private:
  static UserError missing(const std::string& route) {
    return UserError("the journal holds no numbers of '{}'", route);
  }
};

class NoPacer : public Pacer {
 public:
  double elapsed() override { return 0; }
  int stopLevel() override { return 0; }
};

}  // namespace

std::vector<Json> replay(const std::vector<Json>& journal, SearchConfig config,
                         const std::function<std::unique_ptr<Strategy>(const BaselineRecord&)>& makeStrategy) {
  config.recordedOnly = true;
  config.saveEngine.clear();
  config.cacheFile.clear();
  std::vector<Json> numbers, decisions;
  for (const Json& j : journal)
    if (!isDecision(j) || isTimed(j)) numbers.push_back(j);
  auto memory = Journal::inMemory(numbers);
  NoRunner runner;
  NoPacer pacer;
  TuneListener listener;
  Search(config, runner, pacer, *memory, listener).run(makeStrategy);
  for (size_t i = numbers.size(); i < memory->records().size(); i++)
    if (!isTimed(memory->records()[i])) decisions.push_back(memory->records()[i]);
  return decisions;
}

}  // namespace rutter::tuner
