// Shape rules over symbolic extents: what a chain of Shape, Gather, Concat … says about the result, and the conditions
// that it puts on run-time shapes.
#include "net.h"

namespace rutter::ops::test {
namespace {
const Dim B = Dim::symbol("B"), S = Dim::symbol("S"), H = Dim::symbol("H"), W = Dim::symbol("W");
std::string dims(const ir::Value* v) {
  return ir::toString(v->type.dims);
}
std::string contents(const ir::Value* v) {
  return v->symbolic ? ir::toString(*v->symbolic) : "unknown";
}
std::vector<std::string> conditions(const Net& n) {
  std::vector<std::string> r;
  for (const auto& c : n.g.constraints)
    r.push_back(c.a.text() +
                (c.kind == ir::Constraint::Kind::kEqual       ? " == "
                 : c.kind == ir::Constraint::Kind::kDivisible ? " % "
                                                              : " >= ") +
                c.b.text());
  return r;
}

// Heads split and merged as exporters write it: the extents are gathered from the shape and concatenated.
TEST(Symbolic, HeadsOfAttention) {
  Net n;
  ir::Value* x = n.input("x", DType::kF32, {B, S, Dim(384)});
  auto extent = [&](int64_t axis) {
    return n.node("Unsqueeze",
                  {n.node("Gather", {n.node("Shape", {x}), n.constant(scalar(axis))}), n.constant(i64({0}))});
  };
  ir::Value* shape =
      n.add("Concat", {extent(0), extent(1), n.constant(i64({12})), n.constant(i64({32}))}, {{"axis", int64_t(0)}})
          ->output();
  EXPECT_EQ(contents(shape), "BxSx12x32");
  ir::Value* heads = n.node("Transpose", {n.node("Reshape", {x, shape})}, {{"perm", Ints{0, 2, 1, 3}}});
  EXPECT_EQ(dims(heads), "Bx12xSx32");
  ir::Value* scores = n.node("MatMul", {heads, n.node("Transpose", {heads}, {{"perm", Ints{0, 1, 3, 2}}})});
  EXPECT_EQ(dims(scores), "Bx12xSxS");
  ir::Value* merged =
      n.node("Reshape", {n.node("Transpose", {n.node("MatMul", {scores, heads})}, {{"perm", Ints{0, 2, 1, 3}}}),
                         n.constant(i64({0, 0, -1}))});
  EXPECT_EQ(dims(merged), "BxSx384");
  EXPECT_THAT(conditions(n), ElementsAre());
}
// ConstantOfShape, Mul, Equal, Where, Expand: PyTorch's expand with -1 for "as it is".
TEST(Symbolic, ExpandWithMinusOne) {
  Net n;
  n.g.symbols = {{"B", {1, 8, 1}}, {"S", {1, 512, 128}}};
  ir::Value* mask = n.input("mask", DType::kF32, {B, S});
  ir::Value* target = n.node("Concat", {n.node("Shape", {mask}), n.constant(i64({384}))}, {{"axis", int64_t(0)}});
  ir::Value* ones = n.node("ConstantOfShape", {n.constant(i64({3}))}, {{"value", i64({1})}});
  ir::Value* minus = n.node("Mul", {ones, n.constant(scalar(-1))});
  EXPECT_EQ(contents(minus), "-1x-1x-1");
  ir::Value* is = n.node("Equal", {target, minus});
  EXPECT_EQ(contents(is), "0x0x0");
  ir::Value* shape = n.node("Where", {is, ones, target});
  EXPECT_EQ(contents(shape), "BxSx384");
  EXPECT_EQ(dims(n.node("Expand", {n.node("Unsqueeze", {mask, n.constant(i64({-1}))}), shape})), "BxSx384");
  EXPECT_THAT(conditions(n), ElementsAre());
}
TEST(Symbolic, Arithmetic) {
  Net n;
  n.g.symbols = {{"H", {1, 100, 10}}, {"W", {1, 100, 10}}};
  ir::Value* s = n.node("Shape", {n.input("x", DType::kF32, {H, W})});
  auto c = [&](int64_t v) { return n.constant(scalar(v)); };
  EXPECT_EQ(contents(n.node("Add", {s, c(2)})), "2+Hx2+W");
  EXPECT_EQ(contents(n.node("Div", {n.node("Mul", {s, c(6)}), c(3)})), "2*Hx2*W");
  EXPECT_EQ(contents(n.node("Div", {s, c(2)})), "floordiv(H,2)xfloordiv(W,2)");
  EXPECT_EQ(contents(n.node("Mod", {s, c(2)})), "mod(H,2)xmod(W,2)");
  EXPECT_EQ(contents(n.node("Min", {s, c(1000)})), "HxW");
  EXPECT_EQ(contents(n.node("Max", {s, c(50)})), "max(50,H)xmax(50,W)");
  EXPECT_EQ(contents(n.node("Neg", {s})), "-1*Hx-1*W");
  EXPECT_EQ(contents(n.node("ReduceProd", {s}, {{"keepdims", int64_t(0)}})), "H*W");
  EXPECT_EQ(contents(n.node("Size", {n.g.top().inputs[0]})), "H*W");
  EXPECT_EQ(contents(n.node("Less", {s, c(101)})), "1x1");
  EXPECT_EQ(contents(n.node("Less", {s, c(50)})), "unknown");
  EXPECT_EQ(contents(n.node("Slice", {s, n.constant(i64({-1})), n.constant(i64({INT64_MIN})), n.constant(i64({0})),
                                      n.constant(i64({-1}))})),
            "WxH");
  auto parts = n.add("Split", {s}, {{"num_outputs", int64_t(2)}}, 2);
  EXPECT_EQ(contents(parts->outputs[1]), "W");
  // By way of floats, as sizes for Resize are computed.
  ir::Value* f = n.node("Mul", {n.node("Cast", {s}, {{"to", int64_t(1)}}), n.constant(f32({}, {2}))});
  EXPECT_EQ(contents(n.node("Cast", {n.node("Floor", {f})}, {{"to", int64_t(7)}})), "2*Hx2*W");
  EXPECT_EQ(contents(n.node("Mul", {f, n.constant(f32({}, {0.3f}))})), "unknown");
  EXPECT_EQ(contents(n.node("Div", {n.node("Cast", {s}, {{"to", int64_t(1)}}), n.constant(f32({}, {2}))})), "unknown");
  EXPECT_EQ(contents(n.node("And", {n.node("Less", {s, c(101)}), n.node("Less", {s, c(0)})})), "0x0");
}
TEST(Symbolic, Reshape) {
  Net n;
  ir::Value* x = n.input("x", DType::kF32, {B, S + Dim(1), Dim(6)});
  ir::Value* s = n.node("Shape", {x});
  ir::Value* rows = n.node("Gather", {s, n.constant(i64({1}))});
  // S+1 cancels although no polynomial division could divide by a sum.
  EXPECT_EQ(dims(n.node("Reshape", {x, n.node("Concat", {n.constant(i64({-1})), rows, n.constant(i64({3}))},
                                              {{"axis", int64_t(0)}})})),
            "2*Bx1+Sx3");
  EXPECT_THAT(conditions(n), ElementsAre());
  ir::Value* y = n.node("Reshape", {x, n.constant(i64({-1, 4}))});
  EXPECT_EQ(y->type.dims[0], floorDiv(Dim(6) * B * (S + Dim(1)), Dim(4)));
  EXPECT_THAT(conditions(n), ElementsAre("6*B+6*B*S % 4"));
  n.node("Reshape", {x, n.constant(i64({2, 30}))});
  EXPECT_EQ(conditions(n).back(), "6*B+6*B*S == 60");
  EXPECT_THAT(n.g.constraints.back().where, HasSubstr("(Reshape): shape 2x30 does not hold the elements of Bx"));
  n.g.symbols = {{"B", {1, 2, 1}}, {"S", {1, 2, 1}}};
  EXPECT_THAT(userError([&] { n.node("Reshape", {x, n.constant(i64({2, 30}))}); }),
              HasSubstr("differ for every shape of the profile"));
  EXPECT_EQ(dims(n.node("Flatten", {x})), "Bx6+6*S");
}
TEST(Symbolic, WindowsAndResize) {
  Net n;
  ir::Value* x = n.input("x", DType::kF32, {Dim(1), Dim(3), Dim(32) * H, Dim(32) * W});
  ir::Value* w = n.constant(Tensor(DType::kF32, {8, 3, 3, 3}));
  ir::Value* y = n.node("Conv", {x, w}, {{"strides", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}});
  EXPECT_EQ(dims(y), "1x8x16*Hx16*W");
  y = n.node("MaxPool", {y}, {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}});
  EXPECT_EQ(dims(y), "1x8x8*Hx8*W");
  ir::Value* up = n.node("Resize", {y, nullptr, n.constant(f32({4}, {1, 1, 2, 0.5}))});
  EXPECT_EQ(dims(up), "1x8x16*Hx4*W");
  up = n.node("ConvTranspose", {y, n.constant(Tensor(DType::kF32, {8, 2, 2, 2}))}, {{"strides", Ints{2, 2}}});
  EXPECT_EQ(dims(up), "1x2x16*Hx16*W");
  ir::Value* sizes = n.node("Slice", {n.node("Shape", {x}), n.constant(i64({2})), n.constant(i64({4}))});
  EXPECT_EQ(dims(n.node("Resize", {y, nullptr, nullptr, sizes}, {{"axes", Ints{2, 3}}})), "1x8x32*Hx32*W");
  EXPECT_THAT(userError([&] { n.node("Resize", {y, nullptr, n.constant(f32({4}, {1, 1, 0.3f, 1}))}); }),
              HasSubstr("is not a small fraction"));
}
TEST(Symbolic, ConditionsOfOtherOperators) {
  Net n;
  ir::Value *a = n.input("a", DType::kF32, {H, Dim(2)}), *b = n.input("b", DType::kF32, {W, Dim(2)});
  n.node("Add", {a, b});
  n.node("Concat", {a, b}, {{"axis", int64_t(1)}});
  EXPECT_THAT(conditions(n), ElementsAre("H == W"));  // said once
  EXPECT_EQ(dims(n.node("Concat", {a, b}, {{"axis", int64_t(0)}})), "H+Wx2");
  auto parts = n.add("Split", {a, n.constant(i64({3, 4}))}, {}, 2);
  EXPECT_EQ(dims(parts->outputs[1]), "4x2");
  EXPECT_EQ(conditions(n).back(), "7 == H");
  n.g.symbols = {{"H", {3, 9, 4}}};
  EXPECT_EQ(dims(n.node("Slice", {a, n.constant(i64({1})), n.constant(i64({INT64_MAX})), n.constant(i64({0}))})),
            "-1+Hx2");
  EXPECT_EQ(dims(n.node("Slice", {a, n.constant(i64({0})), n.constant(i64({5})), n.constant(i64({0}))})), "min(5,H)x2");
  EXPECT_EQ(dims(n.node("Slice", {a, n.constant(i64({-2})), n.constant(i64({INT64_MAX})), n.constant(i64({0}))})),
            "2x2");
  EXPECT_EQ(
      dims(n.node("Range", {n.constant(scalar(0)), n.node("Gather", {n.node("Shape", {a}), n.constant(scalar(0))}),
                            n.constant(scalar(2))})),
      ceilDiv(H, Dim(2)).text());
  EXPECT_EQ(dims(n.node("Pad", {a, n.constant(i64({1, 0, 2, 0}))})), "3+Hx2");
  EXPECT_EQ(dims(n.node("Tile", {a, n.node("Shape", {b})})), "H*Wx4");
}
TEST(Symbolic, DataDependentSizesAreRefused) {
  Net n;
  ir::Value *x = n.input("x", DType::kF32, {H}), *s = n.input("s", DType::kI64, {Dim(1)});
  EXPECT_THAT(userError([&] { n.node("Reshape", {x, s}); }),
              HasSubstr("input 1 (shape, 's') must be known when the engine is built; a size that depends on the data "
                        "is not supported"));
}
// Inferring again with other extents must not keep what the first ones said.
TEST(Symbolic, InferredAgain) {
  Net n;
  ir::Value* x = n.input("x", DType::kF32, {H, W});
  ir::Value* s = n.node("Shape", {x});
  ir::Node* div = n.add("Div", {s, n.constant(scalar(2))});
  EXPECT_EQ(contents(div->output()), "floordiv(H,2)xfloordiv(W,2)");
  x->type.dims = {Dim(4), Dim(6)};
  inferNode(n.g, *s->producer);
  inferNode(n.g, *div);
  EXPECT_EQ(contents(div->output()), "2x3");
}
TEST(Graph, OracleFreesWhatIsUsedUp) {
  Net n;
  ir::Value* x = n.input("x", DType::kF32, {Dim(2)});
  ir::Value* a = n.node("Add", {x, x});
  ir::Value* b = n.node("Mul", {a, a});
  n.g.top().outputs = {b, x, b};
  auto y = evalGraph(n.g, {f32({2}, {1, 2})});
  expectTensor(y[0], {2}, {4, 16});
  expectTensor(y[1], {2}, {1, 2});
  expectTensor(y[2], {2}, {4, 16});
  EXPECT_THAT(userError([&] { evalGraph(n.g, {}); }), HasSubstr("0 inputs given, the model has 1"));
}
}  // namespace
}  // namespace rutter::ops::test
