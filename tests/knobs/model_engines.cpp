// Engines of real models: machine code alone, onnxruntime's recorded answers on every set of inputs, one engine for all
// the shapes of its profile.
#include <set>

#include "knobs/witness.h"
#include "models.h"
#include "runtime/context.h"

namespace rutter::test {
namespace {
using passes::ShapeRange;

struct Real {
  const char* name;
  passes::Profile profile;
};
void PrintTo(const Real& r, std::ostream* os) {
  *os << r.name;
}

class ModelEngines : public testing::TestWithParam<Real> {};

Built engineOf(const Real& real) {
  compiler::BuildOptions o;
  o.profiles = {real.profile};
  o.threads = 2;
  const frontend::Model model = frontend::importFile(testmodels::modelPath(real.name));
  compiler::KernelCache cache;
  Built b;
  b.result = compiler::buildEngine(model, o, cache);
  b.engine = runtime::Engine::load(runtime::Blob::copy(runtime::writeEngine(b.result.parts)));
  return b;
}
}  // namespace

TEST_P(ModelEngines, AreMachineCodeAndAgreeWithOnnxruntime) {
  const Real& real = GetParam();
  RUTTER_NEED_MODEL(real.name);
  const Built b = engineOf(real);
  EXPECT_EQ(b.result.referenceNodes, 0);
  // Every layer is launched, and every launch is a symbol of the engine's own code.
  const runtime::Code code(b.result.parts.code, "");
  std::set<int> launched;
  for (const auto& i : b.plan().regions.at(0)->code)
    if (const auto* l = i->action.AsLaunch()) {
      launched.insert(i->layer);
      EXPECT_TRUE(code.find(b.plan().kernels.at(size_t(l->kernel))));
    }
  for (size_t i = 0; i < b.plan().layers.size(); i++)
    EXPECT_TRUE(launched.count(int(i))) << "no kernel for " << b.plan().layers[i]->name;

  for (const auto& set : testmodels::references(real.name)) {
    std::vector<ir::Tensor> in;
    for (int i = 0; i < b.engine->inputs(); i++)
      for (const auto& t : set.inputs)
        if (t.name == b.engine->io(i).name()->str()) in.push_back(t.tensor);
    ASSERT_EQ(in.size(), set.inputs.size());
    const std::vector<ir::Tensor> out = runBuilt(b, in);
    ASSERT_EQ(out.size(), set.outputs.size());
    for (size_t i = 0; i < out.size(); i++) {
      SCOPED_TRACE(fmt::format("{} {}", set.kind, set.outputs[i].name));
      testmodels::expectAgrees(out[i], set.outputs[i].tensor, set.kind == "real-like");
    }
  }
}

const ShapeRange kBatch1x128{{1, 8}, {1, 128}, {4, 256}};
INSTANTIATE_TEST_SUITE_P(
    All, ModelEngines,
    testing::Values(Real{"ppocrv4_det", {{"x", {{1, 3, 32, 32}, {1, 3, 320, 320}, {2, 3, 352, 352}}}}},
                    Real{"ppocrv4_rec", {{"x", {{1, 3, 48, 200}, {1, 3, 48, 320}, {2, 3, 48, 320}}}}},
                    Real{"ppocrv2_cls", {{"x", {{1, 3, 48, 192}, {1, 3, 48, 192}, {4, 3, 48, 192}}}}},
                    Real{"ddddocr_det", {}},
                    Real{"opennsfw", {{"input:0", {{1, 224, 224, 3}, {1, 224, 224, 3}, {3, 224, 224, 3}}}}},
                    Real{"minilm_l3_paraphrase", {{"input_ids", kBatch1x128}, {"attention_mask", kBatch1x128}}},
                    Real{"magika_v3_3", {{"bytes", {{1, 2048}, {1, 2048}, {3, 2048}}}}}, Real{"resnet50_seeded", {}},
                    Real{"mobilenet_v3_large_seeded", {}}, Real{"bert_base_layers", {}}),
    [](const auto& i) { return std::string(i.param.name); });

TEST(ModelEnginesShapes, HeightsThatAreNoMultipleAreAnError) {
  RUTTER_NEED_MODEL("ppocrv4_det");
  const Built b = engineOf({"ppocrv4_det", {{"x", {{1, 3, 32, 32}, {1, 3, 320, 320}, {2, 3, 352, 352}}}}});
  runtime::Context context(b.engine, std::make_shared<runtime::Pool>(runtime::PoolOptions{.threads = 1}));
  for (const auto& [height, width, right] :
       {std::tuple{100, 320, false}, {320, 48, false}, {64, 96, true}, {352, 32, true}, {384, 320, false}}) {
    std::string said;
    try {
      context.setInputShape(0, {1, 3, height, width});
      const auto shape = context.shape(b.engine->inputs());
      EXPECT_EQ(shape, (std::vector<int64_t>{1, 1, height, width}));
    } catch (const UserError& e) {
      said = e.what();
    }
    EXPECT_EQ(said.empty(), right) << height << "x" << width << ": " << said;
    if (!right && height % 32 + width % 32) {
      EXPECT_NE(said.find("32"), std::string::npos) << said;
    }
  }
}

}  // namespace rutter::test
