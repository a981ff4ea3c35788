// Folding, simplification and common nodes.
#include "bind.h"
#include "net.h"
#include "passes/fold.h"
#include "passes/simplify.h"

using namespace rutter;
using namespace rutter::test;

namespace {
void same(const Net& n, const ir::Graph& after) {
  for (unsigned seed : {1u, 2u}) expectSame(*n.graph, after, randomInputs(*n.graph, seed));
}
}  // namespace

TEST(Fold, ConstantsAreComputed) {
  Net n;
  auto* x = n.input("x", {2, 3});
  auto* w = n.op("Transpose", {n.random({3, 2})}, {{"perm", std::vector<int64_t>{1, 0}}});
  n.output(n.op("Add", {x, n.op("Mul", {w, n.scalar(3)})}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countNodes(*g), 1);
  same(n, *g);
}
TEST(Fold, MoreElementsThanMemoryCanAddress) {
  Net n;
  n.input("x", {2});
  n.output(n.op("ConstantOfShape", {n.ints({int64_t(1) << 59})}));
  EXPECT_THROW(optimise(*n.graph), UserError);  // 2^59 * 32 bits is 0 in 64 bits
}
TEST(Fold, OutputsStayNodes) {
  Net n;
  n.input("x", {2});
  n.output(n.op("Add", {n.scalar(1), n.scalar(2)}));
  auto g = optimise(*n.graph);
  ASSERT_EQ(countNodes(*g), 1);
  EXPECT_EQ(g->top().nodes.front()->op, "Identity");
  same(n, *g);
}
TEST(Fold, SizeChainsBecomeShapeValues) {
  // Reshape(x, Concat(Shape(x)[0], -1)), as exporters write it, and the batch size used as data.
  Net n;
  auto* x = n.input("x", {ir::Dim::symbol("B"), 3, 4});
  auto* batch =
      n.op("Gather", {n.op("Shape", {x}), n.graph->makeConstant("zero", ir::Tensor::scalar(ir::DType::kI64, 0))},
           {{"axis", int64_t(0)}});
  auto* shape = n.op("Concat", {n.op("Unsqueeze", {batch, n.ints({0})}), n.ints({-1})}, {{"axis", int64_t(0)}});
  auto* y = n.op("Relu", {n.op("Reshape", {x, shape})});
  auto* size = n.op("Cast", {batch}, {{"to", int64_t(1)}});
  n.output(n.op("Mul", {y, size}));
  n.graph->symbols["B"] = {1, 8, 2};
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "Shape") + countOp(*g, "Gather") + countOp(*g, "Concat") + countOp(*g, "Unsqueeze"), 0);
  EXPECT_EQ(g->top().outputs[0]->type.dims[0].text(), "B");
  for (int64_t b : {1, 3}) {
    auto before = n.graph->clone(), after = g->clone();
    bindSymbols(*before, {{"B", b}});
    bindSymbols(*after, {{"B", b}});
    expectSame(*before, *after, randomInputs(*before, 3));
  }
}
TEST(Simplify, IdentitiesVanish) {
  Net n;
  auto* x = n.input("x", {1, 4, 1, 6});
  auto* v = n.op("Identity", {x});
  v = n.op("Cast", {v}, {{"to", int64_t(1)}});
  v = n.op("Transpose", {v}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});  // moves an axis of extent 1
  v = n.op("Reshape", {v, n.ints({4, 6})});
  v = n.op("Unsqueeze", {v, n.ints({0})});
  v = n.op("Expand", {v, n.ints({1, 4, 6})});
  v = n.op("Slice", {v, n.ints({0}), n.ints({INT64_MAX}), n.ints({1})});
  v = n.op("Concat", {v}, {{"axis", int64_t(1)}});
  v = n.op("Pad", {v, n.ints({0, 0, 0, 0, 0, 0})});
  v = n.op("Mul", {n.scalar(1), v});
  v = n.op("Reshape", {v, n.ints({1, 4, 1, 6})});
  n.output(n.op("Relu", {v}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countNodes(*g), 1) << g->print();
  same(n, *g);
}
TEST(Simplify, PassThroughOutputKeepsItsName) {
  Net n;
  auto* x = n.input("x", {2, 3});
  n.output(n.op("Identity", {n.op("Identity", {x})}));
  auto* r = n.op("Relu", {x});
  n.output(n.op("Reshape", {r, n.ints({2, 3})}));
  n.output(r);
  auto g = optimise(*n.graph);
  same(n, *g);
}
TEST(Simplify, TransposesMerge) {
  Net n;
  auto* x = n.input("x", {2, 3, 4, 5});
  auto* v = n.op("Transpose", {x}, {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  auto* w = n.op("Transpose", {v}, {{"perm", std::vector<int64_t>{0, 3, 1, 2}}});
  n.output(n.op("Relu", {w}));
  n.output(n.op("Transpose", {v}, {{"perm", std::vector<int64_t>{3, 2, 1, 0}}}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "Transpose"), 1);
  same(n, *g);
}
TEST(Simplify, ReversedSliceStays) {
  Net n;
  auto* x = n.input("x", {5});
  n.output(n.op("Slice", {x, n.ints({-1}), n.ints({INT64_MIN}), n.ints({0}), n.ints({-1})}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "Slice"), 1);
  same(n, *g);
}
TEST(Simplify, ReshapeSinksBelowPointwise) {
  Net n;
  auto* x = n.input("x", {2, 6, 4});
  auto* v = n.op("Reshape", {n.op("Softmax", {x}, {{"axis", int64_t(-1)}}), n.ints({2, 6, 4, 1})});
  v = n.op("Add", {v, n.random({6, 1, 1})});
  v = n.op("Relu", {v});
  n.output(n.op("Softmax", {n.op("Reshape", {v, n.ints({2, 6, 4})})}, {{"axis", int64_t(1)}}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "Reshape"), 0) << g->print();
  same(n, *g);
}
TEST(Simplify, ExpandBeforeBroadcastVanishes) {
  Net n;
  auto* x = n.input("x", {2, 3, 4});
  auto* m = n.input("m", {2, 1, 4});
  n.output(n.op("Sub", {x, n.op("Expand", {m, n.ints({2, 3, 4})})}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countNodes(*g), 1);
  same(n, *g);
}
TEST(Simplify, ExpandThatWidensStays) {
  Net n;
  auto* x = n.input("x", {2, 1, 4});
  auto* m = n.input("m", {2, 1, 4});
  n.output(n.op("Sub", {x, n.op("Expand", {m, n.ints({2, 3, 4})})}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "Expand"), 1);
  same(n, *g);
}
TEST(CommonNodes, SameWorkOnce) {
  Net n;
  auto* x = n.input("x", {2, 3});
  auto* a = n.op("Exp", {n.op("Mul", {x, n.scalar(2)})});
  auto* b = n.op("Exp", {n.op("Mul", {n.scalar(2), x})});
  n.output(n.op("Sub", {a, n.op("Relu", {b})}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "Exp"), 1);
  EXPECT_EQ(firstOp(*g, "Exp")->origins.size(), 2u);
  same(n, *g);
}
TEST(CommonNodes, DifferentAttributesStay) {
  Net n;
  auto* x = n.input("x", {2, 3});
  n.output(n.op("Add", {n.op("Softmax", {x}, {{"axis", int64_t(0)}}), n.op("Softmax", {x}, {{"axis", int64_t(1)}})}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "Softmax"), 2);
  same(n, *g);
}
TEST(Simplify, OneHotTimesMatrixIsGather) {
  Net n;
  auto* i = n.input("i", {2, 5}, ir::DType::kI32);
  ir::Tensor iota(ir::DType::kI32, {1, 1, 9});
  for (int64_t k = 0; k < 9; k++) iota.setInt(k, k);
  auto* wide = n.op("Expand", {n.op("Reshape", {i, n.ints({2, 5, 1})}), n.ints({2, 5, 1})});
  auto* hot = n.op("Cast", {n.op("Equal", {wide, n.graph->makeConstant("iota", iota)})}, {{"to", int64_t(1)}});
  n.output(n.op("MatMul", {hot, n.random({9, 4})}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "MatMul"), 0) << g->print();
  ir::Tensor t(ir::DType::kI32, {2, 5});  // indices outside the table select nothing
  for (int64_t k = 0; k < 10; k++) t.setInt(k, k * 3 - 6);
  expectSame(*n.graph, *g, {t});
}
TEST(Simplify, ExpandSinksToTheBroadcast) {
  Net n;  // mean pooling over a mask, as sentence transformers write it
  auto* x = n.input("x", {2, 5, 4});
  auto* mask =
      n.op("Expand", {n.op("Unsqueeze", {n.input("m", {2, 5}, ir::DType::kI64), n.ints({2})}), n.ints({2, 5, 4})});
  auto* wide = n.op("Cast", {mask}, {{"to", int64_t(1)}});
  auto* sum = n.op("ReduceSum", {n.op("Mul", {x, wide}), n.ints({1})}, {{"keepdims", int64_t(0)}});
  auto* count = n.op("Clip", {n.op("ReduceSum", {wide, n.ints({1})}, {{"keepdims", int64_t(0)}}), n.scalar(1e-9)});
  n.output(n.op("Div", {sum, count}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "Expand"), 0) << g->print();
  same(n, *g);
}
TEST(Simplify, GatherOfOneRow) {
  Net n;
  auto* x = n.input("x", {ir::Dim::symbol("B"), 3});
  n.graph->symbols["B"] = {1, 8, 2};
  auto* rows = n.op("Slice", {n.ints({0, 0, 0, 0, 0, 0, 0, 0}), n.ints({0}),
                              n.op("Shape", {x}, {{"start", int64_t(0)}, {"end", int64_t(1)}}), n.ints({0})});
  n.output(n.op("Add", {x, n.op("Gather", {n.random({2, 3}), rows})}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countNodes(*g), 1) << g->print();
}
TEST(Simplify, TransposeBetweenReshapesByOnes) {
  Net n;
  auto* x = n.input("x", {2, 3, 4});
  auto* v = n.op("Transpose", {n.op("Softmax", {x})}, {{"perm", std::vector<int64_t>{0, 2, 1}}});
  v = n.op("Transpose", {n.op("Unsqueeze", {v, n.ints({3})})}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  n.output(n.op("Softmax", {v}, {{"axis", int64_t(1)}}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "Transpose"), 0) << g->print();
  same(n, *g);
}
TEST(Simplify, GatherNDWithConstantIndices) {
  Net n;
  auto* x = n.input("x", {2, 3, 4});
  ir::Tensor all(ir::DType::kI64, {1, 6, 2}), some(ir::DType::kI64, {2, 2});
  for (int64_t i = 0; i < 6; i++) all.setInt(2 * i, i / 3), all.setInt(2 * i + 1, i % 3);
  some.setInt(0, 1), some.setInt(1, -1), some.setInt(2, 0), some.setInt(3, 1);
  n.output(n.op("GatherND", {x, n.graph->makeConstant("all", all)}));
  n.output(n.op("GatherND", {x, n.graph->makeConstant("some", some)}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "GatherND"), 0);
  EXPECT_EQ(countOp(*g, "Gather"), 1);
  same(n, *g);
}
TEST(Simplify, PoolingOverTheWholeImage) {
  Net n;
  auto* x = n.input("x", {1, 3, 4, 5});
  n.output(n.op("AveragePool", {x}, {{"kernel_shape", std::vector<int64_t>{4, 5}}}));
  n.output(n.op("AveragePool", {x},
                {{"kernel_shape", std::vector<int64_t>{4, 5}}, {"pads", std::vector<int64_t>{1, 0, 0, 0}}}));
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, "GlobalAveragePool"), 1);
  same(n, *g);
}
