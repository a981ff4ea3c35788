// What the front end makes of well-formed models: names, types, constants, functions, order.
#include <gmock/gmock.h>

#include "onnx/build.h"
#include "onnx_writer.h"
#include "ops/op.h"

namespace rutter::onnxwriter {
namespace {

using testing::ElementsAre;

std::vector<std::string> nodeNames(const ir::Graph& g) {
  std::vector<std::string> names;
  for (const auto& n : g.top().nodes) names.push_back(n->name);
  return names;
}
std::vector<double> contents(const ir::Tensor& t) {
  std::vector<double> v;
  for (int64_t i = 0; i < t.size(); i++) v.push_back(t.getDouble(i));
  return v;
}

TEST(Import, ModelFacts) {
  frontend::Model m = importText(reluModel().bytes());
  EXPECT_EQ(m.irVersion, 8);
  EXPECT_EQ(m.opset, 17);
  EXPECT_EQ(m.producer, "writer");
  EXPECT_EQ(m.nodes, 1);
  EXPECT_EQ(m.graph->name, "g");
  EXPECT_EQ(m.graph->print(), "input %x: float32[2x3]\n%y:float32[2x3] = Relu(%x) {}\noutput %y: float32[2x3]\n");
  m.graph->verify();
}
TEST(Import, NamesAndOrigins) {
  Model m = reluModel();
  m.nodes = {node("Relu", {"x"}, {"a"}), node("Relu", {"a"}, {"b"}, {}, "same"), node("Relu", {"b"}, {"c"}, {}, "same"),
             node("Relu", {"c"}, {"y"})};
  frontend::Model r = importText(m.bytes());
  EXPECT_THAT(nodeNames(*r.graph), ElementsAre("Relu_0", "same", "same.1", "Relu_3"));
  EXPECT_THAT(r.graph->top().nodes.back()->origins, ElementsAre("Relu_3"));
}
TEST(Import, NodesInAnyOrder) {
  Model m = reluModel();
  m.nodes = {node("Relu", {"b"}, {"y"}, {}, "last"), node("Relu", {"x"}, {"a"}, {}, "first"),
             node("Relu", {"a"}, {"b"}, {}, "middle")};
  EXPECT_THAT(nodeNames(*importText(m.bytes()).graph), ElementsAre("first", "middle", "last"));
}
TEST(Import, SymbolicDims) {
  Model m;
  m.inputs = {value("in:0", kFloat, {"batch", "?", "-1", "", "p2o.Dim.0", "4"}),
              value("b", kFloat, {"batch", "past + 1", "?"})};
  m.nodes = {node("Relu", {"in:0"}, {"y"}), node("Relu", {"b"}, {"z"})};
  m.outputs = {value("y", kFloat, {}), value("z", kFloat, {})};
  frontend::Model r = importText(m.bytes());
  const auto& in = r.graph->top().inputs;
  EXPECT_EQ(in[0]->name, "in:0");
  EXPECT_EQ(ir::toString(in[0]->type.dims), "batchxin_0_1xin_0_2xin_0_3xp2o.Dim.0x4");
  EXPECT_EQ(ir::toString(in[1]->type.dims), "batchxpast___1xb_2");
  EXPECT_EQ(r.graph->symbols.size(), 7u);
}
TEST(Import, InputWithoutShapeStaysUnknown) {
  Model m = reluModel();
  m.inputs = {shapeless("x", kHalf)};
  frontend::Model r = importText(m.bytes());
  EXPECT_FALSE(r.graph->top().inputs[0]->type.known);
  EXPECT_EQ(r.graph->top().inputs[0]->type.dtype, ir::DType::kF16);
}
TEST(Import, InitialisersThatAreInputsAreConstants) {
  Model m = reluModel();
  m.irVersion = 3;
  m.nodes = {node("Add", {"x", "w"}, {"y"})};
  m.initialisers = {floats("w", {3}, {1, 2, 3})};
  m.inputs.push_back(value("w", kFloat, {"3"}));
  frontend::Model r = importText(m.bytes());
  EXPECT_EQ(r.graph->top().inputs.size(), 1u);
  EXPECT_TRUE(r.graph->top().nodes.front()->inputs[1]->isConstant());
}
TEST(Import, ConstantNodesBecomeConstants) {
  Model m = reluModel();
  m.nodes = {node("Constant", {}, {"a"}, {attrTensor("value", floats("", {2}, {1, 2}))}),
             node("Constant", {}, {"b"}, {attr("value_float", 3.f)}),
             node("Constant", {}, {"c"}, {attr("value_ints", Ints{4, 5})}),
             node("Add", {"a", "b"}, {"s"}),
             node("Cast", {"c"}, {"f"}, {attr("to", int64_t{1})}),
             node("Add", {"s", "f"}, {"y"})};
  m.inputs = {};
  frontend::Model r = importText(m.bytes());
  EXPECT_EQ(r.graph->top().nodes.size(), 3u);
  EXPECT_THAT(contents(ops::evalGraph(*r.graph, {}).at(0)), ElementsAre(8, 10));
}
TEST(Import, UnusedForeignDomainsAreIgnored) {
  Model m = reluModel();
  m.opsets["com.example.unheard_of"] = 77;
  EXPECT_EQ(importText(m.bytes()).nodes, 1);
}
TEST(Import, DefaultDomainByItsLongName) {
  Model m = reluModel();
  m.opsets = {{"ai.onnx", 17}};
  m.nodes = {node("Relu", {"x"}, {"y"}, {}, "", "ai.onnx")};
  frontend::Model r = importText(m.bytes());
  EXPECT_EQ(r.opset, 17);
  EXPECT_EQ(r.graph->top().nodes.front()->domain, "");
}
TEST(Import, OutputThatIsAnInitializer) {
  Model m = reluModel();
  m.initialisers = {floats("w", {1}, {7})};
  m.outputs.push_back(value("w", kFloat, {"1"}));
  frontend::Model r = importText(m.bytes());
  EXPECT_THAT(contents(ops::evalGraph(*r.graph, {ir::Tensor(ir::DType::kF32, {2, 3})}).at(1)), ElementsAre(7));
}

TEST(Import, FunctionsAreInlined) {
  Model m = reluModel();
  m.opsets["local"] = 1;
  // G(a; slope) = LeakyRelu(a, slope) + a, twice in F; names in a function are its own.
  m.functions = {function("G", {"a", "missing"}, {"r"},
                          {node("LeakyRelu", {"a"}, {"y"}, {attrRef("alpha", 1, "slope")}, "leaky"),
                           node("Add", {"y", "a"}, {"r"}, {}, "add")},
                          {"slope"}),
                 function("F", {"x"}, {"y", "same"},
                          {node("G", {"x"}, {"t"}, {attr("slope", 0.5f)}, "g", "local"),
                           node("G", {"t"}, {"y"}, {}, "", "local"), node("Identity", {"x"}, {"same"})})};
  m.nodes = {node("F", {"x"}, {"y"}, {}, "f", "local")};
  m.inputs = {value("x", kFloat, {"2"})};
  frontend::Model r = importText(m.bytes());
  r.graph->verify();
  EXPECT_THAT(nodeNames(*r.graph), ElementsAre("f/g/leaky", "f/g/add", "f/G_1/leaky", "f/G_1/add", "f/Identity_2"));
  EXPECT_EQ(r.graph->top().outputs[0]->name, "y");
  // slope 0.5: -2 -> -1 - 2 = -3; then the operator's default 0.01: -0.03 - 3.
  auto y = contents(ops::evalGraph(*r.graph, {ir::Tensor::ofFloats({2}, {-2, 1})}).at(0));
  EXPECT_NEAR(y[0], -3.03, 1e-6);
  EXPECT_NEAR(y[1], 4, 1e-6);
}
TEST(Import, FunctionWithDefaultAndPassThrough) {
  Model m = reluModel();
  m.opsets["local"] = 1;
  m.functions = {function("F", {"x"}, {"x", "l"}, {node("LeakyRelu", {"x"}, {"l"}, {attrRef("alpha", 1, "slope")})}, {},
                          {attr("slope", 0.25f)})};
  m.nodes = {node("F", {"x"}, {"y", "z"}, {}, "f", "local")};
  m.inputs = {value("x", kFloat, {"1"})};
  m.outputs.push_back(value("z", kFloat, {"1"}));
  auto out = ops::evalGraph(*importText(m.bytes()).graph, {ir::Tensor::ofFloats({1}, {-4})});
  EXPECT_THAT(contents(out.at(0)), ElementsAre(-4));
  EXPECT_THAT(contents(out.at(1)), ElementsAre(-1));
}
TEST(Import, FunctionsHaveTheirOwnOpset) {
  Model m = reluModel();
  m.opsets = {{"", 18}, {"local", 1}};
  m.functions = {function("F", {"x"}, {"y"},
                          {node("ReduceMax", {"x"}, {"y"}, {attr("axes", Ints{1}), attr("keepdims", int64_t{0})})}, {},
                          {}, 11)};
  m.nodes = {node("F", {"x"}, {"y"}, {}, "f", "local")};
  auto out = ops::evalGraph(*importText(m.bytes()).graph, {ir::Tensor::ofFloats({2, 3}, {1, 2, 3, 6, 5, 4})});
  EXPECT_THAT(contents(out.at(0)), ElementsAre(3, 6));
}
TEST(Import, OrderCountsCapturesOfSubgraphs) {
  Model inner;
  inner.nodes = {node("Relu", {"late"}, {"o"})};
  inner.outputs = {value("o", kFloat, {})};
  Model m = reluModel();
  m.nodes = {node("If", {"x"}, {"y"}, {attrGraph("then_branch", inner.graph())}), node("Relu", {"x"}, {"late"})};
  const std::string bytes = m.bytes();
  EXPECT_THAT(frontend::topologicalOrder(frontend::parseModel(bytes).graph->nodes), ElementsAre(1, 0));
}

}  // namespace
}  // namespace rutter::onnxwriter
