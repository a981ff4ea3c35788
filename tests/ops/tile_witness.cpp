// Witnesses of the gemm:* and conv:* knobs: for each a small problem and two values between which the knob's own effect
// shows, what is executed differs (code, launches or task partition), and the numerics class holds.
#include <set>

#include "knobs/registry.h"
#include "ops/gemm_cases.h"

namespace rutter::cputest {
namespace {

struct Witness {
  const char *knob, *value, *other;
  Case c;
  std::string tactic;
  std::function<int64_t(const Result&)> effect;
  int64_t expected, expectedOther;
};
std::function<int64_t(const Result&)> config(const char* key) {
  return [key](const Result& r) { return r.config.get(key); };
}
int64_t scratch(const Result& r) {
  return r.lowering.launches.back().scratch;
}
int64_t taskCount(const Result& r) {
  return r.tasks.back();
}
int64_t launches(const Result& r) {
  return int64_t(r.lowering.launches.size());
}
// Occurrences of a mnemonic in the code.
std::function<int64_t(const Result&)> uses(const char* mnemonic) {
  return [mnemonic](const Result& r) {
    std::string text = codegen::findTarget("cpu").disassemble(r.object);
    int64_t n = 0;
    for (size_t at = text.find(mnemonic); at != std::string::npos; at = text.find(mnemonic, at + 1)) n++;
    return std::min<int64_t>(n, 1);
  };
}

std::vector<Witness> witnesses() {
  Case gemm = gemmCase({.m = 40, .n = 100, .k = 200}, true, false, true);
  GemmShape computed{.m = 40, .n = 100, .k = 64, .constantB = false};
  Case product = gemmCase(computed);
  ConvShape shape{.ic = 32, .h = 12, .w = 30, .oc = 72, .kh = 3, .kw = 3, .pt = 1, .pl = 1, .pb = 1, .pr = 1};
  Case conv = convCase(shape);
  ConvShape wide = shape;
  wide.w = 100;
  ConvShape deep = shape;
  deep.ic = deep.oc = deep.groups = 64;
  Case depthwise = convCase(deep);
  std::vector<Witness> w;
  w.push_back({"-gemm:tile_m", "4", "8", gemm, "gemm_tile", config("tile_m"), 4, 8});
  w.push_back({"-gemm:tile_n", "16", "32", gemm, "gemm_tile", config("tile_n"), 16, 32});
  w.push_back({"-gemm:unroll_k", "1", "8", gemm, "gemm_tile", config("unroll"), 1, 8});
  w.push_back({"-gemm:prefetch", "0", "8", gemm, "gemm_tile", uses("prefetcht0"), 0, 1});
  w.push_back(
      {"-gemm:block_k", "0", "64", gemm, "gemm_tile", [](const Result& r) { return int64_t(scratch(r) > 0); }, 0, 1});
  w.push_back(
      {"-gemm:task_m", "8", "64", gemm, "gemm_tile", [](const Result& r) { return int64_t(taskCount(r) > 5); }, 1, 0});
  w.push_back({"-gemm:task_n", "16", "256", gemm, "gemm_tile", config("task_n"), 32, 256});
  w.push_back({"-gemm:order", "columns", "rows", gemm, "gemm_tile", config("rows_outer"), 0, 1});
  w.push_back({"-gemm:task_order", "columns", "rows", gemm, "gemm_tile", config("rows_first"), 0, 1});
  w.push_back(
      {"-gemm:pack_a", "off", "on", gemm, "gemm_tile", [](const Result& r) { return int64_t(scratch(r) > 0); }, 0, 1});
  w.push_back({"-gemm:pack_b", "direct", "layer", product, "gemm_tile", launches, 1, 2});
  w.push_back({"-gemm:epilogue", "registers", "loop", gemm, "gemm_tile",
               [](const Result& r) { return int64_t(scratch(r) > 0); }, 0, 1});
  w.push_back({"-conv:tile_m", "4", "14", conv, "conv_direct", config("tile_w"), 4, 14});
  w.push_back({"-conv:tile_n", "16", "32", conv, "conv_direct", config("tile_n"), 16, 32});
  w.push_back({"-conv:unroll", "1", "16", conv, "conv_direct", config("unroll"), 1, 16});
  w.push_back({"-conv:prefetch", "0", "8", conv, "conv_direct", uses("prefetcht0"), 0, 1});
  w.push_back({"-conv:block_ic", "0", "16", conv, "conv_direct", config("block_ic"), 0, 16});
  w.push_back({"-conv:block_oc", "32", "256", conv, "conv_direct",
               [](const Result& r) { return int64_t(r.config.get("task_n") > 72); }, 0, 1});
  w.push_back({"-conv:task_rows", "1", "4", conv, "conv_direct", config("task_h"), 1, 4});
  w.push_back({"-conv:task_columns", "16", "256", convCase(wide), "conv_direct",
               [](const Result& r) { return int64_t(r.config.get("task_w") >= 100); }, 0, 1});
  w.push_back({"-conv:pad", "clip", "copy", conv, "conv_direct",
               [](const Result& r) { return int64_t(scratch(r) > 0); }, 0, 1});
  w.push_back({"-conv:order", "channels", "pixels", conv, "conv_direct", config("channels_outer"), 1, 0});
  w.push_back({"-conv:task_order", "pixels", "channels", conv, "conv_direct", config("channels_inner"), 0, 1});
  w.push_back({"-conv:dw_tile", "2", "4", depthwise, "conv_depthwise", config("tile_w"), 2, 4});
  w.push_back({"-conv:dw_vectors", "1", "2", depthwise, "conv_depthwise", config("tile_v"), 1, 2});
  return w;
}

TEST(TileKnobs, Witnesses) {
  std::string isa = isas().back();
  for (const Witness& w : witnesses()) {
    SCOPED_TRACE(w.knob);
    Result r[2];
    for (int i = 0; i < 2; i++) {
      Options o{.isa = isa, .route = fmt::format("{}={}", w.knob, i ? w.other : w.value), .tactic = w.tactic};
      r[i] = run(w.c, o);
      EXPECT_TRUE(r[i].refusals.empty()) << (r[i].refusals.empty() ? "" : r[i].refusals[0].reason);
      if (isa == "avx512") {
        EXPECT_EQ(w.effect(r[i]), i ? w.expectedOther : w.expected) << (i ? w.other : w.value);
      }
    }
    EXPECT_TRUE(r[0].object.object != r[1].object.object || r[0].tasks != r[1].tasks) << "the same is executed";
    const knobs::KnobInfo* info = knobs::Registry::builtin().find(w.knob);
    ASSERT_TRUE(info);
    ASSERT_EQ(r[0].outputs.size(), r[1].outputs.size());
    if (info->numericsOf(w.value) == knobs::Numerics::kExact) {
      EXPECT_EQ(r[0].outputs, r[1].outputs);
    }
  }
}
// No two values give the same thing to execute, of one knob or of different ones.
TEST(TileKnobs, ArtefactsDiffer) {
  std::map<std::string, std::string> seen;
  std::map<std::string, Case> problems;
  for (const Witness& w : witnesses()) {
    Options o{.isa = "", .route = fmt::format("{}={}", w.knob, w.other), .tactic = w.tactic};
    Result r = compile(w.c, o);
    std::string key = w.c.problem.serialize() + r.object.object + r.lowering.serialize();
    Result base = compile(w.c, {.isa = "", .route = "", .tactic = w.tactic});
    bool isDefault = base.object.object == r.object.object && base.lowering.serialize() == r.lowering.serialize();
    auto [at, fresh] = seen.emplace(key, w.knob);
    EXPECT_TRUE(fresh || isDefault || at->second == w.knob)
        << w.knob << "=" << w.other << " is the same as " << at->second;
  }
}
// Every gemm and conv knob that a kernel reads has a witness above (the tactic knobs choose between kernels).
TEST(TileKnobs, AllHaveOne) {
  std::set<std::string> known{"-gemm:tactic", "-conv:tactic", "-conv:transposed"};
  for (const Witness& w : witnesses()) known.insert(w.knob);
  for (const knobs::KnobInfo& k : knobs::Registry::builtin().knobs())
    if (k.area == "gemm" || k.area == "conv") {
      EXPECT_TRUE(known.count(k.name)) << k.name << " has no witness";
    }
}

}  // namespace
}  // namespace rutter::cputest
