// What --tune asks next, told what a world without noise would answer.
#include <gtest/gtest.h>

#include <cmath>

#include "tuner/world.h"

namespace rutter::tuner {
namespace {

using test::World;

Tell tellOf(const World& world, const std::string& route) {
  Tell t;
  if (!world.fault(route).empty()) {
    t.status = Status::kCrashed;
    return t;
  }
  t.logRatios.assign(5, std::log(world.ms("") / world.ms(route)));
  for (const LayerTime& l : world.layers(route)) t.layerMs[l.name] = l.ms;
  for (const LayerTime& l : world.layers("")) t.defaultLayerMs[l.name] = l.ms;
  return t;
}

std::unique_ptr<Strategy> strategyFor(const World& world, const std::string& timed = "", int threads = 0) {
  std::vector<std::string> knobs;
  for (const knobs::KnobInfo& k : world.registry->knobs()) knobs.push_back(k.name);
  return makeTuneStrategy({world.registry.get(), world.layers(""), knobs, timed, false, threads});
}

// Every route that is asked for, to the end.
std::vector<std::string> asked(const World& world, int threads = 0) {
  auto s = strategyFor(world, "", threads);
  std::vector<std::string> out;
  while (std::optional<Ask> a = s->ask()) {
    out.push_back(a->route);
    s->tell(tellOf(world, a->route));
    EXPECT_LT(out.size(), 5000u);
    if (out.size() >= 5000) break;
  }
  return out;
}
std::string bestOf(const World& world, const std::vector<std::string>& routes) {
  return *std::min_element(routes.begin(), routes.end(), [&](auto& a, auto& b) { return world.ms(a) < world.ms(b); });
}

// What timing kernels alone found comes first; a layer keeps it if its profile agrees.
TEST(Tune, BeginsWithTimedKernelsAndKeepsWhatHelps) {
  const World world({{"knobs", {{"-tile", "32|16|64"}, {"-unroll", "1|2"}}},
                     {"layers",
                      {{"conv", {{"ms", 10}, {"effects", {{"-tile=16", 0.8}, {"-unroll=2", 0.9}}}}},
                       {"gemm", {{"ms", 5}, {"effects", {{"-tile=64", 1.3}}}}}}}});
  const std::string timed = "-tile@conv=16 -unroll@conv=2 -tile@gemm=64 -tile@gone=16";
  auto s = strategyFor(world, timed);
  std::optional<Ask> first = s->ask();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->route, "-tile@conv=16 -unroll@conv=2 -tile@gemm=64");
  s->tell(tellOf(world, first->route));
  std::optional<Ask> second = s->ask();  // without what did harm
  ASSERT_TRUE(second);
  EXPECT_EQ(second->route, "-tile@conv=16 -unroll@conv=2");
  s->tell(tellOf(world, second->route));
  std::optional<Ask> third = s->ask();  // goes on from there
  ASSERT_TRUE(third);
  EXPECT_NE(third->route.find("-unroll@conv=2"), std::string::npos) << third->route;
}

// Two layers whose values are of use beside each other only, and one where nothing helps.
TEST(Tune, TriesTwoValuesTogetherWhenNoSingleOneIsLeft) {
  Json layer = {{"ms", 4},
                {"effects", {{"-tile=16", 1.02}, {"-tile=64", 1.1}, {"-unroll=2", 1.03}, {"-pack=on", 1.01}}},
                {"pairs", {{"-tile=64 -unroll=2", 0.6}}}};
  Json other = layer;
  other["pairs"] = {{"-pack=on -tile=16", 0.7}};
  Json none = layer;
  none.erase("pairs");
  const World world({{"knobs", {{"-tile", "32|16|64"}, {"-unroll", "1|2"}, {"-pack", "off|on"}}},
                     {"layers", {{"a", layer}, {"b", other}, {"c", none}}}});
  const auto routes = asked(world);
  EXPECT_NEAR(world.ms(bestOf(world, routes)), 4 * 1.1 * 1.03 * 0.6 + 4 * 1.01 * 1.02 * 0.7 + 4, 1e-9);
}

// Values for the whole model, too.
TEST(Tune, TriesTwoValuesForTheWholeModelTogether) {
  Json layers;
  for (int l = 0; l < 40; l++)
    layers["l" + std::to_string(l)] = {
        {"ms", 1}, {"effects", {{"-tile=16", 1.01}, {"-unroll=2", 1.01}}}, {"pairs", {{"-tile=16 -unroll=2", 0.7}}}};
  const World world({{"knobs", {{"-tile", "32|16|64"}, {"-unroll", "1|2|4"}}}, {"layers", layers}});
  const auto routes = asked(world);
  EXPECT_NE(std::find(routes.begin(), routes.end(), "-tile=16 -unroll=2"), routes.end());
}

// What fails alone, in a layer or in the whole model, is not tried beside another value.
TEST(Tune, ValuesThatFailAloneAreInNoPair) {
  const Json layer = {{"ms", 4},
                      {"effects", {{"-tile=16", 1.02}, {"-tile=64", 1}, {"-unroll=2", 1.03}, {"-pack=on", 1.01}}}};
  const World world({{"knobs", {{"-tile", "32|16|64"}, {"-unroll", "1|2"}, {"-pack", "off|on"}}},
                     {"layers", {{"a", layer}, {"b", layer}}},
                     {"faults", {{"-tile=64", "crash"}}}});
  const auto routes = asked(world);
  auto count = [&](const std::string& first, const std::string& second) {
    return std::count_if(routes.begin(), routes.end(),
                         [&](const std::string& r) { return r.find(first) != r.npos && r.find(second) != r.npos; });
  };
  for (const std::string of : {"@a=", "@b=", "="}) {
    EXPECT_GT(count("-tile" + of + "16", "-unroll" + of + "2"), 0) << of;
    EXPECT_GT(count("-tile" + of + "64", ""), 0) << of;
    EXPECT_EQ(count("-tile" + of + "64", "-unroll" + of + "2"), 0) << of;
    EXPECT_EQ(count("-tile" + of + "64", "-pack" + of + "on"), 0) << of;
  }
}

TEST(Tune, LimitsThatAllThreadsRespectAreNone) {
  const World world(
      {{"knobs", {{"-threads:limit", "auto|1|2|4|8"}, {"-tile", "32|16"}}},
       {"layers", {{"conv", {{"ms", 10}, {"effects", {{"-tile=16", 0.9}, {"-threads:limit=1", 1.5}}}}}}}});
  auto limits = [&](int threads) {
    std::set<std::string> out;
    for (const std::string& r : asked(world, threads))
      for (const char* v : {"1", "2", "4", "8"})
        if (r.find(std::string("limit@conv=") + v) != r.npos) out.insert(v);
    return out;
  };
  EXPECT_EQ(limits(0), (std::set<std::string>{"1", "2", "4", "8"}));
  EXPECT_EQ(limits(4), (std::set<std::string>{"1", "2"}));
  EXPECT_EQ(limits(2), (std::set<std::string>{"1"}));
}

// However many values there are, it ends.
TEST(Tune, Ends) {
  Json knobs, effects;
  for (int k = 0; k < 12; k++) {
    knobs["-k" + std::to_string(k)] = "0|1|2|3|4";
    for (int v = 1; v < 5; v++) effects[fmt::format("-k{}={}", k, v)] = 1 + 0.001 * v;
  }
  Json layers;
  for (int l = 0; l < 30; l++) layers["l" + std::to_string(l)] = {{"ms", 1}, {"effects", effects}};
  const size_t n = asked(World({{"knobs", knobs}, {"layers", layers}})).size();
  EXPECT_GT(n, 3 * 64u);
  EXPECT_LT(n, 1000u);
}

}  // namespace
}  // namespace rutter::tuner
