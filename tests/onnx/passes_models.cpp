// The pipeline on real models: what it must recognise, and that the oracle's answers stay.
#include <cstdlib>
#include <filesystem>

#include "bind.h"
#include "net.h"
#include "onnx/import.h"

using namespace rutter;
using namespace rutter::test;
using passes::ShapeRange;

namespace {
std::string modelPath(const std::string& name) {
  const char* folder = std::getenv("RUTTER_MODELS");
  return (folder && *folder ? std::string(folder) : std::string(RUTTER_SOURCE_DIR "/.cache/models")) + "/" + name +
         ".onnx";
}
// Skips where the model is missing; fails in CI.
#define NEED_MODEL(name)                                                                   \
  if (!std::filesystem::exists(modelPath(name))) {                                         \
    if (std::getenv("CI")) FAIL() << modelPath(name) << " is missing: run scripts/models"; \
    GTEST_SKIP() << modelPath(name) << " is missing: run scripts/models " << name;         \
  }

struct Built {
  std::unique_ptr<ir::Graph> before, after;
};
Built build(const std::string& name, const passes::Profile& profile, const std::string& route = "") {
  Built b;
  b.before = std::move(frontend::importFile(modelPath(name)).graph);
  passes::specialise(*b.before, profile);
  b.after = optimise(*b.before, route);
  std::map<std::string, int> ops;
  for (auto& n : b.after->top().nodes) ops[n->op]++;
  std::string text;
  for (auto& [op, k] : ops) text += " " + op + ":" + std::to_string(k);
  printf("%s: %d nodes -> %d:%s\n", name.c_str(), countNodes(*b.before), countNodes(*b.after), text.c_str());
  if (const char* folder = std::getenv("RUTTER_DUMP_GRAPHS")) {
    FILE* f = fopen((std::string(folder) + "/" + name + ".txt").c_str(), "w");
    fputs(b.after->print().c_str(), f);
    fclose(f);
  }
  return b;
}
void same(const Built& b, const std::map<std::string, int64_t>& symbols = {}, double lo = -1, double hi = 1) {
  auto before = b.before->clone(), after = b.after->clone();
  if (!symbols.empty()) {
    bindSymbols(*before, symbols);
    bindSymbols(*after, symbols);
  }
  expectSame(*before, *after, randomInputs(*before, 5, lo, hi));
}
void gone(const ir::Graph& g, std::initializer_list<const char*> ops) {
  for (const char* op : ops) EXPECT_EQ(countOp(g, op), 0) << op;
}
}  // namespace

TEST(PassModels, PpocrDet) {
  NEED_MODEL("ppocrv4_det");
  auto b = build("ppocrv4_det", {{"x", {{1, 3, 64, 64}, {1, 3, 320, 320}, {1, 3, 640, 640}}}});
  gone(*b.after, {"BatchNormalization", "Identity", "Clip", "Div", "Constant", "Shape"});
  std::map<std::string, int64_t> at;
  for (auto& [s, info] : b.before->symbols) at[s] = at.empty() ? 64 : 96;
  same(b, at);
  at.begin()->second = 80;  // heights must be divisible by 32
  EXPECT_THROW(bindSymbols(*b.after, at), UserError);
}
TEST(PassModels, PpocrCls) {
  NEED_MODEL("ppocrv2_cls");
  auto b = build("ppocrv2_cls", {{"x", ShapeRange::fixed({1, 3, 48, 64})}});
  gone(*b.after, {"BatchNormalization", "Identity", "Clip", "Div", "Shape", "Constant"});
  same(b);
}
TEST(PassModels, OpenNsfw) {
  NEED_MODEL("opennsfw");
  auto b = build("opennsfw", {{"input:0", ShapeRange::fixed({1, 224, 224, 3})}});
  EXPECT_EQ(countOp(*b.after, "LayoutCast"), 0) << "the input's Transpose is a label";
  same(b, {}, -100, 100);
}
TEST(PassModels, DdddocrDet) {
  NEED_MODEL("ddddocr_det");
  auto b = build("ddddocr_det", {{"images", ShapeRange::fixed({1, 3, 416, 416})}});
  gone(*b.after, {"Shape", "Gather", "Constant"});
  EXPECT_GE(countOp(*b.after, "Silu"), 60);
}
TEST(PassModels, MiniLmWithOpenShapes) {
  NEED_MODEL("minilm_l3_paraphrase");
  ShapeRange r{{1, 8}, {1, 128}, {4, 512}};
  auto b = build("minilm_l3_paraphrase", {{"input_ids", r}, {"attention_mask", r}});
  gone(*b.after, {"Shape", "Gemm", "Erf", "Unsqueeze", "ConstantOfShape", "Equal"});
  EXPECT_EQ(countOp(*b.after, "Gelu"), 3);
  std::map<std::string, int64_t> at;
  for (auto& [s, info] : b.before->symbols) at[s] = s.find("batch") != std::string::npos ? 2 : 11;
  same(b, at);
}
TEST(PassModels, Magika) {
  NEED_MODEL("magika_v3_3");
  auto b = build("magika_v3_3", {{"bytes", ShapeRange::fixed({1, 2048})}});
  gone(*b.after, {"Shape", "ReduceSum", "ReduceMax", "Tanh", "Expand"});
  EXPECT_EQ(countOp(*b.after, "LayerNormalization"), 2);
  EXPECT_EQ(countOp(*b.after, "Softmax"), 1);
  EXPECT_EQ(countOp(*b.after, "Gelu"), 2);
  same(b);
}
TEST(PassModels, BertLayers) {
  NEED_MODEL("bert_base_layers");
  auto b = build("bert_base_layers",
                 {{"input_ids", ShapeRange::fixed({1, 128})}, {"attention_mask", ShapeRange::fixed({1, 128})}});
  EXPECT_EQ(countOp(*b.after, "Erf"), 0);
  EXPECT_GE(countOp(*b.after, "Gelu"), 1);
}
