// Profiles put into graphs.
#include <gmock/gmock.h>

#include "net.h"

using namespace rutter;
using namespace rutter::test;
using passes::ShapeRange;

namespace {
std::string errorOf(ir::Graph& g, const passes::Profile& p) {
  try {
    passes::specialise(g, p);
  } catch (const UserError& e) {
    return e.what();
  }
  return "";
}
Net twoInputs() {
  Net n;
  auto* a = n.input("a", {ir::Dim::symbol("B"), 4});
  auto* b = n.input("b", {ir::Dim::symbol("B"), 4});
  n.output(n.op("Add", {a, b}));
  return n;
}
}  // namespace

TEST(Specialise, FixedShapeBecomesConstantEverywhere) {
  Net n = twoInputs();
  passes::specialise(*n.graph, {{"a", ShapeRange::fixed({3, 4})}});
  EXPECT_EQ(ir::toString(n.graph->top().inputs[1]->type.dims), "3x4");
  EXPECT_EQ(ir::toString(n.graph->top().outputs[0]->type.dims), "3x4");
  EXPECT_TRUE(n.graph->symbols.empty());
}
TEST(Specialise, RangeKeepsItsSymbolAndIntersects) {
  Net n = twoInputs();
  passes::specialise(*n.graph, {{"a", {{1, 4}, {4, 4}, {8, 4}}}, {"b", {{2, 4}, {4, 4}, {16, 4}}}});
  ASSERT_EQ(n.graph->symbols.count("B"), 1u);
  EXPECT_EQ(n.graph->symbols["B"].min, 2);
  EXPECT_EQ(n.graph->symbols["B"].max, 8);
  EXPECT_EQ(n.graph->symbols["B"].opt, 4);
  EXPECT_EQ(n.graph->top().outputs[0]->type.dims[0].text(), "B");
}
TEST(Specialise, ErrorsNameInputAndAxis) {
  Net n = twoInputs();
  EXPECT_EQ(errorOf(*n.graph, {{"x", ShapeRange::fixed({1, 4})}}),
            "the profile has a shape for 'x', which is no input of the model; its inputs are 'a', 'b'");
  EXPECT_EQ(errorOf(*n.graph, {{"a", ShapeRange::fixed({1, 5})}}),
            "input 'a', axis 1: the model fixes it to 4, the profile says 5");
  EXPECT_EQ(errorOf(*n.graph, {{"a", ShapeRange::fixed({1, 4, 2})}}),
            "input 'a' has 2 axes (Bx4) in the model, the profile gives 3");
  EXPECT_EQ(errorOf(*n.graph, {{"a", {{4, 4}, {2, 4}, {8, 4}}}}),
            "input 'a', axis 0: 0 <= min <= opt <= max does not hold for 4, 2, 8");
  EXPECT_EQ(errorOf(*n.graph, {}),
            "input 'a' has a dynamic axis 0 (B) without a range: give shapes, e.g. --shapes=a:1x4");
  EXPECT_EQ(errorOf(*n.graph, {{"a", {{1, 4}, {1, 4}, {2, 4}}}, {"b", {{3, 4}, {3, 4}, {5, 4}}}}),
            "input 'a', axis 0 and input 'b', axis 0 are the same symbol 'B' in the model, but their ranges 1..2 and "
            "3..5 have "
            "nothing in common");
}
TEST(Specialise, ShapesThatWouldFit) {
  const auto error = [](const std::string& name, std::vector<int64_t> shape, int64_t block = 4) {
    Net n;
    auto* x = n.input(name, {ir::Dim::symbol("N"), 1, ir::Dim::symbol("H"), ir::Dim::symbol("W")});
    n.output(n.op("SpaceToDepth", {x}, {{"blocksize", block}}));
    return errorOf(*n.graph, {{name, ShapeRange::fixed(std::move(shape))}});
  };
  EXPECT_THAT(error("x", {3, 1, 10, 8}), testing::EndsWith("10 is not divisible by 4; x:3x1x12x8 would fit"));
  EXPECT_THAT(error("a,b", {3, 1, 10, 8}), testing::EndsWith("; 'a,b':3x1x12x8 would fit"));  // as the flag reads it
  EXPECT_THAT(error("x", {3, 1, 10, 8}, 7), testing::EndsWith("; x:3x1x14x14 would fit"));
  EXPECT_THAT(error("x", {3, 1, 10, 8}, 512), testing::EndsWith("; x:3x1x512x512 would fit"));
  EXPECT_THAT(error("x", {3, 1, 10, 8}, 11), testing::EndsWith("10 is not divisible by 11"));
  // What would fit is more than an axis can have.
  EXPECT_THAT(error("x", {1, 1, INT32_MAX, 8}), testing::EndsWith("is not divisible by 4"));
}
// What inputs share stays shared, and what is computed from it follows.
TEST(Specialise, ShapesThatWouldFitAgree) {
  Net n;
  const ir::Dim s = ir::Dim::symbol("S");
  ir::Value* x = n.input("x", {s, 4});
  ir::Value* y = n.input("y", {1, 1, s, 8});
  n.input("z", {s * ir::Dim(3), 2});
  n.output(n.op("SpaceToDepth", {y}, {{"blocksize", int64_t(4)}}));
  n.output(n.op("Relu", {x}));
  EXPECT_THAT(errorOf(*n.graph, {{"x", ShapeRange::fixed({10, 4})}}),
              testing::EndsWith("10 is not divisible by 4; x:12x4,y:1x1x12x8,z:36x2 would fit"));
}
TEST(Specialise, UnknownShapes) {
  Net n;
  ir::Value* x = n.input("x:0", {});
  x->type.known = false;
  ir::Value* y = n.graph->makeValue("y");
  n.graph->makeNode(n.graph->top(), "Relu", {x}, {y})->origins = {"r"};
  n.output(y);
  EXPECT_EQ(errorOf(*n.graph, {}), "input 'x:0' has no shape in the model: give one, e.g. --shapes='x:0':1x3x224x224");
  passes::specialise(*n.graph, {{"x:0", {{1, 2}, {2, 2}, {4, 2}}}});
  EXPECT_EQ(ir::toString(y->type.dims), "x_0_0x2");
}
