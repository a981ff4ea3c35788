// Levels 4 and 5: tactics chosen by time, and the timing cache that makes the choice repeatable.
#include <fstream>

#include "base/error.h"
#include "compiler/timing_cache.h"
#include "knobs/witness.h"

namespace rutter::test {
namespace {

// Two equal convolutions, a pooling, a product and a softmax over a dynamic batch.
std::unique_ptr<Net> model() {
  auto n = std::make_unique<Net>();
  ir::Value* x = n->input("x", {ir::Dim::symbol("N"), 16, 12, 12});
  auto conv = [&](ir::Value* v) {
    return n->op("Relu", {n->op("Conv", {v, n->random({16, 16, 3, 3}, -0.1, 0.1)},
                                {{"pads", std::vector<int64_t>{1, 1, 1, 1}}})});
  };
  ir::Value* y = conv(conv(x));
  y = n->op("MaxPool", {y}, {{"kernel_shape", std::vector<int64_t>{2, 2}}, {"strides", std::vector<int64_t>{2, 2}}});
  y = n->op("Flatten", {y});
  y = n->op("MatMul", {y, n->random({576, 50})});
  n->output(n->op("Softmax", {y}));
  return n;
}

struct Timed {
  compiler::Decided decided;
  compiler::BuildResult result;
  std::string bytes;
};
Timed buildAt(const Net& n, int level, std::shared_ptr<compiler::TimingCache> times, const std::string& route = "",
              int most = -1, bool errorOnMiss = false) {
  frontend::Model m;
  m.graph = n.graph->clone();
  compiler::BuildOptions o;
  o.profiles = {{{"x", {{1, 16, 12, 12}, {2, 16, 12, 12}, {4, 16, 12, 12}}}}};
  o.route = knobs::Route::parse(route);
  o.threads = 2;
  o.optimizationLevel = level;
  o.maxTactics = most;
  o.avgTiming = 3;
  o.errorOnTimingMiss = errorOnMiss;
  o.timings = std::move(times);
  compiler::KernelCache cache;
  Timed t;
  t.decided = compiler::decideModel(m, o, cache);
  t.result = compiler::buildEngine(m, o, compiler::decideModel(m, o, cache), cache);
  t.bytes = runtime::writeEngine(t.result.parts);
  return t;
}
std::shared_ptr<compiler::TimingCache> empty() {
  return std::make_shared<compiler::TimingCache>();
}

TEST(TimingCache, BelowLevelFourNothingIsTimed) {
  auto n = model();
  auto times = empty();
  Timed a = buildAt(*n, 3, times), b = buildAt(*n, 0, times);
  EXPECT_EQ(times->size(), 0u);
  EXPECT_EQ(a.decided.timesMeasured, 0);
  EXPECT_FALSE(a.result.parts.notes.count("timing_cache"));
  EXPECT_EQ(a.bytes, b.bytes);
}

TEST(TimingCache, SameCacheSameEngine) {
  auto n = model();
  for (int level : {4, 5}) {
    auto times = empty();
    Timed first = buildAt(*n, level, times);
    EXPECT_GT(first.decided.timesMeasured, level == 4 ? 15 : 40);
    // Equal layers are one problem: the second convolution costs no time of its own.
    EXPECT_EQ(size_t(first.decided.timesMeasured), times->size());
    auto again = std::make_shared<compiler::TimingCache>(compiler::TimingCache::parse(times->serialize()));
    Timed second = buildAt(*n, level, again, "", -1, true);  // and any miss would be an error
    EXPECT_EQ(second.decided.timesMeasured, 0);
    EXPECT_EQ(first.bytes, second.bytes);
    EXPECT_EQ(second.result.parts.notes.at("timing_cache"), times->hash().hex());
    EXPECT_EQ(second.result.parts.notes.at("optimization_level"), std::to_string(level));
    again->add({1, 2}, 3);  // times of other models do not matter
    EXPECT_EQ(buildAt(*n, level, again, "", -1, true).bytes, first.bytes);
  }
}

// Times that are planted decide, whatever this machine thinks: choosing is by time, not by estimates.
TEST(TimingCache, PlantedTimesDecide) {
  auto n = model();
  auto times = empty();
  Timed real = buildAt(*n, 4, times);
  // Another opinion: every choice that was not taken is a nanosecond, the taken ones a second.
  auto keyOf = [](const Timed& t, const codegen::Layer& l) {
    return codegen::timingKey(l.kernelKey, l.lowering, t.decided.machine);
  };
  std::set<Hash128> taken;
  for (const auto& l : real.decided.decision.layers) taken.insert(keyOf(real, l));
  auto planted = empty();
  std::string bytes = times->serialize();
  compiler::TimingCache copy = compiler::TimingCache::parse(bytes);
  for (const Hash128& k : copy.keys()) planted->add(k, taken.count(k) ? 1000000000 : 1 + k.lo % 100);
  Timed other = buildAt(*n, 4, planted, "", -1, true);
  int changed = 0;
  ASSERT_EQ(other.decided.decision.layers.size(), real.decided.decision.layers.size());
  for (const auto& l : other.decided.decision.layers) changed += !taken.count(keyOf(other, l));
  EXPECT_GE(changed, 4) << "layers did not follow the planted times";
  // The engine is as right as the other one.
  auto in = ir::Tensor(ir::DType::kF32, {2, 16, 12, 12});
  for (int64_t i = 0; i < in.size(); i++) in.setDouble(i, double(i % 17) / 17 - 0.4);
  auto run = [&](const Timed& t) {
    Built b;
    b.engine = runtime::Engine::load(runtime::Blob::copy(t.bytes));
    return runBuilt(b, {in});
  };
  EXPECT_LT(relativeError(run(other), run(real)), 1e-5);
  EXPECT_LT(relativeError(run(real), ops::evalGraph(*n->graph, {in})), 1e-5);
}

// What was chosen by time can be asked for by a route: times are then needed no more.
TEST(TimingCache, TimedRouteChoosesTheSameByHeuristics) {
  auto n = model();
  for (int level : {4, 5}) {
    auto times = empty();
    buildAt(*n, level, times);
    // Whatever was timed in vain is made the best, so that choices are far from the heuristics' own.
    auto planted = empty();
    for (const Hash128& k : times->keys()) planted->add(k, 1000 + k.lo % 100000);
    Timed a = buildAt(*n, level, planted);
    ASSERT_FALSE(a.decided.timedRoute.isDefault());
    Timed b = buildAt(*n, 3, nullptr, a.decided.timedRoute.print());
    const auto &x = a.decided.decision.layers, &y = b.decided.decision.layers;
    ASSERT_EQ(x.size(), y.size());
    int compared = 0;
    for (size_t i = 0; i < x.size(); i++) {
      // A scope cannot tell two layers of one node apart: there the first one's choice counts for both.
      const std::string& origin = x[i].group.origins.front();
      if (std::count_if(x.begin(), x.end(), [&](auto& l) { return l.group.origins.front() == origin; }) > 1) continue;
      EXPECT_EQ(x[i].kernelKey, y[i].kernelKey) << x[i].config.print() << "\n" << y[i].config.print();
      EXPECT_EQ(x[i].lowering.serialize(), y[i].lowering.serialize()) << x[i].group.name;
      compared++;
    }
    EXPECT_GE(compared, 4) << a.decided.timedRoute.print();
  }
}

TEST(TimingCache, LayersWithoutAnAllowanceAreNotTimed) {
  auto n = model();
  frontend::Model m;
  m.graph = n->graph->clone();
  compiler::BuildOptions o;
  o.profiles = {{{"x", {{1, 16, 12, 12}, {2, 16, 12, 12}, {4, 16, 12, 12}}}}};
  o.optimizationLevel = 5;
  const auto plain = compiler::decideModel(m, o);
  const std::string hot = plain.decision.layers.front().group.origins.front();
  o.timingSeconds = {{hot, 1e9}};
  const auto one = compiler::decideModel(m, o);
  EXPECT_GT(one.timesMeasured, 0);
  EXPECT_LT(one.timesMeasured, plain.timesMeasured);
  // The second convolution is the same problem: it has the first one's times.
  for (const knobs::Assignment& a : one.timedRoute.assignments()) EXPECT_TRUE(a.scope == hot || a.scope == "Conv_2");
  o.timingSeconds = {{hot, 1e-9}};  // over after the first of each kernel
  const auto& layers = plain.decision.layers;
  EXPECT_EQ(compiler::decideModel(m, o).timesMeasured,
            std::count_if(layers.begin(), layers.end(), [&](auto& l) { return l.group.origins.front() == hot; }));
  o.timingSeconds = {{"nobody", 1.0}};
  EXPECT_EQ(compiler::decideModel(m, o).timesMeasured, 0);
}

TEST(TimingCache, RoutesStayTheUsers) {
  auto n = model();
  Timed t = buildAt(*n, 5, empty(), "-conv:tactic=conv_direct -conv:tile_m=4");
  int convs = 0;
  for (const auto& l : t.decided.decision.layers) {
    if (l.lowered.problem.kind != codegen::ProblemKind::kConv) continue;
    convs++;
    EXPECT_EQ(l.tactic->name(), "conv_direct");
    for (const knobs::Assignment& a : l.timed)
      EXPECT_FALSE(a.knob == knob::conv_tile_m.id || a.knob == knob::conv_tactic.id) << a.value;
  }
  EXPECT_EQ(convs, 2);
  EXPECT_EQ(t.result.parts.plan.route, "-conv:tactic=conv_direct -conv:tile_m=4");
}

TEST(TimingCache, MaxTacticsBoundsWhatIsTimed) {
  auto n = model();
  auto one = empty(), two = empty();
  Timed a = buildAt(*n, 4, one, "", 1), plain = buildAt(*n, 3, nullptr);
  buildAt(*n, 4, two, "", 2);
  EXPECT_EQ(a.decided.decision.hash, plain.decided.decision.hash);  // one choice: the heuristics'
  EXPECT_GT(two->size(), one->size());
  EXPECT_LE(two->size(), 2 * one->size());
}

TEST(TimingCache, AMissCanBeAnError) {
  auto n = model();
  try {
    buildAt(*n, 4, empty(), "", -1, true);
    FAIL() << "built";
  } catch (const UserError& e) {
    EXPECT_NE(std::string(e.what()).find("timing cache lacks"), std::string::npos) << e.what();
  }
}

TEST(TimingCache, FilesAreCheckedAndCombined) {
  const std::string path = ::testing::TempDir() + "/rutter_times_" + std::to_string(getpid());
  auto a = empty(), b = empty();
  a->add({1, 2}, 10);
  b->add({3, 4}, 20);
  b->add({1, 2}, 99);
  a->write(path);
  b->write(path);  // what others wrote stays
  compiler::TimingCache both = compiler::TimingCache::read(path);
  EXPECT_EQ(both.size(), 2u);
  EXPECT_EQ(both.find({3, 4}), 20u);
  a->combine(both, false);
  EXPECT_EQ(a->find({1, 2}), 10u);  // a time that is known stays
  EXPECT_EQ(a->size(), 2u);
  EXPECT_NE(a->hash(), both.hash());

  std::ifstream in(path, std::ios::binary);
  std::string bytes((std::istreambuf_iterator<char>(in)), {});
  auto refused = [&](const std::string& contents, const std::string& why) {
    std::ofstream(path, std::ios::binary) << contents;
    try {
      compiler::TimingCache::read(path);
      ADD_FAILURE() << "read: " << why;
    } catch (const UserError& e) {
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
      EXPECT_EQ(std::string(e.what()).find('\n'), std::string::npos);
      EXPECT_TRUE(std::string(e.what()).starts_with(path)) << e.what();
    }
  };
  refused("hello", "no timing cache");
  refused(bytes.substr(0, bytes.size() - 3), "torn");
  refused(bytes.substr(0, 25), "torn");
  std::string altered = bytes;
  altered[bytes.size() / 2] ^= 1;
  refused(altered, "checksum");
  // Of a machine with another number of cores: rewritten as it would be written there.
  compiler::TimingCache there(Fingerprint::parse(R"({"cores": "1234", "l2": "77"})"));
  refused(there.serialize(), "cores: 1234 there");
  EXPECT_THROW(a->combine(there, false), UserError);
  EXPECT_NO_THROW(a->combine(there, true));
  std::remove(path.c_str());
}

}  // namespace
}  // namespace rutter::test
