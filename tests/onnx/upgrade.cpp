// Operators of old opsets mean what they meant: each net runs through the oracle and is compared with figures worked
// out by hand.
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "onnx/schema.h"
#include "onnx_writer.h"
#include "ops/op.h"
#include "passes/infer.h"

namespace rutter::onnxwriter {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::FloatNear;
using testing::HasSubstr;
using testing::Pointwise;
using Floats = std::vector<float>;

struct Net {
  Model m;
  Net(int64_t opset, const Strings& nodes, const Strings& dims, const Strings& initialisers = {}, int type = kFloat) {
    m.opsets = {{"", opset}};
    m.nodes = nodes;
    m.inputs = {value("x", type, dims)};
    m.outputs = {value("y", type, {})};
    m.initialisers = initialisers;
  }
  ir::Tensor run(const ir::Tensor& x) const {
    frontend::Model r = importText(m.bytes());
    passes::specialise(*r.graph, {{"x", passes::ShapeRange::fixed(x.shape())}});
    r.graph->verify();
    return ops::evalGraph(*r.graph, {x}).at(0);
  }
  Floats operator()(const Ints& shape, const Floats& x) const {
    const ir::Tensor y = run(ir::Tensor::ofFloats(shape, x));
    return Floats(y.as<float>(), y.as<float>() + y.size());
  }
  size_t nodes() const { return importText(m.bytes()).graph->top().nodes.size(); }
};

TEST(Upgrade, ClipAttributes) {
  Net both(7, {node("Clip", {"x"}, {"y"}, {attr("min", 0.f), attr("max", 6.f)})}, {"3"});
  EXPECT_THAT(both({3}, {-1, 3, 9}), ElementsAre(0, 3, 6));
  Net low(10, {node("Clip", {"x"}, {"y"}, {attr("min", 0.f)})}, {"3"});
  EXPECT_THAT(low({3}, {-1, 3, 9}), ElementsAre(0, 3, 9));
  Net high(10, {node("Clip", {"x"}, {"y"}, {attr("max", 6.f)})}, {"3"});
  EXPECT_THAT(high({3}, {-1, 3, 9}), ElementsAre(-1, 3, 6));
}
TEST(Upgrade, ClipOfHalves) {
  Net n(10, {node("Clip", {"x"}, {"y"}, {attr("min", 0.f), attr("max", 6.f)})}, {"2"}, {}, kHalf);
  ir::Tensor x(ir::DType::kF16, {2});
  x.setDouble(0, -1);
  x.setDouble(1, 9);
  ir::Tensor y = n.run(x);
  EXPECT_EQ(y.dtype(), ir::DType::kF16);
  EXPECT_EQ(y.getDouble(1), 6);
}
TEST(Upgrade, SliceAttributes) {
  Net n(9, {node("Slice", {"x"}, {"y"}, {attr("starts", Ints{1}), attr("ends", Ints{3}), attr("axes", Ints{1})})},
        {"2", "4"});
  EXPECT_THAT(n({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}), ElementsAre(1, 2, 5, 6));
  Net all(7, {node("Slice", {"x"}, {"y"}, {attr("starts", Ints{1, 0}), attr("ends", Ints{2, 2})})}, {"2", "4"});
  EXPECT_THAT(all({2, 4}, {0, 1, 2, 3, 4, 5, 6, 7}), ElementsAre(4, 5));
}
TEST(Upgrade, PadAttributes) {
  Net n(10, {node("Pad", {"x"}, {"y"}, {attr("pads", Ints{1, 2}), attr("value", 5.f)})}, {"2"});
  EXPECT_THAT(n({2}, {1, 2}), ElementsAre(5, 1, 2, 5, 5));
  Net zero(7, {node("Pad", {"x"}, {"y"}, {attr("pads", Ints{0, 1})})}, {"2"});
  EXPECT_THAT(zero({2}, {1, 2}), ElementsAre(1, 2, 0));
  Net mode(7, {node("Pad", {"x"}, {"y"}, {attr("pads", Ints{2, 0}), attr("mode", "reflect")})}, {"3"});
  EXPECT_THAT(mode({3}, {1, 2, 3}), ElementsAre(3, 2, 1, 2, 3));
}
TEST(Upgrade, ReduceAxes) {
  for (std::string op : {"ReduceSum", "ReduceMax"})
    for (int opset : {7, 11, 12}) {
      Net n(opset, {node(op, {"x"}, {"y"}, {attr("axes", Ints{1}), attr("keepdims", int64_t{0})})}, {"2", "2"});
      bool sum = op == "ReduceSum";
      EXPECT_THAT(n({2, 2}, {1, 2, 3, 4}), ElementsAre(sum ? 3 : 2, sum ? 7 : 4)) << op << opset;
    }
  Net seventeen(17, {node("ReduceMean", {"x"}, {"y"}, {attr("axes", Ints{0}), attr("keepdims", int64_t{0})})},
                {"2", "2"});
  EXPECT_THAT(seventeen({2, 2}, {1, 2, 3, 4}), ElementsAre(2, 3));
  Net everything(12, {node("ReduceMean", {"x"}, {"y"}, {attr("keepdims", int64_t{0})})}, {"2", "2"});
  EXPECT_THAT(everything({2, 2}, {1, 2, 3, 4}), ElementsAre(2.5));
}
TEST(Upgrade, SqueezeAndUnsqueezeAxes) {
  Net n(11,
        {node("Unsqueeze", {"x"}, {"t"}, {attr("axes", Ints{0, 2})}),
         node("Squeeze", {"t"}, {"y"}, {attr("axes", Ints{2})})},
        {"2"});
  EXPECT_THAT(n.run(ir::Tensor::ofFloats({2}, {1, 2})).shape(), ElementsAre(1, 2));
}
TEST(Upgrade, SplitSizesAndCount) {
  Net sizes(11, {node("Split", {"x"}, {"a", "y"}, {attr("split", Ints{1, 3}), attr("axis", int64_t{0})})}, {"4"});
  EXPECT_THAT(sizes({4}, {1, 2, 3, 4}), ElementsAre(2, 3, 4));
  for (int opset : {7, 13}) {
    Net equal(opset, {node("Split", {"x"}, {"a", "y"})}, {"4"});
    EXPECT_THAT(equal({4}, {1, 2, 3, 4}), ElementsAre(3, 4)) << opset;
  }
}
TEST(Upgrade, TopKCount) {
  Net n(7, {node("TopK", {"x"}, {"y", "i"}, {attr("k", int64_t{2})})}, {"4"});
  EXPECT_THAT(n({4}, {1, 4, 2, 3}), ElementsAre(4, 3));
}
TEST(Upgrade, ScatterIsScatterElements) {
  const Strings weights = {ints("i", {2}, {3, 0}), floats("u", {2}, {8, 9})};
  Net n(9, {node("Scatter", {"x", "i", "u"}, {"y"})}, {"4"}, weights);
  EXPECT_THAT(n({4}, {1, 2, 3, 4}), ElementsAre(9, 2, 3, 8));
  Net gone(11, {node("Scatter", {"x", "i", "u"}, {"y"})}, {"4"}, weights);
  EXPECT_THAT(importError(gone.m.bytes()), HasSubstr("removed"));
}
TEST(Upgrade, HardmaxFlattensTheRest) {
  Net n(11, {node("Hardmax", {"x"}, {"y"})}, {"1", "2", "2"});
  EXPECT_THAT(n({1, 2, 2}, {1, 2, 4, 3}), ElementsAre(0, 0, 1, 0));
}
TEST(Upgrade, DropoutIsIdentity) {
  for (int opset : {7, 10}) {
    Net n(opset, {node("Dropout", {"x"}, {"y"}, {attr("ratio", 0.9f)})}, {"2"});
    EXPECT_THAT(n({2}, {1, 2}), ElementsAre(1, 2));
  }
  Net mask(7, {node("Dropout", {"x"}, {"y", "m"}, {}, "drop")}, {"2"});
  EXPECT_THAT(importError(mask.m.bytes()), AllOf(HasSubstr("drop"), HasSubstr("mask")));
}
// Rows of [0, ln 3, 0, ln 3] and zeros, over all the axes from `axis` on.
TEST(Upgrade, SoftmaxFlattensTheRest) {
  const float l = std::log(3.f);
  const Floats x = {0, l, 0, l, 0, 0, 0, 0};
  const Floats both = {1 / 8.f, 3 / 8.f, 1 / 8.f, 3 / 8.f, 1 / 4.f, 1 / 4.f, 1 / 4.f, 1 / 4.f};
  const Floats one = {.25, .75, .25, .75, .5, .5, .5, .5};
  for (const Strings& dims : {Strings{"2", "2", "2"}, Strings{"N", "2", "2"}, Strings{"N", "C", ""}}) {
    Net rest(11, {node("Softmax", {"x"}, {"y"})}, dims);  // axis 1 was the default
    EXPECT_THAT(rest({2, 2, 2}, x), Pointwise(FloatNear(1e-6), both));
    Net last(11, {node("Softmax", {"x"}, {"y"}, {attr("axis", int64_t{2})})}, dims);
    EXPECT_THAT(last({2, 2, 2}, x), Pointwise(FloatNear(1e-6), one));
  }
  Net now(13, {node("Softmax", {"x"}, {"y"})}, {"2", "2", "2"});
  EXPECT_THAT(now({2, 2, 2}, x), Pointwise(FloatNear(1e-6), one));
  Net log(11, {node("LogSoftmax", {"x"}, {"t"}), node("Exp", {"t"}, {"y"})}, {"2", "2", "2"});
  EXPECT_THAT(log({2, 2, 2}, x), Pointwise(FloatNear(1e-6), both));
}
TEST(Upgrade, SoftmaxOverTheLastAxisStaysOneNode) {
  Net n(11, {node("Softmax", {"x"}, {"y"}, {attr("axis", int64_t{1})})}, {"N", "4"});
  EXPECT_EQ(n.nodes(), 1u);
  Net behind(11, {node("Flatten", {"x"}, {"t"}), node("Softmax", {"t"}, {"y"})}, {"N", "4", "4"});
  EXPECT_EQ(behind.nodes(), 2u);
}
// [1, 2] twice as wide: pixel i comes from floor(i / 2).
TEST(Upgrade, UpsampleAndFirstResize) {
  const Strings dims = {"1", "1", "1", "2"};
  const std::string scales = floats("s", {4}, {1, 1, 1, 2});
  Net seven(7, {node("Upsample", {"x"}, {"y"}, {attr("scales", Floats{1, 1, 1, 2}), attr("mode", "nearest")})}, dims);
  EXPECT_THAT(seven({1, 1, 1, 2}, {1, 2}), ElementsAre(1, 1, 2, 2));
  for (auto [op, opset] : {std::pair{"Upsample", 9}, std::pair{"Resize", 10}}) {
    Net n(opset, {node(op, {"x", "s"}, {"y"}, {attr("mode", "nearest")})}, dims, {scales});
    EXPECT_THAT(n({1, 1, 1, 2}, {1, 2}), ElementsAre(1, 1, 2, 2)) << op;
    // Asymmetric coordinates: 0, 0.5, 1, 1.5 (clamped to 1).
    Net linear(opset, {node(op, {"x", "s"}, {"y"}, {attr("mode", "linear")})}, dims, {scales});
    EXPECT_THAT(linear({1, 1, 1, 2}, {1, 2}), ElementsAre(1, 1.5, 2, 2)) << op;
  }
  Net gone(10, {node("Upsample", {"x", "s"}, {"y"}, {}, "up")}, dims, {scales});
  EXPECT_THAT(importError(gone.m.bytes()), AllOf(HasSubstr("node up (Upsample)"), HasSubstr("removed")));
}
// Rows doubled, floor(i / 2); five columns become three, from ceil(i / 0.6) = 0, 2, 4. onnxruntime 1.32 agrees.
TEST(Upgrade, FirstResizeThatShrinksAndGrows) {
  Net n(10, {node("Resize", {"x", "s"}, {"y"}, {attr("mode", "nearest")}, "up")}, {"1", "1", "2", "5"},
        {floats("s", {4}, {1, 1, 2, .6f})});
  EXPECT_THAT(n({1, 1, 2, 5}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9}), ElementsAre(0, 2, 4, 0, 2, 4, 5, 7, 9, 5, 7, 9));
  EXPECT_EQ(n.nodes(), 2u);
  Net shrinks(10, {node("Resize", {"x", "s"}, {"y"}, {attr("mode", "nearest")})}, {"1", "1", "1", "5"},
              {floats("s", {4}, {1, 1, 1, .6f})});
  EXPECT_THAT(shrinks({1, 1, 1, 5}, {0, 1, 2, 3, 4}), ElementsAre(0, 2, 4));
  EXPECT_EQ(shrinks.nodes(), 1u);
}
TEST(Upgrade, EmptyResizeInputsAreLeftOut) {
  Net n(11,
        {node("Resize", {"x", "roi", "none", "sizes"}, {"y"},
              {attr("mode", "nearest"), attr("coordinate_transformation_mode", "asymmetric"),
               attr("nearest_mode", "floor")})},
        {"1", "1", "1", "2"}, {floats("roi", {0}, {}), floats("none", {0}, {}), ints("sizes", {4}, {1, 1, 1, 4})});
  EXPECT_THAT(n({1, 1, 1, 2}, {1, 2}), ElementsAre(1, 1, 2, 2));
}
TEST(Upgrade, BatchNormalization) {
  const Strings weights = {floats("s", {1}, {2}), floats("b", {1}, {1}), floats("m", {1}, {3}), floats("v", {1}, {4})};
  const Strings in = {"x", "s", "b", "m", "v"}, dims = {"1", "1", "2"};
  for (int opset : {7, 9, 14, 15}) {
    Strings attrs = {attr("epsilon", 0.f)};
    if (opset == 7) attrs.push_back(attr("spatial", int64_t{1}));
    Net n(opset, {node("BatchNormalization", in, {"y"}, attrs)}, dims, weights);
    EXPECT_THAT(n({1, 1, 2}, {3, 5}), ElementsAre(1, 3)) << opset;
  }
  Net element(7, {node("BatchNormalization", in, {"y"}, {attr("spatial", int64_t{0})}, "bn")}, dims, weights);
  EXPECT_THAT(importError(element.m.bytes()), AllOf(HasSubstr("bn"), HasSubstr("spatial=0")));
  Net training(9, {node("BatchNormalization", in, {"y", "mean"}, {}, "bn")}, dims, weights);
  EXPECT_THAT(importError(training.m.bytes()), AllOf(HasSubstr("bn"), HasSubstr("training")));
}
// Four channels in two groups of two, each {-1, 1} after normalising; scale 10 and 100, bias 1 and 2 a group.
TEST(Upgrade, GroupNormalizationScalesPerGroup) {
  for (const char* channels : {"4", "C"}) {
    Net n(18,
          {node("GroupNormalization", {"x", "s", "b"}, {"y"}, {attr("num_groups", int64_t{2}), attr("epsilon", 0.f)})},
          {"1", channels, "1"}, {floats("s", {2}, {10, 100}), floats("b", {2}, {1, 2})});
    EXPECT_THAT(n({1, 4, 1}, {0, 2, 5, 3}), ElementsAre(-9, 11, 102, -98));
  }
}
TEST(Upgrade, HelpersCarryTheOriginsOfTheirNode) {
  Net n(11, {node("Softmax", {"x"}, {"y"}, {}, "soft")}, {"2", "2", "2"});
  frontend::Model r = importText(n.m.bytes());
  std::set<std::string> names;
  for (const auto& node : r.graph->top().nodes) {
    EXPECT_THAT(node->origins, ElementsAre("soft"));
    names.insert(node->name);
  }
  EXPECT_EQ(names.size(), 4u);
  EXPECT_EQ(r.graph->top().outputs[0]->name, "y");
}
/// A rule that lags behind ONNX would read new models wrongly.
TEST(Upgrade, EveryOperatorIsAtItsNewestVersion) {
  for (const ops::OpDef* d : ops::allOps()) {
    if (*d->domain) continue;
    const frontend::Schema* s = frontend::findSchema(d->name);
    ASSERT_TRUE(s) << d->name;
    EXPECT_EQ(d->since, s->versions.back()) << d->name;
  }
}

}  // namespace
}  // namespace rutter::onnxwriter
