// Whole models through the front end, shape rules and the oracle, against onnxruntime's recorded answers.
#include "models.h"

#include <gmock/gmock.h>

#include <chrono>

#include "onnx/import.h"
#include "ops/op.h"
#include "passes/infer.h"

namespace rutter {
namespace {

struct Facts {
  const char* name;
  int64_t nodes, opset;  // as models.md and the exporters have them
  bool everySet;         // else the real-like set only: the oracle takes seconds a run
};
void PrintTo(const Facts& f, std::ostream* os) {
  *os << f.name;
}

class Models : public testing::TestWithParam<Facts> {
 protected:
  void agree(const Facts& facts);
};

TEST_P(Models, OracleAgreesWithOnnxruntime) {
  RUTTER_NEED_MODEL(GetParam().name);
  agree(GetParam());
}
void Models::agree(const Facts& facts) {
  const frontend::Model model = frontend::importFile(testmodels::modelPath(facts.name));
  EXPECT_EQ(model.nodes, facts.nodes);
  EXPECT_EQ(model.opset, facts.opset);
  model.graph->verify();
  const std::string sha256 = testmodels::sha256Of(facts.name);
  EXPECT_THAT(sha256, testing::MatchesRegex("[0-9a-f]{64}"));
  std::cout << facts.name << ": sha256 " << sha256 << ", " << model.nodes << " nodes, "
            << model.graph->top().nodes.size() << " after import, opset " << model.opset << "\n";
  int ran = 0;
  for (const auto& set : testmodels::references(facts.name)) {
    if (!facts.everySet && set.kind != "real-like") continue;
    ran++;
    SCOPED_TRACE(set.kind);
    auto graph = model.graph->clone();
    passes::Profile profile;
    for (const auto& in : set.inputs) profile[in.name] = passes::ShapeRange::fixed(in.tensor.shape());
    passes::specialise(*graph, profile);
    std::vector<ir::Tensor> inputs;
    for (const ir::Value* v : graph->top().inputs)
      for (const auto& in : set.inputs)
        if (in.name == v->name) inputs.push_back(in.tensor);
    ASSERT_EQ(inputs.size(), set.inputs.size());
    const auto start = std::chrono::steady_clock::now();
    const auto outputs = ops::evalGraph(*graph, inputs);
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    ASSERT_EQ(outputs.size(), set.outputs.size());
    for (size_t i = 0; i < outputs.size(); i++) {
      const ir::Tensor &y = outputs[i], &o = set.outputs[i].tensor;
      EXPECT_EQ(graph->top().outputs[i]->name, set.outputs[i].name);
      ASSERT_EQ(ir::constants(graph->top().outputs[i]->type.dims), o.shape());
      testmodels::expectAgrees(y, o, set.kind == "real-like");
      if (!ir::isFloat(o.dtype())) continue;
      const testmodels::Error e = testmodels::errorOf(y, o);
      std::cout << "  " << set.kind << " " << set.outputs[i].name << ": error " << e.norm << " of " << e.allowed
                << " allowed, " << seconds << " s\n";
    }
  }
  EXPECT_GE(ran, 1);
}

INSTANTIATE_TEST_SUITE_P(Real, Models,
                         testing::Values(Facts{"ppocrv4_det", 672, 12, true}, Facts{"ppocrv4_rec", 860, 12, true},
                                         Facts{"ppocrv2_cls", 566, 11, true}, Facts{"ddddocr_det", 279, 11, false},
                                         Facts{"opennsfw", 126, 9, false}, Facts{"minilm_l3_paraphrase", 354, 17, true},
                                         Facts{"magika_v3_3", 95, 15, true}),
                         [](const auto& i) { return std::string(i.param.name); });
INSTANTIATE_TEST_SUITE_P(Seeded, Models,
                         testing::Values(Facts{"resnet50_seeded", 122, 18, false},
                                         Facts{"mobilenet_v3_large_seeded", 140, 18, true},
                                         Facts{"bert_base_layers", 92, 18, false}),
                         [](const auto& i) { return std::string(i.param.name); });

// PyTorch's own exports are for whoever has made them (bench/): elsewhere, CI included, they are skipped.
class Exported : public Models {};
TEST_P(Exported, OracleAgreesWithOnnxruntime) {
  const std::string answers = testmodels::cacheFolder() + "/reference/" + GetParam().name + "/manifest.json";
  if (!std::filesystem::exists(testmodels::modelPath(GetParam().name)) || !std::filesystem::exists(answers))
    GTEST_SKIP() << "exported models, or answers to them, are not here";
  agree(GetParam());
}
INSTANTIATE_TEST_SUITE_P(PyTorch, Exported,
                         testing::Values(Facts{"resnet50", 122, 18, false}, Facts{"mobilenet_v3_large", 140, 18, true},
                                         Facts{"bert_base_s128", 491, 18, false}),
                         [](const auto& i) { return std::string(i.param.name); });

bool conditionsHold(const ir::Graph& g, const std::map<std::string, int64_t>& at) {
  for (const ir::Constraint& c : g.constraints) {
    const int64_t a = c.a.evaluate(at), b = c.b.evaluate(at);
    const bool holds = c.kind == ir::Constraint::Kind::kEqual       ? a == b
                       : c.kind == ir::Constraint::Kind::kDivisible ? b && a % b == 0
                                                                    : a >= b;
    if (!holds) return false;
  }
  return true;
}

// One graph serves every shape of its profile: symbols stay symbols through inference.
TEST(DynamicModels, OutputsFollowTheSymbols) {
  RUTTER_NEED_MODEL("minilm_l3_paraphrase");
  auto g = frontend::importFile(testmodels::modelPath("minilm_l3_paraphrase")).graph;
  passes::ShapeRange r{{1, 8}, {1, 128}, {4, 512}};
  passes::specialise(*g, {{"input_ids", r}, {"attention_mask", r}});
  const auto& out = g->top().outputs;
  EXPECT_EQ(ir::toString(out[0]->type.dims), "batch_sizexsequence_length");
  EXPECT_EQ(ir::toString(out[2]->type.dims), "batch_sizexsequence_lengthx384");
  EXPECT_EQ(ir::toString(out[3]->type.dims), "batch_sizex384");
}
TEST(DynamicModels, FullyConvolutional) {
  RUTTER_NEED_MODEL("ppocrv4_det");
  auto g = frontend::importFile(testmodels::modelPath("ppocrv4_det")).graph;
  passes::specialise(*g, {{"x", {{1, 3, 64, 64}, {1, 3, 320, 320}, {4, 3, 960, 960}}}});
  const auto& dims = g->top().outputs[0]->type.dims;
  ASSERT_EQ(dims.size(), 4u);
  std::map<std::string, int64_t> at;
  for (const auto& [name, info] : g->symbols) at[name] = info.opt;
  // Any height divisible by 32 will do; the others break a condition that a run checks.
  for (int64_t height : {64, 100, 224, 330, 960}) {
    at["p2o.DynamicDimension.1"] = height;
    EXPECT_EQ(conditionsHold(*g, at), height % 32 == 0) << height;
    if (height % 32) continue;
    EXPECT_EQ(dims[2].evaluate(at), height);
    EXPECT_EQ(dims[3].evaluate(at), 320);
  }
}

}  // namespace
}  // namespace rutter
