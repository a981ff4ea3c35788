// Activations and normalisations written in primitive operators, in the forms that exporters use.
#include "net.h"

using namespace rutter;
using namespace rutter::test;

namespace {
using V = ir::Value*;
void check(Net& n, const std::string& op, int count = 1, int nodes = -1) {
  auto g = optimise(*n.graph);
  EXPECT_EQ(countOp(*g, op), count) << g->print();
  if (nodes >= 0) {
    EXPECT_EQ(countNodes(*g), nodes) << g->print();
  }
  for (unsigned seed : {1u, 2u}) expectSame(*n.graph, *g, randomInputs(*n.graph, seed, -4, 4));
}
}  // namespace

TEST(Gelu, ErfAsPyTorch) {
  Net n;
  V x = n.op("Relu", {n.input("x", {3, 8})});
  V e = n.op("Erf", {n.op("Div", {x, n.scalar(1.4142135623730951)})});
  V p = n.op("Mul", {x, n.op("Add", {e, n.scalar(1)})});
  n.output(n.op("Mul", {p, n.scalar(0.5)}));
  check(n, "Gelu", 1, 2);
}
TEST(Gelu, ErfHalfFirst) {
  Net n;
  V x = n.input("x", {3, 8});
  V e = n.op("Erf", {n.op("Mul", {x, n.scalar(0.7071067690849304)})});
  n.output(n.op("Mul", {x, n.op("Mul", {n.scalar(0.5), n.op("Add", {n.scalar(1), e})})}));
  check(n, "Gelu", 1, 1);
}
TEST(Gelu, ErfHalfOnInput) {
  Net n;
  V x = n.input("x", {3, 8});
  V e = n.op("Erf", {n.op("Div", {x, n.scalar(1.4142135381698608)})});
  n.output(n.op("Mul", {n.op("Mul", {x, n.scalar(0.5)}), n.op("Add", {e, n.scalar(1)})}));
  check(n, "Gelu", 1, 1);
}
TEST(Gelu, TanhWithPow) {
  Net n;
  V x = n.input("x", {3, 8});
  V c = n.op("Mul", {n.op("Pow", {x, n.scalar(3)}), n.scalar(0.044715)});
  V t = n.op("Tanh", {n.op("Mul", {n.op("Add", {x, c}), n.scalar(0.7978845608028654)})});
  n.output(n.op("Mul", {n.op("Mul", {x, n.scalar(0.5)}), n.op("Add", {t, n.scalar(1)})}));
  check(n, "Gelu", 1, 1);
  EXPECT_EQ(firstOp(*optimise(*n.graph), "Gelu")->getString("approximate", ""), "tanh");
}
TEST(Gelu, TanhWithProductsAsJax) {
  Net n;
  V x = n.input("x", {3, 8});
  V c = n.op("Mul", {x, n.op("Mul", {x, n.op("Mul", {n.scalar(0.044714998453855515), x})})});
  V t = n.op("Tanh", {n.op("Mul", {n.scalar(0.7978845834732056), n.op("Add", {x, c})})});
  n.output(n.op("Mul", {x, n.op("Mul", {n.scalar(0.5), n.op("Add", {n.floats({1, 1}, {1}), t})})}));
  check(n, "Gelu", 1, 1);
}
TEST(Gelu, OtherConstantsAreNoGelu) {
  Net n;
  V x = n.input("x", {3, 8});
  V e = n.op("Erf", {n.op("Mul", {x, n.scalar(0.7)})});
  n.output(n.op("Mul", {x, n.op("Mul", {n.scalar(0.5), n.op("Add", {n.scalar(1), e})})}));
  check(n, "Gelu", 0);
}
TEST(Gelu, TanhThatOthersReadStays) {
  Net n;
  V x = n.input("x", {3, 8});
  V e = n.op("Erf", {n.op("Mul", {x, n.scalar(0.7071067690849304)})});
  n.output(n.op("Mul", {x, n.op("Mul", {n.scalar(0.5), n.op("Add", {n.scalar(1), e})})}));
  n.output(e);
  check(n, "Gelu", 0);
}
TEST(Silu, Sigmoid) {
  Net n;
  V x = n.op("Relu", {n.input("x", {3, 8})});
  n.output(n.op("Mul", {x, n.op("Sigmoid", {x})}));
  check(n, "Silu", 1, 2);
}
TEST(HardSwish, PaddleForm) {
  Net n;
  V x = n.input("x", {3, 8});
  V c = n.op("Clip", {n.op("Add", {x, n.scalar(3)}), n.scalar(0), n.scalar(6)});
  n.output(n.op("Div", {n.op("Mul", {x, c}), n.scalar(6)}));
  check(n, "HardSwish", 1, 1);
}
TEST(HardSwish, OverHardSigmoid) {
  Net n;
  V x = n.input("x", {3, 8});
  n.output(n.op("Mul", {x, n.op("HardSigmoid", {x}, {{"alpha", 1.0f / 6}, {"beta", 0.5f}})}));
  check(n, "HardSwish", 1, 1);
}
TEST(HardSwish, DivisionBeforeProduct) {
  Net n;
  V x = n.input("x", {3, 8});
  V c = n.op("Clip", {n.op("Add", {x, n.scalar(3)}), n.scalar(0), n.scalar(6)});
  n.output(n.op("Mul", {x, n.op("Div", {c, n.scalar(6)})}));
  check(n, "HardSwish", 1, 1);
}
TEST(HardSigmoid, ClipForm) {
  Net n;
  V x = n.input("x", {3, 8});
  V c = n.op("Clip", {n.op("Add", {n.op("Mul", {x, n.scalar(1.2)}), n.scalar(3)}), n.scalar(0), n.scalar(6)});
  n.output(n.op("Div", {c, n.scalar(6)}));
  check(n, "HardSigmoid", 1, 1);
}

namespace {
V mean(Net& n, V x, int64_t axis) {
  return n.op("ReduceMean", {x, n.ints({axis})});
}
}  // namespace
TEST(LayerNorm, AsPyTorch) {
  Net n;
  V x = n.op("Relu", {n.input("x", {2, 3, 16})});
  V d = n.op("Sub", {x, mean(n, x, -1)});
  V s = n.op("Sqrt", {n.op("Add", {mean(n, n.op("Pow", {d, n.scalar(2)}), -1), n.scalar(1e-5)})});
  V y = n.op("Mul", {n.op("Div", {d, s}), n.random({16})});
  n.output(n.op("Add", {y, n.random({16})}));
  check(n, "LayerNormalization", 1, 2);
}
TEST(LayerNorm, WithoutScaleAndWithTwoDifferences) {
  Net n;
  V x = n.input("x", {2, 3, 16});
  V d = n.op("Sub", {x, mean(n, x, -1)}), d2 = n.op("Sub", {x, mean(n, x, -1)});
  V s = n.op("Sqrt", {n.op("Add", {mean(n, n.op("Mul", {d2, d2}), -1), n.scalar(1e-5)})});
  n.output(n.op("Div", {d, s}));
  check(n, "LayerNormalization", 1, 1);
}
TEST(LayerNorm, MomentsOverMiddleAxisAsJax) {
  // Sums times 1/n without kept axes, E[x^2] - E[x]^2, Reshape and Expand in between, scale before centring.
  Net n;
  V x = n.op("Relu", {n.input("x", {2, 8, 5})});
  V axes = n.ints({1});
  V m = n.op("Mul", {n.op("ReduceSum", {x, axes}, {{"keepdims", int64_t(0)}}), n.scalar(0.125)});
  V m2 = n.op("Mul", {n.op("ReduceSum", {n.op("Mul", {x, x}), axes}, {{"keepdims", int64_t(0)}}), n.scalar(0.125)});
  V var = n.op("Max", {n.scalar(0), n.op("Sub", {m2, n.op("Mul", {m, m})})});
  V kept = n.ints({2, 1, 5});
  V wide = n.op("Expand", {n.op("Reshape", {var, kept}), kept});
  V r = n.op("Reciprocal", {n.op("Sqrt", {n.op("Add", {wide, n.scalar(1e-3)})})});
  V d = n.op("Sub", {x, n.op("Expand", {n.op("Reshape", {m, kept}), kept})});
  V y = n.op("Mul", {d, n.op("Mul", {r, n.random({1, 8, 1})})});
  n.output(n.op("Add", {y, n.random({1, 8, 1})}));
  check(n, "LayerNormalization", 1, 4);
}
TEST(LayerNorm, ScaleOfAnotherAxisStaysOutside) {
  Net n;
  V x = n.input("x", {2, 3, 16});
  V d = n.op("Sub", {x, mean(n, x, -1)});
  V s = n.op("Sqrt", {n.op("Add", {mean(n, n.op("Mul", {d, d}), -1), n.scalar(1e-5)})});
  n.output(n.op("Mul", {n.op("Div", {d, s}), n.random({3, 1})}));
  check(n, "LayerNormalization", 1, 2);
}
TEST(RmsNorm, AsLlama) {
  Net n;
  V x = n.input("x", {2, 3, 16});
  V v = n.op("Add", {mean(n, n.op("Pow", {x, n.scalar(2)}), -1), n.scalar(1e-5)});
  V y = n.op("Mul", {x, n.op("Reciprocal", {n.op("Sqrt", {v})})});
  n.output(n.op("Mul", {n.random({16}), y}));
  check(n, "RMSNormalization", 1, 1);
}
TEST(Softmax, FromPrimitives) {
  Net n;
  V x = n.op("Relu", {n.input("x", {2, 7})});
  V axes = n.ints({1});
  V kept = n.ints({2, 1});
  V m = n.op("Max", {n.scalar(-INFINITY), n.op("ReduceMax", {x, axes}, {{"keepdims", int64_t(0)}})});
  V e = n.op("Exp", {n.op("Sub", {x, n.op("Expand", {n.op("Reshape", {m, kept}), kept})})});
  V s = n.op("ReduceSum", {e, axes}, {{"keepdims", int64_t(0)}});
  n.output(n.op("Div", {e, n.op("Expand", {n.op("Reshape", {s, kept}), kept})}));
  check(n, "Softmax", 1, 2);
}
