// Memory orders around convolutions.
#include "net.h"

using namespace rutter;
using namespace rutter::test;

namespace {
using V = ir::Value*;
using Ints = std::vector<int64_t>;
V conv(Net& n, V x, int64_t in, int64_t out, int64_t k = 3) {
  return n.op("Conv", {x, n.random({out, in, k, k})}, {{"pads", Ints(4, k / 2)}});
}
std::string orders(const ir::Graph& g) {
  std::string s;
  for (auto& n : g.top().nodes) s += n->op + ":" + n->outputs[0]->type.layout.text() + " ";
  return s;
}
void same(const Net& n, const ir::Graph& g) {
  expectSame(*n.graph, g, randomInputs(*n.graph, 1));
}
}  // namespace

TEST(Layout, ChainStaysChannelsLast) {
  Net n;
  V x = n.input("x", {1, 3, 8, 8});
  V a = n.op("Relu", {conv(n, x, 3, 8)});
  V b = n.op("MaxPool", {a}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  V c = n.op("Concat", {b, conv(n, b, 8, 8)}, {{"axis", int64_t(1)}});
  n.output(conv(n, c, 16, 4));
  auto g = optimise(*n.graph);
  EXPECT_EQ(orders(*g),
            "Conv:order=0231 Relu:order=0231 MaxPool:order=0231 Conv:order=0231 Concat:order=0231 Conv:order=0231 "
            "LayoutCast:row-major ");
  same(n, *g);
}
TEST(Layout, PointwiseWritesTheOutputItself) {
  Net n;
  n.output(n.op("Relu", {conv(n, n.input("x", {1, 3, 8, 8}), 3, 8)}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(orders(*g), "Conv:order=0231 Relu:row-major ");
  same(n, *g);
}
TEST(Layout, OneChannelNeedsNoCast) {
  Net n;
  n.output(conv(n, n.input("x", {1, 1, 8, 8}), 1, 1));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "LayoutCast"), 0);
  same(n, *g);
}
TEST(Layout, WideInputIsCastOnce) {
  Net n;
  V x = n.input("x", {1, 8, 6, 6});
  n.output(n.op("Relu", {n.op("Add", {conv(n, x, 8, 8), conv(n, x, 8, 8)})}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "LayoutCast"), 1);
  same(n, *g);
}
TEST(Layout, TransposedInputIsALabel) {
  Net n;
  V x = n.op("Transpose", {n.input("x", {1, 8, 8, 16})}, {{"perm", Ints{0, 3, 1, 2}}});
  n.output(n.op("ReduceMean", {conv(n, x, 16, 8), n.ints({2, 3})}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(orders(*g), "Transpose:order=0231 Conv:order=0231 ReduceMean:row-major ");
  same(n, *g);
}
TEST(Layout, ReshapeByOnesKeepsTheOrder) {
  Net n;  // as magika: a convolution over a sequence written with four axes
  V x = n.op("Relu", {n.input("x", {1, 8, 6, 1})});
  V y = n.op("Conv", {x, n.random({8, 8, 3, 1})}, {{"pads", Ints{1, 0, 1, 0}}});
  n.output(n.op("GlobalMaxPool", {n.op("Tanh", {n.op("Squeeze", {y, n.ints({3})})})}));
  auto g = optimise(*n.graph, "-graph:sink_reshape=off");
  EXPECT_EQ(firstOp(*g, "Tanh")->outputs[0]->type.layout.text(), "order=021") << g->print();
  same(n, *g);
}
TEST(Layout, ScopedToOneConvolution) {
  Net n;
  V a = n.op("Conv", {n.input("x", {1, 8, 8, 8}), n.random({8, 8, 1, 1})}, {}, "first");
  V b = n.op("Conv", {a, n.random({8, 8, 1, 1})}, {}, "second");
  n.output(b);
  auto g = optimise(*n.graph, "-layout:conv@first=nchw");
  EXPECT_EQ(orders(*g), "Conv:row-major LayoutCast:order=0231 Conv:order=0231 LayoutCast:row-major ");
  same(n, *g);
}
TEST(Layout, InputFormatIsTakenAsItIs) {
  Net n;
  n.output(n.op("Relu", {conv(n, n.input("x", {1, 16, 8, 8}), 16, 8)}, {}, "y"));
  auto route = knobs::Route::parse("");
  passes::PassContext ctx(route);
  ctx.ioLayouts["x"] = ir::Layout::channelsLast(4);
  ctx.ioLayouts["y_out"] = ir::Layout::channelsLast(4);
  passes::runPipeline(*n.graph, ctx);
  EXPECT_EQ(orders(*n.graph), "Conv:order=0231 Relu:order=0231 ");
}
