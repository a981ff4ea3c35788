// Journals of real searches on real models: decided again on their own numbers, they decide alike.
// tests/tuner/recorded/README.md says how they were made.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/file.h"
#include "tuner/decisions.h"
#include "tuner/journal.h"
#include "tuner/search.h"

namespace rutter::tuner {
namespace {

const std::string kFolder = RUTTER_SOURCE_DIR "/tests/tuner/recorded/";

// The knobs as they were: what --tune tries depends on every one of them.
knobs::Registry registryOf(const Json& document) {
  std::vector<knobs::KnobSpec> specs;
  for (const Json& e : document.at("tuner_options")) {
    knobs::KnobSpec s;
    s.area = e.at("area");
    s.what = e.at("option").get<std::string>().substr(1 + (s.area.empty() ? 0 : s.area.size() + 1));
    s.defaultValue = e.at("default_value");
    s.help = e.value("help", "");
    const std::string target = e.at("target"), domain = e.at("domain");
    s.target = target == "cpu" ? knobs::Target::kCpu : target == "cuda" ? knobs::Target::kCuda : knobs::Target::kAny;
    const bool range = e.contains("min");
    s.domain = range              ? knobs::Domain::kRange
               : domain == "bool" ? knobs::Domain::kBool
               : domain == "enum" ? knobs::Domain::kEnum
                                  : knobs::Domain::kInts;
    s.numerics.clear();
    for (const auto& [value, numerics] : e.at("numerics").items()) {
      const std::string word = numerics;
      if (!range) s.values += (s.values.empty() ? "" : "|") + value;
      s.numerics += s.numerics.empty() ? word : "," + value + "=" + word;
    }
    if (range) s.min = e.at("min"), s.max = e.at("max");
    specs.push_back(std::move(s));
  }
  return knobs::Registry(std::move(specs));
}

const knobs::Registry& registryThen() {
  static const knobs::Registry then = registryOf(Json::parse(readWholeFile(kFolder + "registry.json")));
  return then;
}

TEST(Recorded, TheRegistryIsBuiltAgainFromItsDocument) {
  const std::string now = knobs::allBuildRoutesJson();
  EXPECT_EQ(knobs::allBuildRoutesJson(registryOf(Json::parse(now))), now);
  EXPECT_GT(registryThen().knobs().size(), 50u);
}

// As the supervisor made it.
std::vector<Json> again(const std::vector<Json>& records) {
  Json session;
  for (const Json& j : records)
    if (j["type"] == "session") session = j;
  const std::string name = session.at("searching_algorithm");
  SearchConfig config;
  config.budgetSeconds = session.at("budget");
  config.shorten = name == "tune";
  constexpr int kThreads = 2;  // of the machine that recorded them
  return test::decisionsOf(replay(records, config, [&](const BaselineRecord& b) -> std::unique_ptr<Strategy> {
    if (name == "tune")
      return makeTuneStrategy({&registryThen(), b.layers, b.knobsRead, b.timedRoute, false, kThreads});
    return makeSpecStrategy(name == "mixed" ? SearchKind::kMixed : SearchKind::kFast,
                            knobs::Expression::parse(session.at("tuning_expr").get<std::string>(), registryThen()));
  }));
}

class RecordedJournal : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::string text = readWholeFile(kFolder + GetParam() + ".journal");
    JournalText parsed = parseJournal(text);
    ASSERT_EQ(parsed.damaged, 0);
    ASSERT_EQ(parsed.goodBytes, text.size());
    records_ = std::move(parsed.records);
    EXPECT_EQ(records_.at(0).value("type", ""), "header");
  }
  std::vector<Json> records_;
};

TEST_P(RecordedJournal, ReplaysToTheSameDecisions) {
  const std::vector<Json> then = test::decisionsOf(records_);
  EXPECT_TRUE(test::same(again(records_), then));
  auto count = [&](const char* type) {
    return std::count_if(then.begin(), then.end(), [&](const Json& j) { return j["type"] == type; });
  };
  EXPECT_GE(count("confirm"), 1);
  EXPECT_GE(count("winner"), 1);
}

// One number of one process that decided where the interval lies.
TEST_P(RecordedJournal, AnotherNumberIsAnotherDecision) {
  const auto confirm = std::find_if(records_.begin(), records_.end(), [](const Json& j) {
    return j["type"] == "confirm" && j["processes"].get<int>() > 0;
  });
  ASSERT_NE(confirm, records_.end());
  const double center = confirm->at("center");
  auto distance = [&](const Json& j) {
    if (j["type"] != "samples" || j["stage"] != "confirm" || j["build_route"] != confirm->at("build_route")) return 1e9;
    return std::abs(sampleFromJson(j).logRatio() - center);
  };
  const auto at = std::min_element(records_.begin(), records_.end(),
                                   [&](const Json& a, const Json& b) { return distance(a) < distance(b); });
  ASSERT_LT(distance(*at), 0.1);
  // The middle round, so that the process's median moves, and with it the median of processes.
  std::vector<double> ratios = at->at("log_ratios");
  std::nth_element(ratios.begin(), ratios.begin() + long(ratios.size() / 2), ratios.end());
  const auto number = std::find(at->at("log_ratios").begin(), at->at("log_ratios").end(), ratios[ratios.size() / 2]);
  *number = number->get<double>() + 0.5;
  EXPECT_FALSE(test::same(again(records_), test::decisionsOf(records_)));
}
INSTANTIATE_TEST_SUITE_P(Journals, RecordedJournal, testing::Values("fast", "mixed", "tune", "shortened"),
                         [](const auto& info) { return std::string(info.param); });

// What parts of a winner's route decide is recorded, too: the answer that made its route as short as it is.
TEST(Recorded, AnotherAnswerIsAnotherRoute) {
  std::vector<Json> records = readJournal(kFolder + "shortened.journal");
  const auto winner = std::find_if(records.begin(), records.end(), [](const Json& j) { return j["type"] == "winner"; });
  const auto answer = std::find_if(records.begin(), records.end(), [&](const Json& j) {
    return j["type"] == "decided" && j["build_route"] == (*winner)["build_route"];
  });
  ASSERT_NE(answer, records.end());
  const std::vector<Json> then = test::decisionsOf(records);
  EXPECT_TRUE(test::same(again(records), then));
  (*answer)["decision"] = "something else";
  EXPECT_FALSE(test::same(again(records), then));
}

// --tune looks into its candidates. One layer of the first one took no time at all, as far as the journal says: the
// search wants to go on from there, where nothing was measured.
TEST(Recorded, AnotherLayerTimeIsAnotherSearch) {
  std::vector<Json> records = readJournal(kFolder + "tune.journal");
  const std::vector<Json> then = test::decisionsOf(records);
  int changed = 0;
  for (Json& j : records) {
    if (j["type"] != "candidate" || !j.contains("layer_ms")) continue;
    auto hottest = std::max_element(j["layer_ms"].begin(), j["layer_ms"].end());
    const Json was = std::exchange(*hottest, 0.0);
    changed += !test::same(again(records), then);
    *hottest = was;
  }
  EXPECT_GE(changed, 1);
  EXPECT_TRUE(test::same(again(records), then));
}

}  // namespace
}  // namespace rutter::tuner
