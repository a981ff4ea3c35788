// Constants folded into weights; merged siblings.
#include "net.h"

using namespace rutter;
using namespace rutter::test;

namespace {
using V = ir::Value*;
using Ints = std::vector<int64_t>;
std::unique_ptr<ir::Graph> check(Net& n, const std::string& op, int count, int nodes, const std::string& route = "") {
  auto g = optimise(*n.graph, route + (route.empty() ? "" : " ") + "-layout:conv=nchw");
  EXPECT_EQ(countOp(*g, op), count) << g->print();
  if (nodes >= 0) {
    EXPECT_EQ(countNodes(*g), nodes) << g->print();
  }
  for (unsigned seed : {1u, 2u}) expectSame(*n.graph, *g, randomInputs(*n.graph, seed));
  return g;
}
V batchNorm(Net& n, V x, int64_t channels) {
  return n.op("BatchNormalization", {x, n.random({channels}, 0.5, 2), n.random({channels}), n.random({channels}),
                                     n.random({channels}, 0.1, 2)});
}
}  // namespace

TEST(FoldAffine, ConvBatchNorm) {
  Net n;
  V x = n.input("x", {1, 4, 5, 6});
  V y = n.op("Conv", {x, n.random({6, 2, 3, 3}), n.random({6})}, {{"group", int64_t(2)}, {"pads", Ints{1, 1, 1, 1}}},
             "conv");
  n.output(n.op("Relu", {batchNorm(n, y, 6)}, {}, "relu"));
  auto g = check(n, "Conv", 1, 2);
  EXPECT_EQ(firstOp(*g, "Conv")->origins, (std::vector<std::string>{"conv", "BatchNormalization_0"}));
}
TEST(Pipeline, NodesAreCalledAfterTheirFirstOrigin) {
  Net n;
  V y = n.op("Gemm", {n.input("x", {2, 4}), n.random({5, 4}), n.random({5})}, {{"transB", int64_t(1)}}, "fc");
  n.output(n.op(
      "Sigmoid",
      {batchNorm(n, n.op("Conv", {n.op("Reshape", {y, n.ints({1, 1, 2, 5})}), n.random({3, 1, 1, 1})}, {}, "conv"), 3)},
      {}, "act"));
  auto route = knobs::Route::parse("");
  passes::PassContext ctx(route);
  passes::runPipeline(*n.graph, ctx);
  std::vector<std::string> names;
  for (auto& node : n.graph->top().nodes) names.push_back(node->name);
  EXPECT_EQ(names, (std::vector<std::string>{"fc", "fc.1", "Reshape_0", "conv", "act"})) << n.graph->print();
}
TEST(FoldAffine, ConvTransposeBatchNormWithGroups) {
  Net n;
  V x = n.input("x", {1, 4, 5, 6});
  V y = n.op("ConvTranspose", {x, n.random({4, 3, 2, 2})}, {{"group", int64_t(2)}, {"strides", Ints{2, 2}}});
  n.output(batchNorm(n, n.op("Add", {y, n.random({1, 6, 1, 1})}), 6));
  check(n, "ConvTranspose", 1, 1);
}
TEST(FoldAffine, LearnedScalarsAroundDepthwise) {
  Net n;  // as PP-OCRv4: conv, scalar scale, scalar shift
  V x = n.input("x", {1, 4, 5, 6});
  V y = n.op("Conv", {x, n.random({4, 1, 3, 3}), n.random({4})}, {{"group", int64_t(4)}, {"pads", Ints{1, 1, 1, 1}}});
  y = n.op("Add", {n.op("Mul", {n.floats({1}, {0.9f}), y}), n.floats({1}, {0.5f})});
  n.output(y);
  check(n, "Conv", 1, 1);
}
TEST(FoldAffine, AffineBeforeConvWithoutPadding) {
  Net n;
  V x = n.op("Relu", {n.input("x", {1, 4, 5, 6})});
  V a = n.op("Add", {n.op("Mul", {x, n.random({4, 1, 1})}), n.random({1, 4, 1, 1})});
  n.output(n.op("Conv", {a, n.random({6, 2, 1, 1})}, {{"group", int64_t(2)}}));
  check(n, "Conv", 1, 2);
}
TEST(FoldAffine, ShiftBeforePaddedConvStays) {
  Net n;
  V x = n.op("Relu", {n.input("x", {1, 4, 5, 6})});
  n.output(n.op("Conv", {n.op("Add", {x, n.scalar(1)}), n.random({6, 4, 3, 3})}, {{"pads", Ints{1, 1, 1, 1}}}));
  check(n, "Add", 1, 3);
}
TEST(FoldAffine, ConvReadTwiceStays) {
  Net n;
  V y = n.op("Conv", {n.input("x", {1, 4, 5, 6}), n.random({4, 4, 1, 1})});
  n.output(n.op("Mul", {y, n.scalar(3)}));
  n.output(y);
  check(n, "Mul", 1, 2);
}
TEST(FoldAffine, BatchNormAloneBecomesMulAdd) {
  Net n;
  n.output(batchNorm(n, n.op("Softmax", {n.input("x", {2, 4, 5})}), 4));
  check(n, "BatchNormalization", 0, 3);
}
TEST(FoldAffine, GemmBecomesMatMul) {
  Net n;
  V y = n.op("Gemm", {n.input("x", {2, 4}), n.random({5, 4}), n.random({5})},
             {{"transB", int64_t(1)}, {"alpha", 0.5f}, {"beta", 2.0f}});
  n.output(y);
  check(n, "MatMul", 1, 2);
}
TEST(FoldAffine, AttentionScaleMovesIntoWeights) {
  Net n;
  V x = n.input("x", {2, 3, 8});
  auto head = [&](const Ints& perm) {
    V p = n.op("Add", {n.op("MatMul", {x, n.random({8, 8})}), n.random({8})});
    return n.op("Transpose",
                {
                    n.op("Reshape", {p, n.ints({2, 3, 2, 4})}),
                },
                {{"perm", perm}});
  };
  V q = head({0, 2, 1, 3}), k = head({0, 2, 3, 1});
  V s = n.op("Div", {n.op("MatMul", {q, k}), n.scalar(1.7)});
  n.output(n.op("Softmax", {s}, {{"axis", int64_t(-1)}}));
  auto g = check(n, "Mul", 0, -1);
  EXPECT_EQ(countOp(*g, "Div"), 0);
}
TEST(FoldAffine, ScaleOfARowStays) {
  Net n;
  V y = n.op("MatMul", {n.input("x", {3, 4}), n.random({4, 5})});
  n.output(n.op("Mul", {y, n.random({3, 1})}));
  check(n, "Mul", 1, 2);
}
TEST(MergeSiblings, QkvWithBiases) {
  Net n;
  V x = n.op("Softmax", {n.input("x", {2, 3, 8})});
  for (int i = 0; i < 3; i++)
    n.output(n.op("Softmax", {n.op("Add", {n.op("MatMul", {x, n.random({8, 4 + i})}), n.random({4 + i})})}));
  auto g = check(n, "MatMul", 1, -1, "-fuse:qkv=on");
  EXPECT_EQ(countOp(*g, "Split"), 1);
  EXPECT_EQ(countOp(*g, "Add"), 1);
}
TEST(MergeSiblings, ConvolutionsWithTheirActivations) {
  Net n;
  V x = n.op("Relu", {n.input("x", {1, 4, 5, 6})});
  for (int i = 0; i < 2; i++) {
    V y = n.op("Conv", {x, n.random({3 + i, 4, 1, 1}), n.random({3 + i})});
    n.output(n.op("Softmax", {n.op("Mul", {y, n.op("Sigmoid", {y})})}));
  }
  auto g = check(n, "Conv", 1, -1, "-fuse:conv_siblings=on");
  EXPECT_EQ(countOp(*g, "Silu"), 1) << g->print();
}

// Random little networks of the operators that rewrites touch, under random routes of graph and fusion knobs.
TEST(Pipeline, RandomGraphsKeepTheirResults) {
  const char* knobs[] = {
      "-graph:cse",    "-graph:sink_reshape", "-graph:div_to_mul", "-graph:pow_to_mul",        "-graph:reassociate",
      "-fuse:gelu",    "-fuse:silu",          "-fuse:hard_swish",  "-fuse:layer_norm",         "-fuse:softmax",
      "-fuse:conv_bn", "-fuse:conv_scale",    "-fuse:conv_shift",  "-fuse:scale_conv",         "-fuse:gemm_scale",
      "-fuse:qkv",     "-fuse:conv_siblings", "-layout:propagate", "-layout:absorb_transpose", "-layout:absorb_cast"};
  for (unsigned seed = 0; seed < 150; seed++) {
    std::mt19937 rng(seed);
    auto pick = [&](size_t k) { return size_t(rng() % k); };
    Net n;
    const ir::Dims shape = {2, 4, 3, 3};
    std::vector<V> pool = {n.input("x", shape), n.input("y", shape)};
    for (int i = 0; i < 14; i++) {
      V a = pool[pick(pool.size())], b = pool[pick(pool.size())];
      switch (pick(16)) {
        case 0:
          a = n.op("Conv", {a, n.random({4, 4, 3, 3}), n.random({4})}, {{"pads", Ints{1, 1, 1, 1}}});
          break;
        case 1:
          a = n.op("Conv", {a, n.random({4, 4, 1, 1})});
          break;
        case 2:
          a = batchNorm(n, a, 4);
          break;
        case 3:
          a = n.op("Mul", {a, n.random({4, 1, 1})});
          break;
        case 4:
          a = n.op("Add", {n.random({1}), a});
          break;
        case 5:
          a = n.op("Mul", {a, n.op("Sigmoid", {a})});
          break;
        case 6:
          a = n.op("Add", {a, b});
          break;
        case 7:
          a = n.op("Div", {a, n.scalar(2.5)});
          break;
        case 8:
          a = n.op("Sub", {a, n.op("ReduceMean", {b, n.ints({2, 3})})});
          break;
        case 9:
          a = n.op("Reshape", {n.op("Tanh", {n.op("Reshape", {a, n.ints({2, 4, 9})})}), n.ints({2, 4, 3, 3})});
          break;
        case 10:
          a = n.op("Transpose", {n.op("Transpose", {a}, {{"perm", Ints{0, 2, 3, 1}}})}, {{"perm", Ints{0, 3, 1, 2}}});
          break;
        case 11:
          a = n.op("Softmax", {n.op("Transpose", {a}, {{"perm", Ints{0, 1, 3, 2}}})}, {{"axis", int64_t(1)}});
          break;
        case 12:
          a = n.op("MatMul", {a, n.random({3, 3})});
          break;
        case 13:
          a = n.op("Slice", {n.op("Concat", {a, b}, {{"axis", int64_t(1)}}), n.ints({2}), n.ints({6}), n.ints({1})});
          break;
        case 14:
          a = n.op("Clip", {n.op("Pow", {a, n.scalar(2)}), n.scalar(0), n.scalar(6)});
          break;
        case 15:
          a = n.op("Expand", {n.op("ReduceMax", {a, n.ints({1})}), n.ints({2, 4, 3, 3})});
          break;
      }
      pool.push_back(a);
    }
    n.output(pool.back());
    n.output(pool[pool.size() - 3]);
    std::string route;
    for (const char* k : knobs)
      if (pick(3) == 0) route += std::string(route.empty() ? "" : " ") + k + (pick(2) ? "=on" : "=off");
    SCOPED_TRACE("seed " + std::to_string(seed) + " route " + route);
    auto g = optimise(*n.graph, route);
    expectSame(*n.graph, *g, randomInputs(*n.graph, seed, -1, 1));
    if (testing::Test::HasFailure()) break;
  }
}
